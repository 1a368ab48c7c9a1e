/** Reads one choice of a chat completions answer, chunk by chunk or whole. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import type { Annotation } from "../../../core/item.ts";
import type { Finish } from "../../../core/turn.ts";
import { annotationsAt, completeAnnotation, isDescribed } from "../annotations.ts";
import { type JsonObject, isObject, listAt, objectAt, textAt } from "../../json.ts";
import { readLogprobs } from "../logprobs.ts";
import { createCallReader } from "./calls.ts";

/** The key of the message: in a chunk, and whole. */
export type Word = "delta" | "message";

export interface ChoiceReader {
  accept(choice: JsonObject, deltas: Delta[]): void;
  hasMessage(): boolean;
  /** Never `over`: the usage comes after the end, and [DONE] after the usage. */
  stage(): "open" | "finished" | "whole";
  /** Adds what waited for the end. */
  end(deltas: Delta[]): void;
}

export function createChoiceReader(word: Word, isCustom: (name: string) => boolean): ChoiceReader {
  const calls = createCallReader(isCustom);
  const annotations: Annotation[] = [];
  let textLength = 0;
  let received = false;
  let stage: "open" | "finished" | "whole" = "open";

  /** Notes that precede their text wait for it. A server's own types, such as a parsed file, have no place elsewhere. */
  function acceptAnnotations(message: JsonObject, deltas: Delta[]): void {
    for (const note of annotationsAt(message)) if (isDescribed(note)) annotations.push(note);
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

  /** `isAtOnce`: it is the whole message, not a piece. */
  function acceptMessage(message: JsonObject, logprobs: Logprobs, isAtOnce: boolean, deltas: Delta[]): void {
    const reasoning = textAt(message, "reasoning_content") ?? textAt(message, "reasoning");
    if (reasoning !== undefined) say({ type: "reasoning", text: reasoning }, deltas);
    const content = message["content"];
    const text = Array.isArray(content) ? joinTexts(content) : content;
    if (typeof text === "string" && text !== "") {
      say({ type: "text", text, logprobs }, deltas);
      textLength += text.length;
    }
    acceptAnnotations(message, deltas);
    const refusal = textAt(message, "refusal");
    if (refusal !== undefined) say({ type: "refusal", text: refusal }, deltas);
    const called = message["tool_calls"];
    if (Array.isArray(called)) {
      // In a whole message each entry is its own call, whatever its index or id.
      for (const [at, call] of called.entries()) calls.accept(call, deltas, isAtOnce ? at : undefined);
    }
    const legacy = message["function_call"];
    if (isObject(legacy)) calls.accept({ function: legacy }, deltas);
  }

  return {
    accept(choice, deltas) {
      // Some servers stream an answer that they have whole under the key of a whole one.
      const message = objectAt(choice, word) ?? (received ? undefined : objectAt(choice, "message"));
      const before = deltas.length;
      if (message !== undefined) {
        const logprobs = objectAt(choice, "logprobs");
        const told = logprobs && readLogprobs(listAt(logprobs, "content"));
        acceptMessage(message, told, message === choice["message"], deltas);
        received = true;
      }
      const isSilent = deltas.length === before;
      // Some servers send the finish reason with their first words.
      if (!isSilent && stage === "whole") stage = "finished";
      const reason = textAt(choice, "finish_reason");
      if (reason === undefined) return;
      if (breaks.has(reason)) throw abortedByModel(reason);
      deltas.push({ type: "finish", reason: finishes.get(reason) ?? "stop" });
      stage = isSilent ? "whole" : "finished";
    },
    hasMessage: () => received,
    stage: () => stage,
    end: (deltas) => calls.end(deltas),
  };
}

type Logprobs = ReturnType<typeof readLogprobs>;

/** Finish reasons of many servers; an unknown one is an ordinary end. */
const finishes: ReadonlyMap<string, Finish> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["content_filter", "content-filter"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
]);

/** Reasons of servers that gave up midway. */
const breaks: ReadonlySet<string> = new Set(["abort", "error", "insufficient_system_resource"]);

function abortedByModel(reason: string): GatewayError {
  return new GatewayError(
    "adapter_error",
    `The upstream gave up before the end of its answer (finish_reason: ${reason}).`,
  );
}

/** Some servers write content as a list of parts. */
function joinTexts(parts: readonly unknown[]): string {
  return parts.map((part) => (isObject(part) ? (textAt(part, "text") ?? "") : "")).join("");
}
