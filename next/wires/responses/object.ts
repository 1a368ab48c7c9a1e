/** Writes the response object as JSON, with every key: what its request fixed is text already. */
import type { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { Heading } from "../../core/gateway.ts";
import { fieldsOf } from "../../core/item.ts";
import type { Answer, Usage } from "../../core/turn.ts";
import { type Echo, toText } from "./echo.ts";

export type Progress = "queued" | "in_progress";

/** While the answer is in progress, or at its end; `output` are its items as JSON. */
export type WriteResponse = (state: Progress | Answer, output: readonly string[]) => string;

export function createResponseWriter(heading: Heading, { fixed, asked }: Echo): WriteResponse {
  const { key, createdAt, model } = heading;
  const head = toText({ id: toResponseId(key), object: "response", created_at: toSeconds(createdAt), model });
  const tail = `${toText({ user: asked.user })},${fixed}`;

  return (state, output) => {
    const answer = typeof state === "string" ? undefined : state;
    // A queued turn has no place yet, unless it named one.
    const session = state === "queued" ? (asked.conversation ?? undefined) : heading.session;
    const changing = toText({
      status: answer?.status ?? state,
      completed_at: answer?.status === "completed" ? toSeconds(answer.endedAt) : null,
      conversation: session === undefined ? undefined : { id: session },
      error: answer?.error === undefined || answer.status === "cancelled" ? null : toResponseError(answer.error),
      incomplete_details: answer?.status === "incomplete" ? { reason: reasonOf(answer) } : null,
      service_tier: answer === undefined ? asked.serviceTier : toTier(answer.notes.serviceTier),
      truncation: asked.truncation ?? (session === undefined || asked.isNamed ? "disabled" : "auto"),
      usage: answer?.usage === undefined ? null : writeUsage(answer.usage),
    });
    // What the model's server adds stands in front: of two fields with one name the last one counts.
    const added = toText(fieldsOf(answer?.notes.extra, "responses") ?? {});
    return `{${added === "" ? "" : `${added},`}${head},${changing},${tail},"output":[${output.join(",")}]}`;
  };
}

export function toResponseId(key: string): string {
  return `resp_${key}`;
}

export function toSeconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1_000);
}

function reasonOf({ finish }: Answer): string {
  return finish === "content-filter" ? "content_filter" : "max_output_tokens";
}

/** Typed clients refuse a whole response for an unknown tier, such as one that only another server has. */
function toTier(served = "default"): string {
  return tiers.has(served) ? served : "default";
}

const tiers: ReadonlySet<string> = new Set(["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]);

export function writeUsage(usage: Usage): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.cacheWriteTokens ?? 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

/** The wire has fewer codes than we; clients decide by them whether to try again. */
function toResponseError({ code, wireCode, message }: GatewayError): object {
  return { code: wireCodes.has(wireCode) ? wireCode : (responseCodes[code] ?? "server_error"), message };
}

/** Passed on from a server that uses them. */
const wireCodes: ReadonlySet<string> = new Set([
  "rate_limit_exceeded",
  "invalid_prompt",
  "context_length_exceeded",
  "insufficient_quota",
  "usage_not_included",
  "server_is_overloaded",
  "slow_down",
]);

/** Our codes that are more than a server error. */
const responseCodes: Readonly<Partial<Record<ErrorCode, string>>> = {
  session_busy: "rate_limit_exceeded",
  adapter_rate_limit: "rate_limit_exceeded",
  overloaded: "server_is_overloaded",
  draining: "server_is_overloaded",
  store_unavailable: "server_is_overloaded",
  adapter_bad_request: "invalid_prompt",
  adapter_not_found: "invalid_prompt",
  tool_call_mismatch: "invalid_prompt",
  previous_response_not_found: "invalid_prompt",
};
