/** Custom tools for models that know functions only: what such a tool takes as free text is the one string of a function, there and back. */
import type { ToolCall } from "../core/item.ts";
import type { FunctionTool, Tool } from "../core/turn.ts";
import { isObject, parseJson, textAt } from "./json.ts";

type CustomTool = Extract<Tool, { type: "custom" }>;

/** The function that stands for the tool. A grammar cannot be enforced so, but the model can be told of it. */
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

/** A call of the tool as one of that function. */
export function toFunctionCall(call: ToolCall): ToolCall {
  return { ...call, kind: "function", arguments: JSON.stringify({ input: call.arguments }) };
}

/** What the tool takes, out of what that function was called with. */
export function readFreeInput(written: string): string {
  const parsed = parseJson(written);
  const input = isObject(parsed) ? parsed["input"] : parsed;
  return typeof input === "string" ? input : written;
}

/** What a function that stands for a custom tool is called with, piece by piece. */
export interface FreeInput {
  /** The tool's input, as soon as all of it was heard; never twice. */
  hear(piece: string): string | undefined;
  /** The same when nothing more comes; what is not whole is told as the model wrote it. */
  end(): string | undefined;
}

export function createFreeInput(): FreeInput {
  const endsIn = createObjectScanner();
  let written = "";
  let isTold = false;

  function tell(): string | undefined {
    const input = isTold ? "" : readFreeInput(written);
    isTold = true;
    return input === "" ? undefined : input;
  }

  return {
    hear(piece) {
      if (isTold) return undefined;
      written += piece;
      return endsIn(piece) ? tell() : undefined;
    },
    end: tell,
  };
}

/** Whether the JSON object ends in the next piece. Parsing all of it again for each piece would take minutes for a long one. */
export function createObjectScanner(): (piece: string) => boolean {
  let depth = 0;
  let isQuoted = false;
  let isEscaped = false;
  return (piece) => {
    for (const character of piece) {
      if (isEscaped) isEscaped = false;
      else if (character === "\\") isEscaped = isQuoted;
      else if (character === '"') isQuoted = !isQuoted;
      else if (isQuoted) continue;
      else if (character === "{") depth++;
      else if (character === "}" && --depth === 0) return true;
    }
    return false;
  };
}

/** Tells calls of custom tools by the names of these. */
export function createIsCustom(tools: readonly Tool[]): (name: string) => boolean {
  const names = new Set(tools.flatMap((tool) => (tool.type === "custom" ? [tool.name] : [])));
  return (name) => names.has(name);
}
