/** Fits a turn to the adapter that answers it: what only another dialect knows is told as left out, or refused where the answer depends on it. */
import type { Adapter, Reply, Tell } from "./adapter.ts";
import { GatewayError } from "./errors.ts";
import type { Delta } from "./event.ts";
import type { Item } from "./item.ts";
import type { Extra, Settings, ToolChoice } from "./settings.ts";
import { joinNames, type Offer, type Speaks, toolsOf, toOffers } from "./offers.ts";
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
    const offers = toOffers(toolsOf(turn, speaks), turn.settings.allowedTools, speaks);
    const settings = fitSettings(turn.settings, offers, speaks, tell);
    const items = fitItems(turn.items, speaks, tell);
    return restored(await adapter.open({ ...turn, items, settings }, signal, tell), offers);
  }
}

/** Gives calls their own names, groups and kinds back. */
function restored(reply: Reply, offers: readonly Offer[]): Reply {
  const owns = new Map(offers.map(({ tool, own }) => [tool?.name, own]));
  const restore = (delta: Delta): Delta => (delta.type === "tool-call" ? { ...delta, ...owns.get(delta.name) } : delta);
  return {
    first: reply.first.map(restore),
    next: async () => (await reply.next())?.map(restore),
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
  if (item.type === "tool-call") return item.group === undefined && item.kind !== "search";
  if (item.type === "tool-output") return item.kind !== "search";
  return item.type === "message" || item.type === "reasoning" || item.type === "reference";
}

/**
 * Chat alone knows no groups, searches and compactions: a compaction is plain text there, and a search a function. What
 * only another dialect knows is left out; of an item that brings tools only these count.
 */
function fitItems(items: readonly Item[], speaks: Speaks, tell: Tell): readonly Item[] {
  const leftOut = new Set<string>();

  function fitItem(item: Item): Item | undefined {
    switch (item.type) {
      case "tool-call": {
        if (speaks("responses") || isPlainItem(item)) return item;
        const { group, kind, ...call } = item;
        const name = group === undefined ? call.name : joinNames(group, call.name);
        return { ...call, kind: kind === "search" ? "function" : kind, name };
      }
      case "tool-output": {
        if (speaks("responses") || isPlainItem(item)) return item;
        // The tools themselves are offered.
        const found = toOffers(item.tools ?? [], undefined, speaks);
        const output = JSON.stringify(found.map(({ name, tool }) => tool?.name ?? name));
        return { type: "tool-output", kind: "function", callId: item.callId, output };
      }
      case "compaction":
        if (speaks("responses")) return item;
        if (item.summary === "") throw unsupported("input", onlySealed);
        return { type: "message", role: "user", content: `Summary of the conversation so far:\n${item.summary}` };
      case "other":
        if (speaks(item.extra.dialect)) return item;
        if (item.tools === undefined) leftOut.add(typeOf(item.extra));
        return undefined;
      default:
        return item;
    }
  }

  const fitting = items.flatMap((item) => fitItem(item) ?? []);
  for (const type of leftOut) tell({ type: "left-out", what: `item ${type}` });
  return fitting;
}

/** Which tools are allowed holds on any server: the others are never offered. */
function fitSettings(settings: Settings, offers: readonly Offer[], speaks: Speaks, tell: Tell): Settings {
  const { toolChoice: choice, allowedTools, native, parallelToolCalls, ...others } = settings;
  for (const { name, tool } of offers) if (tool === undefined) tell({ type: "left-out", what: `tool ${name}` });
  const tools = offers.flatMap(({ tool }) => tool ?? []);
  const fitting = fitChoice(choice, offers, speaks);
  // Servers refuse a choice, and this setting, without tools.
  const toolChoice = tools.length > 0 ? fitting : undefined;
  const parallel = tools.length > 0 ? parallelToolCalls : undefined;
  // An adapter of the caller's dialect passes its fields on; both dialects write a plain choice alike.
  const plain = native && allowedTools && { ...native, fields: { ...native.fields, tool_choice: toolChoice?.type } };
  return { ...others, tools, toolChoice, parallelToolCalls: parallel, native: plain ?? native };
}

function fitChoice(choice: ToolChoice | undefined, offers: readonly Offer[], speaks: Speaks): ToolChoice | undefined {
  switch (choice?.type) {
    case "other":
      if (speaks(choice.extra.dialect)) return choice;
      throw noSuchTool(typeOf(choice.extra));
    case "tool": {
      const tool = offers.find(({ name }) => name === choice.name)?.tool;
      if (tool === undefined) throw noSuchTool(choice.name);
      return tool.type === "other" ? choice : { type: "tool", name: tool.name };
    }
    case "required":
      if (offers.some(({ tool }) => tool !== undefined)) return choice;
      throw noSuchTool(offers.map(({ name }) => name).join("', '") || "any");
    default:
      return choice;
  }
}

function typeOf({ fields }: Extra): string {
  return String(fields["type"]);
}

const onlySealed =
  "An item of type 'compaction' has only an encrypted form, which the adapter behind this model cannot read. Send the conversation itself, or use the model that made the item.";

function noSuchTool(asked: string): GatewayError {
  const remedy = "Use function tools, another model, or the choice 'auto'.";
  return unsupported("tool_choice", `The adapter behind this model has no such tool ('${asked}'). ${remedy}`);
}

function unsupported(param: string, why: string): GatewayError {
  return new GatewayError("unsupported_parameter", `Unsupported parameter: '${param}'. ${why}`, { param });
}
