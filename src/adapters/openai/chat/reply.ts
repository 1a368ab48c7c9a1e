/** Reads a chat completions answer, whole or as server-sent events, into deltas. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import type { Annotation } from "../../../core/item.ts";
import type { Finish, Usage } from "../../../core/turn.ts";
import { annotationsAt, completeAnnotation } from "../annotations.ts";
import { type Scrub, toReportedFailure } from "../../http/refusal.ts";
import { type JsonObject, countAt, isObject, listAt, objectAt, textAt } from "../../json.ts";
import { requireJson } from "../json.ts";
import { readLogprobs } from "../logprobs.ts";
import { type AnswerReader, type ReplyReader, createStreamReader, requireObject } from "../stream.ts";
import { createCallReader } from "./calls.ts";

/** Reads a stream. */
export function createReplyReader(scrub: Scrub, isCustom = never): ReplyReader {
  return createStreamReader(createAnswerReader(scrub, "delta", isCustom), scrub);
}

/** No function stands for a custom tool. */
const never = (_name: string): boolean => false;

/** Reads an answer that came whole. */
export function readWholeReply(body: string, scrub: Scrub, isCustom = never): readonly Delta[] {
  const deltas: Delta[] = [];
  const answer = createAnswerReader(scrub, "message", isCustom);
  answer.hear(requireObject(requireJson(body, scrub)), deltas);
  if (!answer.hasMessage()) throw new GatewayError("adapter_protocol", "The upstream's answer holds no message.");
  answer.end(deltas);
  return deltas;
}

/** A chunk and a whole answer have the same form, but for the word under which the message stands. */
function createAnswerReader(
  scrub: Scrub,
  word: "delta" | "message",
  isCustom: (name: string) => boolean,
): AnswerReader & { readonly hasMessage: () => boolean } {
  const calls = createCallReader(isCustom);
  const annotations: Annotation[] = [];
  let textLength = 0;
  let heard = false;
  /** It is never over: the usage comes after the end, and [DONE] after the usage. */
  let stage: "open" | "finished" | "whole" = "open";
  let fingerprint: string | undefined;
  let serviceTier: string | undefined;

  function hearNotes(body: JsonObject, deltas: Delta[]): void {
    const newFingerprint = textAt(body, "system_fingerprint") ?? fingerprint;
    const newTier = textAt(body, "service_tier") ?? serviceTier;
    if (newFingerprint === fingerprint && newTier === serviceTier) return;
    fingerprint = newFingerprint;
    serviceTier = newTier;
    deltas.push({ type: "notes", notes: { fingerprint, serviceTier } });
  }

  /** Notes that come before their text wait for it. */
  function hearAnnotations(message: JsonObject, deltas: Delta[]): void {
    for (const note of annotationsAt(message)) annotations.push(note);
    if (textLength === 0 || annotations.length === 0) return;
    for (const note of annotations.splice(0)) {
      const annotation = completeAnnotation(note, textLength);
      if (annotation !== undefined) deltas.push({ type: "annotation", annotation });
    }
  }

  /** Words end the calls before them. */
  function say(words: Delta, deltas: Delta[]): void {
    calls.settle(deltas);
    deltas.push(words);
  }

  /** `isAtOnce`: it is no piece, but all of the message. */
  function hearMessage(message: JsonObject, logprobs: Logprobs, isAtOnce: boolean, deltas: Delta[]): void {
    const reasoning = textAt(message, "reasoning_content") ?? textAt(message, "reasoning");
    if (reasoning !== undefined) say({ type: "reasoning", text: reasoning }, deltas);
    const content = message["content"];
    const text = Array.isArray(content) ? joinTexts(content) : content;
    if (typeof text === "string" && text !== "") {
      say({ type: "text", text, logprobs }, deltas);
      textLength += text.length;
    }
    hearAnnotations(message, deltas);
    const refusal = textAt(message, "refusal");
    if (refusal !== undefined) say({ type: "refusal", text: refusal }, deltas);
    const called = message["tool_calls"];
    if (Array.isArray(called)) {
      // In a whole message each entry is a call of its own, whatever number or id it has.
      for (const [at, call] of called.entries()) calls.hear(call, deltas, isAtOnce ? at : undefined);
    }
    const legacy = message["function_call"];
    if (isObject(legacy)) calls.hear({ function: legacy }, deltas);
  }

  return {
    hear(body, deltas) {
      const error = body["error"];
      if (error !== undefined && error !== null) throw toReportedFailure(error, scrub);
      if (body["object"] === "error") throw toReportedFailure(body, scrub);
      hearNotes(body, deltas);
      for (const choice of listAt(body, "choices") ?? []) {
        // We ask for one answer; what another says is not ours.
        if (!isObject(choice) || (typeof choice["index"] === "number" && choice["index"] !== 0)) continue;
        // Some servers stream an answer that they have whole, in the words of a whole one.
        const message = objectAt(choice, word) ?? (heard ? undefined : objectAt(choice, "message"));
        const before = deltas.length;
        if (message !== undefined) {
          const logprobs = objectAt(choice, "logprobs");
          const told = logprobs && readLogprobs(listAt(logprobs, "content"));
          hearMessage(message, told, message === choice["message"], deltas);
          heard = true;
        }
        const isSilent = deltas.length === before;
        // Some servers say why they end with their first words already.
        if (!isSilent && stage === "whole") stage = "finished";
        const reason = textAt(choice, "finish_reason");
        if (reason !== undefined) {
          if (breaks.has(reason)) throw gaveUp(reason);
          deltas.push({ type: "finish", reason: finishes.get(reason) ?? "stop" });
          stage = isSilent ? "whole" : "finished";
        }
      }
      const usage = objectAt(body, "usage");
      if (usage !== undefined) deltas.push({ type: "usage", usage: readUsage(usage) });
    },
    hasMessage: () => heard,
    stage: () => stage,
    end: (deltas) => calls.end(deltas),
  };
}

type Logprobs = ReturnType<typeof readLogprobs>;

/** Why an answer ends, in the words of many servers; one that we do not know is an end like any other. */
const finishes: ReadonlyMap<string, Finish> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["content_filter", "content-filter"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
]);

/** Words of servers that gave up in the middle. */
const breaks: ReadonlySet<string> = new Set(["abort", "error", "insufficient_system_resource"]);

function gaveUp(reason: string): GatewayError {
  return new GatewayError(
    "adapter_error",
    `The upstream gave up before the end of its answer (finish_reason: ${reason}).`,
  );
}

function readUsage(usage: JsonObject): Usage {
  return {
    inputTokens: countAt(usage, "prompt_tokens"),
    cachedTokens: countAt(objectAt(usage, "prompt_tokens_details"), "cached_tokens"),
    outputTokens: countAt(usage, "completion_tokens"),
    reasoningTokens: countAt(objectAt(usage, "completion_tokens_details"), "reasoning_tokens"),
  };
}

/** Some servers write content as a list of parts. */
function joinTexts(parts: readonly unknown[]): string {
  return parts.map((part) => (isObject(part) ? (textAt(part, "text") ?? "") : "")).join("");
}
