/** Reads a chat completions answer into deltas, whole or as a stream, in the dialects that servers have of it. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Annotation } from "../../core/item.ts";
import type { Finish, Turn, Usage } from "../../core/turn.ts";
import { restoringCalls } from "../custom-tools.ts";
import { countAt, isObject, objectAt, parseSaid, readOthers, type Said, textAt } from "../fields.ts";
import { errorIn, upstreamError } from "../upstream-error.ts";
import type { Habits, Reader } from "../wire.ts";
import { createCallReader } from "./calls.ts";
import { isSigning, joinFields } from "./signatures.ts";

/** A chunk and a whole answer differ only in the key of the message. */
export function readReply(text: string, habits: Habits, turn: Turn): readonly Delta[] {
  const deltas: Delta[] = [];
  const reader = createReader(habits, turn);
  reader.read(text, deltas);
  reader.read(done, deltas);
  return deltas;
}

const done = "[DONE]";

/** `turn`: functions may stand for custom tools in it. */
export function createReader(habits: Habits, { settings }: Turn): Reader {
  let deltas: Delta[] = [];
  const tell = restoringCalls(habits.hasCustomTools ? [] : settings.tools, (delta) => void deltas.push(delta));
  const readCall = createCallReader(say);
  let [hasMessage, hasSaid, isFinished] = [false, false, false];
  let textLength = 0;
  /** Notes that precede their text wait for it. */
  let notes: unknown[] = [];
  /** What signs the reasoning and was not told yet: a piece comes with every word, but they belong together. */
  let signed: Record<string, unknown> | undefined;
  let fingerprint: string | undefined;
  let serviceTier: string | undefined;
  /** Fields that we do not know; some servers repeat them with every chunk, so they are told at the end. */
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
    tellSigned();
    const extra = added && { ...ofChat, fields: added };
    tell({ type: "notes", notes: { fingerprint, serviceTier, ...(extra && { extra }) } });
    added = undefined;
  }

  // Fields are looked up by their own names: by a variable each costs ten times as much.
  function acceptMessage(message: Said, { logprobs, message: whole }: Said): void {
    const { content, reasoning_content, reasoning, reasoning_text } = message;
    const { annotations, refusal, tool_calls: made, function_call: alone } = message;
    hasMessage = true;
    const thought = reasoning_content || reasoning || reasoning_text;
    if (typeof thought === "string" && thought !== "") say({ type: "reasoning", text: thought });
    for (const field in message) if (!knownOfMessage.has(field)) acceptField(field, message[field]);
    const text = typeof content === "string" ? content : textIn(content);
    if (text !== "") {
      const reported = isObject(logprobs) ? logprobs["content"] : undefined;
      say({ type: "text", text, logprobs: Array.isArray(reported) && reported.length > 0 ? reported : undefined });
      textLength += text.length;
    }
    if (Array.isArray(annotations)) for (const entry of annotations) notes.push(entry);
    if (textLength > 0 && notes.length > 0) tellNotes();
    if (typeof refusal === "string" && refusal !== "") say({ type: "refusal", text: refusal });
    // In a whole message each entry is its own call, whatever its index or id.
    if (Array.isArray(made))
      for (const [at, call] of made.entries()) readCall(call, message === whole ? at : undefined);
    if (isObject(alone)) readCall({ function: alone });
  }

  function tellNotes(): void {
    for (const entry of notes) {
      const annotation = readCitation(entry);
      if (annotation !== undefined) say({ type: "annotation", annotation });
    }
    notes = [];
  }

  /** Fields that we do not know are no words. */
  function acceptField(field: string, value: unknown): void {
    if (value === null || (Array.isArray(value) && value.length === 0)) return;
    if (isSigning(field, value)) joinFields((signed ??= {}), { [field]: value });
    else if (field !== "extra_content")
      tell({ type: "message-extra", extra: { ...ofChat, fields: { [field]: value } } });
  }

  function acceptChoice(choice: Said): void {
    const { delta, message, finish_reason: reason } = choice;
    // Some servers stream an answer that they have whole under the key of a whole one.
    const said = isObject(delta) ? delta : hasMessage ? undefined : message;
    if (isObject(said)) acceptMessage(said, choice);
    const error = errorIn(choice);
    if (error !== undefined) throw upstreamError(error);
    if (typeof reason === "string" && reason !== "") finish(toFinish(reason));
  }

  function accept(body: Said): void {
    const error = errorIn(body);
    if (error !== undefined) throw upstreamError(error);
    const { choices, system_fingerprint, service_tier } = body;
    if (typeof system_fingerprint === "string") fingerprint = system_fingerprint;
    if (typeof service_tier === "string") serviceTier = service_tier;
    for (const field in body) if (!knownOfBody.has(field) && body[field] !== null) (added ??= {})[field] = body[field];
    let { usage } = body;
    if (Array.isArray(choices))
      for (const choice of choices) {
        // A turn has one answer.
        if (!isObject(choice) || (choice["index"] ?? 0) !== 0) continue;
        acceptChoice(choice);
        usage ??= choice["usage"];
      }
    if (!isObject(usage)) return;
    const others = readOthers({ values: usage, key: "" }, knownOfUsage);
    if (others !== undefined) (added ??= {})["usage"] = others;
    tell({ type: "usage", usage: readUsage(usage) });
  }

  return {
    read(data, into) {
      deltas = into;
      const isEnd = data.length < 20 && data.trim() === done;
      if (!isEnd) accept(parseSaid(data));
      else if (!isFinished) {
        if (!hasSaid) throw new GatewayError("adapter_protocol", "The upstream's answer has no message.");
        finish("stop");
      }
      if (isFinished) settle();
    },
    get isFinished() {
      return isFinished;
    },
  };
}

const ofChat = { dialect: "chat" } as const;

/** Some servers write a content in parts. */
function textIn(content: unknown): string {
  if (!Array.isArray(content)) return "";
  return content.map((part: unknown) => (isObject(part) ? (textAt(part, "text") ?? "") : "")).join("");
}

/** A cited source. Servers write it in the form of either dialect; their own types have no place elsewhere. */
function readCitation(entry: unknown): Annotation | undefined {
  if (!isObject(entry) || entry["type"] !== "url_citation") return undefined;
  const { type, ...beside } = entry;
  return { type, fields: objectAt(entry, type) ?? beside };
}

function readUsage(usage: Said): Usage {
  const details = objectAt(usage, "prompt_tokens_details");
  const cacheWriteTokens = countAt(details, "cache_write_tokens");
  return {
    inputTokens: countAt(usage, "prompt_tokens"),
    cachedTokens: countAt(details, "cached_tokens"),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    outputTokens: countAt(usage, "completion_tokens"),
    reasoningTokens: countAt(objectAt(usage, "completion_tokens_details"), "reasoning_tokens"),
  };
}

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
