/** One WebSocket connection: answers its frames one after the other, hears an interruption at once, and closes when its time is over. */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { callerLeft, GatewayError, toGatewayError } from "../../core/errors.ts";
import { parseObject } from "../../wires/fields.ts";
import type { Call } from "../call.ts";
import { draining } from "../errors.ts";
import { maxUnsentBytes } from "../stream.ts";
import { answerFrame, createMemory, type Running, type SocketParts, toErrorFrame, type WriteFrames } from "./turn.ts";

const maxAgeMs = 60 * 60_000;
/** How many frames may wait behind the one that is answered. */
const maxWaiting = 8;
/** Clients that connect again by themselves take 1000 for an end that both sides wanted. */
const goingAway = 1001;

/** Returns how to retire it: the running response ends, then it is closed. */
export function openConnection(socket: WebSocket, call: Call, parts: SocketParts): () => void {
  const { request, response, share, signal, settings } = call;
  const write = createFrameWriter(socket, request.socket);
  const around = { write, memory: createMemory(settings.limits.maxBodyBytes), parts };
  const waiting: string[] = [];
  let running: Running | undefined;
  let ending: GatewayError | undefined;

  async function answerAll(): Promise<void> {
    for (let text = waiting.shift(); text !== undefined; text = waiting.shift()) {
      running = { turn: call.begin(parts.observer.begin(request.headers)), interrupt: new AbortController() };
      await answerFrame(text, running, around);
      share.release(text.length);
      if (ending !== undefined) break;
    }
    running = undefined;
    if (ending !== undefined) closeWith(ending);
  }

  function closeWith(reason: GatewayError): void {
    // An idle client is told of the end of its time, but not of the gateway's.
    const count = Math.max(waiting.length, reason.code === "draining" ? 0 : 1);
    void write(Array<string>(count).fill(toErrorFrame(reason)));
    socket.close(goingAway, reason.code);
  }

  function retire(reason: GatewayError): void {
    ending ??= reason;
    if (running === undefined) closeWith(ending);
  }

  function take(text: string): void {
    if (text.includes('"response.interrupt"')) {
      const { type, response_id } = parseObject(text) ?? {};
      if (type === "response.interrupt") return interrupt(response_id);
    }
    if (waiting.length >= maxWaiting) {
      const message = `This connection already has ${maxWaiting} requests waiting. Wait for their answers, or open another connection.`;
      throw new GatewayError("session_busy", message, { retryAfterSeconds: 1 });
    }
    share.take(text.length);
    waiting.push(text);
    if (running === undefined) void answerAll();
  }

  /** It is told by the response itself. */
  function interrupt(id: unknown): void {
    const isMeant = (id ?? null) === null || id === `resp_${running?.turn.record.key}`;
    if (running === undefined || !isMeant) {
      const message = "The response to interrupt does not run on this connection: it has ended, or there was none.";
      throw new GatewayError("not_found", message, { param: "response_id" });
    }
    // Only who still waits in line is told so.
    const message = "The response was interrupted before it began. Send the request again.";
    running.interrupt.abort(new GatewayError("interrupted", message));
  }

  /** A client that makes us write but never reads would fill the memory. */
  function cutFlooder(): void {
    if (socket.bufferedAmount > maxUnsentBytes) socket.terminate();
  }

  socket.on("message", (bytes) => {
    if (socket.readyState !== socket.OPEN) return;
    try {
      take(String(bytes));
    } catch (thrown) {
      void write([toErrorFrame(toGatewayError(thrown))]);
      cutFlooder();
    }
  });
  socket.on("ping", cutFlooder);
  // A reader that stands still is cut as that of any answer.
  parts.streams.watch(response);
  request.socket.on("timeout", () => {
    // First, because a model that never waits would not let the end of the connection be heard.
    call.stop(callerLeft());
    socket.terminate();
  });
  const tooOld = `This connection has reached its maximum age of ${maxAgeMs / 60_000} minutes. Open a new one to continue.`;
  const life = setTimeout(() => retire(new GatewayError("websocket_connection_limit_reached", tooOld)), maxAgeMs);
  const pings = setInterval(() => socket.bufferedAmount === 0 && socket.ping(), settings.limits.heartbeatMs);
  signal.addEventListener("abort", () => running?.turn.stop(signal.reason));
  socket.once("close", () => {
    clearTimeout(life);
    clearInterval(pings);
    waiting.length = 0;
    call.stop(callerLeft());
  });

  return () => retire(draining());
}

function createFrameWriter(socket: WebSocket, wire: Socket): WriteFrames {
  return (frames) => {
    if (socket.readyState !== socket.OPEN || frames.length === 0) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    const last = frames.length - 1;
    wire.cork();
    for (const [at, frame] of frames.entries()) socket.send(frame, at === last ? () => resolve() : undefined);
    wire.uncork();
    return socket.bufferedAmount > maxUnsentBytes ? promise : undefined;
  };
}
