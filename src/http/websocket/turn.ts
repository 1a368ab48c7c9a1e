/** One turn over a WebSocket: a create frame in, its events out, or one error that leaves the connection usable. */
import { GatewayError, toGatewayError, toWireError } from "../../core/errors.ts";
import type { Event } from "../../core/event.ts";
import type { Heading } from "../../core/gateway.ts";
import type { Answer } from "../../core/turn.ts";
import { missing, readBody, readBoolean, readChoice, unsupported } from "../../wires/fields.ts";
import { front } from "../../wires/responses/index.ts";
import { parseJson } from "../body.ts";
import { type Admitted, type Call, type CallObserver, type CallRecord, noteSaid } from "../call.ts";
import { toCaller } from "../caller.ts";
import { checkAsk } from "../models.ts";
import { toCircumstances, type TurnParts } from "../turn.ts";
import type { Memory } from "./memory.ts";

export interface SocketParts extends TurnParts {
  readonly newKey: () => string;
  readonly observer: CallObserver;
}

export interface SocketTurn {
  /** Of its response, once it has one. */
  key: string | undefined;
  /** Aborts when the client leaves, or is to leave. */
  readonly signal: AbortSignal;
  /** Ends the response where it is. */
  readonly interrupt: AbortController;
}

/** Sends frames to one client, and no more than it can take. */
export interface FrameWriter {
  /** Sends frames in one write. A promise says that the client reads too slowly, and resolves when it has caught up. */
  write(frames: readonly string[]): Promise<void> | undefined;
  /** The client still listens. */
  readonly isOpen: boolean;
  /** It reads too slowly; nothing more should be sent. */
  readonly isFull: boolean;
}

interface Around {
  /** That of the connection: its headers hold for every turn. */
  readonly call: Call;
  readonly writer: FrameWriter;
  readonly memory: Memory;
  readonly parts: SocketParts;
}

/** Never throws. */
export async function answerFrame(text: string, turn: SocketTurn, { call, writer, memory, parts }: Around) {
  const { gateway, sealOf, newKey, now } = parts;
  const trace = parts.observer.begin(call.request.headers);
  const about = { method: "response.create", trace, startedAt: now(), isStreamed: true };
  const record: CallRecord = { ...call.record, ...about };
  let own: Admitted | undefined;
  let isLocal = false;
  let isOver = false;
  try {
    own = call.readmit();
    const { settings, token, share } = own;
    if (!settings.hasWebSocket) throw switchedOff();
    const { body, generates } = readCreate(parseJson(text));
    const { ask: given, voice } = front.readRequest(body, toCircumstances(own, sealOf));
    checkAsk(token, given);
    isLocal = memory.knows(given);
    const ask = memory.complete(given);
    share.enter(false);
    let speak: ((events: readonly Event[]) => string) | undefined;
    const begin = (heading: Heading): void => {
      record.heading = heading;
      record.key = heading.key;
      record.firstMs = now() - record.startedAt;
      // Clients take an `error` for the end of a response, and the `response.failed` behind it for that of the next.
      speak = voice.stream(heading, false);
    };
    const tell = (events: readonly Event[]) => writer.write(toFrames(speak?.(events) ?? ""));

    if (generates) {
      const hinted = toCaller(call, given, undefined, own);
      const { signal, interrupt } = turn;
      // A name wins over a hint, though only the connection knows it.
      const named = isLocal ? undefined : hinted.hint;
      const caller = { ...hinted, signal, interrupt: interrupt.signal, trace, hint: named };
      const enter = (key: string): void => void (turn.key = key);
      const said = await gateway.answer(ask, caller, { enter, begin, tell });
      isOver = true;
      if (!("answer" in said)) throw new Error("A response was only promised.");
      noteSaid(record, said);
      const { heading, answer } = said;
      record.failure = answer.error;
      if (answer.error !== undefined) return;
      const bytes = text.length + JSON.stringify(answer.items).length;
      if (ask.keep === "no") memory.keep(heading.key, ask, answer.items, bytes, isLocal);
      else memory.forget();
    } else {
      const key = newKey();
      const told = { session: undefined, told: "stateless", contextItems: 0, leftOutItems: 0, remarks: [] } as const;
      begin({ key, createdAt: now(), model: ask.model, ...told });
      memory.keep(key, ask, [], text.length, isLocal);
      await tell([{ type: "turn-start" }, { type: "turn-end", answer: nothing(now()) }]);
    }
  } catch (thrown) {
    record.failure = toGatewayError(thrown);
    if (writer.isOpen) await writer.write([toErrorFrame(record.failure)]);
  } finally {
    const { failure } = record;
    // A response that could not be continued is forgotten: its client sends everything anew.
    if (failure !== undefined && isLocal) memory.forget();
    own?.share.leave();
    own?.share.release();
    record.status = failure === undefined || (isOver && failure.code !== "client_closed") ? 200 : failure.status;
    record.ms = now() - record.startedAt;
    parts.observer.ended(record);
  }
}

interface Create {
  /** The body that the same request would have over HTTP. */
  readonly body: object;
  /** False: nothing is generated yet; a later request continues it. */
  readonly generates: boolean;
}

/** Its answer is always a stream, whatever `stream` says. */
function readCreate(value: unknown): Create {
  const fields = readBody(value);
  if (readChoice(fields, "type", ["response.create"]) === undefined) missing("type");
  if (readBoolean(fields, "background") === true)
    unsupported("background", "Request background responses with POST /v1/responses.");
  const generates = readBoolean(fields, "generate") ?? true;
  const { type: _type, generate: _generate, ...body } = fields.values;
  // If nothing is generated, the input may be missing.
  const input = generates ? {} : { input: body["input"] ?? [] };
  return { body: { ...body, ...input, stream: true }, generates };
}

/** The events of a voice's text, which is whole server-sent messages; each is JSON text. */
function toFrames(text: string): readonly string[] {
  const events = text.split("\n\n").map((message) => message.slice(message.indexOf(mark) + mark.length));
  return events.filter((event) => event !== "" && event !== "[DONE]");
}

const mark = "data: ";

/** A failure outside of any response. Readers that validate events recognise one by its number. */
export function toErrorFrame(error: GatewayError): string {
  return JSON.stringify({ type: "error", status: error.status, error: toWireError(error), sequence_number: 0 });
}

/** Some clients need the numbers of an answer that has none. */
function nothing(endedAt: number): Answer {
  const usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  return { status: "completed", finish: "stop", items: [], usage, notes: {}, endedAt };
}

/** Also on connections that are open already. */
export function switchedOff(): GatewayError {
  const message = "WebSocket is switched off here (gateway.http.websocket). Use POST /v1/responses over HTTP.";
  return new GatewayError("upgrade_required", message);
}
