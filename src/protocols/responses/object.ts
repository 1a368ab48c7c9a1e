/** Writes the response object as JSON text, with every key; what the request fixed is stringified only once. */
import { addedFields } from "../../core/item.ts";
import type { About } from "../../core/ports.ts";
import type { Answer, Usage } from "../../core/turn.ts";
import { toSeconds } from "../time.ts";
import { toResponseError } from "./failure.ts";
import type { Echo } from "./request.ts";

/** Writes the object while the answer is in progress, or at its end, around items already in JSON. */
export type WriteResponse = (state: "queued" | "in_progress" | Answer, items: readonly string[]) => string;

/** The keys are in the live wire's order, so changing parts are spliced between constant ones. */
export function createResponseWriter(about: About, echo: Echo): WriteResponse {
  const { frequency_penalty, instructions, max_output_tokens, max_tool_calls, user, metadata } = echo;
  const { parallel_tool_calls, presence_penalty, previous_response_id, prompt_cache_key, reasoning } = echo;
  const { safety_identifier, store, temperature, text, tool_choice, tools, top_logprobs, top_p, background } = echo;

  const head = toText({ id: about.id, object: "response", created_at: toSeconds(about.createdAt) });
  const beforeOutput = toText({ instructions, max_output_tokens, max_tool_calls, model: about.model });
  const afterOutput = toText({
    parallel_tool_calls,
    presence_penalty,
    previous_response_id,
    prompt_cache_key,
    reasoning,
    safety_identifier,
  });
  const beforeUsage = toText({
    store,
    temperature,
    text,
    tool_choice,
    tools,
    top_logprobs,
    top_p,
    truncation: about.truncation,
  });
  const tail = toText({ user, metadata });

  return (state, items) => {
    const [status, answer] = typeof state === "string" ? [state] : [state.status, state];
    const completed_at = answer?.status === "completed" ? toSeconds(answer.endedAt) : null;
    const error = answer?.error === undefined ? null : toResponseError(answer.error);
    const incomplete_details = answer?.status === "incomplete" ? { reason: toReason(answer) } : null;
    const service_tier = answer === undefined ? echo.service_tier : toTier(answer.notes.serviceTier);
    const usage = answer?.usage === undefined ? null : toWireUsage(answer.usage);
    // A queued turn has no conversation yet, unless it named one.
    const session = status === "queued" ? echo.conversation : about.session;
    const conversation = (session ?? undefined) === undefined ? {} : { conversation: { id: session } };
    const opening = toText({ status, background, completed_at, ...conversation, error, frequency_penalty });
    const ending = toText({ service_tier });
    const added = toText(addedFields(answer?.notes.extra, "responses", ourFields));
    return (
      `{${head},${opening},${toText({ incomplete_details })},${beforeOutput},` +
      `${added === "" ? "" : `${added},`}"output":[${items.join(",")}],` +
      `${afterOutput},${ending},${beforeUsage},${toText({ usage })},${tail}}`
    );
  };
}

/** An object's fields as JSON text, without the braces. */
function toText(fields: object): string {
  return JSON.stringify(fields).slice(1, -1);
}

const ourFields: ReadonlySet<string> = new Set(
  (
    "id object created_at status background completed_at conversation error frequency_penalty incomplete_details " +
    "instructions max_output_tokens max_tool_calls model output parallel_tool_calls presence_penalty " +
    "previous_response_id prompt_cache_key reasoning safety_identifier service_tier store temperature text " +
    "tool_choice tools top_logprobs top_p truncation usage user metadata"
  ).split(" "),
);

/** Typed clients refuse a whole response for an unknown tier, such as one that only another server has. */
function toTier(served = "default"): string {
  return tiers.has(served) ? served : "default";
}

const tiers: ReadonlySet<string> = new Set(["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]);

function toReason(answer: Answer): "content_filter" | "max_output_tokens" {
  return answer.finish === "content-filter" ? "content_filter" : "max_output_tokens";
}

export function toWireUsage(usage: Usage): object {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.cacheWriteTokens ?? 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

/** The answer to `POST /v1/responses/input_tokens`. */
export function toTokenCount(tokens: number): object {
  return { object: "response.input_tokens", input_tokens: tokens };
}
