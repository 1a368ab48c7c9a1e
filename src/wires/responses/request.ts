/** The create body: read into what its caller asks and the voice that answers it, and written for a server. */
import type { Tell } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Item } from "../../core/item.ts";
import { fieldsOf, type Settings } from "../../core/settings.ts";
import type { Ask, Turn } from "../../core/turn.ts";
import { readToolChoice } from "../choice.ts";
import {
  moderation,
  type OwnWords,
  readCommonSettings,
  readFormat,
  readNative,
  writeCommonSettings,
} from "../common.ts";
import {
  type Fields,
  invalid,
  isPresent,
  listAt,
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
  type Said,
  toFields,
  unsupported,
} from "../fields.ts";
import type { Circumstances, Habits, Request, Seal } from "../wire.ts";
import { readItem, sendItem } from "./items.ts";
import { createVoice, toEcho, writeEcho, writeFormat } from "./object.ts";
import { readTools, writeTools } from "./tools.ts";

export function readRequest(body: unknown, { seal }: Circumstances): Request {
  const fields = readBody(body);
  const model = requireName(fields, "model");
  const previous = readString(fields, "previous_response_id");
  const conversation = readConversation(fields, previous);
  const store = readBoolean(fields, "store") ?? true;
  const background = readBoolean(fields, "background") ?? false;
  if (background && !store)
    invalid("background", "'background' requires 'store': a response that is not stored cannot be retrieved later.");
  const options = readObject(fields, "stream_options");
  if (options !== undefined) readBoolean(options, "include_obfuscation");
  readObjects(fields, "context_management");
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
  const { model, input, previous_response_id, instructions } = readBody(body).values;
  const { ask } = readRequest({ model, input, previous_response_id, instructions, store: false }, circumstances);
  return { ...ask, compacts: true };
}

/** The conversation to continue: its id, or an object with it. */
function readConversation(fields: Fields, previous: string | undefined): string | undefined {
  const { conversation: value = null } = fields.values;
  if (value === null) return undefined;
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
  const { input } = fields.values;
  if (typeof input === "string") return { items: [{ type: "message", role: "user", content: input }] };
  const given = readObjects(fields, "input") ?? [];
  // Ending with a trigger it asks for a compaction, not an answer.
  const compacts = given.at(-1)?.values["type"] === "compaction_trigger";
  const said = compacts ? given.slice(0, -1) : given;
  if (isPresent(fields, "input") || mayBeEmpty) return { items: said.map((item) => readItem(item, seal)), compacts };
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
    ...readToolChoice(fields, [...tools, ...brought], "responses"),
    format: text && readFormat(text, "format", false),
    ...readCommonSettings(fields),
    maxOutputTokens: readInteger(fields, "max_output_tokens", 16),
    // 0 alternatives is the default, and alone asks for nothing.
    topLogprobs: readInteger(fields, "top_logprobs", 0, 20) || (asksLogprobs ? 0 : undefined),
    reasoningEffort: reasoning && readString(reasoning, "effort"),
    // The second is its former name, which older clients use.
    reasoningSummary: reasoning && (readString(reasoning, "summary") ?? readString(reasoning, "generate_summary")),
    verbosity: text && readString(text, "verbosity"),
    native: readNative(fields, ownWords),
  };
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
    { param: "max_completion_tokens", why: "Responses call it 'max_output_tokens'." },
    moderation,
  ],
  offers: ["context_management"],
};

/** In the same words each time, so that the server's prompt caches stay whole. It keeps nothing. */
export function writeRequest(turn: Turn, { source }: Habits, tell: Tell): string {
  const { model, settings, items, stream } = turn;
  const own = fieldsOf(settings.native, "responses");
  const written = own ?? writeSettings(settings, tell);
  return JSON.stringify({
    ...written,
    ...writeTools(settings, own, tell),
    model,
    instructions: settings.instructions,
    include: writeInclude(turn, listAt(written, "include") ?? []),
    store: false,
    stream: stream ? true : undefined,
    stream_options: stream ? written["stream_options"] : undefined,
    input: items.flatMap((item) => sendItem(item, source, tell) ?? []),
  });
}

/** Sealed reasoning is asked for only where somebody reasons, since models that do not refuse it. */
function writeInclude({ settings, items }: Turn, wanted: readonly unknown[]): readonly unknown[] | undefined {
  const { reasoningEffort: effort = "none", reasoningSummary } = settings;
  const hasReasoned = items.some((item) => item.type === "reasoning" && item.encrypted !== undefined);
  const reasons = effort !== "none" || reasoningSummary !== undefined || hasReasoned;
  const all = reasons ? [...new Set([...wanted, "reasoning.encrypted_content"])] : wanted;
  return all.length > 0 ? all : undefined;
}

/** Those of a caller of another dialect. */
function writeSettings(settings: Settings, tell: Tell): Said {
  const { reasoningEffort: effort, reasoningSummary: summary, verbosity, topLogprobs } = settings;
  const format = settings.format && settings.format.type !== "text" ? writeFormat(settings.format) : undefined;
  if (settings.stop !== undefined && settings.stop.length > 0)
    unsupported("stop", "This gateway's adapter uses a wire protocol without stop sequences. Leave it out.");
  if (settings.seed !== undefined) tell({ type: "left-out", what: "seed" });
  return {
    ...writeCommonSettings(settings),
    max_output_tokens: writeLimit(settings.maxOutputTokens, tell),
    top_logprobs: topLogprobs || undefined,
    include: topLogprobs === undefined ? undefined : ["message.output_text.logprobs"],
    reasoning: effort === undefined && summary === undefined ? undefined : { effort, summary },
    text: format === undefined && verbosity === undefined ? undefined : { format, verbosity },
  };
}

/** This wire's minimum; a caller that only checks whether somebody answers is not refused for less. */
const leastOutputTokens = 16;

function writeLimit(wanted: number | undefined, tell: Tell): number | undefined {
  if (wanted === undefined || wanted >= leastOutputTokens) return wanted;
  tell({ type: "changed", what: "max_tokens", to: String(leastOutputTokens) });
  return leastOutputTokens;
}
