/** One turn over a WebSocket: a create frame in, its events out, or one error that leaves the connection usable. */
import { callerLeft, drainingError, GatewayError, toGatewayError } from "../../core/errors.ts";
import type { Event, Events } from "../../core/event.ts";
import { emptyTurn } from "../../core/frame/frame.ts";
import type { Reply } from "../../core/gateway.ts";
import type { JsonShape } from "../../core/json-shape.ts";
import { unplaced, type Voice } from "../../core/ports.ts";
import type { Ask } from "../../core/turn.ts";
import { checkModels, checkToken, type Token } from "../auth.ts";
import { readHint } from "../hint.ts";
import type { RequestRecord } from "../journal.ts";
import { checkShape, parseJson } from "../parse.ts";
import type { HttpRequest } from "../request.ts";
import { note } from "../send.ts";
import type { Terms } from "../terms.ts";
import { readTrace } from "../trace.ts";
import { findLane, readCreate, readLane, toErrorFrame, toFrames } from "./frames.ts";
import type { LaneMemories, LaneMemory } from "./memory.ts";
import type { FrameWriter } from "./writer.ts";

/** The connection of a turn. */
export interface TurnConnection {
  /** The upgrade: its headers hold for every turn. */
  readonly request: HttpRequest;
  readonly writer: FrameWriter;
  readonly memories: LaneMemories;
  /** The response in progress, or the last one. */
  response?: { readonly id: string; readonly lane: string | undefined } | undefined;
}

export interface Frame {
  readonly text: string;
  readonly isBinary: boolean;
  /** What is in the text. */
  readonly shape: JsonShape;
  /** How much memory the text takes, and what it is parsed into. */
  readonly heldBytes: number;
}

/** Answers a frame, and writes one line to the log. Never throws. */
export async function answerFrame(
  terms: Terms,
  connection: TurnConnection,
  frame: Frame,
  client: AbortController,
): Promise<void> {
  const { request, writer } = connection;
  const since = terms.elapsedMs();
  const record: SocketRecord = {
    id: request.id,
    span: terms.journal.begin(request, frameMethod),
    get elapsedMs() {
      return terms.elapsedMs() - since;
    },
  };
  try {
    const token = admitTurn(request, terms);
    await terms.turns.run(client, { token }, () => answerCreate({ terms, connection, token, client, record }, frame));
  } catch (thrown) {
    const error = toGatewayError(thrown);
    terms.journal.report(error, record);
    const lane = record.lane ?? findLane(frame.text);
    if (writer.isOpen) await writer.write([toErrorFrame(error, lane, record.about?.remarks)]);
  }
  const { failure, spoke, continued } = record;
  // A response that could not be continued is forgotten: its client resends everything.
  if (failure !== undefined) continued?.forget();
  const status = failure === undefined || (spoke && failure.code !== "client_closed") ? 200 : failure.status;
  terms.journal.write({ request, record, method: frameMethod, status, ms: record.elapsedMs });
}

/** Stands in the log where a request has its method. */
export const frameMethod = "response.create";

/** A connection was admitted on earlier terms; each of its turns, and whatever else it asks, needs the current ones. */
export function admitTurn(request: HttpRequest, terms: Terms): Token {
  const token = terms.admit(request, terms);
  checkToken(["responses"], token, terms.endpoints);
  if (!terms.webSocket.enabled) throw switchedOff();
  if (terms.turns.draining) throw drainingError();
  terms.takeRequest(token, terms.limits.rate);
  return token;
}

/** Refuses what the operator has disabled, even on connections that are already open. */
export function switchedOff(): GatewayError {
  return new GatewayError(
    "upgrade_required",
    "WebSocket is switched off here (gateway.http.websocket.enabled). Use POST /v1/responses over HTTP.",
  );
}

interface SocketRecord extends RequestRecord {
  /** The upgrade's, under which failures are logged. */
  readonly id: string;
  readonly elapsedMs: number;
  lane?: string | undefined;
  /** Part of the response was sent. */
  spoke?: boolean;
  /** The memory of the response it continues, if only the connection has it. */
  continued?: LaneMemory | undefined;
}

interface FrameTurn {
  readonly terms: Terms;
  readonly connection: TurnConnection;
  readonly token: Token;
  readonly client: AbortController;
  readonly record: SocketRecord;
}

async function answerCreate(turn: FrameTurn, { text, isBinary, shape }: Frame): Promise<void> {
  const { terms, connection, token, client, record } = turn;
  const { writer } = connection;
  if (isBinary) throw new GatewayError("invalid_json", "The frame is binary; send JSON in a text frame.");
  checkShape(shape, terms.limits);
  const value = parseJson(text);
  record.lane = readLane(value);
  const { body, generates } = readCreate(value);
  const { ask, voice } = terms.protocols.responses.parse(body, token.owner);
  checkModels(token, ask);
  const memory = connection.memories.of(record.lane, ask.previousId);
  if (ask.previousId !== undefined && memory.knows(ask.previousId)) record.continued = memory;
  const { about, events } = await (generates ? answer(turn, memory, ask, voice) : prepare(turn, memory, ask));
  record.about = about;
  connection.response = { id: about.id, lane: record.lane };
  let say: ((events: readonly Event[]) => string) | undefined;
  for await (const batch of events) {
    // `about` is complete only with the first word. A connection outlives its responses, and clients take an `error` for
    // the end of one: they would take the `response.failed` after it for the answer to their next request, and so on.
    say ??= voice.stream(about, false);
    if (generates) note(record, batch, record);
    await writer.write(toFrames(say(batch), record.lane));
    record.spoke = true;
    const last = batch.at(-1);
    if (last?.type === "turn-end" && last.answer.error !== undefined) terms.journal.report(last.answer.error, record);
    else if (!writer.isOpen) {
      client.abort(callerLeft());
      client.signal.throwIfAborted();
    }
  }
}

function answer(turn: FrameTurn, memory: LaneMemory, ask: Ask, voice: Voice): Promise<Reply> {
  const { terms, client, record } = turn;
  const { owner, alwaysResends } = turn.token;
  const { headers } = turn.connection.request;
  const hinted = readHint(terms.hints, headers, ask.user);
  // Only a stored turn can be replayed, and the memo of a request with many tools is long.
  const memo = ask.keep === "no" ? undefined : voice.memo;
  const trace = record.span?.trace ?? readTrace(headers);
  const { signal } = client;
  const caller = { turnId: terms.newTurnId(), owner, alwaysResends, ...hinted, signal, trace, memory, memo };
  return terms.gateway.answer(memory.complete(ask), caller);
}

/** Accepts a request without generating an answer: the one that continues it will have its input in front. */
async function prepare({ terms, token }: FrameTurn, memory: LaneMemory, ask: Ask): Promise<Reply> {
  // What it wants to continue must exist before it is accepted.
  if (ask.previousId === undefined || !memory.knows(ask.previousId))
    await terms.gateway.checkContinued(ask, token.owner);
  const id = terms.newTurnId();
  memory.prepare(id, ask);
  const createdAt = terms.now();
  const { model, truncation = unplaced.truncation } = ask;
  return { about: { ...unplaced, id, createdAt, model, truncation }, events: once(emptyTurn(createdAt)) };
}

async function* once(events: readonly Event[]): Events {
  yield events;
}
