/** Reads a create body: what the caller asks, and the voice that answers it. */
import { GatewayError } from "../../core/errors.ts";
import type { Item } from "../../core/item.ts";
import type { Ask } from "../../core/turn.ts";
import type { Format, Settings } from "../../core/settings.ts";
import { moderation, type OwnWords, readCommonSettings, readNative, readStreamOptions } from "../common.ts";
import {
  type Fields,
  invalid,
  isObject,
  isPresent,
  missing,
  pathOf,
  readBody,
  readBoolean,
  readChoice,
  readInteger,
  readObject,
  readString,
  readStrings,
  requireName,
  requireObject,
  toFields,
  wrongType,
} from "../fields.ts";
import type { Circumstances, Request, Seal } from "../wire.ts";
import { toEcho, writeEcho } from "./object.ts";
import { readItems } from "./items.ts";
import { readToolChoice, readTools } from "./tools.ts";
import { createVoice, type ResponsesVoice } from "./voice.ts";

export function readRequest(body: unknown, { seal }: Circumstances): Request & { readonly voice: ResponsesVoice } {
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
  const ask = {
    model,
    items,
    itemsParam: "input",
    settings: readSettings(fields, items),
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

/** A request to compact a conversation: nothing is kept, the caller goes on with the result. */
export function readCompactRequest(body: unknown, circumstances: Circumstances): Ask {
  const { model, input = null, previous_response_id, instructions } = readBody(body).values;
  const asked = { model, previous_response_id, instructions, store: false };
  const { ask } = readRequest(Array.isArray(input) && input.length === 0 ? asked : { ...asked, input }, circumstances);
  return { ...ask, compacts: true };
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
  if (input !== null && !Array.isArray(input)) throw wrongType("input", "a string or an array", input);
  // Ending with a trigger it asks for a compaction, not an answer.
  const compacts = isObject(input?.at(-1)) && input.at(-1)["type"] === "compaction_trigger";
  const said = compacts ? { ...fields, values: { input: input.slice(0, -1) } } : fields;
  const items = readItems(said, "input", seal);
  if (items !== undefined || mayBeEmpty) return { items: items ?? [], compacts };
  if (isPresent(fields, "messages")) missing("input", " A request with 'messages' goes to /v1/chat/completions.");
  missing("input", " One of 'input', 'previous_response_id', 'conversation' or 'prompt' must be provided.");
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

function readFormat(text: Fields): Format | undefined {
  const format = readObject(text, "format");
  if (format === undefined) return undefined;
  switch (readChoice(format, "type", ["text", "json_object", "json_schema"]) ?? missing(pathOf(format, "type"))) {
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return {
        type: "schema",
        name: requireName(format, "name"),
        description: readString(format, "description"),
        schema: requireObject(format, "schema").values,
        strict: readBoolean(format, "strict"),
      };
  }
}

const ownWords: OwnWords = {
  dialect: "responses",
  ours: new Set("input model stream user instructions previous_response_id conversation store background".split(" ")),
  demands: [
    {
      param: "prompt",
      why: "The adapter behind this model does not support prompt templates. Send the text of the prompt as 'instructions' and 'input'.",
    },
    { param: "response_format", why: "Responses call it 'text.format'." },
    { param: "max_tokens", why: "Responses call it 'max_output_tokens'." },
    moderation,
  ],
  offers: ["context_management"],
};
