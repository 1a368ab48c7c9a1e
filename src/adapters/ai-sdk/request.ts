/** Writes a turn as a language model's call. */
import type { JSONSchema7, LanguageModelV3CallOptions, LanguageModelV3FunctionTool } from "@ai-sdk/provider";
import type { Tell } from "../../core/adapter.ts";
import type { Turn } from "../../core/turn.ts";
import type { Format, Settings, Tool } from "../../core/settings.ts";
import { toFunction } from "../../wires/custom-tools.ts";
import type { Files } from "./files.ts";
import { writePrompt } from "./prompt.ts";

/** The newest version has a field for the effort. */
export interface Call extends LanguageModelV3CallOptions {
  readonly reasoning?: string | undefined;
}

export function writeRequest({ items, settings, trace }: Turn, files: Files, version: string, tell: Tell): Call {
  const hasEffort = version === "v4";
  for (const [what, isAsked] of leftOut(settings, hasEffort)) if (isAsked) tell({ type: "left-out", what });
  return {
    prompt: writePrompt(settings.instructions, items, files),
    ...writeTools(settings),
    maxOutputTokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    topP: settings.topP,
    presencePenalty: settings.presencePenalty,
    frequencyPenalty: settings.frequencyPenalty,
    seed: settings.seed,
    stopSequences: settings.stop && [...settings.stop],
    responseFormat: writeFormat(settings.format),
    reasoning: hasEffort ? settings.reasoningEffort : undefined,
    headers: trace && { traceparent: trace.parent, ...(trace.state !== undefined && { tracestate: trace.state }) },
  };
}

/** What no call has a place for. */
function leftOut(settings: Settings, hasEffort: boolean): readonly (readonly [what: string, isAsked: boolean])[] {
  return [
    ["parallel_tool_calls", settings.parallelToolCalls === false],
    ["top_logprobs", settings.topLogprobs !== undefined],
    ["verbosity", settings.verbosity !== undefined],
    ["reasoning_effort", settings.reasoningEffort !== undefined && !hasEffort],
  ];
}

function writeFormat(format: Format | undefined): LanguageModelV3CallOptions["responseFormat"] {
  switch (format?.type) {
    case "json":
      return { type: "json" };
    case "schema": {
      const { name, description, schema } = format;
      return { type: "json", name, description, schema: schema as JSONSchema7 };
    }
    default:
      return undefined;
  }
}

/** A choice that only a dialect knows was refused before. */
function writeTools({ tools, toolChoice }: Settings): Pick<Call, "tools" | "toolChoice"> {
  if (tools.length === 0) return {};
  const written = tools.flatMap(writeTool);
  if (toolChoice?.type === "tool") return { tools: written, toolChoice: { type: "tool", toolName: toolChoice.name } };
  return { tools: written, toolChoice: toolChoice?.type === "other" ? undefined : toolChoice };
}

/** A custom tool becomes a function with one string; what only a dialect knows was left out before. */
function writeTool(tool: Tool): LanguageModelV3FunctionTool[] {
  if (tool.type === "other") return [];
  const { name, description, parameters = {}, strict } = tool.type === "custom" ? toFunction(tool) : tool;
  // Some providers want these two keywords, even if the caller left them out.
  const inputSchema = { type: "object", properties: {}, ...parameters } as JSONSchema7;
  return [{ type: "function", name, description, inputSchema, strict }];
}
