/** Fits a turn to the adapter that answers it: what only another dialect knows is told as left out, or refused where the answer depends on it. */
import type { Adapter, Reply, Tell } from "./adapter.ts";
import { GatewayError } from "./errors.ts";
import type { Item } from "./item.ts";
import type { Extra, Settings, ToolChoice } from "./settings.ts";
import { createNames, type Names, type Offer, type Speaks, toolsOf, toOffers } from "./offers.ts";
import type { Turn } from "./turn.ts";

/** The same adapter, which now takes any turn, and answers in its caller's terms. */
export function fitTo(adapter: Adapter): Adapter {
  const speaks: Speaks = (dialect) => adapter.speaks.includes(dialect);
  return {
    ...adapter,
    open(turn, signal, tell) {
      refuseDemands(turn.settings, speaks, tell);
      return isPlain(turn) ? adapter.open(turn, signal, tell) : openFitting(turn, signal, tell);
    },
  };

  async function openFitting(turn: Turn, signal: AbortSignal, tell: Tell): Promise<Reply> {
    const tools = toolsOf(turn, speaks);
    const names = speaks("responses") ? undefined : createNames(tools);
    const items = fitItems(turn.items, speaks, names, tell);
    const settings = fitSettings(turn, toOffers(tools, turn.settings.allowedTools, speaks, names), speaks, tell);
    const reply = await adapter.open({ ...turn, items, settings }, signal, tell);
    return names === undefined ? reply : restored(reply, names);
  }
}

function restored(reply: Reply, names: Names): Reply {
  return {
    first: names.restore(reply.first),
    async next() {
      const batch = await reply.next();
      return batch && names.restore(batch);
    },
    close: (answer) => reply.close?.(answer),
  };
}

/** What only the caller's dialect can honour is refused if the answer depends on it. */
function refuseDemands({ native }: Settings, speaks: Speaks, tell: Tell): void {
  if (native === undefined || speaks(native.dialect)) return;
  for (const { param, why } of native.demands ?? []) throw unsupported(param, why);
  for (const what of native.offers ?? []) tell({ type: "left-out", what });
}

/** There is nothing in it that a dialect could lack. */
function isPlain({ items, settings: { tools, toolChoice, allowedTools } }: Turn): boolean {
  if (allowedTools !== undefined || toolChoice?.type === "other") return false;
  return tools.every(({ type }) => type !== "other") && items.every(isPlainItem);
}

function isPlainItem(item: Item): boolean {
  switch (item.type) {
    case "message":
      return item.content !== "";
    case "tool-call":
      return item.group === undefined && item.kind !== "search";
    case "tool-output":
      return item.kind !== "search";
    default:
      return item.type === "reasoning" || item.type === "reference";
  }
}

/**
 * `names`: the adapter knows no groups, searches and compactions, so a compaction is plain text, and a search a function.
 * What only another dialect knows is text, if it says anything; of an item that brings tools or settings only these count.
 */
function fitItems(items: readonly Item[], speaks: Speaks, names: Names | undefined, tell: Tell): readonly Item[] {
  const leftOut = new Set<string>();

  function fitItem(item: Item): Item | undefined {
    switch (item.type) {
      case "message": {
        const { content, role, extra } = item;
        // An empty message beside calls, for fields that only its dialect knows.
        return content === "" && role === "assistant" && extra && !speaks(extra.dialect) ? undefined : item;
      }
      case "tool-call": {
        if (names === undefined || isPlainItem(item)) return item;
        const { group, kind, ...call } = item;
        const name = group === undefined ? call.name : names.join(group, call.name);
        return { ...call, kind: kind === "search" ? "function" : kind, name };
      }
      case "tool-output": {
        if (names === undefined || isPlainItem(item)) return item;
        const { type, callId, tools = [] } = item;
        const found = toOffers(tools, undefined, speaks, names).map(({ name, tool }) => tool?.name ?? name);
        // The tools themselves are offered.
        return { type, kind: "function", callId, output: JSON.stringify(found) };
      }
      case "compaction":
        if (names === undefined) return item;
        return toUserMessage(`Summary of the conversation so far:\n${item.summary || refuseSealed()}`);
      case "other":
        if (speaks(item.extra.dialect)) return item;
        if (item.words !== undefined) return toUserMessage(item.words);
        if (item.tools === undefined && item.updates === undefined) leftOut.add(typeOf(item.extra));
        return undefined;
      default:
        return item;
    }
  }

  const fitting = items.flatMap((item) => fitItem(item) ?? []);
  for (const type of leftOut) tell({ type: "left-out", what: `item ${type}` });
  return fitting;
}

const toUserMessage = (content: string): Item => ({ type: "message", role: "user", content });

function refuseSealed(): never {
  const why =
    "An item of type 'compaction' has only an encrypted form, which the adapter behind this model cannot read.";
  throw unsupported("input", `${why} Send the conversation itself, or use the model that made the item.`);
}

/** Which tools are allowed holds on any server: the others are never offered. */
function fitSettings(turn: Turn, offers: readonly Offer[], speaks: Speaks, tell: Tell): Settings {
  const { toolChoice: choice, allowedTools, native, parallelToolCalls, ...others } = withUpdates(turn, speaks);
  for (const { name, tool } of offers) if (tool === undefined) tell({ type: "left-out", what: `tool ${name}` });
  const tools = offers.flatMap(({ tool }) => tool ?? []);
  const fitting = fitChoice(choice, offers, speaks);
  // Servers refuse a choice, and this setting, without tools.
  const toolChoice = tools.length > 0 ? fitting : undefined;
  const parallel = tools.length > 0 ? parallelToolCalls : undefined;
  // An adapter of the caller's dialect passes its fields on; both dialects write a plain choice alike.
  const fields = native && { ...native.fields, tool_choice: toolChoice?.type };
  const own = native && fields && allowedTools ? { ...native, fields } : native;
  return { ...others, tools, toolChoice, parallelToolCalls: parallel, native: own };
}

/** What items of the caller's dialect change; an adapter of that dialect finds it in them. */
function withUpdates({ settings, items }: Turn, speaks: Speaks): Settings {
  const changed = { ...settings };
  for (const item of items) {
    const isCallers = item.type === "other" && item.extra.dialect === settings.native?.dialect;
    if (isCallers && !speaks(item.extra.dialect)) Object.assign(changed, item.updates);
  }
  return changed;
}

function fitChoice(choice: ToolChoice | undefined, offers: readonly Offer[], speaks: Speaks): ToolChoice | undefined {
  switch (choice?.type) {
    case "other":
      if (speaks(choice.extra.dialect)) return choice;
      throw toolUnavailable(typeOf(choice.extra));
    case "tool": {
      const tool = offers.find(({ name }) => name === choice.name)?.tool;
      if (tool === undefined) throw toolUnavailable(choice.name);
      return tool.type === "other" ? choice : { type: "tool", name: tool.name };
    }
    case "required": {
      if (offers.some(({ tool }) => tool !== undefined)) return choice;
      const named = offers.map(({ name }) => `'${name}'`).join(", ") || "none is given";
      throw unsupported("tool_choice", `It requires a call to a tool (${named}), but ${noSuchTool}`);
    }
    default:
      return choice;
  }
}

function toolUnavailable(name: string): GatewayError {
  return unsupported("tool_choice", `It asks for the tool '${name}', but ${noSuchTool}`);
}

const noSuchTool =
  "the adapter behind this model has no such tool. Use function tools, another model, or the choice 'auto'.";

function typeOf({ fields }: Extra): string {
  return String(fields["type"]);
}

function unsupported(param: string, why: string): GatewayError {
  return new GatewayError("unsupported_parameter", `Unsupported parameter: '${param}'. ${why}`, { param });
}
