/** Writes a turn as a language model's call: system texts first, what the assistant said and called as one message, then results. */
import type {
  JSONSchema7,
  LanguageModelV3CallOptions,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
} from "@ai-sdk/provider";
import type { Tell } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import { type Content, isInstruction, type Item, type Part, textOf, type ToolCall } from "../../core/item.ts";
import type { Format, Settings, Tool } from "../../core/settings.ts";
import type { Turn } from "../../core/turn.ts";
import { toFunction, toFunctionCall } from "../../wires/custom-tools.ts";
import { parseObject } from "../../wires/fields.ts";
import { about } from "../media/media.ts";
import { type Files, sourceOf, typeOf } from "./files.ts";
import { readSeal, type Seal } from "./seal.ts";

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

type PartsOf<Role> = Extract<LanguageModelV3Message, { role: Role }>["content"];
type WrittenPart = PartsOf<"user">[number];

function writePrompt(instructions: string | undefined, items: readonly Item[], files: Files): LanguageModelV3Prompt {
  const seals = new Map(items.flatMap((item) => (item.type === "reasoning" ? [[item, readSeal(item.encrypted)]] : [])));
  const marks: NonNullable<Seal["calls"]> = Object.assign({}, ...Array.from(seals.values(), ({ calls }) => calls));
  const names = new Map<string, string>();
  // Not every provider takes system texts in the midst of a talk.
  const prompt = writeSystem(instructions, items);
  /** What tools returned beside text: not every provider takes it there, so it follows the last of them. */
  let shown: Part[] = [];

  /** One by one: a call takes only so many arguments, and a message may have more parts. */
  function say(parts: PartsOf<"assistant">): void {
    const last = prompt.at(-1);
    if (last?.role === "assistant") for (const part of parts) last.content.push(part);
    else if (parts.length > 0) prompt.push({ role: "assistant", content: parts });
  }

  function giveBack(part: PartsOf<"tool">[number]): void {
    const last = prompt.at(-1);
    if (last?.role === "tool") last.content.push(part);
    else prompt.push({ role: "tool", content: [part] });
  }

  function show(content: Content): void {
    const parts = writeContent(content, files);
    prompt.push({ role: "user", content: parts.length === 0 ? [{ type: "text", text: "" }] : parts });
  }

  function write(item: Item): void {
    switch (item.type) {
      case "message":
        if (item.role === "user") show(item.content);
        if (item.role === "assistant") say(writeContent(item.content, files));
        return;
      case "reasoning": {
        const { text = item.text, options: providerOptions } = seals.get(item)?.block ?? {};
        if (text !== "" || providerOptions !== undefined) say([{ type: "reasoning", text, providerOptions }]);
        return;
      }
      case "tool-call": {
        const { callId: toolCallId, name: toolName } = item;
        const providerOptions = marks[toolCallId];
        names.set(toolCallId, toolName);
        return say([{ type: "tool-call", toolCallId, toolName, input: toInput(item), providerOptions }]);
      }
      case "tool-output": {
        const { callId: toolCallId, output } = item;
        const toolName = names.get(toolCallId) ?? "unknown";
        giveBack({ type: "tool-result", toolCallId, toolName, output: { type: "text", value: textOf(output) } });
        const others =
          typeof output === "string" ? [] : output.filter(({ type }) => type !== "text" && type !== "refusal");
        if (others.length > 0) shown.push({ type: "text", text: `Output of tool call ${toolCallId}:` });
        for (const part of others) shown.push(part);
      }
    }
  }

  function showOutputs(): void {
    if (shown.length > 0) show(shown);
    shown = [];
  }

  for (const item of items) {
    if (item.type !== "tool-output") showOutputs();
    write(item);
  }
  showOutputs();
  return prompt;
}

function writeSystem(instructions: string | undefined, items: readonly Item[]): LanguageModelV3Prompt {
  const said = items.flatMap((item) => (item.type === "message" && isInstruction(item) ? textOf(item.content) : []));
  const texts = [instructions ?? "", ...said].filter((text) => text !== "");
  return texts.map((content) => ({ role: "system", content }));
}

/** Providers want an object, even if a model wrote none. */
function toInput(call: ToolCall): unknown {
  const { arguments: written } = call.kind === "custom" ? toFunctionCall(call) : call;
  return parseObject(written) ?? (written.trim() === "" ? {} : { invalid: written });
}

/** Some providers refuse empty texts. */
function writeContent(content: Content, files: Files): WrittenPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return content.flatMap((part) => {
    if (part.type === "text" || part.type === "refusal") return writeContent(part.text, files);
    if (part.type !== "audio") return writeFile(part, files);
    const mediaType = `audio/${part.format === "mp3" ? "mpeg" : part.format}`;
    return { type: "file", mediaType, data: part.data };
  });
}

function writeFile(part: Part, files: Files): WrittenPart {
  const source = sourceOf(part);
  if (source === undefined) {
    const what = part.type === "other" ? `content of type '${part.extra.fields["type"]}'` : "a file by its id";
    const message = `The adapter behind this model does not take ${what}. Send the content itself, or a URL.`;
    throw about(part, new GatewayError("unsupported_parameter", message));
  }
  const file = { type: "file", filename: part.type === "file" ? part.name : undefined } as const;
  const found = files.get(source);
  if (found !== undefined) return { ...file, mediaType: found.type, data: found.bytes };
  if (files.has(source)) return { type: "text", text: "[The file that was here can no longer be fetched.]" };
  return { ...file, mediaType: typeOf(part), data: (/^https?:/i.test(source) && URL.parse(source)) || source };
}
