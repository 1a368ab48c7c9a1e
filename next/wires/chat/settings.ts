/** How the model is to answer: read from a request's fields, and written as such; a caller's own go on as they are. */
import type { Tell } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Format, Settings } from "../../core/turn.ts";
import { moderation, type OwnWords, readCommonSettings, readMetadata, readNative } from "../common.ts";
import {
  type Fields,
  invalid,
  missing,
  pathOf,
  readBoolean,
  readChoice,
  readInteger,
  readObject,
  readString,
  readStrings,
  requireName,
  requireObject,
  unsupported,
} from "../fields.ts";
import { listAt, type Said } from "../json.ts";
import type { Habits } from "../wire.ts";
import { readToolChoice, readTools, writeTools } from "./tools.ts";

export function readSettings(fields: Fields): Settings {
  readMetadata(fields, "metadata");
  readString(fields, "prompt_cache_key");
  readString(fields, "safety_identifier");
  if ((readInteger(fields, "n", 1, 128) ?? 1) > 1)
    unsupported("n", "A turn has one answer; send the request once for each choice.");
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
  ours: new Set(["model", "messages", "stream", "stream_options", "user", "background", "conversation"]),
  demands: [
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

function readFormat(fields: Fields): Format | undefined {
  const format = readObject(fields, "response_format");
  if (format === undefined) return undefined;
  switch (readChoice(format, "type", ["text", "json_object", "json_schema"]) ?? missing(pathOf(format, "type"))) {
    case "text":
      return { type: "text" };
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
  }
}

function readStop(fields: Fields): readonly string[] | undefined {
  const { stop } = fields.values;
  if (typeof stop === "string") return [stop];
  const all = readStrings(fields, "stop");
  if (all === undefined || all.length <= 4) return all;
  const message = `Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length ${all.length} instead.`;
  throw new GatewayError("out_of_range", message, { param: "stop", wireCode: "array_above_max_length" });
}

function readLogprobs(fields: Fields): number | undefined {
  const isWanted = readBoolean(fields, "logprobs") ?? false;
  const top = readInteger(fields, "top_logprobs", 0, 20);
  if (top !== undefined && top > 0 && !isWanted)
    invalid("top_logprobs", "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.");
  return isWanted ? (top ?? 0) : undefined;
}

export function writeSettings(settings: Settings, habits: Habits, tell: Tell): Said {
  const { native } = settings;
  if (native?.dialect === "chat") return passOn(native.fields, settings, habits, tell);
  return {
    temperature: settings.temperature,
    top_p: settings.topP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    seed: settings.seed,
    stop: settings.stop,
    ...writeLimit(settings, habits.maxTokensField ?? "max_completion_tokens"),
    logprobs: settings.topLogprobs === undefined ? undefined : true,
    top_logprobs: settings.topLogprobs || undefined,
    reasoning_effort: settings.reasoningEffort,
    verbosity: settings.verbosity,
    response_format: writeFormat(settings.format),
    service_tier: settings.serviceTier,
    ...writeTools(settings, habits, tell),
    ...Object.fromEntries(common.map((name) => [name, native?.fields[name]])),
  };
}

/** Fields with the same name and meaning in both dialects. */
const common = ["prompt_cache_key", "prompt_cache_retention", "safety_identifier"];

/** The gateway is the memory, so the server must not be; servers take `metadata` of a stored completion only with `store`. */
function passOn(fields: Said, settings: Settings, habits: Habits, tell: Tell): Said {
  const isStored = fields["store"] === true;
  const areAsSent = settings.tools.length === (listAt(fields, "tools")?.length ?? 0);
  const isKnown = habits.hasCustomTools || settings.tools.every(({ type }) => type !== "custom");
  return {
    ...fields,
    store: undefined,
    ...(isStored && { metadata: undefined }),
    ...(!(areAsSent && isKnown) && writeTools(settings, habits, tell)),
    ...(habits.maxTokensField !== undefined && writeLimit(settings, habits.maxTokensField)),
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
