/** Server-sent events to many callers: one beat for all of them keeps quiet streams alive and cuts readers that stand still. */
import type { ServerResponse } from "node:http";
import { Crowd } from "../core/crowd.ts";

interface Times {
  readonly heartbeatMs: number;
  readonly stalledMs: number;
}

export type Streams = ReturnType<typeof createStreams>;

const heartbeat = ": heartbeat\n\n";
/** A slow reader may leave this much unread before the adapter is paused. */
export const maxUnsentBytes = 1024 * 1024;
/** Beats in the shorter of the two times. */
const beatsPerTime = 4;

export function createStreams(times: () => Times) {
  const all = new Crowd<Stream>();
  const clock = { at: performance.now() };
  let timer: NodeJS.Timeout | undefined;

  function tick(): void {
    timer = undefined;
    clock.at = performance.now();
    for (const stream of all) stream.beat(times());
    schedule();
  }

  function schedule(): void {
    const { heartbeatMs, stalledMs } = times();
    if (all.size > 0) timer ??= setTimeout(tick, Math.min(heartbeatMs, stalledMs) / beatsPerTime).unref();
  }

  function open(response: ServerResponse, writeHead: () => void, hasHeartbeats: boolean): Stream {
    if (timer === undefined) clock.at = performance.now();
    const stream = new Stream(response, writeHead, hasHeartbeats, clock);
    all.add(stream);
    response.once("close", () => all.delete(stream));
    schedule();
    return stream;
  }

  return {
    /** The head goes out with the first text, or with the first heartbeat, if there are any. */
    open,
    /** Cuts a caller that stops reading an answer which is written as a whole. */
    watch: (response: ServerResponse): void => void open(response, () => {}, false),
    close: (): void => clearTimeout(timer),
  };
}

export class Stream {
  seat = 0;
  private readonly response: ServerResponse;
  private readonly writeHead: () => void;
  private readonly hasHeartbeats: boolean;
  private readonly clock: { readonly at: number };
  /** When something was last written, as of the beat before. */
  private written: number;
  /** Its reader is behind, and must go on in time. */
  private isTimed = false;
  private isChunked = false;

  constructor(response: ServerResponse, writeHead: () => void, hasHeartbeats: boolean, clock: Stream["clock"]) {
    this.response = response;
    this.writeHead = writeHead;
    this.hasHeartbeats = hasHeartbeats;
    this.clock = clock;
    this.written = clock.at;
  }

  /** Sends text in one write. A promise says that the caller reads too slowly, and resolves when it has caught up. */
  write(text: string): Promise<void> | undefined {
    const { response } = this;
    if (text === "" || response.destroyed) return undefined;
    this.begin();
    this.written = this.clock.at;
    response.write(this.isChunked ? toChunk(text) : text);
    return response.writableLength > maxUnsentBytes ? drained(response) : undefined;
  }

  end(text: string): void {
    if (this.response.destroyed) return;
    this.begin();
    this.response.end(this.isChunked ? (text && toChunk(text)) + lastChunk : text);
  }

  /** Node would write each chunk in four pieces, which is a tenth of what a delta costs. */
  private begin(): void {
    const { response } = this;
    if (response.headersSent) return;
    this.writeHead();
    this.isChunked = response.chunkedEncoding;
    response.chunkedEncoding = false;
  }

  beat({ heartbeatMs, stalledMs }: Times): void {
    const { response, hasHeartbeats, written, clock } = this;
    const isBehind = response.writableLength > 0;
    // Only the socket knows how much of a long write is taken; behind another answer on its connection there is none.
    if (isBehind !== this.isTimed && response.socket !== null) {
      response.socket.setTimeout(isBehind ? stalledMs : 0);
      this.isTimed = isBehind;
    }
    if (hasHeartbeats && !isBehind && !response.writableEnded && clock.at - written >= heartbeatMs)
      this.write(heartbeat);
  }
}

const toChunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const lastChunk = toChunk("");

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      response.off("drain", go).off("close", go);
      resolve();
    };
    response.on("drain", go).on("close", go);
  });
}
