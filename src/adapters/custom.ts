/** Offers custom tools to models that know only functions: a tool's free text is a function's only string argument. */
import type { ToolCall } from "../core/item.ts";
import type { FunctionTool, Tool } from "../core/turn.ts";
import { isObject, parseJson, textAt } from "./json.ts";

type CustomTool = Extract<Tool, { type: "custom" }>;

/** The function that stands in for the tool. It cannot enforce a grammar, but can describe it. */
export function toFunction({ name, description = "", format }: CustomTool): FunctionTool {
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
  const grammar = isObject(format["grammar"]) ? format["grammar"] : format;
  const definition = textAt(grammar, "definition");
  return definition === undefined
    ? ""
    : `The input must match this ${textAt(grammar, "syntax") ?? ""} grammar:\n${definition}`;
}

/** The tool's call as a call of that function. */
export function toFunctionCall(call: ToolCall): ToolCall {
  return { ...call, kind: "function", arguments: JSON.stringify({ input: call.arguments }) };
}

/** The tool's input, read from that function's arguments. */
export function readFreeInput(written: string): string {
  const parsed = parseJson(written);
  const input = isObject(parsed) ? parsed["input"] : parsed;
  return typeof input === "string" ? input : written;
}

/** Says whether a name is that of a custom tool. */
export function createIsCustom(tools: readonly Tool[]): (name: string) => boolean {
  const names = new Set(tools.flatMap((tool) => (tool.type === "custom" ? [tool.name] : [])));
  return (name) => names.has(name);
}
