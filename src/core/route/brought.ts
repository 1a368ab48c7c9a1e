/** What the items of a turn bring along, for an adapter that does not know such items; others find it in them. */
import { type Dialect, type OtherItem, typeOf } from "../item.ts";
import type { Settings, Tool, Turn } from "../turn.ts";

/** The settings as changed by items; these apply only to requests in the items' own dialect. */
export function updatedSettings({ settings, items }: Turn, speaks: (dialect: Dialect) => boolean): Settings {
  const { native } = settings;
  if (native === undefined || speaks(native.dialect)) return settings;
  const changed: NonNullable<OtherItem["updates"]> = {};
  for (const item of items) {
    if (item.type === "other" && item.extra.dialect === native.dialect) Object.assign(changed, item.updates);
  }
  return Object.keys(changed).length === 0 ? settings : { ...settings, ...changed };
}

/** The request's tools, then those that its items bring; the newest definition of a name wins. */
export function offeredTools({ settings, items }: Turn, speaks: (dialect: Dialect) => boolean): readonly Tool[] {
  const { native } = settings;
  const brought: Tool[] = [];
  for (const item of items) {
    if ((item.type !== "other" && item.type !== "tool-output") || item.tools === undefined) continue;
    const { tools, extra } = item;
    if (extra === undefined || speaks(extra.dialect)) continue;
    // A caller that uses another dialect than the item's does not know its tools, and could not answer a call.
    if (native !== undefined && native.dialect !== extra.dialect) continue;
    for (const tool of tools) brought.push(tool);
  }
  const given = speaks("responses") ? settings.tools : withoutDeferred(settings.tools);
  return brought.length === 0 ? given : renew(given, brought);
}

/** If the caller searches for tools, those that must be found first are not offered yet. */
function withoutDeferred(tools: readonly Tool[]): readonly Tool[] {
  if (!tools.some((tool) => tool.type === "other" && tool.search !== undefined)) return tools;
  return tools.flatMap((tool): readonly Tool[] => {
    if (tool.type !== "other") return tool.deferred === true ? [] : [tool];
    if (tool.group === undefined) return [tool];
    const found = tool.group.tools.filter((inner) => inner.type === "other" || inner.deferred !== true);
    return found.length === 0 ? [] : [{ ...tool, group: { ...tool.group, tools: found } }];
  });
}

/** A tool's name; for a tool that only its dialect knows its type, unless its dialect says more. */
export function nameOf(tool: Tool): string {
  return tool.type === "other" ? (tool.name ?? typeOf(tool.extra)) : tool.name;
}

/** Each stays where its name first stood, so that what a model reads changes little. */
function renew(before: readonly Tool[], brought: readonly Tool[]): readonly Tool[] {
  const versions = before.map((tool) => [tool]);
  const places = new Map(before.map((tool, place) => [keyOf(tool), place]));
  for (const tool of brought) {
    const place = places.get(keyOf(tool)) ?? versions.length;
    places.set(keyOf(tool), place);
    (versions[place] ??= []).push(tool);
  }
  return versions.flatMap(newestOf);
}

/**
 * A group may come in parts, some of its tools at a time: all are merged at once, since one by one would copy
 * repeatedly.
 */
function newestOf(versions: readonly Tool[]): readonly Tool[] {
  const newest = versions.slice(-1);
  const [tool] = newest;
  if (versions.length === 1 || tool?.type !== "other" || tool.group === undefined) return newest;
  const [first, ...others] = versions.flatMap((version) => (version.type === "other" ? (version.group ?? []) : []));
  const tools = renew(
    first?.tools ?? [],
    others.flatMap((part) => part.tools),
  );
  const description = [first, ...others].findLast((part) => part?.description !== undefined)?.description;
  return [{ ...tool, group: { ...tool.group, description, tools } }];
}

/** A function may be named like a type. */
function keyOf(tool: Tool): string {
  return `${tool.type === "other" ? "other" : "named"} ${nameOf(tool)}`;
}
