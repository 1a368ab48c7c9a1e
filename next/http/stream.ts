/** Server-sent events to many callers: one beat for all of them keeps quiet streams alive and cuts readers that stand still. */
import type { ServerResponse } from "node:http";

export interface Stream {
  /** Sends text in one write. A promise says that the caller reads too slowly, and resolves when it has caught up. */
  write(text: string): Promise<void> | undefined;
  end(text: string): void;
}

export interface Streams {
  /** The head goes out with the first text, or with the first heartbeat. */
  open(response: ServerResponse, writeHead: () => void): Stream;
  close(): void;
}

export interface Beat {
  readonly heartbeatMs: number;
  readonly stalledMs: number;
}

const heartbeat = ": heartbeat\n\n";
/** A slow reader may leave this much unread before the adapter is paused. */
const maxUnsentBytes = 1024 * 1024;
/** Beats in the time after which a quiet stream is sent something. */
const beatsPerHeartbeat = 4;

interface OpenStream {
  readonly response: ServerResponse;
  open(): void;
  /** The beat of the last write, and that of the last byte that the caller took. */
  written: number;
  moved: number;
  sentBytes: number;
}

export function createStreams(beat: () => Beat): Streams {
  const streams = new Set<OpenStream>();
  let beats = 0;
  let timer: NodeJS.Timeout | undefined;

  function tick(): void {
    beats += 1;
    const { heartbeatMs, stalledMs } = beat();
    const patience = Math.ceil((stalledMs * beatsPerHeartbeat) / heartbeatMs);
    for (const stream of streams) {
      const { response } = stream;
      const sentBytes = response.socket?.bytesWritten ?? 0;
      const isWaiting = response.writableLength > 0;
      if (!isWaiting || sentBytes !== stream.sentBytes) stream.moved = beats;
      stream.sentBytes = sentBytes;
      if (beats - stream.moved >= patience) response.destroy();
      else if (!isWaiting && beats - stream.written >= beatsPerHeartbeat) {
        stream.open();
        response.write(heartbeat);
        stream.written = beats;
      }
    }
    if (streams.size === 0) stop();
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    open(response, writeHead) {
      const stream: OpenStream = {
        response,
        open: () => {
          if (!response.headersSent && !response.destroyed) writeHead();
        },
        written: beats,
        moved: beats,
        sentBytes: 0,
      };
      streams.add(stream);
      response.once("close", () => streams.delete(stream));
      timer ??= setInterval(tick, Math.max(1, beat().heartbeatMs / beatsPerHeartbeat)).unref();
      return {
        write(text) {
          if (text === "" || response.destroyed) return undefined;
          stream.open();
          stream.written = beats;
          response.write(text);
          return response.writableLength > maxUnsentBytes ? drained(response) : undefined;
        },
        end(text) {
          stream.open();
          if (!response.destroyed) response.end(text);
        },
      };
    },
    close: stop,
  };
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      response.off("drain", go).off("close", go);
      resolve();
    };
    response.on("drain", go).on("close", go);
  });
}
