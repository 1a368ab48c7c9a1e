/** An answer as one chat completion, and what its chunks share with it. */
import type { OutputItem } from "../../core/event.ts";
import { gatherFields } from "../../core/fields.ts";
import { addedFields, type Extra, fieldsOf, type ToolCall } from "../../core/item.ts";
import type { About } from "../../core/ports.ts";
import type { Answer, Choice, Finish, Notes, Usage } from "../../core/turn.ts";
import { isObject } from "../fields.ts";
import { toSeconds } from "../time.ts";
import { toWireAnnotations } from "./annotations.ts";
import type { Wants } from "./request.ts";

/** The whole answer at once. */
export function toCompletion(about: About, answer: Answer, wants: Wants): unknown {
  return {
    ...addedTo("completion", answer.notes.extra),
    id: toCompletionId(about),
    object: "chat.completion",
    created: toSeconds(about.createdAt),
    model: about.model,
    choices: [answer, ...(answer.others ?? [])].map((choice, index) => toChoice(choice, index, wants)),
    ...(answer.usage && { usage: toUsage(answer.usage, answer.notes) }),
    ...toServed(answer.notes),
    // Typed clients take null here, and some want it; in a chunk they refuse it.
    system_fingerprint: answer.notes.fingerprint ?? null,
  };
}

function toChoice({ items, finish, extra }: Choice, index: number, wants: Wants): unknown {
  const said = collect(items);
  const calls = items.filter((item) => item.type === "tool-call");
  const silent = said.text === "" && (calls.length > 0 || said.refusal !== "");
  return {
    index,
    message: {
      ...(wants.reasoning && addedTo("message", signatureOf(items))),
      ...addedTo("message", extra),
      role: "assistant",
      content: silent ? null : said.text,
      refusal: said.refusal === "" ? null : said.refusal,
      annotations: said.annotations,
      ...(wants.reasoning && said.reasoning !== "" && { reasoning_content: said.reasoning }),
      ...(wants.functionCall && calls[0] && { function_call: toFunctionCall(calls[0]) }),
      // Callers that use functions expect one call, but none is lost: several all stand here too.
      ...(calls.length > (wants.functionCall ? 1 : 0) && { tool_calls: calls.map(toCall) }),
    },
    logprobs: said.logprobs === undefined ? null : toLogprobs(said.logprobs),
    finish_reason: toFinishReason(finish, wants),
  };
}

function collect(items: readonly OutputItem[]) {
  let text = "";
  let refusal = "";
  let reasoning = "";
  let logprobs: unknown[] | undefined;
  const annotations: object[] = [];
  for (const item of items) {
    if (item.type === "reasoning") reasoning += item.text + item.summary.join(betweenSections);
    if (item.type !== "message") continue;
    if (typeof item.content === "string") {
      text += item.content;
      continue;
    }
    for (const part of item.content) {
      if (part.type === "refusal") refusal += part.text;
      if (part.type !== "text") continue;
      for (const entry of part.logprobs ?? []) (logprobs ??= []).push(entry);
      for (const note of toWireAnnotations(part.annotations ?? [], text.length)) annotations.push(note);
      text += part.text;
    }
  }
  return { text, refusal, reasoning, logprobs, annotations };
}

/** Fields that sign the reasoning. */
function signatureOf(items: readonly OutputItem[]): Extra | undefined {
  const signed = gatherFields();
  for (const item of items) if (item.type === "reasoning" && item.extra?.dialect === "chat") signed.add(item.extra);
  return signed.toExtra();
}

/** What this dialect adds to something, except in the fields that we write there. */
export function addedTo(place: keyof typeof ourFields, extra: Extra | undefined): Extra["fields"] {
  return addedFields(extra, "chat", ourFields[place]);
}

const ourFields = {
  completion: new Set([
    "id",
    "object",
    "created",
    "model",
    "choices",
    "usage",
    "service_tier",
    "system_fingerprint",
    "error",
  ]),
  message: new Set(["role", "content", "refusal", "annotations", "reasoning_content", "tool_calls", "function_call"]),
  call: new Set(["index", "id", "type", "function", "custom", "name", "arguments"]),
} as const;

/** Between the sections of a summary. */
export const betweenSections = "\n\n";

/** Why the model stopped, in the wire's terms. */
export function toFinishReason(finish: Finish, { functionCall }: Wants): string {
  return functionCall && finish === "tool-calls" ? "function_call" : finishReasons[finish];
}

const finishReasons: Readonly<Record<Finish, string>> = {
  stop: "stop",
  length: "length",
  "content-filter": "content_filter",
  "tool-calls": "tool_calls",
};

/** A call in the form before tools. */
export function toFunctionCall(item: ToolCall) {
  return { ...addedTo("call", item.extra), name: item.name, arguments: item.arguments };
}

/** A call, with what this dialect adds to it. */
export function toCall(item: ToolCall) {
  const { callId: id, name, arguments: written } = item;
  const added = addedTo("call", item.extra);
  return item.kind === "custom"
    ? { ...added, id, type: "custom", custom: { name, input: written } }
    : { ...added, id, type: "function", function: { name, arguments: written } };
}

/** The log probabilities of a text, each with every field of the wire. */
export function toLogprobs(reported: readonly unknown[]) {
  const content = reported.filter(isObject).map(({ token, logprob, bytes, top_logprobs: others }) => {
    const alternatives = Array.isArray(others) ? others.filter(isObject).map(toAlternative) : [];
    return { token, logprob, bytes: bytes ?? null, top_logprobs: alternatives };
  });
  return { content, refusal: null };
}

function toAlternative({ token, logprob, bytes }: Readonly<Record<string, unknown>>) {
  return { token, logprob, bytes: bytes ?? null };
}

/** What served the answer, as far as it is known. */
export function toServed({ serviceTier = "default", fingerprint }: Notes) {
  const service_tier = tiers.has(serviceTier) ? serviceTier : "default";
  return { service_tier, ...(fingerprint && { system_fingerprint: fingerprint }) };
}

/** Typed clients refuse a whole answer for an unknown tier, such as one that only another server has. */
const tiers: ReadonlySet<string> = new Set(["auto", "default", "flex", "scale", "priority", "fast"]);

/** Its token usage, and what else its server said of it, such as the cost. */
export function toUsage(usage: Usage, { extra }: Notes) {
  const added = fieldsOf(extra, "chat")?.["usage"];
  const written = usage.cacheWriteTokens !== undefined && { cache_write_tokens: usage.cacheWriteTokens };
  return {
    ...(isObject(added) && added),
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens, ...written, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

/** `resp_…` as this dialect names it. */
export function toCompletionId(about: About): string {
  return about.id.replace(/^resp_/, "chatcmpl-");
}

/** The turn with such an id; any other id stays as it is. */
export function toTurnId(id: string): string {
  return id.replace(/^chatcmpl-/, "resp_");
}
