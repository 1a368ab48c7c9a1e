/** The tools that a turn offers, its own and those that its items bring; where groups are unknown their tools one by one, under names made of two. */
import type { Delta } from "./event.ts";
import type { Dialect, Tool, ToolGroup } from "./settings.ts";
import type { Turn } from "./turn.ts";

export type Speaks = (dialect: Dialect) => boolean;

/** A tool by the name that its caller's choice has for it. */
export interface Offer {
  readonly name: string;
  /** Absent: the adapter cannot offer it. */
  readonly tool?: Tool | undefined;
}

/** How a caller's choice names a tool of a group. */
export function nameInGroup(group: string, name: string): string {
  return `${group} ${name}`;
}

/** Those that are allowed. `names`: the adapter knows no groups. */
export function toOffers(
  tools: readonly Tool[],
  allowedTools: readonly string[] | undefined,
  speaks: Speaks,
  names: Names | undefined,
): readonly Offer[] {
  const allowed = allowedTools && new Set(allowedTools);
  const offers = tools.flatMap((whole) => {
    const tool = allowed === undefined ? whole : narrow(whole, allowed);
    if (tool === undefined) return [];
    return tool.type === "other" && !speaks(tool.extra.dialect) ? offersOf(tool, names) : { name: nameOf(tool), tool };
  });
  // The newest definition of a name counts, where the name first stood: what a model reads changes little.
  const byName = offers.map((offer, index) => [offer.tool?.type === "other" ? index : offer.name, offer] as const);
  return [...new Map(byName).values()];
}

/** What is allowed of a tool: all of it, part of a group, or nothing. */
function narrow(tool: Tool, allowed: ReadonlySet<string>): Tool | undefined {
  if (allowed.has(nameOf(tool))) return tool;
  if (tool.type !== "other" || tool.group === undefined) return undefined;
  const { group, extra } = tool;
  const isAllowed = (_: unknown, index: number): boolean => {
    const inner = group.tools[index];
    return inner !== undefined && allowed.has(nameInGroup(group.name, nameOf(inner)));
  };
  const tools = group.tools.filter(isAllowed);
  if (tools.length === 0) return undefined;
  const written = extra.fields["tools"];
  const fields = { ...extra.fields, tools: Array.isArray(written) ? written.filter(isAllowed) : written };
  return { ...tool, group: { ...group, tools }, extra: { ...extra, fields } };
}

/** Of another dialect: a group is offered tool by tool, and a search that the caller runs as a function. */
function offersOf(tool: Extract<Tool, { type: "other" }>, names: Names | undefined): readonly Offer[] {
  const { search, group } = tool;
  if (names === undefined || group === undefined) return [{ name: nameOf(tool), tool: names && search }];
  return group.tools.map((inner) => ({
    name: nameInGroup(group.name, nameOf(inner)),
    tool: inner.type === "other" ? undefined : toStandalone(inner, group, names),
  }));
}

/** With its group's description in front. */
function toStandalone(tool: Exclude<Tool, { type: "other" }>, group: ToolGroup, names: Names): Tool {
  const both = [group.description, tool.description].filter(Boolean).join("\n\n");
  // Some servers accept no longer one.
  const description = both === "" || both.length > 1_024 ? tool.description : both;
  return { ...tool, name: names.join(group.name, tool.name), description };
}

/** The request's, then those that items bring, for an adapter that does not find them there. */
export function toolsOf({ settings: { native, tools }, items }: Turn, speaks: Speaks): readonly Tool[] {
  if (speaks("responses")) return tools;
  const searches = tools.some((tool) => tool.type === "other" && tool.search !== undefined);
  const all = searches ? tools.flatMap(withoutDeferred) : [...tools];
  for (const item of items) {
    if ((item.type !== "other" && item.type !== "tool-output") || item.tools === undefined) continue;
    // A caller of another dialect does not know them, and could not answer a call.
    if (native === undefined || native.dialect === item.extra?.dialect) for (const tool of item.tools) all.push(tool);
  }
  return all;
}

/** What its caller must search for first is not offered yet. */
function withoutDeferred(tool: Tool): readonly Tool[] {
  if (tool.type !== "other") return tool.deferred === true ? [] : [tool];
  const { group } = tool;
  return group === undefined ? [tool] : [{ ...tool, group: { ...group, tools: group.tools.flatMap(withoutDeferred) } }];
}

/** A tool that only its dialect knows goes by its type, unless its dialect says more. */
function nameOf(tool: Tool): string {
  return tool.type === "other" ? (tool.name ?? String(tool.extra.fields["type"])) : tool.name;
}

export type Names = ReturnType<typeof createNames>;

/** The names of one turn that stand for grouped tools and for searches. */
export function createNames(tools: readonly Tool[]) {
  const taken = new Set(tools.flatMap((tool) => (tool.type === "other" ? [] : [tool.name])));
  const joined = new Map<string, string>();
  /** What a call has in its caller's terms. */
  const owns = new Map<string, { readonly group: string; readonly name: string } | { readonly kind: "search" }>();

  /** Always the same for the same pair, unless another tool of the turn has it. */
  function join(group: string, name: string): string {
    const both = JSON.stringify([group, name]);
    const known = joined.get(both);
    if (known !== undefined) return known;
    let result = `${group.replace(/(?<!_)_+$/, "")}__${name}`;
    for (let salt = 0; !acceptable.test(result) || taken.has(result); salt++)
      result = `${result.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 55)}_${digestOf(both + salt)}`;
    taken.add(result);
    joined.set(both, result);
    owns.set(result, { group, name });
    return result;
  }

  // The caller's tools get their names before any that was only called earlier.
  for (const tool of tools) {
    if (tool.type !== "other") continue;
    const { search, group } = tool;
    if (search !== undefined) owns.set(search.name, { kind: "search" });
    for (const inner of group?.tools ?? []) if (group && inner.type !== "other") join(group.name, inner.name);
  }
  /** Gives a call its own name, group and kind back. */
  const restore = (delta: Delta): Delta => (delta.type === "tool-call" ? { ...delta, ...owns.get(delta.name) } : delta);
  return { join, restore: (deltas: readonly Delta[]) => deltas.map(restore) };
}

/** What every chat server accepts as a function's name. */
const acceptable = /^[A-Za-z0-9_-]{1,64}$/;

/** FNV-1a: few names must be told apart, and nobody gains from a collision. */
function digestOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
