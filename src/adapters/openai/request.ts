/** Writes a turn as the body of a chat completions request. */
import { GatewayError } from "../../core/errors.ts";
import type { Extra } from "../../core/item.ts";
import type { Format, Settings, Tool, ToolChoice, Turn } from "../../core/turn.ts";
import { isObject, textAt } from "./json.ts";
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
    tool_choice: writeToolChoice(settings.toolChoice, settings.tools, called),
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

/** `called`: there is a tool to choose. Where there is none, only a choice that needs one is worth a word. */
function writeToolChoice(choice: ToolChoice | undefined, tools: readonly Tool[], called: boolean): unknown {
  switch (choice?.type) {
    case undefined:
      return undefined;
    case "auto":
    case "none":
      return called ? choice.type : undefined;
    case "required":
      return called ? "required" : refuseChoice("It requires a call, but none of the tools is one that");
    case "tool":
      return nameTool(choice.name, tools);
    case "allowed":
      if (choice.names.length === 0 && choice.mode === "required") {
        return refuseChoice("It requires a call, but none of the tools that it allows is one that");
      }
      if (!called) return undefined;
      return {
        type: "allowed_tools",
        allowed_tools: { mode: choice.mode, tools: choice.names.map((name) => nameTool(name, tools)) },
      };
    case "other":
      return (
        ofChat(choice.extra)[0] ??
        refuseChoice(`A tool of type '${textAt(choice.extra.fields, "type") ?? "unknown"}' is none that`)
      );
  }
}

function refuseChoice(why: string): never {
  throw new GatewayError(
    "unsupported_parameter",
    `Unsupported parameter: 'tool_choice'. ${why} this gateway's adapter can offer to its model. Use function or custom tools, or the choice 'auto'.`,
    { param: "tool_choice" },
  );
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
