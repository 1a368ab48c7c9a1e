/** Sends frames to one client, and no more than it can take. */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

export interface FrameWriter {
  /** Sends frames in one write. A promise says that the client reads too slowly, and resolves when it has caught up. */
  write(frames: readonly string[]): Promise<void> | undefined;
  /** The client still listens. */
  readonly isOpen: boolean;
  /** It reads too slowly; nothing more should be sent. */
  readonly isFull: boolean;
}

/** A slow reader may leave this much unread before the adapter is paused. */
const maxUnsentBytes = 1024 * 1024;

export function createFrameWriter(socket: WebSocket, wire: Socket, stalledMs: number): FrameWriter {
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
