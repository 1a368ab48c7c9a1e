/** Custom tools for models that know only functions: a tool's free text is a function's only string argument. */
import type { Delta } from "../core/event.ts";
import type { ToolCall } from "../core/item.ts";
import type { FunctionTool, Tool } from "../core/settings.ts";
import { isObject, parseObject } from "./fields.ts";

/** The function that stands in for a tool. It cannot enforce a grammar, but can describe it. */
export function toFunction(tool: Extract<Tool, { type: "custom" }>): FunctionTool {
  const { name, description = "", format } = tool;
  const both = [description, describeFormat(format)].filter(Boolean).join("\n\n");
  return { type: "function", name, description: both, parameters: freeInput };
}

const freeInput = {
  type: "object",
  properties: { input: { type: "string", description: "The tool's whole input, as plain text." } },
  required: ["input"],
  additionalProperties: false,
} as const;

function describeFormat(format: unknown): string {
  if (!isObject(format) || format["type"] !== "grammar") return "";
  return `The input must match this ${String(format["syntax"])} grammar:\n${String(format["definition"])}`;
}

/** A tool's call as a call of that function. */
export function toFunctionCall(call: ToolCall): ToolCall {
  return { ...call, kind: "function", arguments: JSON.stringify({ input: call.arguments }) };
}

type Say = (delta: Delta) => void;

/**
 * Says calls of such functions as the tools' own. A text can be read only when its JSON is whole, so from the first of
 * them on all calls wait for the words or the finish that follow.
 */
export function restoringCalls(tools: readonly Tool[], say: Say): Say {
  const names = new Set(tools.flatMap((tool) => (tool.type === "custom" ? tool.name : [])));
  if (names.size === 0) return say;
  const written = new Map<number, string>();
  let held: Delta[] = [];

  function release(): void {
    for (const delta of held) {
      say(delta);
      const text = delta.type === "tool-call" ? written.get(delta.index) : undefined;
      if (delta.type === "tool-call" && text !== undefined)
        say({ type: "tool-arguments", index: delta.index, text: readInput(text) });
    }
    held = [];
    written.clear();
  }

  return (delta) => {
    const before = delta.type === "tool-arguments" ? written.get(delta.index) : undefined;
    if (delta.type === "tool-call" && delta.kind !== "custom" && names.has(delta.name)) {
      written.set(delta.index, "");
      held.push({ ...delta, kind: "custom" });
    } else if (delta.type === "tool-arguments" && before !== undefined) {
      written.set(delta.index, before + delta.text);
    } else if (held.length > 0 && delta.type.startsWith("tool-")) {
      held.push(delta);
    } else {
      if (enders.has(delta.type)) release();
      say(delta);
    }
  };
}

const enders: ReadonlySet<Delta["type"]> = new Set(["text", "refusal", "reasoning", "finish"]);

/** What does not fit the function is taken for the text itself. */
function readInput(written: string): string {
  const input = parseObject(written)?.["input"];
  return typeof input === "string" ? input : written;
}
