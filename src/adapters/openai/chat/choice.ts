/** Reads one choice of a chat completions answer, chunk by chunk or whole. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import type { Annotation } from "../../../core/item.ts";
import type { Finish } from "../../../core/turn.ts";
import { annotationsAt, completeAnnotation, isDescribed } from "../annotations.ts";
import { errorIn } from "../failure.ts";
import { excerpt, type Scrub, toReportedFailure } from "../../http/refusal.ts";
import { type JsonObject, listAt, objectAt, textAt } from "../../json.ts";
import { readLogprobs } from "../logprobs.ts";
import { extraOf } from "../native.ts";
import type { Say } from "../stream.ts";
import { createCallReader } from "./calls.ts";
import { gatherPieces, type SignedFields } from "./pieces.ts";
import { createThoughtReader, isThought } from "./thoughts.ts";

/** The key of the message: in a chunk, and whole. */
export type Word = "delta" | "message";

export interface ChoiceReader {
  accept(choice: JsonObject): void;
  hasMessage(): boolean;
  /** Never `over`: the usage comes after the end, and [DONE] after the usage. */
  stage(): "open" | "finished" | "whole";
  /** Says what waited for the end. */
  end(): void;
}

/** `maxSignedSize`: how much of what signs the reasoning may wait to be told. */
export function createChoiceReader(
  say: Say,
  scrub: Scrub,
  word: Word,
  isCustom: (name: string) => boolean,
  maxSignedSize: number,
): ChoiceReader {
  const calls = createCallReader(emit, isCustom);
  const annotations: Annotation[] = [];
  const thoughts = createThoughtReader();
  /** What signs the reasoning and was not told yet: it is told where the reasoning ends, and at the end of the answer. */
  let signed: SignedFields | undefined;
  let signedSize = 0;
  let isThinking = true;
  let textLength = 0;
  let received = false;
  /** How many deltas its messages were worth. */
  let emitted = 0;
  let stage: "open" | "finished" | "whole" = "open";

  function emit(delta: Delta): void {
    const wasThinking = isThinking;
    isThinking = delta.type === "reasoning";
    if (wasThinking && !isThinking) tellSigned();
    emitted += 1;
    say(delta);
  }

  /** Notes that precede their text wait for it. A server's own types, such as a parsed file, have no place elsewhere. */
  function acceptAnnotations(message: JsonObject): void {
    for (const note of annotationsAt(message)) if (isDescribed(note)) annotations.push(note);
    if (textLength === 0 || annotations.length === 0) return;
    for (const note of annotations.splice(0)) {
      const annotation = completeAnnotation(note, textLength);
      if (annotation !== undefined) emit({ type: "annotation", annotation });
    }
  }

  /** Words end the calls before them. */
  function emitWords(words: Delta): void {
    calls.settle();
    emit(words);
  }

  /** Fields that we do not know. They are no words, so they do not count as such. */
  function acceptExtra(message: JsonObject): void {
    const extra = extraOf(message, knownOfMessage, "chat");
    if (extra === undefined) return;
    for (const [key, value] of Object.entries(extra.fields)) {
      if (Array.isArray(value) && value.length === 0) continue;
      if (isSigning(key, value)) sign({ [key]: value });
      else if (key !== "extra_content" || !isThought(message))
        say({ type: "message-extra", extra: { dialect: "chat", fields: { [key]: value } } });
    }
  }

  /** A piece comes with every word, and repeats what all have in common: they are told together. */
  function sign(fields: JsonObject): void {
    (signed ??= gatherPieces()).add(fields);
    signedSize += JSON.stringify(fields).length;
    // Only what was told counts towards the length of the answer.
    if (signedSize > maxSignedSize) tellSigned();
  }

  function tellSigned(): void {
    if (signed !== undefined) say({ type: "reasoning-extra", extra: { dialect: "chat", fields: signed.toFields() } });
    signed = undefined;
    signedSize = 0;
  }

  /** `isAtOnce`: it is the whole message, not a piece. */
  function acceptMessage(message: JsonObject, logprobs: Logprobs, isAtOnce: boolean): void {
    const { thought, text } = thoughts.read(message, isAtOnce);
    if (thought !== "") emitWords({ type: "reasoning", text: thought });
    acceptExtra(message);
    if (text !== "") {
      emitWords({ type: "text", text, logprobs });
      textLength += text.length;
    }
    acceptAnnotations(message);
    const refusal = textAt(message, "refusal");
    if (refusal !== undefined) emitWords({ type: "refusal", text: refusal });
    // In a whole message each entry is its own call, whatever its index or id.
    for (const [at, call] of (listAt(message, "tool_calls") ?? []).entries())
      calls.accept(call, isAtOnce ? at : undefined);
    const legacy = objectAt(message, "function_call");
    if (legacy !== undefined) calls.accept({ function: legacy });
  }

  return {
    accept(choice) {
      // Some servers stream an answer that they have whole under the key of a whole one.
      const message = objectAt(choice, word) ?? (received ? undefined : objectAt(choice, "message"));
      const before = emitted;
      if (message !== undefined) {
        const logprobs = objectAt(choice, "logprobs");
        const told = logprobs && readLogprobs(listAt(logprobs, "content"));
        acceptMessage(message, told, message === choice["message"]);
        received = true;
      }
      const error = errorIn(choice);
      if (error !== undefined) throw toReportedFailure(error, scrub);
      const isSilent = emitted === before;
      // Some servers send the finish reason with their first words.
      if (!isSilent && stage === "whole") stage = "finished";
      const reason = textAt(choice, "finish_reason");
      if (reason === undefined) return;
      const kind = kindOf(reason);
      if (breaks.has(kind)) throw abortedByModel(excerpt(reason, 100, scrub));
      say({ type: "finish", reason: finishes.get(kind) ?? "stop" });
      stage = isSilent ? "whole" : "finished";
    },
    hasMessage: () => received,
    stage: () => stage,
    end() {
      calls.end();
      tellSigned();
    },
  };
}

type Logprobs = ReturnType<typeof readLogprobs>;

/** Some servers write it in capitals, or with a detail: `content_filter: RECITATION`. */
function kindOf(reason: string): string {
  const [kind = ""] = reason.toLowerCase().split(":", 1);
  return kind;
}

/** Finish reasons of many servers; an unknown one is an ordinary end. */
const finishes: ReadonlyMap<string, Finish> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["content_filter", "content-filter"],
  ["content_filtered", "content-filter"],
  ["guardrail_intervened", "content-filter"],
  ["prohibited_content", "content-filter"],
  ["recitation", "content-filter"],
  ["safety", "content-filter"],
  ["sensitive", "content-filter"],
  ["refusal", "content-filter"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
]);

/** Reasons of servers that gave up midway; the last two could not read the call that their model wrote. */
const breaks: ReadonlySet<string> = new Set([
  "abort",
  "error",
  "insufficient_system_resource",
  "network_error",
  "function_call_filter",
  "malformed_function_call",
]);

function abortedByModel(reason: string): GatewayError {
  return new GatewayError(
    "adapter_error",
    `The upstream gave up before the end of its answer (finish_reason: ${reason}).`,
  );
}

const knownOfMessage = new Set([
  "role",
  "content",
  "refusal",
  "reasoning",
  "reasoning_content",
  "reasoning_text",
  "annotations",
  "tool_calls",
  "function_call",
]);

/**
 * Fields in which servers sign a model's reasoning. Without them, models that call tools refuse to continue, or have
 * forgotten why they called. Nothing else is sent back: many servers reject even fields of their own answers.
 */
const signing: ReadonlySet<string> = new Set(["reasoning_details", "reasoning_opaque", "thinking_blocks"]);

function isSigning(key: string, value: unknown): boolean {
  if (key !== "extra_content") return signing.has(key);
  return JSON.stringify(value).includes('"thought_signature"');
}
