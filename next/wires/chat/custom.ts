/** Custom tools for servers that know only functions: a tool's free text is a function's only string argument. */
import type { Delta } from "../../core/event.ts";
import type { ToolCall } from "../../core/item.ts";
import type { FunctionTool, Tool, Turn } from "../../core/turn.ts";
import { isObject, parseObject } from "../fields.ts";
import { objectAt, textAt } from "../json.ts";
import type { Habits } from "../wire.ts";

/** The function that stands in for a tool. It cannot enforce a grammar, but can describe it. */
export function toFunction(tool: Extract<Tool, { type: "custom" }>): FunctionTool {
  const { name, description = "", format } = tool;
  const both = [description, describeFormat(format)].filter((text) => text !== "").join("\n\n");
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
  const { syntax = "", definition = "" } = objectAt(format, "grammar") ?? format;
  return `The input must match this ${String(syntax)} grammar:\n${String(definition)}`;
}

/** A tool's call as a call of that function. */
export function toFunctionCall(call: ToolCall): ToolCall {
  return { ...call, kind: "function", arguments: JSON.stringify({ input: call.arguments }) };
}

/**
 * Turns calls of such functions back into the tools' own. A text can be read only when its JSON is whole, so from the
 * first of them on all calls wait for what follows. Undefined: no function stands in for a tool.
 */
export function createRestorer(habits: Habits, turn: Turn | undefined): ((deltas: Delta[]) => void) | undefined {
  const tools = habits.hasCustomTools ? undefined : turn?.settings.tools.filter(({ type }) => type === "custom");
  if (tools === undefined || tools.length === 0) return undefined;
  const names = new Set(tools.map(({ name }) => name));
  const written = new Map<number, string>();
  let held: Delta[] = [];

  function hold(delta: Delta): boolean {
    switch (delta.type) {
      case "tool-call": {
        const standsIn = delta.kind !== "custom" && names.has(delta.name);
        if (standsIn) written.set(delta.index, "");
        if (standsIn || held.length > 0) held.push(standsIn ? { ...delta, kind: "custom" } : delta);
        return held.length > 0;
      }
      case "tool-arguments": {
        const before = written.get(delta.index);
        if (before !== undefined) written.set(delta.index, before + delta.text);
        else if (held.length > 0) held.push(delta);
        return held.length > 0;
      }
      case "tool-extra":
        if (held.length > 0) held.push(delta);
        return held.length > 0;
      default:
        return false;
    }
  }

  function* release(): Generator<Delta> {
    for (const delta of held) {
      yield delta;
      const text = delta.type === "tool-call" ? written.get(delta.index) : undefined;
      if (delta.type === "tool-call" && text !== undefined)
        yield { type: "tool-arguments", index: delta.index, text: readInput(text) };
    }
    held = [];
    written.clear();
  }

  return (deltas) => {
    const said = deltas.splice(0);
    for (const delta of said) {
      if (hold(delta)) continue;
      for (const restored of release()) deltas.push(restored);
      deltas.push(delta);
    }
  };
}

/** What does not fit the function is taken for the text itself. */
function readInput(written: string): string {
  const input = parseObject(written)?.["input"];
  return typeof input === "string" ? input : written;
}
