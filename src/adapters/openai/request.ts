/** Writes a turn as the body of a chat completions request. */
import type { Extra } from "../../core/item.ts";
import type { Format, Settings, Tool, ToolChoice, Turn } from "../../core/turn.ts";
import { isObject } from "./json.ts";
import { writeMessages } from "./messages.ts";

export function writeRequest(turn: Turn): string {
  const { settings } = turn;
  return JSON.stringify({
    ...(settings.native?.dialect === "chat" ? settings.native.fields : writeSettings(settings)),
    model: turn.model,
    messages: writeMessages(settings.instructions, turn.items),
    stream: turn.stream ? true : undefined,
    stream_options: turn.stream ? { include_usage: true } : undefined,
    // Whom the caller speaks for never leaves the gateway.
    user: undefined,
  });
}

function writeSettings(settings: Settings): Readonly<Record<string, unknown>> {
  const tools = settings.tools.flatMap(writeTool);
  const called = tools.length > 0;
  return {
    temperature: settings.temperature,
    top_p: settings.topP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    seed: settings.seed,
    stop: settings.stop,
    max_completion_tokens: settings.maxOutputTokens,
    logprobs: settings.topLogprobs === undefined ? undefined : true,
    top_logprobs: settings.topLogprobs === 0 ? undefined : settings.topLogprobs,
    reasoning_effort: settings.reasoningEffort,
    verbosity: settings.verbosity,
    service_tier: settings.serviceTier,
    tools: called ? tools : undefined,
    tool_choice: called ? writeToolChoice(settings.toolChoice, settings.tools) : undefined,
    parallel_tool_calls: called ? settings.parallelToolCalls : undefined,
    response_format: writeFormat(settings.format),
  };
}

function writeTool(tool: Tool): readonly unknown[] {
  switch (tool.type) {
    case "function": {
      const { name, description, parameters, strict } = tool;
      return [{ type: "function", function: { name, description, parameters, strict } }];
    }
    case "custom": {
      const { name, description } = tool;
      return [{ type: "custom", custom: { name, description, format: writeToolFormat(tool.format) } }];
    }
    case "other":
      return ofChat(tool.extra);
  }
}

/** Chat nests a grammar one level deeper than the other wire does. */
function writeToolFormat(format: unknown): unknown {
  if (!isObject(format) || format["type"] !== "grammar" || "grammar" in format) return format ?? undefined;
  const { type, ...grammar } = format;
  return { type, grammar };
}

function writeToolChoice(choice: ToolChoice | undefined, tools: readonly Tool[]): unknown {
  switch (choice?.type) {
    case undefined:
      return undefined;
    case "auto":
    case "none":
    case "required":
      return choice.type;
    case "tool":
      return nameTool(choice.name, tools);
    case "allowed":
      return {
        type: "allowed_tools",
        allowed_tools: { mode: choice.mode, tools: choice.names.map((name) => nameTool(name, tools)) },
      };
    case "other":
      return ofChat(choice.extra)[0];
  }
}

function nameTool(name: string, tools: readonly Tool[]): unknown {
  const isCustom = tools.some((tool) => tool.type === "custom" && tool.name === name);
  return isCustom ? { type: "custom", custom: { name } } : { type: "function", function: { name } };
}

function writeFormat(format: Format | undefined): unknown {
  switch (format?.type) {
    case undefined:
    case "text":
      return undefined;
    case "json":
      return { type: "json_object" };
    case "schema": {
      const { name, description, schema, strict } = format;
      return { type: "json_schema", json_schema: { name, description, schema, strict } };
    }
  }
}

/** What is opaque to us goes out only in the dialect it came in. */
function ofChat(extra: Extra): readonly unknown[] {
  return extra.dialect === "chat" ? [extra.fields] : [];
}
