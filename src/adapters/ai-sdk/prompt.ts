/** Writes items as a prompt: system texts first, successive assistant texts and calls as one message, then results. */
import type {
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ReasoningPart,
  LanguageModelV3ToolCallPart,
  LanguageModelV3ToolResultPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import { type Content, type Item, isSteering, textOf, type ToolCall, type ToolOutput } from "../../core/item.ts";
import { type WrittenPart, writeContent } from "./content.ts";
import { toFunctionCall } from "../custom.ts";
import { isObject, parseJson } from "../json.ts";
import type { MediaLimits } from "../media/limits.ts";
import { showOutputs } from "../outputs.ts";
import { readSeal } from "./seal.ts";

type AssistantPart = WrittenPart | LanguageModelV3ReasoningPart | LanguageModelV3ToolCallPart;

export function writePrompt(
  instructions: string | undefined,
  items: readonly Item[],
  limits: MediaLimits,
): LanguageModelV3Prompt {
  const marks = gatherMarks(items);
  const names = new Map<string, string>();
  const prompt = writeSystem(instructions, items);

  function addUser(content: WrittenPart[]): void {
    prompt.push({ role: "user", content: content.length === 0 ? [{ type: "text", text: "" }] : content });
  }

  function say(parts: readonly AssistantPart[]): void {
    if (parts.length === 0) return;
    let last = prompt.at(-1);
    if (last?.role !== "assistant") prompt.push((last = { role: "assistant", content: [] }));
    // One by one: a call takes only so many arguments, and a message may have more parts.
    for (const part of parts) last.content.push(part);
  }

  function giveBack(item: ToolOutput): void {
    let last = prompt.at(-1);
    if (last?.role !== "tool") prompt.push((last = { role: "tool", content: [] }));
    const { callId } = item;
    const toolName = names.get(callId) ?? "unknown";
    last.content.push({ type: "tool-result", toolCallId: callId, toolName, output: writeOutput(item.output) });
  }

  // Not every provider accepts a result that is more than text.
  for (const item of showOutputs(items)) {
    switch (item.type) {
      case "message":
        if (item.role === "assistant") say(writeContent(item.content, limits));
        else if (item.role === "user") addUser(writeContent(item.content, limits));
        break;
      case "reasoning":
        say(writeReasoning(item));
        break;
      case "tool-call":
        names.set(item.callId, item.name);
        say([writeCall(item, marks.get(item.callId))]);
        break;
      case "tool-output":
        giveBack(item);
    }
  }
  return prompt;
}

/** Not every provider accepts system texts mid-conversation, so all stand at its beginning. */
function writeSystem(instructions: string | undefined, items: readonly Item[]): LanguageModelV3Message[] {
  const texts = items.flatMap((item) => (item.type === "message" && isSteering(item) ? [textOf(item.content)] : []));
  return [instructions ?? "", ...texts].flatMap((content) => (content === "" ? [] : [{ role: "system", content }]));
}

/** What providers want back with their calls is kept with the reasoning beside them. */
function gatherMarks(items: readonly Item[]): ReadonlyMap<string, SharedV3ProviderOptions | undefined> {
  const seals = items.flatMap((item) => (item.type === "reasoning" ? (readSeal(item.encrypted) ?? []) : []));
  return new Map(seals.flatMap((seal) => Object.entries(seal.calls)));
}

function writeReasoning(item: Extract<Item, { type: "reasoning" }>): readonly AssistantPart[] {
  const seal = readSeal(item.encrypted);
  if (seal === undefined || seal.blocks.length === 0) {
    return item.text === "" ? [] : [{ type: "reasoning", text: item.text }];
  }
  return seal.blocks.map(({ text, options }) => ({ type: "reasoning", text, providerOptions: options }));
}

function writeCall(call: ToolCall, mark: SharedV3ProviderOptions | undefined): LanguageModelV3ToolCallPart {
  return {
    type: "tool-call",
    toolCallId: call.callId,
    toolName: call.name,
    input: toInput((call.kind === "custom" ? toFunctionCall(call) : call).arguments),
    providerOptions: mark,
  };
}

/** Providers want an object here, even if a model wrote none. */
function toInput(written: string): unknown {
  const parsed = parseJson(written);
  if (isObject(parsed)) return parsed;
  return written.trim() === "" ? {} : { invalid: written };
}

function writeOutput(output: Content): LanguageModelV3ToolResultPart["output"] {
  if (typeof output === "string") return { type: "text", value: output };
  const texts = output.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return { type: "text", value: texts.join("\n") };
}
