/** Reads a chat completions answer into deltas, whole or as a stream, in the dialects that servers have of it. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Annotation } from "../../core/item.ts";
import type { Finish, Turn, Usage } from "../../core/turn.ts";
import { restoringCalls } from "../custom-tools.ts";
import { countAt, isObject, objectAt, parseSaid, readExtra, readOthers, type Said, textAt } from "../fields.ts";
import { errorIn, upstreamError } from "../upstream-error.ts";
import type { Habits, Reader } from "../wire.ts";
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
export function createReader(habits: Habits, turn: Turn): Reader {
  return new ChatReader(habits, turn);
}

/** A class, for one is made for each turn: of closures and getters in a literal each would have a shape of its own. */
class ChatReader implements Reader {
  isFinished = false;
  readonly #source: string;
  readonly #tell: (delta: Delta) => void;
  #deltas: Delta[] = [];
  #readCall: ReturnType<typeof createCallReader> | undefined;
  #hasMessage = false;
  #hasSaid = false;
  #textLength = 0;
  /** Notes that precede their text wait for it. */
  #notes: unknown[] = [];
  /** What signs the reasoning and was not told yet: a piece comes with every word, but they belong together. */
  #signed: Record<string, unknown> | undefined;
  #fingerprint: string | undefined;
  #serviceTier: string | undefined;
  /** Fields that we do not know; some servers repeat them with every chunk, so they are told at the end. */
  #added: Record<string, unknown> | undefined;

  constructor({ hasCustomTools, source }: Habits, { settings }: Turn) {
    this.#source = source;
    const tell = (delta: Delta): void => void this.#deltas.push(delta);
    this.#tell = hasCustomTools || settings.tools.length === 0 ? tell : restoringCalls(settings.tools, tell);
  }

  read(data: string, into: Delta[]): void {
    this.#deltas = into;
    const isEnd = data.length < 20 && data.trim() === done;
    if (!isEnd) this.#accept(parseSaid(data));
    else if (!this.isFinished) {
      if (!this.#hasSaid) throw new GatewayError("adapter_protocol", "The upstream's answer has no message.");
      this.#finish("stop");
    }
    if (this.isFinished) this.#settle();
  }

  #accept(body: Said): void {
    const error = errorIn(body);
    if (error !== undefined) throw upstreamError(error);
    const { choices, system_fingerprint, service_tier } = body;
    if (typeof system_fingerprint === "string") this.#fingerprint = system_fingerprint;
    if (typeof service_tier === "string") this.#serviceTier = service_tier;
    for (const field in body)
      if (!knownOfBody.has(field) && body[field] !== null) (this.#added ??= {})[field] = body[field];
    let { usage } = body;
    if (Array.isArray(choices))
      for (const choice of choices) {
        // A turn has one answer.
        if (!isObject(choice) || (choice["index"] ?? 0) !== 0) continue;
        this.#acceptChoice(choice);
        usage ??= choice["usage"];
      }
    if (!isObject(usage)) return;
    const others = readOthers({ values: usage, key: "" }, knownOfUsage);
    if (others !== undefined) (this.#added ??= {})["usage"] = others;
    this.#tell({ type: "usage", usage: readUsage(usage) });
  }

  #acceptChoice(choice: Said): void {
    const { delta, message, finish_reason: reason } = choice;
    // Some servers stream an answer that they have whole under the key of a whole one.
    const said = isObject(delta) ? delta : this.#hasMessage ? undefined : message;
    if (isObject(said)) this.#acceptMessage(said, choice);
    const error = errorIn(choice);
    if (error !== undefined) throw upstreamError(error);
    if (typeof reason === "string" && reason !== "") this.#finish(toFinish(reason));
  }

  // Fields are looked up by their own names: by a variable each costs ten times as much.
  #acceptMessage(message: Said, { logprobs, message: whole }: Said): void {
    const { content, reasoning_content, reasoning, reasoning_text } = message;
    const { annotations, refusal, tool_calls: made, function_call: alone } = message;
    this.#hasMessage = true;
    const thought = reasoning_content || reasoning || reasoning_text;
    if (typeof thought === "string" && thought !== "") this.#say({ type: "reasoning", text: thought });
    for (const field in message) if (!knownOfMessage.has(field)) this.#acceptField(field, message[field]);
    const text = typeof content === "string" ? content : textIn(content);
    if (text !== "") {
      const reported = isObject(logprobs) ? logprobs["content"] : undefined;
      this.#say({
        type: "text",
        text,
        logprobs: Array.isArray(reported) && reported.length > 0 ? reported : undefined,
      });
      this.#textLength += text.length;
    }
    if (Array.isArray(annotations)) for (const entry of annotations) this.#notes.push(entry);
    if (this.#textLength > 0 && this.#notes.length > 0) this.#tellNotes();
    if (typeof refusal === "string" && refusal !== "") this.#say({ type: "refusal", text: refusal });
    // In a whole message each entry is its own call, whatever its index or id.
    if (Array.isArray(made))
      for (const [at, call] of made.entries()) this.#acceptCall(call, message === whole ? at : undefined);
    if (isObject(alone)) this.#acceptCall({ function: alone });
  }

  #acceptCall(call: unknown, whole?: number): void {
    this.#readCall ??= createCallReader((delta) => this.#say(delta));
    this.#readCall(call, whole);
  }

  #tellNotes(): void {
    for (const entry of this.#notes) {
      const annotation = readCitation(entry);
      if (annotation !== undefined) this.#say({ type: "annotation", annotation });
    }
    this.#notes = [];
  }

  /** Fields that we do not know are no words. */
  #acceptField(field: string, value: unknown): void {
    if (value === null || (Array.isArray(value) && value.length === 0)) return;
    if (isSigning(field, value)) joinFields((this.#signed ??= {}), { [field]: value });
    else if (field !== "extra_content")
      this.#tell({ type: "message-extra", extra: { ...ofChat, fields: { [field]: value } } });
  }

  #say(delta: Delta): void {
    this.#hasSaid = true;
    if (delta.type !== "reasoning") this.#tellSigned();
    this.#tell(delta);
  }

  #tellSigned(): void {
    if (this.#signed === undefined) return;
    this.#tell({ type: "reasoning-extra", extra: { ...ofChat, source: this.#source, fields: this.#signed } });
    this.#signed = undefined;
  }

  #finish(reason: Finish): void {
    this.#say({ type: "finish", reason });
    this.isFinished = true;
  }

  #settle(): void {
    this.#tellSigned();
    const notes = { fingerprint: this.#fingerprint, serviceTier: this.#serviceTier };
    const added = this.#added && { extra: { ...ofChat, fields: this.#added } };
    this.#tell({ type: "notes", notes: added === undefined ? notes : { ...notes, ...added } });
    this.#added = undefined;
  }
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

interface Begun {
  readonly index: number;
  readonly id: string | undefined;
  readonly name: string;
}

/**
 * Reads entries of `tool_calls`, which each server numbers, names and splits in its own way: a whole call, its beginning,
 * or a piece of its arguments. `whole`: a whole call's place.
 */
function createCallReader(say: (delta: Delta) => void): (entry: unknown, whole?: number) => void {
  /** The newest call of each index of the server, or of each id if it has no indexes. */
  const places = new Map<unknown, Begun>();
  let newest: Begun | undefined;

  return (entry, whole) => {
    if (!isObject(entry)) return;
    const id = textAt(entry, "id");
    const custom = objectAt(entry, "custom");
    const called = custom ?? objectAt(entry, "function") ?? {};
    const name = textAt(called, "name");
    const extra = readExtra({ values: entry, key: "" }, knownOfCall, "chat");
    const place = whole ?? entry["index"] ?? id;
    let call = place === undefined ? newest : places.get(place);
    // Only a name begins another call, and some servers repeat it with every piece.
    if (name !== undefined && (name !== call?.name || (id !== undefined && id !== call.id))) {
      newest = call = { index: (newest?.index ?? -1) + 1, id, name };
      places.set(place, call);
      const kind = custom === undefined ? "function" : "custom";
      say({ type: "tool-call", index: call.index, callId: id, name, kind, extra });
    } else if (call === undefined) {
      throw new GatewayError("adapter_protocol", "The upstream called a tool without naming it.");
    } else if (extra !== undefined) {
      say({ type: "tool-extra", index: call.index, extra });
    }
    const text = toArguments(custom === undefined ? called["arguments"] : called["input"]);
    if (text !== "") say({ type: "tool-arguments", index: call.index, text });
  };
}

/** Some servers write a call's arguments as an object. */
function toArguments(written: unknown): string {
  if (typeof written === "string") return written;
  return isObject(written) ? JSON.stringify(written) : "";
}

const knownOfCall = new Set(["index", "id", "type", "function", "custom"]);
