/** Writes a turn as a language model's call. */
import type { JSONSchema7, LanguageModelV3CallOptions, SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { Tell } from "../../core/adapter.ts";
import type { Format, Settings, Tool, Turn } from "../../core/turn.ts";
import { toFunction } from "../../wires/custom-tools.ts";
import type { MediaRules } from "../media/media.ts";
import { writePrompt } from "./prompt.ts";
import type { Call } from "./provider.ts";

export function writeRequest(
  { items, settings, trace }: Turn,
  providerOptions: Readonly<Record<string, unknown>>,
  version: string,
  rules: MediaRules,
  tell: Tell,
): Call {
  const hasEffort = version === "v4";
  for (const what of leftOut(settings, hasEffort)) tell({ type: "left-out", what });
  return {
    prompt: writePrompt(settings.instructions, items, rules),
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
    // The provider checks its own part.
    providerOptions: providerOptions as SharedV3ProviderOptions,
    headers: trace && { traceparent: trace.parent, ...(trace.state !== undefined && { tracestate: trace.state }) },
  };
}

/** What no call has a place for. */
function leftOut(settings: Settings, hasEffort: boolean): readonly string[] {
  const { parallelToolCalls, topLogprobs, verbosity, reasoningEffort } = settings;
  return [
    ...(parallelToolCalls === false ? ["parallel_tool_calls"] : []),
    ...(topLogprobs === undefined ? [] : ["top_logprobs"]),
    ...(verbosity === undefined ? [] : ["verbosity"]),
    ...(reasoningEffort === undefined || hasEffort ? [] : ["reasoning_effort"]),
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

type Function = Extract<NonNullable<LanguageModelV3CallOptions["tools"]>[number], { type: "function" }>;

function writeTools({ tools, toolChoice: choice }: Settings): Pick<Call, "tools" | "toolChoice"> {
  if (tools.length === 0) return {};
  const toolChoice =
    choice?.type === "tool"
      ? { type: choice.type, toolName: choice.name }
      : choice?.type === "other"
        ? undefined
        : choice;
  return { tools: tools.flatMap(writeTool), toolChoice };
}

/** A custom tool becomes a function with one string; what only a dialect knows was left out before. */
function writeTool(tool: Tool): Function[] {
  if (tool.type === "other") return [];
  const { name, description, parameters = {}, strict } = tool.type === "custom" ? toFunction(tool) : tool;
  // Some providers want these two keywords, even if the caller left them out.
  const inputSchema = { type: "object", properties: {}, ...parameters } as JSONSchema7;
  return [{ type: "function", name, description, inputSchema, strict }];
}
