/** One WebSocket connection: answers its frames one after the other, and closes when its time is over. */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { callerLeft, GatewayError, toGatewayError } from "../../core/errors.ts";
import { toPartBytes } from "../../core/json-shape.ts";
import type { Arrival } from "../arrivals.ts";
import { toHeldBytes } from "../held.ts";
import { measureText } from "../parse.ts";
import type { HttpRequest } from "../request.ts";
import type { Terms } from "../terms.ts";
import {
  findLane,
  findSteer,
  isSteer,
  readSteer,
  type Steer,
  steerMethod,
  toErrorFrame,
  toSteerFailed,
} from "./frames.ts";
import { createLaneMemories } from "./memory.ts";
import { admitTurn, answerFrame, type Frame, frameMethod, type TurnConnection } from "./turn.ts";
import { createFrameWriter, type FrameWriter } from "./writer.ts";

export interface Connection {
  /** Lets the running response end, then closes. */
  retire(reason: GatewayError): void;
  /** Ends it at once. */
  cut(): void;
}

/** What is next in order: a client's frame to be answered, or the refusal of one that had no room. */
type Waiting = { readonly frame: Frame } | { readonly refusal: string };

/** How many frames may wait behind the one being answered. */
const maxWaiting = 8;
/** How many characters of refusals may wait behind them. */
const maxRefused = 64 * 1024;
/** A frame counts only beyond this. */
const maxUncounted = 64 * 1024;
/** How long a client may take to answer a ping. */
const maxSilenceMs = 60_000;
/** How long it may take to close when it has nothing left to read. */
const maxCloseMs = 500;
/** Clients that reconnect by themselves take 1000 for an end that both sides wanted. */
const goingAway = 1001;
const minuteMs = 60_000;
const maxTimerMs = 2_147_483_647;

/** `current` is read for every turn: the terms may change while the connection lasts. */
export function openConnection(current: () => Terms, socket: WebSocket, request: HttpRequest): Connection {
  const { limits, webSocket, elapsedMs, journal, arrivals, held, remembered } = current();
  const { owner } = request.token;
  const memories = createLaneMemories(limits.maxBodyBytes, () => remembered.hold(owner));
  const writer = createFrameWriter(socket, request.raw.socket, limits);
  const connection: TurnConnection = { request, writer, memories };
  const waiting: Waiting[] = [];
  /** The memory of the waiting frames and of the one being answered. */
  const frames = held.hold(owner);
  let running: AbortController | undefined;
  let ending: GatewayError | undefined;

  async function answerAll(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined && writer.isOpen; next = waiting.shift()) {
      running = new AbortController();
      if ("refusal" in next) await writer.write([next.refusal]);
      else {
        await answerFrame(current(), connection, next.frame, running);
        frames.add(-next.frame.heldBytes);
      }
      if (ending !== undefined) break;
    }
    running = undefined;
    if (ending !== undefined) closeWith(ending);
  }

  function closeWith(reason: GatewayError): void {
    if (!writer.isOpen) return;
    const unanswered = waiting.map((each) =>
      "refusal" in each ? each.refusal : toErrorFrame(reason, findLane(each.frame.text)),
    );
    if (unanswered.length > 0) void writer.write(unanswered);
    // An idle client is told of the end of its time, but not of the gateway's.
    else if (reason.code !== "draining") void writer.write([toErrorFrame(reason)]);
    const isRead = hasReadAll();
    socket.close(goingAway, reason.code);
    if (!isRead) return;
    // It may not close by itself, e.g. on a sleeping machine.
    const cut = setTimeout(() => socket.terminate(), maxCloseMs);
    socket.once("close", () => clearTimeout(cut));
  }

  function retire(reason: GatewayError): void {
    ending ??= reason;
    if (running === undefined) closeWith(ending);
  }

  /** Throws if there is no room for another frame. */
  function check({ text, heldBytes }: Frame): void {
    const asked = waiting.flatMap((each) => ("frame" in each ? [each.frame.text] : []));
    const isTooMuch = lengthOf(asked) + text.length > limits.maxBodyBytes;
    if (asked.length >= maxWaiting || isTooMuch) throw busy();
    held.check(owner, heldBytes);
  }

  /** Sent in order: clients that count answers would take it for the answer to an earlier frame. */
  function refuse(error: GatewayError, lane: string | undefined): void {
    journal.write({ request, record: { failure: error }, method: frameMethod, status: error.status, ms: 0 });
    const text = toErrorFrame(error, lane);
    const refused = waiting.flatMap((each) => ("refusal" in each ? [each.refusal] : []));
    if (lengthOf(refused) + text.length <= maxRefused) wait({ refusal: text });
    else send(text);
  }

  /** Sent at once: the response it should steer is in progress. It answers no create frame, so it need not wait. */
  function refuseSteer(text: string): void {
    let steer: Steer;
    let failure = unsteerable();
    try {
      admitTurn(request, current());
      steer = readSteer(text, limits);
    } catch (thrown) {
      steer = findSteer(text);
      failure = toGatewayError(thrown);
    }
    journal.write({ request, record: { failure }, method: steerMethod, status: failure.status, ms: 0 });
    const { response } = connection;
    send(toSteerFailed(steer, failure, steer.previous_response_id === response?.id ? response?.lane : undefined));
  }

  function send(text: string): void {
    // A client that makes us write but never reads would fill memory.
    if (writer.isFull) socket.terminate();
    else void writer.write([text]);
  }

  function wait(next: Waiting): void {
    waiting.push(next);
    if (running === undefined) void answerAll();
  }

  /** A partial frame cannot be answered, and its memory is freed only with its connection. */
  function abandon({ code }: GatewayError): void {
    socket.close(1013, code);
    request.raw.socket.destroySoon();
  }

  const endArrival = countArriving(request.raw.socket, () => arrivals.begin(owner, abandon));
  const hasReadAll = startHeartbeat(socket, request.raw.socket, writer, limits.heartbeatMs, elapsedMs);
  const { maxMinutes } = webSocket;
  const lifeMs = Math.min(maxMinutes * minuteMs, maxTimerMs);
  const life = setTimeout(() => retire(timeIsOver(maxMinutes)), lifeMs);

  socket.on("message", (bytes, isBinary) => {
    endArrival();
    if (!writer.isOpen) return;
    const text = isBinary ? "" : String(bytes);
    if (isSteer(text)) return refuseSteer(text);
    const shape = measureText(text);
    const frame = { text, isBinary, shape, heldBytes: toHeldBytes(text) + toPartBytes(shape) };
    try {
      check(frame);
    } catch (thrown) {
      return refuse(toGatewayError(thrown), findLane(text));
    }
    frames.add(frame.heldBytes);
    wait({ frame });
  });
  socket.once("close", () => {
    clearTimeout(life);
    endArrival();
    waiting.length = 0;
    frames.release();
    memories.release();
    running?.abort(callerLeft());
  });

  return { retire, cut: () => socket.terminate() };
}

/** Counts what has arrived of a partial frame, among all that is still arriving. Returns what ends it. */
function countArriving(stream: Socket, begin: () => Arrival): () => void {
  let bytes = 0;
  let arrival: Arrival | undefined;

  // Before the library's own listener, whose events must find the count complete.
  stream.prependListener("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxUncounted) return;
    arrival ??= begin();
    arrival.hold(bytes);
  });
  return () => {
    bytes = 0;
    arrival?.end();
    arrival = undefined;
  };
}

/**
 * Pings the client until the connection is closed; cuts it if it takes too long to answer. Returns whether the client
 * has read all that was sent to it: it has answered a ping, and nothing was sent since.
 */
function startHeartbeat(
  socket: WebSocket,
  stream: Socket,
  writer: FrameWriter,
  heartbeatMs: number,
  elapsedMs: () => number,
): () => boolean {
  let pinged: { readonly at: number; readonly bytes: number } | undefined;
  let readBytes = stream.bytesWritten;

  function ping(): void {
    const at = elapsedMs();
    if (pinged !== undefined && at - pinged.at > maxSilenceMs) return socket.terminate();
    // A client that is behind has its own time-out, and would see the ping too late.
    if (socket.bufferedAmount > 0 || !writer.isOpen) return;
    socket.ping();
    pinged ??= { at, bytes: stream.bytesWritten };
  }

  const pings = setInterval(ping, heartbeatMs);
  socket.on("pong", () => {
    readBytes = pinged?.bytes ?? readBytes;
    pinged = undefined;
  });
  socket.on("ping", (bytes) => {
    if (writer.isOpen && !writer.isFull) socket.pong(bytes);
  });
  socket.once("close", () => clearInterval(pings));
  return () => stream.bytesWritten === readBytes;
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

function busy(): GatewayError {
  return new GatewayError(
    "session_busy",
    `This connection already has ${maxWaiting} requests waiting, or more than one body's worth. Wait for their answers, or open another connection.`,
    { retryAfterSeconds: 1 },
  );
}

function unsteerable(): GatewayError {
  return new GatewayError(
    "unsupported_parameter",
    "A response in progress accepts no more input here. Send it in a request that continues the response.",
    { wireCode: "steering_not_supported" },
  );
}

function timeIsOver(maxMinutes: number): GatewayError {
  return new GatewayError(
    "websocket_connection_limit_reached",
    `This connection has reached its maximum age (gateway.http.websocket.max_minutes: ${maxMinutes}). Open a new one to continue.`,
  );
}
