/** Writes a turn as the body of a chat completions request. */
import type { Settings, Turn } from "../../../core/turn.ts";
import { type JsonObject, isObject } from "../../json.ts";
import { nativeSettings } from "../native.ts";
import { commonSettings, type Spelling, writeFormat } from "../settings.ts";
import { toFunctions } from "./functions.ts";
import { type DeveloperRole, toForm } from "./messages.ts";
import { createWritten, type Written } from "../written.ts";

/** What some servers want and others do not. */
export interface ServerOptions {
  /** Its model's earlier reasoning. */
  readonly sendsReasoning?: boolean;
  /** How custom tools are offered. */
  readonly customTools?: "custom" | "function";
  /** The only name it knows for the limit on an answer's length; absent: the caller's own, or the newer one. */
  readonly maxTokensField?: MaxTokensField | undefined;
  /** The role of developer messages; absent: a chat caller's as they are, others as `system`. */
  readonly developerRole?: DeveloperRole | undefined;
  /** Its address, as in what its model signed. */
  readonly source?: string | undefined;
  /** What it was sent before. */
  readonly written?: Written | undefined;
}

type MaxTokensField = "max_completion_tokens" | "max_tokens";

export function writeRequest(turn: Turn, options: ServerOptions = {}): Buffer {
  const { sendsReasoning, customTools, source, written = createWritten() } = options;
  const settings = customTools === "function" ? toFunctions(turn.settings) : turn.settings;
  const native = writeNative(settings, options.maxTokensField);
  // Every server knows `system`; OpenAI's treat it as `developer`.
  const { developerRole = native === undefined ? "system" : "developer" } = options;
  const front = settings.instructions === undefined ? [] : [{ role: "system", content: settings.instructions }];
  const toBody = (messages: unknown) => ({
    ...(native ?? writeSettings(settings, options.maxTokensField)),
    model: turn.model,
    messages,
    stream: turn.stream ? true : undefined,
    stream_options: turn.stream ? { include_usage: true } : undefined,
  });
  return written.write(turn.items, toForm({ sendsReasoning, developerRole, customTools, source }), toBody, front);
}

/** Live servers accept `metadata` only together with `store`, which we do not forward. */
function writeNative(settings: Settings, maxTokensField: MaxTokensField | undefined): JsonObject | undefined {
  const fields = nativeSettings(settings, "chat");
  if (fields === undefined) return undefined;
  const isStored = settings.native?.fields["store"] === true;
  return {
    ...fields,
    ...(isStored && { metadata: undefined }),
    ...(maxTokensField !== undefined && writeMaxTokens(settings, maxTokensField)),
  };
}

/** Two names for one limit; only one is sent. */
function writeMaxTokens({ maxOutputTokens }: Settings, field: MaxTokensField): JsonObject {
  return { max_completion_tokens: undefined, max_tokens: undefined, [field]: maxOutputTokens };
}

function writeSettings(settings: Settings, maxTokensField: MaxTokensField = "max_completion_tokens"): JsonObject {
  return {
    ...commonSettings(settings, spelling),
    seed: settings.seed,
    stop: settings.stop,
    ...writeMaxTokens(settings, maxTokensField),
    logprobs: settings.topLogprobs === undefined ? undefined : true,
    top_logprobs: settings.topLogprobs === 0 ? undefined : settings.topLogprobs,
    reasoning_effort: settings.reasoningEffort,
    verbosity: settings.verbosity,
    response_format: writeFormat(settings.format, spelling),
  };
}

const spelling: Spelling = {
  dialect: "chat",
  write: (type, fields) => ({ type, [type]: fields }),
  writeToolFormat,
};

/** Chat nests a grammar one level deeper than the other wire. */
function writeToolFormat(format: unknown): unknown {
  if (!isObject(format) || format["type"] !== "grammar" || "grammar" in format) return format ?? undefined;
  const { type, ...grammar } = format;
  return { type, grammar };
}
