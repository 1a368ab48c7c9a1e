/** Sends frames to one client, and no more than it can take. */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { HttpLimits } from "../settings.ts";

export interface FrameWriter {
  /** Sends frames in one write; resolves at once unless the client reads too slowly. */
  write(frames: readonly string[]): Promise<void> | undefined;
  /** The client still listens. */
  readonly isOpen: boolean;
  /** The client reads too slowly; nothing more should be sent. */
  readonly isFull: boolean;
}

export function createFrameWriter(
  socket: WebSocket,
  wire: Socket,
  { maxUnsentBytes, stalledClientTimeoutMs }: Pick<HttpLimits, "maxUnsentBytes" | "stalledClientTimeoutMs">,
): FrameWriter {
  let isWatched = false;
  let waiting: PromiseWithResolvers<void> | undefined;

  /** Unread data must keep moving; the wire's own time-out fires when it does not. */
  function watch(): void {
    const isBehind = socket.bufferedAmount > 0;
    if (isBehind !== isWatched) wire.setTimeout(isBehind ? stalledClientTimeoutMs : 0);
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
      for (const [index, frame] of frames.entries()) {
        if (index === last) socket.send(frame, sent);
        else socket.send(frame);
      }
      wire.uncork();
      watch();
      if (socket.bufferedAmount <= maxUnsentBytes || socket.readyState !== socket.OPEN) return undefined;
      waiting ??= Promise.withResolvers();
      return waiting.promise;
    },
  };
}
