/** Writes a turn as a language model's call: system texts first, what the assistant said and called as one message, then results. */
import type {
  JSONSchema7,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  SharedV4FileData,
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

export function writeRequest({ items, settings, trace }: Turn, files: Files, tell: Tell): LanguageModelV4CallOptions {
  const leftOut = {
    parallel_tool_calls: settings.parallelToolCalls === false,
    top_logprobs: settings.topLogprobs !== undefined,
    verbosity: settings.verbosity !== undefined,
  };
  for (const [what, isAsked] of Object.entries(leftOut)) if (isAsked) tell({ type: "left-out", what });
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
    // Another word is the provider's to refuse.
    reasoning: settings.reasoningEffort as LanguageModelV4CallOptions["reasoning"],
    headers: trace && { traceparent: trace.parent, ...(trace.state !== undefined && { tracestate: trace.state }) },
  };
}

function writeFormat(format: Format | undefined): LanguageModelV4CallOptions["responseFormat"] {
  if (format?.type !== "schema") return format;
  const { name, description, schema } = format;
  return { type: "json", name, description, schema: schema as JSONSchema7 };
}

/** A choice that only a dialect knows was refused before. */
function writeTools({ tools, toolChoice }: Settings): Pick<LanguageModelV4CallOptions, "tools" | "toolChoice"> {
  if (tools.length === 0) return {};
  const written = tools.flatMap(writeTool);
  if (toolChoice?.type === "tool") return { tools: written, toolChoice: { type: "tool", toolName: toolChoice.name } };
  return { tools: written, toolChoice: toolChoice?.type === "other" ? undefined : toolChoice };
}

/** A custom tool becomes a function with one string; what only a dialect knows was left out before. */
function writeTool(tool: Tool): LanguageModelV4FunctionTool[] {
  if (tool.type === "other") return [];
  const { name, description, parameters = {}, strict } = tool.type === "custom" ? toFunction(tool) : tool;
  // Some providers want these two keywords, even if the caller left them out.
  const inputSchema = { type: "object", properties: {}, ...parameters } as JSONSchema7;
  return [{ type: "function", name, description, inputSchema, strict }];
}

type PartsOf<Role> = Extract<LanguageModelV4Message, { role: Role }>["content"];
type WrittenPart = PartsOf<"user">[number];

function writePrompt(instructions: string | undefined, items: readonly Item[], files: Files): LanguageModelV4Prompt {
  const sealed = items.map((item) => (item.type === "reasoning" ? readSeal(item.encrypted).calls : undefined));
  const marks: NonNullable<Seal["calls"]> = Object.assign({}, ...sealed);
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
    if (parts.length > 0) prompt.push({ role: "user", content: parts });
  }

  function write(item: Item): void {
    switch (item.type) {
      case "message":
        if (item.role === "user") show(item.content);
        if (item.role === "assistant") say(writeContent(item.content, files));
        return;
      case "reasoning": {
        const { text = item.text, options: providerOptions } = readSeal(item.encrypted).block ?? {};
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

  for (const [at, item] of items.entries()) {
    write(item);
    if (items[at + 1]?.type === "tool-output") continue;
    show(shown);
    shown = [];
  }
  return prompt;
}

function writeSystem(instructions: string | undefined, items: readonly Item[]): LanguageModelV4Prompt {
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
    return writeFile(part, files);
  });
}

function writeFile(part: Part, files: Files): WrittenPart {
  const source = sourceOf(part);
  if (source === undefined) {
    const what = part.type === "other" ? `content of type '${part.extra.fields["type"]}'` : "a file by its id";
    const message = `The adapter behind this model does not take ${what}. Send the content itself, or a URL.`;
    throw about(part, new GatewayError("unsupported_parameter", message));
  }
  const filename = part.type === "file" ? part.name : undefined;
  const { bytes, type: mediaType } = files.get(source) ?? { bytes: source, type: typeOf(part) };
  const url = bytes === source ? URL.parse(source) : null;
  const data: SharedV4FileData = url === null ? { type: "data", data: bytes } : { type: "url", url };
  return { type: "file", filename, mediaType, data };
}
