/** Reads a chat completions answer into deltas, whole or as a stream, in the dialects that servers have of it. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Extra } from "../../core/item.ts";
import type { Finish, Turn } from "../../core/turn.ts";
import { isObject, readOthers } from "../fields.ts";
import { listAt, objectAt, parseSaid, type Said, textAt } from "../json.ts";
import { errorIn, upstreamError } from "../upstream-error.ts";
import type { Habits, Reader } from "../wire.ts";
import { createCallReader } from "./calls.ts";
import { restoringCalls } from "./custom.ts";
import { createThoughtReader, isSigning, isThought, joinFields } from "./reasoning.ts";
import { readCitation, readLogprobs, readUsage } from "./reported.ts";

export function readReply(text: string, habits: Habits, turn?: Turn): readonly Delta[] {
  const deltas: Delta[] = [];
  const answer = createAnswerReader("message", habits, turn);
  answer.accept(parseSaid(text), deltas);
  answer.end(deltas);
  return deltas;
}

export function createReader(habits: Habits, turn?: Turn): Reader {
  const answer = createAnswerReader("delta", habits, turn);
  return {
    read(data, deltas) {
      if (data.length < 20 && data.trim() === "[DONE]") answer.end(deltas);
      else answer.accept(parseSaid(data), deltas);
    },
    get isFinished() {
      return answer.isFinished();
    },
  };
}

/** A chunk and a whole answer differ only in the key of the message. */
function createAnswerReader(key: "delta" | "message", habits: Habits, turn: Turn | undefined) {
  let deltas: Delta[] = [];
  const tell = restoringCalls(habits, turn, (delta) => void deltas.push(delta));
  const calls = createCallReader(say);
  const readThoughts = createThoughtReader();
  let [hasMessage, hasSaid, isFinished] = [false, false, false];
  let textLength = 0;
  /** Notes that precede their text wait for it. */
  let annotations: unknown[] = [];
  /** What signs the reasoning and was not told yet: a piece comes with every word, but they belong together. */
  let signed: Record<string, unknown> | undefined;
  /** What servers repeat with every chunk is told at the end. */
  let notes: { fingerprint?: string; serviceTier?: string; extra?: Extra } | undefined;
  let added: Record<string, unknown> | undefined;

  function say(delta: Delta): void {
    hasSaid = true;
    if (delta.type !== "reasoning") tellSigned();
    tell(delta);
  }

  function tellSigned(): void {
    if (signed !== undefined)
      tell({ type: "reasoning-extra", extra: { ...ofChat, source: habits.source, fields: signed } });
    signed = undefined;
  }

  function finish(reason: Finish): void {
    say({ type: "finish", reason });
    isFinished = true;
  }

  function settle(): void {
    calls.end();
    tellSigned();
    if (added !== undefined) (notes ??= {}).extra = { ...ofChat, fields: added };
    if (notes !== undefined) tell({ type: "notes", notes });
    notes = added = undefined;
  }

  function acceptMessage(message: Said, choice: Said): void {
    hasMessage = true;
    const { thought, text } = readThoughts(message);
    if (thought !== "") say({ type: "reasoning", text: thought });
    for (const field in message) if (!knownOfMessage.has(field)) acceptField(field, message[field], message);
    if (text !== "") {
      const logprobs = objectAt(choice, "logprobs");
      say({ type: "text", text, logprobs: logprobs && readLogprobs(listAt(logprobs, "content")) });
      textLength += text.length;
    }
    acceptAnnotations(message);
    const refusal = textAt(message, "refusal");
    if (refusal !== undefined) say({ type: "refusal", text: refusal });
    // In a whole message each entry is its own call, whatever its index or id.
    const isWhole = message === choice["message"];
    for (const [at, call] of (listAt(message, "tool_calls") ?? []).entries())
      calls.accept(call, isWhole ? at : undefined);
    const alone = objectAt(message, "function_call");
    if (alone !== undefined) calls.accept({ function: alone });
  }

  /** Fields that we do not know are no words. */
  function acceptField(field: string, value: unknown, message: Said): void {
    if (value === null || (Array.isArray(value) && value.length === 0)) return;
    if (isSigning(field, value)) joinFields((signed ??= {}), { [field]: value });
    else if (field !== "extra_content" || !isThought(message))
      tell({ type: "message-extra", extra: { ...ofChat, fields: { [field]: value } } });
  }

  function acceptAnnotations(message: Said): void {
    for (const entry of listAt(message, "annotations") ?? []) annotations.push(entry);
    if (textLength === 0 || annotations.length === 0) return;
    for (const entry of annotations) {
      const annotation = readCitation(entry, textLength);
      if (annotation !== undefined) say({ type: "annotation", annotation });
    }
    annotations = [];
  }

  function acceptChoice(choice: Said): void {
    // Some servers stream an answer that they have whole under the key of a whole one.
    const message = objectAt(choice, key) ?? (hasMessage ? undefined : objectAt(choice, "message"));
    if (message !== undefined) acceptMessage(message, choice);
    const error = errorIn(choice);
    if (error !== undefined) throw upstreamError(error);
    const reason = textAt(choice, "finish_reason");
    if (reason !== undefined) finish(toFinish(reason));
  }

  function acceptRest(body: Said, usage: Said | undefined): void {
    const [fingerprint, serviceTier] = [textAt(body, "system_fingerprint"), textAt(body, "service_tier")];
    if (fingerprint !== undefined) (notes ??= {}).fingerprint = fingerprint;
    if (serviceTier !== undefined) (notes ??= {}).serviceTier = serviceTier;
    for (const field in body) if (!knownOfBody.has(field) && body[field] !== null) (added ??= {})[field] = body[field];
    if (usage === undefined) return;
    const others = readOthers({ values: usage, key: "" }, knownOfUsage);
    if (others !== undefined) (added ??= {})["usage"] = others;
    tell({ type: "usage", usage: readUsage(usage) });
  }

  return {
    accept(body: Said, into: Delta[]): void {
      deltas = into;
      const error = errorIn(body);
      if (error !== undefined) throw upstreamError(error);
      let usage = objectAt(body, "usage");
      for (const [at, choice] of (listAt(body, "choices") ?? []).entries()) {
        if (!isObject(choice) || (choice["index"] ?? at) !== 0) continue;
        acceptChoice(choice);
        usage ??= objectAt(choice, "usage");
      }
      acceptRest(body, usage);
      if (isFinished) settle();
    },
    end(into: Delta[]): void {
      deltas = into;
      const isAnswer = key === "message" ? hasMessage : hasSaid || isFinished;
      if (!isAnswer) throw new GatewayError("adapter_protocol", "The upstream's answer has no message.");
      if (!isFinished) finish("stop");
      settle();
    },
    isFinished: () => isFinished,
  };
}

const ofChat = { dialect: "chat" } as const;

/** Some servers write it in capitals, or with a detail: `content_filter: RECITATION`. An unknown one is an ordinary end. */
function toFinish(reason: string): Finish {
  const [kind = ""] = reason.toLowerCase().split(":", 1);
  if (!breaks.has(kind)) return cut.has(kind) ? "length" : filtered.has(kind) ? "content-filter" : "stop";
  const message = `The upstream gave up before the end of its answer (finish_reason: ${reason.slice(0, 100)}).`;
  throw new GatewayError("adapter_error", message);
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const cut = words("length max_tokens model_length model_context_window_exceeded");
const filtered = words(
  "content_filter content_filtered guardrail_intervened prohibited_content recitation safety sensitive refusal",
);
/** Reasons of servers that gave up midway; the last two could not read the call that their model wrote. */
const breaks = words(
  "abort error insufficient_system_resource network_error function_call_filter malformed_function_call",
);

const knownOfMessage = words(
  "role content refusal reasoning reasoning_content reasoning_text annotations tool_calls function_call",
);
/** Also what is not for callers: two fields only hide the length of a chunk, and others look like an error. */
const knownOfBody = words(
  "id object created model choices usage service_tier system_fingerprint error obfuscation p message code type",
);
/** What else a server says of the usage, such as what it cost, is for the caller. */
const knownOfUsage = words(
  "prompt_tokens completion_tokens total_tokens prompt_tokens_details completion_tokens_details",
);
