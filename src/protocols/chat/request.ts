/** Reads the body of a chat completion request. */
import { GatewayError } from "../../core/errors.ts";
import type { Earlier } from "../../core/ports.ts";
import type { Ask, Format, Settings } from "../../core/turn.ts";
import { readCommonSettings, readMetadata, readStreamOptions } from "../common.ts";
import {
  type Fields,
  invalid,
  isObject,
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
  requireShortName,
  unsupported,
  wrongType,
} from "../fields.ts";
import { moderation, type OwnWords, readNative } from "../native.ts";
import { createPathOf } from "../where.ts";
import { leafOf } from "./content.ts";
import { speaksOfFunctions, withTools } from "./functions.ts";
import { messageOf, readMessages } from "./messages.ts";
import { readToolChoice, readTools } from "./tools.ts";

/** What the caller wants besides the answer itself. */
export interface Wants {
  /** Usage as a last chunk of the stream. */
  readonly usage: boolean;
  readonly reasoning: boolean;
  /** A call in the form before tools. */
  readonly functionCall: boolean;
}

export interface ChatRequest {
  readonly ask: Ask;
  readonly wants: Wants;
  readonly isUnsettled: boolean;
}

export function readRequest(body: unknown, exposeReasoning: boolean, earlier?: Earlier): ChatRequest {
  const sent = readBody(body);
  refuseUnanswerable(sent);
  const fields = withTools(sent);
  const stream = readBoolean(fields, "stream") ?? false;
  const store = readBoolean(fields, "store");
  const model = requireShortName(fields, "model");
  const { items, isUnsettled } = readMessages(fields, earlier);
  const ask: Ask = {
    model,
    items,
    itemsParam: "messages",
    ...(speaksOfFunctions(sent) && { toolsParam: "functions" }),
    pathOf: createPathOf(items, (index) => `messages[${messageOf(fields, index)}].content`, leafOf),
    settings: readSettings(fields),
    stream,
    user: readString(fields, "user") || undefined,
    keep: store === undefined ? "in-session" : store ? "yes" : "no",
  };
  const wants: Wants = {
    usage: readUsageOption(fields, stream),
    reasoning: asksForReasoning(fields) ?? exposeReasoning,
    functionCall: speaksOfFunctions(sent),
  };
  return { ask, wants, isUnsettled };
}

function readSettings(fields: Fields): Settings {
  readMetadata(fields, "metadata");
  readString(fields, "prompt_cache_key");
  readString(fields, "safety_identifier");
  const tools = readTools(fields);
  const maxCompletionTokens = readInteger(fields, "max_completion_tokens", 1);
  const maxTokens = readInteger(fields, "max_tokens", 1);
  return {
    tools,
    ...readToolChoice(fields, tools),
    format: readFormat(fields),
    ...readCommonSettings(fields),
    seed: readInteger(fields, "seed", minSeed, maxSeed),
    stop: readStop(fields),
    maxOutputTokens: maxCompletionTokens ?? maxTokens,
    choices: readInteger(fields, "n", 1, 128),
    topLogprobs: readLogprobs(fields),
    reasoningEffort: readString(fields, "reasoning_effort"),
    verbosity: readString(fields, "verbosity"),
    native: readNative(fields, ownWords),
  };
}

/** 64-bit integers, as far as a double can tell them from larger ones. */
const [minSeed, maxSeed] = [-(2 ** 63), 2 ** 63 - 1_024];

const ownWords: OwnWords = {
  dialect: "chat",
  ours: new Set(["model", "messages", "stream", "stream_options", "user"]),
  demands: [
    {
      param: "n",
      isIdle: (value) => value === 1,
      why: "The adapter behind this model supports only one choice per request; send the request once for each choice.",
    },
    {
      param: "logit_bias",
      isIdle: (value) => typeof value === "object" && Object.keys(value ?? {}).length === 0,
      why: "The adapter behind this model cannot make tokens more or less likely. Leave it out.",
    },
    { param: "max_output_tokens", why: "Chat completions call it 'max_completion_tokens'." },
    moderation,
  ],
  offers: ["web_search_options", "prediction"],
};

/** What would change the answer and cannot be honoured is refused rather than dropped. */
function refuseUnanswerable(fields: Fields): void {
  if (readStrings(fields, "modalities")?.includes("audio")) {
    unsupported("modalities", "Audio answers are not available; ask for 'text'.");
  }
  if (readString(fields, "previous_response_id") !== undefined) {
    unsupported(
      "previous_response_id",
      "Only /v1/responses can continue a response; here 'user' or a header names the session.",
    );
  }
}

function readUsageOption(fields: Fields, stream: boolean): boolean {
  const options = readStreamOptions(fields);
  if (options === undefined) return false;
  if (!stream) {
    const why = "is only allowed when 'stream' is enabled. Set 'stream' to true or leave it out.";
    invalid("stream_options", `The 'stream_options' parameter ${why}`);
  }
  return readBoolean(options, "include_usage") ?? false;
}

/** Live chat completions hide reasoning; clients of other servers use these two fields to ask for it. */
function asksForReasoning(fields: Fields): boolean | undefined {
  const { include_reasoning: include, reasoning } = fields.values;
  if (typeof include === "boolean") return include;
  return isObject(reasoning) ? reasoning.exclude !== true : undefined;
}

function readFormat(fields: Fields): Format | undefined {
  const format = readObject(fields, "response_format");
  if (format === undefined) return undefined;
  switch (readChoice(format, "type", ["text", "json_object", "json_schema"]) ?? missing(pathOf(format, "type"))) {
    case "json_object":
      return { type: "json" };
    case "json_schema": {
      const described = requireObject(format, "json_schema");
      return {
        type: "schema",
        name: requireName(described, "name"),
        description: readString(described, "description"),
        schema: readObject(described, "schema")?.values ?? {},
        strict: readBoolean(described, "strict"),
      };
    }
    case "text":
      return { type: "text" };
  }
}

function readStop(fields: Fields): readonly string[] | undefined {
  const value = fields.values.stop;
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return [value];
  const path = pathOf(fields, "stop");
  if (!Array.isArray(value)) throw wrongType(path, "a string or an array of strings", value);
  if (value.length > 4) {
    throw new GatewayError(
      "out_of_range",
      `Invalid '${path}': array too long. Expected an array with maximum length 4, but got an array with length ${value.length} instead.`,
      { param: path, wireCode: "array_above_max_length" },
    );
  }
  return readStrings(fields, "stop");
}

function readLogprobs(fields: Fields): number | undefined {
  const wanted = readBoolean(fields, "logprobs") ?? false;
  const top = readInteger(fields, "top_logprobs", 0, 20);
  if (top !== undefined && top > 0 && !wanted) {
    invalid("top_logprobs", "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.");
  }
  return wanted ? (top ?? 0) : undefined;
}
