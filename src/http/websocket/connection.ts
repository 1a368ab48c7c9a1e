/** One WebSocket connection: its frames are answered one after the other, and it ends when its time is over. */
import type { Socket } from "node:net";
import type { FastifyRequest } from "fastify";
import type { WebSocket } from "ws";
import { callerLeft, GatewayError, toGatewayError } from "../../core/errors.ts";
import type { Arrival, Arrivals } from "../arrivals.ts";
import { toHeldBytes } from "../held.ts";
import type { Terms } from "../terms.ts";
import { findLane, findSteer, type Steer, steerMethod, toErrorFrame, toSteerFailed } from "./frames.ts";
import { createLaneMemories } from "./memory.ts";
import { answerFrame, type Frame, frameMethod, type Line } from "./turn.ts";
import { createFrameWriter, type FrameWriter } from "./writer.ts";

export interface Connection {
  /** Lets the running response end, then closes. */
  retire(parting: Parting): void;
  /** Ends it at once. */
  cut(): void;
}

interface Parting {
  readonly closeCode: number;
  readonly reason: GatewayError;
  /** A client that waits for nothing is told too. */
  readonly isAlwaysTold: boolean;
}

interface Waiting extends Frame {
  /** Its text is not the client's: it is what the client is told of a frame that had no room. */
  readonly isRefusal?: boolean;
}

/** How many frames may wait behind the one that is being answered. */
const maxWaiting = 8;
/** How long the refusals that wait behind them may be together, in characters. */
const maxRefused = 64 * 1024;
/** So much of a frame is no matter yet. */
const maxUncounted = 64 * 1024;
/** How long a client may owe the answer to a ping. */
const maxSilenceMs = 60_000;
/** How long it may take to say goodbye. */
const maxGoodbyeMs = 500;
const minuteMs = 60_000;
const maxTimerMs = 2_147_483_647;

/** `current` is asked for every turn: what it gives may change while the connection lasts. */
export function openConnection(current: () => Terms, socket: WebSocket, request: FastifyRequest): Connection {
  const { limits, settings, now, journal, arrivals, held, remembered } = current();
  const { owner } = request.token;
  const memories = createLaneMemories(limits.maxBodyBytes, () => remembered.hold(owner));
  const writer = createFrameWriter(socket, request.raw.socket, limits);
  const line: Line = { request, writer, memories };
  const waiting: Waiting[] = [];
  /** Of the frames that wait, and of the one that is being answered. */
  const frames = held.hold(owner);
  let running: AbortController | undefined;
  let parting: Parting | undefined;

  async function answerAll(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined && writer.isOpen; next = waiting.shift()) {
      running = new AbortController();
      if (next.isRefusal) await writer.write([next.text]);
      else await answerFrame(current(), line, next, running);
      frames.add(-next.heldBytes);
      if (parting !== undefined) break;
    }
    running = undefined;
    if (parting !== undefined) part(parting);
  }

  function part({ closeCode, reason, isAlwaysTold }: Parting): void {
    if (!writer.isOpen) return;
    const unanswered = waiting.map(({ text, isRefusal }) =>
      isRefusal ? text : toErrorFrame(reason, findLane(text, limits)),
    );
    if (unanswered.length > 0) void writer.write(unanswered);
    else if (isAlwaysTold) void writer.write([toErrorFrame(reason)]);
    socket.close(closeCode, reason.code);
    awaitGoodbye(socket);
  }

  function retire(chosen: Parting): void {
    parting ??= chosen;
    if (running === undefined) part(parting);
  }

  /** Throws when there is no room for another frame. */
  function check({ text, heldBytes }: Frame): void {
    const asked = waiting.filter(({ isRefusal }) => !isRefusal);
    const characters = lengthOf(asked);
    const isTooMuch = characters > 0 && characters + text.length > limits.maxBodyBytes;
    if (asked.length >= maxWaiting || isTooMuch) throw busy();
    held.check(owner, heldBytes);
  }

  /** It is told in its turn: clients that count the answers would take it for that to an earlier frame. */
  function refuse(error: GatewayError, lane: string | undefined): void {
    journal.write({ request, course: { failure: error }, method: frameMethod, status: error.status, ms: 0 });
    const text = toErrorFrame(error, lane);
    const refused = waiting.filter(({ isRefusal }) => isRefusal);
    if (lengthOf(refused) + text.length <= maxRefused)
      return wait({ text, isRefusal: true, isBinary: false, heldBytes: 0 });
    tell(text);
  }

  /** At once: the response that it is meant for is being made. No response is its answer, so it takes the place of none. */
  function refuseSteer(steer: Steer): void {
    const failure = unsteerable();
    journal.write({ request, course: { failure }, method: steerMethod, status: failure.status, ms: 0 });
    const { telling } = line;
    tell(toSteerFailed(steer, failure, steer.previous_response_id === telling?.id ? telling?.lane : undefined));
  }

  function tell(text: string): void {
    // Whoever makes us write and does not read would fill the memory.
    if (writer.isFull) socket.terminate();
    else void writer.write([text]);
  }

  function wait(frame: Waiting): void {
    waiting.push(frame);
    frames.add(frame.heldBytes);
    if (running === undefined) void answerAll();
  }

  /** What was not sent whole cannot be answered, and what came of it is let go of only with its connection. */
  function giveUp({ code }: GatewayError): void {
    socket.close(1013, code);
    request.raw.socket.destroySoon();
  }

  const arriving = countArriving(request.raw.socket, arrivals, giveUp);
  watchPulse(socket, writer, limits.heartbeatMs, now);
  const { maxMinutes } = settings.webSocket;
  const lifeMs = Math.min(maxMinutes * minuteMs, maxTimerMs);
  const life = setTimeout(() => retire(timeIsOver(maxMinutes)), lifeMs);

  socket.on("message", (bytes, isBinary) => {
    arriving.end();
    if (!writer.isOpen) return;
    const text = isBinary ? "" : String(bytes);
    const steer = findSteer(text, limits);
    if (steer !== undefined) return refuseSteer(steer);
    const frame = { text, isBinary, heldBytes: toHeldBytes(text) };
    try {
      check(frame);
    } catch (thrown) {
      return refuse(toGatewayError(thrown), findLane(text, limits));
    }
    wait(frame);
  });
  socket.once("close", () => {
    clearTimeout(life);
    arriving.stop();
    waiting.length = 0;
    frames.release();
    memories.release();
    running?.abort(callerLeft());
  });

  return { retire, cut: () => socket.terminate() };
}

/** Counts what has come of a frame that is not whole yet, among all that is on its way. */
function countArriving(stream: Socket, arrivals: Arrivals, giveUp: (reason: GatewayError) => void) {
  let bytes = 0;
  let arrival: Arrival | undefined;

  function take(chunk: Buffer): void {
    bytes += chunk.length;
    if (bytes <= maxUncounted) return;
    arrival ??= arrivals.begin(giveUp);
    arrival.hold(bytes);
  }

  function end(): void {
    bytes = 0;
    arrival?.end();
    arrival = undefined;
  }

  // Before the library hears it: what it makes of it must find the count complete.
  stream.prependListener("data", take);
  return {
    /** The frame is whole. */
    end,
    stop(): void {
      stream.off("data", take);
      end();
    },
  };
}

/** Asks again and again whether the client is still there, until the connection is closed; one that owes the answer too long is cut. */
function watchPulse(socket: WebSocket, writer: FrameWriter, heartbeatMs: number, now: () => Date): void {
  let pingedAt: number | undefined;

  function ping(): void {
    const at = now().getTime();
    if (pingedAt !== undefined && at - pingedAt > maxSilenceMs) return socket.terminate();
    // A client that is behind has its own time-out, and would find the ping too late.
    if (socket.bufferedAmount > 0 || !writer.isOpen) return;
    pingedAt ??= at;
    socket.ping();
  }

  const pings = setInterval(ping, heartbeatMs);
  socket.on("pong", () => (pingedAt = undefined));
  socket.on("ping", (bytes) => {
    if (writer.isOpen && !writer.isFull) socket.pong(bytes);
  });
  socket.once("close", () => clearInterval(pings));
}

/** A client that has been sent everything and does not say goodbye, as one on a machine that sleeps, is not waited for. */
function awaitGoodbye(socket: WebSocket): void {
  const looks = setInterval(() => {
    if (socket.bufferedAmount === 0) socket.terminate();
  }, maxGoodbyeMs);
  socket.once("close", () => clearInterval(looks));
}

function lengthOf(frames: readonly Frame[]): number {
  return frames.reduce((sum, { text }) => sum + text.length, 0);
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
    "A response that is being made takes no more input here. Send it in a request that continues the response.",
    { wireCode: "steering_not_supported" },
  );
}

function timeIsOver(maxMinutes: number): Parting {
  const reason = new GatewayError(
    "websocket_connection_limit_reached",
    `This connection has lasted as long as one may (gateway.http.websocket.max_minutes: ${maxMinutes}). Open a new one to go on.`,
  );
  // Clients that connect again by themselves take 1000 for an end that both sides wanted.
  return { closeCode: 1001, reason, isAlwaysTold: true };
}
