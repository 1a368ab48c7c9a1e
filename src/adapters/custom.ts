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

/** The arguments of a function that stands in for a custom tool, piece by piece. */
export interface FreeInput {
  /** The tool's input, once it is complete; never twice. */
  accept(piece: string): string | undefined;
  /** The same at the end of the arguments; if incomplete, as the model wrote it. */
  end(): string | undefined;
}

export function createFreeInput(): FreeInput {
  const endsIn = createObjectScanner();
  let written = "";
  let isTold = false;

  function emit(): string | undefined {
    const input = isTold ? "" : readFreeInput(written);
    isTold = true;
    return input === "" ? undefined : input;
  }

  return {
    accept(piece) {
      if (isTold) return undefined;
      written += piece;
      return endsIn(piece) ? emit() : undefined;
    },
    end: emit,
  };
}

/**
 * Says whether the JSON object ends in the next piece. Reparsing it for each piece would take minutes for a long one.
 */
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

/** Says whether a name is that of a custom tool. */
export function createIsCustom(tools: readonly Tool[]): (name: string) => boolean {
  const names = new Set(tools.flatMap((tool) => (tool.type === "custom" ? [tool.name] : [])));
  return (name) => names.has(name);
}
