/** Reads a create body: what the caller asks, and the voice that answers it. */
import { GatewayError } from "../../core/errors.ts";
import type { Item } from "../../core/item.ts";
import type { Ask, Settings } from "../../core/turn.ts";
import { moderation, type OwnWords, readCommonSettings, readNative, readStreamOptions } from "../common.ts";
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
  readString,
  readStrings,
  requireName,
  toFields,
  wrongType,
} from "../fields.ts";
import type { Circumstances, Seal } from "../wire.ts";
import { readToolChoice } from "./choice.ts";
import { toEcho, writeEcho } from "./echo.ts";
import { readFormat } from "./format.ts";
import { readItems } from "./items.ts";
import { readTools } from "./tools.ts";
import { createVoice, type ResponsesVoice } from "./voice.ts";

export interface ResponsesRequest {
  readonly ask: Ask;
  readonly voice: ResponsesVoice;
}

export function readRequest(body: unknown, { seal }: Circumstances): ResponsesRequest {
  const fields = readBody(body);
  const model = requireName(fields, "model");
  const previous = readString(fields, "previous_response_id");
  const conversation = readConversation(fields, previous);
  const store = readBoolean(fields, "store") ?? true;
  const background = readBoolean(fields, "background") ?? false;
  if (background && !store)
    invalid("background", "'background' requires 'store': a response that is not stored cannot be retrieved later.");
  readStreamOptions(fields);
  const mayBeEmpty = readObject(fields, "prompt") !== undefined || (previous ?? conversation) !== undefined;
  const { items, compacts } = readInput(fields, mayBeEmpty, seal);
  const settings = readSettings(fields, items);
  const ask = {
    model,
    items,
    itemsParam: "input",
    settings,
    stream: readBoolean(fields, "stream") ?? false,
    previous,
    conversation,
    user: readString(fields, "user") || undefined,
    keep: store ? "yes" : "no",
    background,
    compacts,
    truncation: readChoice(fields, "truncation", ["auto", "disabled"]),
  } as const;
  const echo = toEcho(fields, ask);
  return { ask: { ...ask, echo: writeEcho(echo, seal) }, voice: createVoice(echo, seal) };
}

/** The conversation to continue: its id, or an object with it. */
function readConversation(fields: Fields, previous: string | undefined): string | undefined {
  const { conversation: value = null } = fields.values;
  if (value === null) return undefined;
  if (typeof value !== "string" && typeof value !== "object")
    throw wrongType("conversation", "a string or an object", value);
  const id = typeof value === "string" ? value : requireName(toFields(value, "conversation"), "id");
  if (previous === undefined) return checkConversationId(id, "conversation");
  throw new GatewayError(
    "mutually_exclusive",
    "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of them.",
    { param: "previous_response_id" },
  );
}

/** An id that could be a conversation's. */
export function checkConversationId(id: string, param: string): string {
  if (id.startsWith("conv_")) return id;
  return invalid(param, `Invalid '${param}': '${id}'. Expected an ID that begins with 'conv'.`);
}

/** A string is a user's message. Only a request that continues something or has a prompt may have none. */
function readInput(fields: Fields, mayBeEmpty: boolean, seal: Seal): Pick<Ask, "items" | "compacts"> {
  const { input = null } = fields.values;
  if (typeof input === "string") return { items: [{ type: "message", role: "user", content: input }] };
  if (Array.isArray(input) && isTrigger(input.at(-1))) {
    const before = { ...fields, values: { input: input.slice(0, -1) } };
    return { items: readItems(before, "input", seal) ?? [], compacts: true };
  }
  if (input !== null && !Array.isArray(input)) throw wrongType("input", "a string or an array", input);
  const items = readItems(fields, "input", seal);
  if (items !== undefined) return { items };
  if (mayBeEmpty) return { items: [] };
  if (isPresent(fields, "messages")) missing("input", " A request with 'messages' goes to /v1/chat/completions.");
  missing("input", " One of 'input', 'previous_response_id', 'conversation' or 'prompt' must be provided.");
}

/** Ending the input with one asks for a compaction, not an answer. */
function isTrigger(item: unknown): boolean {
  return isObject(item) && item["type"] === "compaction_trigger";
}

/** Tools that items bring along may be chosen too. */
function readSettings(fields: Fields, items: readonly Item[]): Settings {
  const tools = readTools(fields);
  const brought = items.flatMap((item) => ("tools" in item ? (item.tools ?? []) : []));
  const text = readObject(fields, "text");
  const reasoning = readObject(fields, "reasoning");
  const asksLogprobs = readStrings(fields, "include")?.includes("message.output_text.logprobs") ?? false;
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

const ownWords: OwnWords = {
  dialect: "responses",
  ours: new Set([
    ...["input", "model", "stream", "user", "instructions"],
    ...["previous_response_id", "conversation", "store", "background"],
  ]),
  demands: [
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
