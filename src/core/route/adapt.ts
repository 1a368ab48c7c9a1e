/**
 * Makes a turn fit its adapter: what only another dialect knows is left out and reported, or refused if the answer
 * depends on it.
 */
import { GatewayError } from "../errors.ts";
import { describeFound } from "../found.ts";
import { createJoinedNames, type JoinedNames, toStandaloneTool } from "./groups.ts";
import { type Dialect, type Extra, type Item, type Message, type ToolCall, type ToolOutput, typeOf } from "../item.ts";
import { nameOf, offeredTools, updatedSettings } from "./brought.ts";
import type { Adapter, Tell } from "../ports.ts";
import { nameInGroup, type Native, type Settings, type Tool, type ToolChoice, type Turn } from "../turn.ts";

/**
 * The turn as its adapter gets it, which is the same if nothing has to change; `restore` translates what the adapter says
 * into the caller's terms, if needed.
 */
export function adaptTurn(turn: Turn, adapter: Pick<Adapter, "speaks">, tell: Tell) {
  const speaks: Speaks = (dialect) => adapter.speaks?.includes(dialect) === true;
  refuseDemands(turn.settings, speaks, tell);
  const updated = updatedSettings(turn, speaks);
  const tools = offeredTools(turn, speaks);
  const names = speaks("responses") ? undefined : createJoinedNames(tools);
  const settings = adaptTools(updated, tools, speaks, names, tell);
  const items = adaptItems(turn.items, speaks, names, tell);
  if (items.length === 0 && turn.items.length > 0 && settings.instructions === undefined)
    throw unsupported("input", "It contains no item that the adapter behind this model can read. Add a message.");
  const isSame = items === turn.items && settings === turn.settings;
  return { turn: isSame ? turn : { ...turn, items, settings }, restore: names?.restorer() };
}

type Speaks = (dialect: Dialect) => boolean;

/**
 * What only the caller's dialect can honour is refused if the answer depends on it, and reported as left out otherwise.
 */
function refuseDemands({ native }: Settings, speaks: Speaks, tell: Tell): void {
  if (native === undefined || speaks(native.dialect)) return;
  for (const { param, why } of native.demands ?? []) throw unsupported(param, why);
  for (const what of native.offers ?? []) tell({ type: "left-out", what });
}

/**
 * An adapter that does not know such items gets a compaction as plain text, and a search as a function call. What only
 * another dialect knows is also sent as text, if it has any, or left out and reported; of an item that brings tools or
 * settings only these count.
 */
function adaptItems(
  items: readonly Item[],
  speaks: Speaks,
  names: JoinedNames | undefined,
  tell: Tell,
): readonly Item[] {
  const isKnown = (item: Item): boolean => {
    if (item.type === "message") return !carriesOnly(item, speaks);
    if (item.type === "other") return speaks(item.extra.dialect);
    if (item.type === "tool-call") return names === undefined || (item.group === undefined && item.kind !== "search");
    if (item.type === "tool-output") return names === undefined || item.kind !== "search";
    return item.type !== "compaction" || speaks("responses");
  };
  if (items.every(isKnown)) return items;
  const leftOut = new Set<string>();
  const adapted = items.flatMap((item): readonly Item[] => {
    if (isKnown(item)) return [item];
    if (item.type === "tool-call") return [adaptCall(item, names)];
    if (item.type === "tool-output") return [adaptOutput(item, names)];
    if (item.type === "other" && item.words !== undefined) return [toUserMessage(item.words)];
    if (item.type === "other" && (item.tools ?? item.updates) === undefined) leftOut.add(typeOf(item.extra));
    if (item.type !== "compaction") return [];
    if (item.summary !== "") return [toUserMessage(`Summary of the conversation so far:\n${item.summary}`)];
    throw unsupported(
      "input",
      "The item of type 'compaction' has only an encrypted form, which the adapter behind this model cannot read. Send the conversation itself, or use the model that made the item.",
    );
  });
  for (const type of leftOut) tell({ type: "left-out", what: `item ${type}` });
  return adapted;
}

/** An empty message that accompanies calls, for fields that only another dialect knows. */
function carriesOnly({ role, content, extra }: Message, speaks: Speaks): boolean {
  return content === "" && role === "assistant" && extra !== undefined && !speaks(extra.dialect);
}

/** A search becomes a function, and a call of a group gets the name made of both; an archive may have a call that is both. */
function adaptCall({ group, ...call }: ToolCall, names: JoinedNames | undefined): ToolCall {
  const kind = call.kind === "search" ? "function" : call.kind;
  const name = group === undefined || names === undefined ? call.name : names.join(group, call.name);
  return { ...call, kind, name };
}

function adaptOutput({ type, callId, tools = [] }: ToolOutput, names: JoinedNames | undefined): ToolOutput {
  return { type, kind: "function", callId, output: describeFound(tools, names?.join) };
}

function toUserMessage(content: string): Item {
  return { type: "message", role: "user", content };
}

/** Which tools are allowed applies on any server: the others are never sent. */
function adaptTools(
  settings: Settings,
  tools: readonly Tool[],
  speaks: Speaks,
  names: JoinedNames | undefined,
  tell: Tell,
): Settings {
  const { toolChoice: choice, allowedTools, ...others } = settings;
  if (choice?.type === "other" && !speaks(choice.extra.dialect)) throw toolUnavailable(typeOf(choice.extra));
  const isKnown = (tool: Tool): boolean => tool.type !== "other" || speaks(tool.extra.dialect);
  if (allowedTools === undefined && tools === settings.tools && tools.every(isKnown)) return settings;
  const chosen = allowedTools && new Set(allowedTools);
  const allowed = chosen === undefined ? tools : tools.map((tool) => narrow(tool, chosen));
  const wanted = allowed.flatMap((tool) => tool ?? []).flatMap((tool) => offersOf(tool, isKnown(tool), names));
  const kept = wanted.flatMap(({ tool }) => tool ?? []);
  for (const { name, tool } of wanted) if (tool === undefined) tell({ type: "left-out", what: `tool ${name}` });
  const toolChoice = adaptChoice(choice, wanted);
  const native = adaptNative(settings, allowed);
  if (kept.length > 0) return { ...others, tools: kept, toolChoice, native };
  if (toolChoice?.type === "required") {
    const named = wanted.map(({ name }) => `'${name}'`).join(", ") || "none is given";
    throw unsupported("tool_choice", `It requires a call to a tool (${named}), but ${noSuchTool}`);
  }
  // Servers refuse these two without tools.
  return { ...others, tools: kept, toolChoice: undefined, parallelToolCalls: undefined, native };
}

/** A tool by the name that the caller's choice uses; without a `tool` it is left out. */
interface Offer {
  readonly name: string;
  readonly tool?: Tool | undefined;
}

/** An unknown group is offered tool by tool, and a search that the caller runs as a function. */
function offersOf(tool: Tool, isKnown: boolean, names: JoinedNames | undefined): readonly Offer[] {
  const name = nameOf(tool);
  if (isKnown || tool.type !== "other") return [{ name, tool }];
  const { group, search } = tool;
  if (search !== undefined && names?.isSearch(search)) return [{ name, tool: search }];
  if (group === undefined || names === undefined) return [{ name }];
  return group.tools.map((inner) => ({
    name: nameInGroup(group.name, nameOf(inner)),
    tool: inner.type === "other" ? undefined : toStandaloneTool(inner, group, names),
  }));
}

/** What is allowed of a tool: all of it, part of a group, or nothing. */
function narrow(tool: Tool, names: ReadonlySet<string>): Tool | undefined {
  if (names.has(nameOf(tool))) return tool;
  if (tool.type !== "other" || tool.group === undefined) return undefined;
  const { group, extra } = tool;
  const isAllowed = (_: unknown, index: number): boolean => {
    const inner = group.tools[index];
    return inner !== undefined && names.has(nameInGroup(group.name, nameOf(inner)));
  };
  const tools = group.tools.filter(isAllowed);
  if (tools.length === 0) return undefined;
  const fields = { ...extra.fields, tools: listAt(extra, "tools").filter(isAllowed) };
  return { ...tool, group: { ...group, tools }, extra: { ...extra, fields } };
}

function adaptChoice(choice: ToolChoice | undefined, wanted: readonly Offer[]): ToolChoice | undefined {
  if (choice?.type !== "tool") return choice;
  const offer = wanted.find(({ name }) => name === choice.name);
  if (offer?.tool === undefined) throw toolUnavailable(choice.name);
  return { type: "tool", name: offer.tool.type === "other" ? choice.name : offer.tool.name };
}

function toolUnavailable(name: string): GatewayError {
  return unsupported("tool_choice", `It asks for the tool '${name}', but ${noSuchTool}`);
}

const noSuchTool =
  "the adapter behind this model has no such tool. Use function tools, another model, or the choice 'auto'.";

/** An adapter of the caller's own dialect forwards its fields, so they must agree; both dialects write them alike. */
function adaptNative(
  { native, toolChoice, allowedTools }: Settings,
  allowed: readonly (Tool | undefined)[],
): Native | undefined {
  if (native === undefined || allowedTools === undefined) return native;
  const { fields } = native;
  const entries = listAt(native, "tools").flatMap((entry, index) => {
    const tool = allowed[index];
    if (tool === undefined) return [];
    return [tool.type === "other" ? tool.extra.fields : entry];
  });
  if (entries.length === 0) {
    return {
      ...native,
      fields: { ...fields, tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined },
    };
  }
  return { ...native, fields: { ...fields, tools: entries, tool_choice: toolChoice?.type } };
}

function listAt({ fields }: Extra, key: string): readonly unknown[] {
  const value = fields[key];
  return Array.isArray(value) ? value : [];
}

function unsupported(param: string, why: string): GatewayError {
  return new GatewayError("unsupported_parameter", `Unsupported parameter: '${param}'. ${why}`, { param });
}
