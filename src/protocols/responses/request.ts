/** Reads a create body: what the caller asks, and what the response object repeats of it. */
import { GatewayError } from "../../core/errors.ts";
import type { Earlier } from "../../core/ports.ts";
import type { Ask, Settings } from "../../core/turn.ts";
import { readCommonSettings, readMetadata, readStreamOptions } from "../common.ts";
import {
  type Fields,
  invalid,
  isObject,
  isPresent,
  missing,
  readBody,
  readBoolean,
  readChoice,
  readInteger,
  readObject,
  readObjects,
  readString,
  readStrings,
  requireName,
  requireShortName,
  toFields,
  wrongType,
} from "../fields.ts";
import { moderation, type OwnWords, readNative } from "../native.ts";
import { createPathOf } from "../where.ts";
import { readToolChoice } from "./choice.ts";
import { leafOf } from "./content.ts";
import { checkConversationId } from "./conversation.ts";
import { readFormat, toWireFormat } from "./format.ts";
import { readItems } from "./items.ts";
import type { Seal } from "./seal.ts";
import { echoTools, readTools } from "./tools.ts";

export function readRequest(body: unknown, seal: Seal, earlier?: Earlier): { readonly ask: Ask; readonly echo: Echo } {
  const fields = readBody(body);
  const model = requireShortName(fields, "model");
  const previousId = readString(fields, "previous_response_id");
  const conversationId = readConversation(fields, previousId);
  const user = readString(fields, "user") || undefined;
  const store = readBoolean(fields, "store") ?? true;
  const background = readBoolean(fields, "background") ?? false;
  if (background && !store) {
    invalid("background", "'background' requires 'store': a response that is not stored cannot be retrieved later.");
  }
  readStreamOptions(fields);
  const hasPrompt = readObject(fields, "prompt") !== undefined;
  const mayBeEmpty = hasPrompt || (previousId ?? conversationId) !== undefined;
  const input = readInput(fields, mayBeEmpty, (said) => readItems(said, "input", seal, earlier));
  const settings = readSettings(fields, input.items);
  const ask: Ask = {
    model,
    ...input,
    itemsParam: "input",
    needsOutputs: true,
    pathOf: createPathOf(input.items, (index, key) => `input[${index}].${key}`, leafOf),
    settings,
    stream: readBoolean(fields, "stream") ?? false,
    previousId,
    conversationId,
    user,
    keep: store ? "yes" : "no",
    background,
    ...readContextManagement(fields),
    truncation: readChoice(fields, "truncation", ["auto", "disabled"]),
  };
  return { ask, echo: readEcho(fields, ask, store) };
}

/** A string is a user message. Only a request that continues something or has a prompt may have none. */
function readInput(
  fields: Fields,
  mayBeEmpty: boolean,
  readList: (said: Fields) => Ask["items"] | undefined,
): Pick<Ask, "items" | "compacts"> {
  const input = fields.values["input"];
  if (typeof input === "string") return { items: [{ type: "message", role: "user", content: input }] };
  if (Array.isArray(input) && isTrigger(input.at(-1))) {
    const said = { ...fields, values: { input: input.slice(0, -1) } };
    return { items: readList(said) ?? [], compacts: true };
  }
  if (isPresent(fields, "input") && !Array.isArray(input)) throw wrongType("input", "a string or an array", input);
  const items = readList(fields);
  if (items !== undefined) return { items };
  if (mayBeEmpty) return { items: [] };
  if (isPresent(fields, "messages")) missing("input", " A request with 'messages' goes to /v1/chat/completions.");
  missing("input", " One of 'input', 'previous_response_id', 'conversation' or 'prompt' must be provided.");
}

/** Ending the input with one asks for a compaction, not an answer. */
function isTrigger(item: unknown): boolean {
  return isObject(item) && item["type"] === "compaction_trigger";
}

/** Of several entries the lowest limit counts. Other kinds are allowed: they are for an adapter of the same dialect. */
function readContextManagement(fields: Fields): Pick<Ask, "compactsBeyond"> {
  const entries = readObjects(fields, "context_management") ?? [];
  const limits = entries.flatMap((entry) =>
    requireName(entry, "type") === "compaction" ? [readInteger(entry, "compact_threshold", 1000) ?? Infinity] : [],
  );
  if (limits.length === 0) return {};
  const tokens = limits.reduce((lowest, limit) => Math.min(lowest, limit));
  const isAll = limits.length === entries.length;
  return {
    compactsBeyond: { ...(tokens < Infinity && { tokens }), ...(isAll && { param: "context_management" }) },
  };
}

/** The conversation to continue: its id, or an object with it. */
function readConversation(fields: Fields, previousId: string | undefined): string | undefined {
  const value = fields.values["conversation"];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" && typeof value !== "object")
    throw wrongType("conversation", "a string or an object", value);
  const id = typeof value === "string" ? value : requireName(toFields(value, "conversation"), "id");
  if (previousId !== undefined) {
    throw new GatewayError(
      "mutually_exclusive",
      "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of them.",
      { param: "previous_response_id" },
    );
  }
  return checkConversationId(id, "conversation");
}

/** Tools that items bring along may be chosen too. */
function readSettings(fields: Fields, items: Ask["items"]): Settings {
  const tools = readTools(fields);
  const brought = items.flatMap((item) => ("tools" in item ? (item.tools ?? []) : []));
  const text = readObject(fields, "text");
  const reasoning = readObject(fields, "reasoning");
  const asksLogprobs = readInclude(fields).includes("message.output_text.logprobs");
  return {
    instructions: readString(fields, "instructions") || undefined,
    tools,
    ...readToolChoice(fields, brought.length === 0 ? tools : tools.concat(brought)),
    format: text && readFormat(text),
    ...readCommonSettings(fields),
    maxOutputTokens: readInteger(fields, "max_output_tokens", 16),
    // 0 alternatives is the default, and alone asks for nothing.
    topLogprobs: readInteger(fields, "top_logprobs", 0, 20) || (asksLogprobs ? 0 : undefined),
    reasoningEffort: reasoning && readString(reasoning, "effort"),
    reasoningSummary: reasoning && (readString(reasoning, "summary") ?? readString(reasoning, "generate_summary")),
    verbosity: text && readString(text, "verbosity"),
    native: readNative(fields, ownWords),
  };
}

/** Unknown values are allowed: they are for an adapter of the same dialect. */
function readInclude(fields: Fields): readonly string[] {
  return readStrings(fields, "include") ?? [];
}

const ownWords: OwnWords = {
  dialect: "responses",
  ours: new Set([
    "input",
    "model",
    "stream",
    "user",
    "instructions",
    "previous_response_id",
    "conversation",
    "store",
    "background",
  ]),
  demands: [
    // A template is stored on a server, and only that server knows its text.
    {
      param: "prompt",
      why: "The adapter behind this model does not support prompt templates. Send the text of the prompt as 'instructions' and 'input'.",
    },
    {
      param: "response_format",
      isIdle: (value) => isObject(value) && value["type"] === "text",
      why: "Responses call it 'text.format'.",
    },
    { param: "max_tokens", why: "Responses call it 'max_output_tokens'." },
    { param: "max_completion_tokens", why: "Responses call it 'max_output_tokens'." },
    moderation,
  ],
  offers: ["context_management"],
};

/** What a response object repeats of its request, as on the wire. */
export type Echo = Readonly<ReturnType<typeof readEcho>>;

function readEcho(fields: Fields, ask: Ask, store: boolean) {
  const { settings } = ask;
  return {
    instructions: settings.instructions ?? null,
    max_output_tokens: settings.maxOutputTokens ?? null,
    max_tool_calls: readInteger(fields, "max_tool_calls", 1) ?? null,
    parallel_tool_calls: settings.parallelToolCalls ?? true,
    frequency_penalty: settings.frequencyPenalty ?? 0,
    presence_penalty: settings.presencePenalty ?? 0,
    previous_response_id: ask.previousId ?? null,
    prompt_cache_key: readString(fields, "prompt_cache_key") ?? null,
    reasoning: { effort: settings.reasoningEffort ?? null, summary: settings.reasoningSummary ?? null },
    safety_identifier: readString(fields, "safety_identifier") ?? null,
    // The requested one; the one used is known at the end.
    service_tier: settings.serviceTier ?? "auto",
    store,
    temperature: settings.temperature ?? 1,
    text: { format: toWireFormat(settings.format), verbosity: settings.verbosity ?? "medium" },
    tool_choice: fields.values["tool_choice"] ?? "auto",
    tools: echoTools(fields),
    top_logprobs: settings.topLogprobs ?? 0,
    top_p: settings.topP ?? 1,
    user: ask.user ?? null,
    metadata: readMetadata(fields, "metadata") ?? {},
    background: ask.background === true,
    // Only one that the request itself named.
    conversation: ask.conversationId ?? null,
    // Not on the wire.
    showsSeals: readInclude(fields).includes("reasoning.encrypted_content"),
  };
}
