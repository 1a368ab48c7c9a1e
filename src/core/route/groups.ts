/** Groups of tools for an adapter that knows none: each tool goes by one name made of two, and what comes back has both again. */
import type { Delta } from "../delta.ts";
import type { FunctionTool, Tool, ToolGroup } from "../turn.ts";

/** The names that stand for tools in groups and for searches, for one turn. */
export interface JoinedNames {
  /** Always the same for the same two, as long as no other tool of the turn has it. */
  join(group: string, name: string): string;
  /** Whether a call by its name is the search; one of the caller's own functions that has the name comes first. */
  isSearch(tool: FunctionTool): boolean;
  /** Gives calls their own names, groups and kinds again; nothing: they have them. */
  restorer(): Restore | undefined;
}

export type Restore = (deltas: readonly Delta[]) => readonly Delta[];

/** All of the caller's tools have their names, before any that was only called earlier. */
export function createJoinedNames(tools: readonly Tool[]): JoinedNames {
  const taken = new Set(tools.flatMap((tool) => (tool.type === "other" ? [] : [tool.name])));
  const joined = new Map<string, string>();
  const own = new Map<string, Own>();

  function join(group: string, name: string): string {
    const both = JSON.stringify([group, name]);
    const known = joined.get(both);
    if (known !== undefined) return known;
    let result = `${withoutEnd(group)}__${name}`;
    for (let salt = 0; !acceptable.test(result) || taken.has(result); salt++) result = fold(group, name, both + salt);
    taken.add(result);
    joined.set(both, result);
    own.set(result, { group, name });
    return result;
  }

  for (const tool of tools) {
    if (tool.type !== "other") continue;
    const { search, group } = tool;
    if (search !== undefined && !taken.has(search.name)) own.set(search.name, { kind: "search" });
    for (const inner of group?.tools ?? []) if (group && inner.type !== "other") join(group.name, inner.name);
  }
  return {
    join,
    isSearch: ({ name }) => own.get(name)?.kind === "search",
    restorer() {
      if (own.size === 0) return undefined;
      const restore = (delta: Delta): Delta =>
        delta.type === "tool-call" ? { ...delta, ...own.get(delta.name) } : delta;
      return (deltas) => deltas.map(restore);
    },
  };
}

/** Without the underscores at its end; a regular expression would look for them anew from each one of a long run. */
function withoutEnd(group: string): string {
  let end = group.length;
  while (group[end - 1] === "_") end -= 1;
  return group.slice(0, end);
}

/** What a call has in its caller's words. */
type Own = { readonly group: string; readonly name: string; readonly kind?: never } | { readonly kind: "search" };

/** A tool as it stands alone, with what its group says of all of them in front. */
export function standAlone(
  tool: Exclude<Tool, { type: "other" }>,
  { name: group, description: common }: ToolGroup,
  names: JoinedNames,
): Tool {
  const { description: own } = tool;
  // Not even joined where it is too long: each of a thousand tools would have a copy of it.
  const isShort = (common?.length ?? 0) <= maxDescription;
  const both = isShort ? [common, own].filter((text) => text !== undefined && text !== "").join("\n\n") : "";
  const description = both === "" || both.length > maxDescription ? own : both;
  return { ...tool, name: names.join(group, tool.name), description };
}

/** What every chat server takes as the name of a function, and how long a description some take. */
const acceptable = /^[A-Za-z0-9_-]{1,64}$/;
const maxDescription = 1_024;

/** What is too long, strange or taken is cut, and told apart by a digest. */
function fold(group: string, name: string, salted: string): string {
  const readable = `${toWord(group).slice(0, 20)}__${toWord(name)}`.slice(0, 55);
  return `${readable}_${digestOf(salted)}`;
}

function toWord(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, "_");
}

/** FNV-1a: few names need to be told apart, and nobody gains by making two meet. */
function digestOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
