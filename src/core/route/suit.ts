/** Makes a turn fit its adapter: what only another dialect knows is left out and told, or refused where the answer would hang on it. */
import { GatewayError } from "../errors.ts";
import type { Dialect, Extra, Item } from "../item.ts";
import type { Adapter, Tell } from "../ports.ts";
import type { Settings, Tool, Turn } from "../turn.ts";

/** The same turn when nothing has to change. */
export function suit(turn: Turn, adapter: Pick<Adapter, "speaks">, tell: Tell): Turn {
  const speaks: Speaks = (dialect) => adapter.speaks?.includes(dialect) === true;
  refusePrompt(turn.settings, speaks);
  const items = suitItems(turn.items, speaks);
  const settings = suitTools(turn.settings, speaks, tell);
  return items === turn.items && settings === turn.settings ? turn : { ...turn, items, settings };
}

type Speaks = (dialect: Dialect) => boolean;

/** A template lives where it was written, and only that server knows its text. */
function refusePrompt({ native }: Settings, speaks: Speaks): void {
  if (native?.dialect !== "responses" || (native.fields["prompt"] ?? undefined) === undefined) return;
  if (speaks("responses")) return;
  throw unsupported(
    "prompt",
    "The adapter behind this model knows no prompt templates. Send the text of the prompt as 'instructions' and 'input'.",
  );
}

/** A conversation made short goes in plain words to whoever does not know such items; what only another dialect knows goes nowhere. */
function suitItems(items: readonly Item[], speaks: Speaks): readonly Item[] {
  const isKnown = (item: Item): boolean =>
    item.type === "other" ? speaks(item.extra.dialect) : item.type !== "compaction" || speaks("responses");
  if (items.every(isKnown)) return items;
  return items.flatMap((item): readonly Item[] => {
    if (isKnown(item)) return [item];
    if (item.type !== "compaction") return [];
    if (item.summary !== "") return [summaryMessage(item.summary)];
    throw unsupported(
      "input",
      "The item of type 'compaction' has only an encrypted form, which the adapter behind this model cannot read. Send the conversation itself, or use the model that made the item.",
    );
  });
}

function summaryMessage(summary: string): Item {
  return { type: "message", role: "user", content: `Summary of the conversation so far:\n${summary}` };
}

/** Which tools may be called holds on any server: those that are not allowed never reach it. */
function suitTools(settings: Settings, speaks: Speaks, tell: Tell): Settings {
  const { tools, toolChoice: choice } = settings;
  if (choice?.type === "other" && !speaks(choice.extra.dialect)) {
    throw unsupported("tool_choice", `It asks for the tool '${typeOf(choice.extra)}', but ${noSuchTool}`);
  }
  const isKnown = (tool: Tool): boolean => tool.type !== "other" || speaks(tool.extra.dialect);
  if (choice?.type !== "allowed" && tools.every(isKnown)) return settings;
  const allowed = choice?.type === "allowed" ? tools.filter((tool) => choice.names.includes(nameOf(tool))) : tools;
  for (const tool of allowed) if (!isKnown(tool)) tell({ type: "left-out", what: `tool ${nameOf(tool)}` });
  const kept = allowed.filter(isKnown);
  const toolChoice = choice?.type === "allowed" ? ({ type: choice.mode } as const) : choice;
  const native = suitNative(settings, kept);
  if (kept.length > 0) return { ...settings, tools: kept, toolChoice, native };
  if (toolChoice?.type === "required") {
    const names = allowed.map((tool) => `'${nameOf(tool)}'`).join(", ") || "none that is given";
    throw unsupported("tool_choice", `It requires a call of a tool (${names}), but ${noSuchTool}`);
  }
  // Servers refuse these two where there is no tool.
  return { ...settings, tools: kept, toolChoice: undefined, parallelToolCalls: undefined, native };
}

const noSuchTool =
  "the adapter behind this model has no such tool. Use function tools, another model, or the choice 'auto'.";

/** An adapter of the caller's own dialect repeats its fields, so these must say the same; both dialects write them alike. */
function suitNative({ native, tools, toolChoice: choice }: Settings, kept: readonly Tool[]) {
  if (native === undefined || choice?.type !== "allowed") return native;
  const { fields } = native;
  if (kept.length === 0) {
    return {
      ...native,
      fields: { ...fields, tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined },
    };
  }
  const written: readonly unknown[] = Array.isArray(fields["tools"]) ? fields["tools"] : [];
  const entries = written.filter((_, index) => kept.some((tool) => tool === tools[index]));
  return { ...native, fields: { ...fields, tools: entries, tool_choice: choice.mode } };
}

function nameOf(tool: Tool): string {
  return tool.type === "other" ? typeOf(tool.extra) : tool.name;
}

/** Tools that only their dialect knows go by their type. */
function typeOf({ fields }: Extra): string {
  return typeof fields["type"] === "string" ? fields["type"] : "unknown";
}

function unsupported(param: string, why: string): GatewayError {
  return new GatewayError("unsupported_parameter", `Unsupported parameter: '${param}'. ${why}`, { param });
}
