/** Server-sent events to many callers: one beat for all of them keeps quiet streams alive and cuts readers that stand still. */
import type { ServerResponse } from "node:http";

export interface Stream {
  /** Sends text in one write. A promise says that the caller reads too slowly, and resolves when it has caught up. */
  write(text: string): Promise<void> | undefined;
  end(text: string): void;
}

export interface Streams {
  /** The head goes out with the first text, or with the first heartbeat, if there are any. */
  open(response: ServerResponse, writeHead: () => void, hasHeartbeats?: boolean): Stream;
  /** Cuts a caller that stops reading an answer which is written as a whole. */
  watch(response: ServerResponse): void;
  close(): void;
}

const heartbeat = ": heartbeat\n\n";
/** A slow reader may leave this much unread before the adapter is paused. */
const maxUnsentBytes = 1024 * 1024;
/** Beats in the shorter of the two times. */
const beatsPerTime = 4;

interface Watched {
  readonly response: ServerResponse;
  /** Absent: nothing is sent to keep it alive. */
  readonly open: (() => void) | undefined;
  /** When something was last written, as of the beat before. */
  written: number;
  /** Its reader is behind, and must go on in time. */
  isTimed: boolean;
}

export function createStreams(beat: () => { readonly heartbeatMs: number; readonly stalledMs: number }): Streams {
  const all = new Set<Watched>();
  let at = performance.now();
  let timer: NodeJS.Timeout | undefined;

  function tick(): void {
    const { heartbeatMs, stalledMs } = beat();
    timer = undefined;
    at = performance.now();
    for (const watched of all) {
      const { response, open } = watched;
      const isBehind = response.writableLength > 0;
      // Only the socket knows how much of a long write is taken; behind another answer on its connection there is none.
      if (isBehind !== watched.isTimed && response.socket !== null) {
        response.socket.setTimeout(isBehind ? stalledMs : 0);
        watched.isTimed = isBehind;
      }
      if (open === undefined || isBehind || response.writableEnded || at - watched.written < heartbeatMs) continue;
      open();
      response.write(heartbeat);
      watched.written = at;
    }
    schedule();
  }

  function schedule(): void {
    const { heartbeatMs, stalledMs } = beat();
    if (all.size > 0) timer ??= setTimeout(tick, Math.min(heartbeatMs, stalledMs) / beatsPerTime).unref();
  }

  function add(response: ServerResponse, open: Watched["open"]): Watched {
    if (timer === undefined) at = performance.now();
    const watched = { response, open, written: at, isTimed: false };
    all.add(watched);
    response.once("close", () => all.delete(watched));
    schedule();
    return watched;
  }

  return {
    open(response, writeHead, hasHeartbeats = true) {
      function open(): void {
        if (!response.headersSent && !response.destroyed) writeHead();
      }
      const watched = add(response, hasHeartbeats ? open : undefined);
      return {
        write(text) {
          if (text === "" || response.destroyed) return undefined;
          open();
          watched.written = at;
          response.write(text);
          return response.writableLength > maxUnsentBytes ? drained(response) : undefined;
        },
        end(text) {
          open();
          if (!response.destroyed) response.end(text);
        },
      };
    },
    watch: (response) => void add(response, undefined),
    close: () => clearTimeout(timer),
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
