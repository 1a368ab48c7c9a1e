/** One WebSocket connection: answers its frames one after the other, hears an interruption at once, and closes when its time is over. */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { callerLeft, GatewayError, toGatewayError } from "../../core/errors.ts";
import { parseObject } from "../../wires/fields.ts";
import type { Call } from "../call.ts";
import { draining } from "../errors.ts";
import { maxUnsentBytes } from "../stream.ts";
import { createMemory } from "./memory.ts";
import { answerFrame, type FrameWriter, type SocketParts, type SocketTurn, toErrorFrame } from "./turn.ts";

export interface Connection {
  /** Lets the running response end, then closes. */
  retire(): void;
}

const maxAgeMs = 60 * 60_000;
/** How many frames may wait behind the one that is answered; together they may be as long as a body. */
const maxWaiting = 8;
/** How long a client may take to answer a ping. */
const maxSilenceMs = 60_000;
/** How long it may take to close when it has nothing left to read. */
const maxCloseMs = 500;
/** Clients that connect again by themselves take 1000 for an end that both sides wanted. */
const goingAway = 1001;

export function openConnection(socket: WebSocket, call: Call, parts: SocketParts): Connection {
  const { settings, request, share } = call;
  const { maxBodyBytes, stalledClientTimeoutMs, heartbeatMs } = settings.limits;
  const writer = createFrameWriter(socket, request.socket, stalledClientTimeoutMs);
  const around = { call, writer, memory: createMemory(maxBodyBytes), parts };
  const waiting: string[] = [];
  const left = new AbortController();
  let running: SocketTurn | undefined;
  let ending: GatewayError | undefined;

  async function answerAll(): Promise<void> {
    for (let text = waiting.shift(); text !== undefined && writer.isOpen; text = waiting.shift()) {
      const signal = AbortSignal.any([call.signal, left.signal]);
      running = { key: undefined, signal, interrupt: new AbortController() };
      await answerFrame(text, running, around);
      share.release(text.length);
      if (ending !== undefined) break;
    }
    running = undefined;
    if (ending !== undefined) closeWith(ending);
  }

  function closeWith(reason: GatewayError): void {
    if (!writer.isOpen) return;
    // An idle client is told of the end of its time, but not of the gateway's.
    const count = Math.max(waiting.length, reason.code === "draining" ? 0 : 1);
    void writer.write(Array<string>(count).fill(toErrorFrame(reason)));
    socket.close(goingAway, reason.code);
    // It may not close by itself, e.g. on a sleeping machine.
    if (socket.bufferedAmount === 0) cutLater();
  }

  function retire(reason: GatewayError): void {
    ending ??= reason;
    if (running === undefined) closeWith(ending);
  }

  function cutLater(): void {
    const cut = setTimeout(() => socket.terminate(), maxCloseMs);
    socket.once("close", () => clearTimeout(cut));
  }

  function take(text: string): void {
    if (text.includes('"response.interrupt"')) {
      const { type, response_id = null } = parseObject(text) ?? {};
      if (type === "response.interrupt") return interrupt(response_id);
    }
    const bytes = waiting.reduce((sum, { length }) => sum + length, text.length);
    if (waiting.length >= maxWaiting || bytes > maxBodyBytes) throw busy();
    share.take(text.length);
    waiting.push(text);
    if (running === undefined) void answerAll();
  }

  /** It is told by the response itself. */
  function interrupt(id: unknown): void {
    const isMeant = running !== undefined && (id === null || id === `resp_${running.key}`);
    if (!isMeant) throw nothingRuns();
    running?.interrupt.abort(interrupted());
  }

  socket.on("message", (bytes) => {
    if (!writer.isOpen) return;
    try {
      take(String(bytes));
    } catch (thrown) {
      // A client that makes us write but never reads would fill the memory.
      if (writer.isFull) socket.terminate();
      else void writer.write([toErrorFrame(toGatewayError(thrown))]);
    }
  });
  socket.on("ping", (bytes) => {
    if (writer.isFull) socket.terminate();
    else if (writer.isOpen) socket.pong(bytes);
  });
  const life = setTimeout(() => retire(timeIsOver()), maxAgeMs);
  const stopPings = startPings(socket, heartbeatMs);
  // What runs is stopped, and tells its client why.
  call.signal.addEventListener("abort", cutLater, { once: true });
  socket.once("close", () => {
    clearTimeout(life);
    stopPings();
    call.signal.removeEventListener("abort", cutLater);
    waiting.length = 0;
    left.abort(callerLeft());
  });

  return { retire: () => retire(draining()) };
}

function createFrameWriter(socket: WebSocket, wire: Socket, stalledMs: number): FrameWriter {
  let isWatched = false;
  let waiting: PromiseWithResolvers<void> | undefined;

  /** Unread bytes must keep moving; the wire's own time-out fires when they do not. */
  function watch(): void {
    const isBehind = socket.bufferedAmount > 0;
    if (isBehind !== isWatched) wire.setTimeout(isBehind ? stalledMs : 0);
    isWatched = isBehind;
  }
  function release(): void {
    waiting?.resolve();
    waiting = undefined;
  }
  function sent(): void {
    watch();
    if (socket.bufferedAmount <= maxUnsentBytes) release();
  }

  wire.on("timeout", () => socket.terminate());
  socket.once("close", release);

  return {
    get isOpen() {
      return socket.readyState === socket.OPEN;
    },
    get isFull() {
      return socket.bufferedAmount > maxUnsentBytes;
    },
    write(frames) {
      const last = frames.length - 1;
      wire.cork();
      for (const [at, frame] of frames.entries()) socket.send(frame, at === last ? sent : undefined);
      wire.uncork();
      watch();
      if (socket.bufferedAmount <= maxUnsentBytes || socket.readyState !== socket.OPEN) return undefined;
      waiting ??= Promise.withResolvers();
      return waiting.promise;
    },
  };
}

/** Cuts a client that takes too long to answer. One that is behind has its own time, and would see a ping too late. */
function startPings(socket: WebSocket, heartbeatMs: number): () => void {
  let pingedAt: number | undefined;
  const pings = setInterval(() => {
    const at = performance.now();
    if (pingedAt !== undefined && at - pingedAt > maxSilenceMs) return socket.terminate();
    if (socket.bufferedAmount > 0 || socket.readyState !== socket.OPEN) return;
    socket.ping();
    pingedAt ??= at;
  }, heartbeatMs);
  socket.on("pong", () => (pingedAt = undefined));
  return () => clearInterval(pings);
}

function busy(): GatewayError {
  const message = `This connection already has ${maxWaiting} requests waiting, or more than one body's worth. Wait for their answers, or open another connection.`;
  return new GatewayError("session_busy", message, { retryAfterSeconds: 1 });
}

/** Only who still waits in line is told of it so. */
function interrupted(): GatewayError {
  return new GatewayError("interrupted", "The response was interrupted before it began. Send the request again.");
}

function nothingRuns(): GatewayError {
  const message = "The response to interrupt does not run on this connection: it has ended, or there was none.";
  return new GatewayError("not_found", message, { param: "response_id" });
}

function timeIsOver(): GatewayError {
  const message = `This connection has reached its maximum age of ${maxAgeMs / 60_000} minutes. Open a new one to continue.`;
  return new GatewayError("websocket_connection_limit_reached", message);
}
