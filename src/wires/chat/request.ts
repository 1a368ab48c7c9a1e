/** The body of a chat completion request: read into what its caller wants, and written for a server. */
import { fieldsOf, type Format, type Settings } from "../../core/settings.ts";
import type { Ask, Turn } from "../../core/turn.ts";
import {
  moderation,
  type OwnWords,
  readCommonSettings,
  readFormat,
  readMetadata,
  readNative,
  writeCommonSettings,
} from "../common.ts";
import {
  type Fields,
  invalid,
  isObject,
  listAt,
  readBody,
  readBoolean,
  readInteger,
  readObject,
  readString,
  readStrings,
  requireName,
  type Said,
  unsupported,
} from "../fields.ts";
import type { Circumstances, Habits, Request } from "../wire.ts";
import { createVoice } from "./answer.ts";
import { readMessages, writeMessages } from "./messages.ts";
import { readTools, usesFunctions, writeTools } from "./tools.ts";

export function readRequest(body: unknown, { exposesReasoning }: Circumstances): Request {
  const fields = readBody(body);
  refuseUnanswerable(fields);
  const stream = readBoolean(fields, "stream") ?? false;
  const store = readBoolean(fields, "store");
  const ask: Ask = {
    model: requireName(fields, "model"),
    items: readMessages(fields),
    itemsParam: "messages",
    settings: readSettings(fields),
    stream,
    user: readString(fields, "user") || undefined,
    keep: store === undefined ? "in-session" : store ? "yes" : "no",
  };
  const usage = readUsageOption(fields, stream);
  const reasoning = asksForReasoning(fields) ?? exposesReasoning;
  return { ask, voice: createVoice({ usage, reasoning, functionCall: usesFunctions(fields) }) };
}

/** What would change the answer and cannot be honoured is refused rather than dropped. */
function refuseUnanswerable(fields: Fields): void {
  if ((readInteger(fields, "n", 1, 128) ?? 1) > 1)
    unsupported("n", "A turn has one answer; send the request once for each choice.");
  if (readStrings(fields, "modalities")?.includes("audio"))
    unsupported("modalities", "Audio answers are not available; ask for 'text'.");
  if (readString(fields, "previous_response_id") !== undefined)
    unsupported("previous_response_id", "Only /v1/responses continues a response; here 'user' names the session.");
}

function readUsageOption(fields: Fields, stream: boolean): boolean {
  const options = readObject(fields, "stream_options");
  if (options !== undefined && !stream)
    invalid("stream_options", "'stream_options' is only allowed with 'stream'. Set that to true or leave this out.");
  if (options === undefined) return false;
  readBoolean(options, "include_obfuscation");
  return readBoolean(options, "include_usage") === true;
}

/** Live chat completions hide reasoning; clients of other servers use these two fields to ask for it. */
function asksForReasoning({ values }: Fields): boolean | undefined {
  const { include_reasoning: include, reasoning } = values;
  if (typeof include === "boolean") return include;
  return isObject(reasoning) ? reasoning["exclude"] !== true : undefined;
}

function readSettings(fields: Fields): Settings {
  readMetadata(fields, "metadata");
  readString(fields, "prompt_cache_key");
  readString(fields, "safety_identifier");
  const maxCompletionTokens = readInteger(fields, "max_completion_tokens", 1);
  const maxTokens = readInteger(fields, "max_tokens", 1);
  const topLogprobs = readInteger(fields, "top_logprobs", 0, 20);
  return {
    ...readTools(fields),
    format: readFormat(fields, "response_format", true),
    ...readCommonSettings(fields),
    ...(usesFunctions(fields) && { parallelToolCalls: false }),
    seed: readInteger(fields, "seed", minSeed, maxSeed),
    stop: readStop(fields),
    maxOutputTokens: maxCompletionTokens ?? maxTokens,
    topLogprobs: readBoolean(fields, "logprobs") === true ? (topLogprobs ?? 0) : undefined,
    reasoningEffort: readString(fields, "reasoning_effort"),
    verbosity: readString(fields, "verbosity"),
    native: readNative(fields, ownWords),
  };
}

/** 64-bit integers, as far as a double can tell them from larger ones. */
const [minSeed, maxSeed] = [-(2 ** 63), 2 ** 63 - 1_024];

const ours = "model messages stream stream_options user background conversation functions function_call";

const ownWords: OwnWords = {
  dialect: "chat",
  ours: new Set(ours.split(" ")),
  demands: [
    {
      param: "logit_bias",
      why: "The adapter behind this model cannot make tokens more or less likely. Leave it out.",
    },
    { param: "max_output_tokens", why: "Chat completions call it 'max_completion_tokens'." },
    moderation,
  ],
  offers: ["web_search_options", "prediction"],
};

function readStop(fields: Fields): readonly string[] | undefined {
  const { stop } = fields.values;
  return typeof stop === "string" ? [stop] : readStrings(fields, "stop");
}

/** In the same order each time, so that caches of prompts hold. */
export function writeRequest(turn: Turn, habits: Habits): string {
  const { settings, stream } = turn;
  const own = fieldsOf(settings.native, "chat");
  return JSON.stringify({
    model: turn.model,
    ...(own === undefined ? writeSettings(settings, habits) : passOn(own, settings, habits)),
    messages: writeMessages(turn, habits),
    ...(stream && { stream, stream_options: { include_usage: true } }),
  });
}

/** The gateway is the memory, so the server must not be; servers take `metadata` of a stored completion only with `store`. */
function passOn(fields: Said, settings: Settings, habits: Habits): Said {
  const isStored = fields["store"] === true;
  const areAsSent = settings.tools.length === (listAt(fields, "tools")?.length ?? 0);
  const areKnown = habits.hasCustomTools || settings.tools.every(({ type }) => type !== "custom");
  return {
    ...fields,
    store: undefined,
    ...(isStored && { metadata: undefined }),
    ...(!(areAsSent && areKnown) && writeTools(settings, habits)),
    ...(habits.maxTokensField !== undefined && writeLimit(settings, habits.maxTokensField)),
  };
}

function writeSettings(settings: Settings, habits: Habits): Said {
  const { topLogprobs } = settings;
  return {
    ...writeCommonSettings(settings),
    seed: settings.seed,
    stop: settings.stop,
    ...writeLimit(settings, habits.maxTokensField ?? "max_completion_tokens"),
    ...(topLogprobs !== undefined && { logprobs: true, top_logprobs: topLogprobs || undefined }),
    reasoning_effort: settings.reasoningEffort,
    verbosity: settings.verbosity,
    response_format: writeFormat(settings.format),
    ...writeTools(settings, habits),
  };
}

/** Two names for one limit; only one is sent. */
function writeLimit({ maxOutputTokens }: Settings, field: NonNullable<Habits["maxTokensField"]>): Said {
  return { max_completion_tokens: undefined, max_tokens: undefined, [field]: maxOutputTokens };
}

function writeFormat(format: Format | undefined): Said | undefined {
  if (format === undefined || format.type === "text") return undefined;
  if (format.type === "json") return { type: "json_object" };
  const { type: _, ...json_schema } = format;
  return { type: "json_schema", json_schema };
}
