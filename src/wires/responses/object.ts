/** Tells a turn as a response object with every key. What its request fixed is a text, made once and kept, to tell it again. */
import type { GatewayError } from "../../core/errors.ts";
import type { Heading } from "../../core/gateway.ts";
import type { Item } from "../../core/item.ts";
import { fieldsOf, type Format } from "../../core/settings.ts";
import type { Answer, Ask, Usage } from "../../core/turn.ts";
import { readMetadata } from "../common.ts";
import { type Fields, readInteger, readString, readStrings } from "../fields.ts";
import type { Progress, Seal, Voice } from "../wire.ts";
import { type ItemStatus, writeItem } from "./items.ts";
import { createSpeaker } from "./stream.ts";
import { echoTools } from "./tools.ts";

export interface Echo {
  /** The fields that never change, as JSON without braces. */
  readonly fixed: string;
  readonly asked: Asked;
}

/** What the rest of the object depends on. */
interface Asked {
  readonly serviceTier: string;
  readonly truncation: "auto" | "disabled" | null;
  /** It names what it continues. */
  readonly isNamed: boolean;
  readonly user: string | null;
  readonly showsSeals: boolean;
}

export function createVoice(echo: Echo, seal: Seal): Voice {
  const show = (item: Item, status: ItemStatus) => writeItem(item, seal, echo.asked.showsSeals, status);
  return {
    whole(heading, answer) {
      const { items, isBrokenOff = false } = answer;
      const last = isBrokenOff ? items.at(-1) : undefined;
      const output = items.map((item) => show(item, item === last ? "incomplete" : "completed"));
      return createResponseWriter(heading, echo)(answer, output);
    },
    stream: (heading, tellsError = true) =>
      createSpeaker(heading, createResponseWriter(heading, echo), show, tellsError),
    progress: (heading, status) => createResponseWriter(heading, echo)(status, []),
  };
}

/** The voice of a kept turn. `showsSeals`: with sealed reasoning though its request did not ask for it. */
export function recall(echo: string, { seal }: { readonly seal: Seal }, showsSeals = false): Voice {
  const [asked, fixed] = JSON.parse(echo) as readonly [Asked, object];
  // An imported archive may hold any two objects here. All other fields are only copied.
  const user = typeof asked.user === "string" ? (seal.open(asked.user) ?? null) : null;
  return createVoice(
    { fixed: toText(fixed), asked: { ...asked, user, showsSeals: asked.showsSeals || showsSeals } },
    seal,
  );
}

export function toEcho(fields: Fields, { settings, previous, conversation, ...ask }: Ask): Echo {
  const { reasoningEffort: effort = null, reasoningSummary: summary = null } = settings;
  return {
    fixed: toText({
      background: ask.background,
      frequency_penalty: settings.frequencyPenalty ?? 0,
      instructions: settings.instructions ?? null,
      max_output_tokens: settings.maxOutputTokens ?? null,
      max_tool_calls: readInteger(fields, "max_tool_calls", 1) ?? null,
      parallel_tool_calls: settings.parallelToolCalls ?? true,
      presence_penalty: settings.presencePenalty ?? 0,
      previous_response_id: previous ?? null,
      prompt_cache_key: readString(fields, "prompt_cache_key") ?? null,
      reasoning: { effort, summary },
      safety_identifier: readString(fields, "safety_identifier") ?? null,
      store: ask.keep === "yes",
      temperature: settings.temperature ?? 1,
      text: { format: writeFormat(settings.format, null), verbosity: settings.verbosity ?? "medium" },
      tool_choice: fields.values["tool_choice"] ?? "auto",
      tools: echoTools(fields),
      top_logprobs: settings.topLogprobs ?? 0,
      top_p: settings.topP ?? 1,
      metadata: readMetadata(fields, "metadata") ?? {},
    }),
    asked: {
      serviceTier: settings.serviceTier ?? "auto",
      truncation: ask.truncation ?? null,
      isNamed: (previous ?? conversation) !== undefined,
      user: ask.user ?? null,
      showsSeals: readStrings(fields, "include")?.includes("reasoning.encrypted_content") ?? false,
    },
  };
}

/** To be kept: the caller's `user` is never readable there. */
export function writeEcho({ fixed, asked }: Echo, seal: Seal): string {
  const kept = asked.user === null ? asked : { ...asked, user: seal.seal(asked.user) };
  return `[${JSON.stringify(kept)},{${fixed}}]`;
}

/** `open`: what stands for a strictness that nobody gave. */
export function writeFormat(format: Format = { type: "text" }, open?: null): object {
  if (format.type !== "schema") return { type: format.type === "json" ? "json_object" : "text" };
  const { name, description, schema, strict } = format;
  return { type: "json_schema", description, name, schema, strict: strict ?? open };
}

/** An object's fields as JSON, without the braces. */
function toText(fields: object): string {
  return JSON.stringify(fields).slice(1, -1);
}

/** Writes the object while the answer is in progress, or at its end; `output` are its items as JSON. */
function createResponseWriter(heading: Heading, { fixed, asked }: Echo) {
  const { key, createdAt, model, session } = heading;
  const head = toText({ id: `resp_${key}`, object: "response", created_at: toSeconds(createdAt), model });
  // An imported archive may hold a turn whose request is unknown.
  const tail = toText({ user: asked.user }) + (fixed === "" ? "" : `,${fixed}`);

  return (state: Progress | Answer, output: readonly string[]): string => {
    const answer = typeof state === "string" ? undefined : state;
    const changing = toText({
      status: answer?.status ?? state,
      completed_at: answer?.status === "completed" ? toSeconds(answer.endedAt) : null,
      conversation: session && { id: session },
      error: answer?.error === undefined || answer.status === "cancelled" ? null : toResponseError(answer.error),
      incomplete_details: answer?.status === "incomplete" ? { reason: reasonOf(answer) } : null,
      service_tier: answer === undefined ? asked.serviceTier : (answer.notes.serviceTier ?? "default"),
      truncation: asked.truncation ?? (session === undefined || asked.isNamed ? "disabled" : "auto"),
      usage: answer?.usage === undefined ? null : writeUsage(answer.usage),
    });
    // What the model's server adds stands in front: of two fields with one name the last one counts.
    const added = toText(fieldsOf(answer?.notes.extra, "responses") ?? {});
    return `{${added === "" ? "" : `${added},`}${head},${changing},${tail},"output":[${output.join(",")}]}`;
  };
}

/** The user's words as they were, and a summary of the rest, each as JSON: the input of a new chain. */
export function writeCompaction({ key, createdAt }: Heading, output: readonly string[], usage = nothing): string {
  const head = toText({ id: `resp_${key}`, object: "response.compaction", created_at: toSeconds(createdAt) });
  return `{${head},"output":[${output.join(",")}],${toText({ usage: writeUsage(usage) })}}`;
}

/** The wire has no null here, for an adapter that counts nothing. */
const nothing: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

function toSeconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1_000);
}

function reasonOf({ finish }: Answer): string {
  if (finish === "interrupted") return finish;
  return finish === "content-filter" ? "content_filter" : "max_output_tokens";
}

function writeUsage(usage: Usage): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.cacheWriteTokens ?? 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

/** The wire has fewer codes than we; clients decide by them whether to try again. */
function toResponseError({ status, wireCode, message }: GatewayError): object {
  return { code: wireCodes.has(wireCode) ? wireCode : (codes.get(status) ?? "server_error"), message };
}

/** Finer than a status. */
const wireCodes = new Set(["context_length_exceeded", "insufficient_quota", "usage_not_included", "slow_down"]);

const codes = new Map([
  [400, "invalid_prompt"],
  [404, "invalid_prompt"],
  [429, "rate_limit_exceeded"],
  [503, "server_is_overloaded"],
]);
