/** The caller's side of a turn: cancels it when the caller leaves, and sends no more than it can take. */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { callerLeft } from "../core/errors.ts";
import type { HttpLimits } from "./settings.ts";

/** A controller that aborts when the caller closes the connection before it has the whole answer. */
export function watchClient(response: ServerResponse): AbortController {
  const controller = new AbortController();
  // Once the body is read, the request no longer tells; the response's `close` does.
  response.once("close", () => {
    if (!response.writableFinished) controller.abort(callerLeft());
  });
  return controller;
}

export interface SseWriter {
  /** Sends text in one write; resolves at once unless the caller reads too slowly. */
  write(text: string): Promise<void> | undefined;
  /** Sends the last text. */
  end(text: string): void;
  /** Stops the heartbeats. */
  stop(): void;
}

const heartbeat = ": heartbeat\n\n";

/** Server-sent events to one caller. The head goes out with the first text, or with the first heartbeat. */
export function createSseWriter(
  response: ServerResponse,
  writeHead: () => void,
  limits: Pick<HttpLimits, "heartbeatMs" | "maxUnsentBytes" | "stalledClientTimeoutMs">,
): SseWriter {
  let quiet = true;

  function open(): void {
    if (!response.headersSent) writeHead();
  }

  const beat = setInterval(() => {
    if (quiet && response.writableLength === 0) {
      open();
      response.write(heartbeat);
    }
    quiet = true;
  }, limits.heartbeatMs);

  return {
    write(text) {
      quiet = false;
      open();
      if (text === "") response.flushHeaders();
      else response.write(toSent(text));
      // Below its own high-water mark, Node buffers what it gets and emits no `drain`.
      const isFull = response.writableNeedDrain && response.writableLength > limits.maxUnsentBytes;
      return isFull ? drained(response, limits.stalledClientTimeoutMs) : undefined;
    },
    end(text) {
      clearInterval(beat);
      open();
      response.end(toSent(text));
    },
    stop() {
      clearInterval(beat);
    },
  };
}

/** A long text as bytes: Node would keep the text until all is sent, beside a copy with three bytes per character. */
function toSent(text: string): string | Uint8Array {
  return text.length > maxText ? Buffer.from(text) : text;
}

const maxText = 64 * 1024;

/** Cuts a caller that stops reading a fully written answer; Node resets the socket's time-out for the next request. */
export function cutWhenStalled(response: ServerResponse, stalledClientTimeoutMs: number): void {
  if (response.writableLength > 0) response.socket?.setTimeout(stalledClientTimeoutMs);
}

/**
 * Waits until the caller has taken everything. If nothing moves, the socket's own time-out destroys it; an answer that
 * waits for earlier ones on its connection gets the socket after them.
 */
export function drained(response: ServerResponse, stalledClientTimeoutMs: number): Promise<void> {
  const watch = (socket: Socket): void => void socket.setTimeout(stalledClientTimeoutMs);
  return new Promise((resolve) => {
    if (response.destroyed || response.socket?.destroyed === true) return resolve();
    const go = (): void => {
      response.socket?.setTimeout(0);
      response.off("socket", watch).off("drain", go).off("close", go);
      resolve();
    };
    response.on("socket", watch).on("drain", go).on("close", go);
    if (response.socket !== null) watch(response.socket);
  });
}
