/** The tools that a turn offers, its own and those that its items bring; where groups are unknown their tools one by one, under names made of two. */
import type { ToolCall } from "./item.ts";
import type { Dialect, Tool, ToolGroup } from "./settings.ts";
import type { Turn } from "./turn.ts";

export type Speaks = (dialect: Dialect) => boolean;

/** A tool by the name that its caller's choice has for it. */
export interface Offer {
  readonly name: string;
  /** Absent: the adapter cannot offer it. */
  readonly tool?: Tool | undefined;
  /** What a call of it has in its caller's terms. */
  readonly own?: Partial<Pick<ToolCall, "group" | "name" | "kind">>;
}

/** How a caller's choice names a tool of a group. */
export function nameInGroup(group: string, name: string): string {
  return `${group} ${name}`;
}

/** The same where groups are unknown, as every chat server accepts it: of a long name the end says most. */
export function joinNames(group: string, name: string): string {
  return `${group}__${name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(-64);
}

/** Those that are allowed. */
export function toOffers(
  tools: readonly Tool[],
  allowedTools: readonly string[] | undefined,
  speaks: Speaks,
): readonly Offer[] {
  const allowed = allowedTools && new Set(allowedTools);
  const offers = tools.flatMap((whole): Offer | readonly Offer[] => {
    const tool = allowed === undefined ? whole : narrow(whole, allowed);
    if (tool === undefined) return [];
    return tool.type === "other" && !speaks(tool.extra.dialect) ? offersOf(tool) : { name: nameOf(tool), tool };
  });
  // The newest definition of a name counts, where the name first stood: what a model reads changes little.
  const byName = offers.map((offer, index) => {
    const { name, tool } = offer;
    return [tool?.type === "other" ? index : (tool?.name ?? name), offer] as const;
  });
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
function offersOf(tool: Extract<Tool, { type: "other" }>): readonly Offer[] {
  const { search, group } = tool;
  if (group === undefined) return [{ name: nameOf(tool), tool: search, own: { kind: "search" } }];
  return group.tools.map((inner) => {
    const name = nameInGroup(group.name, nameOf(inner));
    if (inner.type === "other") return { name };
    return { name, tool: toStandalone(inner, group), own: { group: group.name, name: inner.name } };
  });
}

/** With its group's description in front. */
function toStandalone(tool: Exclude<Tool, { type: "other" }>, group: ToolGroup): Tool {
  const both = [group.description, tool.description].filter(Boolean).join("\n\n");
  // Some servers accept no longer one.
  const description = both === "" || both.length > 1_024 ? tool.description : both;
  return { ...tool, name: joinNames(group.name, tool.name), description };
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
