/** Writes an answer as one chat completion, and the words that chunks have in common with it. */
import type { Heading } from "../../core/gateway.ts";
import { type Annotation, type ToolCall } from "../../core/item.ts";
import { type Extra, fieldsOf, gather } from "../../core/settings.ts";
import type { Answer, Finish, Notes, Usage } from "../../core/turn.ts";
import { isObject } from "../fields.ts";
import type { Said } from "../json.ts";
import { readLogprobs } from "./reported.ts";

/** What the caller wants besides the answer itself. */
export interface Wants {
  /** Usage as a last chunk of the stream. */
  readonly usage: boolean;
  readonly reasoning: boolean;
  /** A call in the form before tools. */
  readonly functionCall: boolean;
}

export function writeCompletion({ key, createdAt, model }: Heading, answer: Answer, wants: Wants): string {
  const { notes, usage } = answer;
  const { message, logprobs } = toMessage(answer, wants);
  const finish_reason = toFinishReason(answer.finish, wants);
  return JSON.stringify({
    ...fieldsOf(notes.extra, "chat"),
    id: `chatcmpl-${key}`,
    object: "chat.completion",
    created: Math.floor(createdAt / 1000),
    model,
    choices: [{ index: 0, message, logprobs: logprobs.length > 0 ? toLogprobs(logprobs) : null, finish_reason }],
    usage: usage && toUsage(usage, notes),
    ...toServed(notes),
    // Typed clients take null here, and some want it; in a chunk they refuse it.
    system_fingerprint: notes.fingerprint ?? null,
  });
}

function toMessage({ items, extra }: Answer, wants: Wants) {
  let [text, refusal, reasoning] = ["", "", ""];
  let signature: Extra | undefined;
  const logprobs: unknown[] = [];
  const annotations: Said[] = [];
  const calls: ToolCall[] = [];
  for (const item of items) {
    if (item.type === "tool-call") calls.push(item);
    if (item.type === "reasoning" && wants.reasoning) {
      reasoning += item.text + item.summary.join(betweenSections);
      if (item.extra?.dialect === "chat") signature = gather(signature, item.extra);
    }
    if (item.type !== "message") continue;
    const parts = typeof item.content === "string" ? [{ type: "text", text: item.content } as const] : item.content;
    for (const part of parts) {
      if (part.type === "refusal") refusal += part.text;
      if (part.type !== "text") continue;
      for (const entry of part.logprobs ?? []) logprobs.push(entry);
      for (const annotation of toAnnotations(part.annotations)) annotations.push(annotation);
      text += part.text;
    }
  }
  const [first] = calls;
  const message = {
    ...fieldsOf(signature, "chat"),
    ...fieldsOf(extra, "chat"),
    role: "assistant",
    content: text === "" && (first !== undefined || refusal !== "") ? null : text,
    refusal: refusal || null,
    annotations,
    reasoning_content: reasoning || undefined,
    // A caller of functions takes one call at a time.
    function_call: wants.functionCall && first !== undefined ? toFunctionCall(first) : undefined,
    tool_calls: wants.functionCall || first === undefined ? undefined : calls.map(toCall),
  };
  return { message, logprobs };
}

/** A call in the form before tools. */
export function toFunctionCall({ name, arguments: written, extra }: ToolCall): Said {
  return { ...fieldsOf(extra, "chat"), name, arguments: written };
}

export function toCall({ kind, callId: id, name, arguments: written, extra }: ToolCall): Said {
  const called =
    kind === "custom"
      ? { type: "custom", custom: { name, input: written } }
      : { type: "function", function: { name, arguments: written } };
  return { ...fieldsOf(extra, "chat"), id, ...called };
}

/** Clients that validate refuse a whole answer for a note of another type. */
export function toAnnotations(told: readonly Annotation[] = []): readonly Said[] {
  return told.flatMap(({ type, fields: { start_index, end_index, title, url } }) =>
    type === "url_citation" ? { type, url_citation: { start_index, end_index, title, url } } : [],
  );
}

export function toLogprobs(reported: readonly unknown[]): Said {
  return { content: readLogprobs(reported) ?? [], refusal: null };
}

/** Between the sections of a summary. */
export const betweenSections = "\n\n";

/** Why the model stopped, in the wire's words. */
export function toFinishReason(finish: Finish, { functionCall }: Wants): string {
  return functionCall && finish === "tool-calls" ? "function_call" : finish.replace("-", "_");
}

/** What served the answer, as far as it is known. */
export function toServed({ serviceTier = "", fingerprint }: Notes): Said {
  return { service_tier: tiers.has(serviceTier) ? serviceTier : "default", system_fingerprint: fingerprint };
}

/** Typed clients refuse a whole answer for a tier that only another server has. */
const tiers = new Set(["auto", "default", "flex", "scale", "priority", "fast"]);

/** The tokens, and what else its server said of them, such as their cost. */
export function toUsage(usage: Usage, { extra }: Notes): Said {
  const added = fieldsOf(extra, "chat")?.["usage"];
  const { inputTokens, cachedTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage;
  return {
    ...(isObject(added) && added),
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoningTokens, ...unused },
  };
}

const unused = { audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 };
