/**
 * Tool groups for an adapter that does not support them: each tool gets one name made of two, and calls get both back.
 */
import type { Delta } from "../delta.ts";
import type { FunctionTool, Tool, ToolGroup } from "../turn.ts";

/** The names that stand for grouped tools and for searches, in one turn. */
export interface JoinedNames {
  /** Always the same for the same pair, unless another tool of the turn has it. */
  join(group: string, name: string): string;
  /** Whether a call by its name is the search; a function of the caller with that name takes precedence. */
  isSearch(tool: FunctionTool): boolean;
  /** Restores the calls' own names, groups and kinds; undefined: no need to. */
  restorer(): ((deltas: readonly Delta[]) => readonly Delta[]) | undefined;
}

/** The caller's tools get their names before any that was only called earlier. */
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

/** Without trailing underscores; a regular expression would retry from each one of a long run. */
function withoutEnd(group: string): string {
  let end = group.length;
  while (group[end - 1] === "_") end -= 1;
  return group.slice(0, end);
}

/** What a call has in its caller's terms. */
type Own = { readonly group: string; readonly name: string; readonly kind?: never } | { readonly kind: "search" };

/** A tool on its own, with its group's description in front. */
export function toStandaloneTool(
  tool: Exclude<Tool, { type: "other" }>,
  { name: group, description: common }: ToolGroup,
  names: JoinedNames,
): Tool {
  const { description: own } = tool;
  // Not even joined if it is too long: each of a thousand tools would have a copy.
  const isShort = (common?.length ?? 0) <= maxDescription;
  const both = isShort ? [common, own].filter((text) => text !== undefined && text !== "").join("\n\n") : "";
  const description = both === "" || both.length > maxDescription ? own : both;
  return { ...tool, name: names.join(group, tool.name), description };
}

/** What every chat server accepts as a function name, and how long a description some accept. */
const acceptable = /^[A-Za-z0-9_-]{1,64}$/;
const maxDescription = 1_024;

/** A name too long, invalid or taken is cut, and gets a digest. */
function fold(group: string, name: string, salted: string): string {
  const readable = `${toWord(group).slice(0, 20)}__${toWord(name)}`.slice(0, 55);
  return `${readable}_${digestOf(salted)}`;
}

function toWord(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, "_");
}

/** FNV-1a: few names must be told apart, and nobody gains from a collision. */
function digestOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
