/** Bounds the memory of requests in progress and of unread answers together, and shares it among owners. */
import type { FastifyReply } from "fastify";
import { GatewayError } from "../core/errors.ts";
import type { Event } from "../core/event.ts";
import { lengthOfText } from "../core/frame/batches.ts";
import { lengthOfItems } from "../core/frame/pieces.ts";
import { unlessAborted } from "../core/unless-aborted.ts";
import { drained } from "./client.ts";
import { createTally } from "./tally.ts";

export interface Holdings {
  /** The total. */
  readonly bytes: number;
  /** Throws if this owner has no room for so many more bytes. */
  check(owner: string, bytes: number): void;
  /** Resolves when any are released. */
  released(): Promise<void>;
  /** Counts bytes, whether or not there is room for them. */
  hold(owner: string, bytes?: number): Hold;
}

export interface Hold {
  /** Grows or shrinks by so many bytes, whether or not there is room. */
  add(bytes: number): void;
  /** Sets the size, if there is room; says whether it did. */
  take(bytes: number): boolean;
  /** Throws if it has no room. */
  check(bytes: number): void;
  /** Releases it for good. */
  release(): void;
}

/**
 * `maxBytes` is read on every use, since it may change. An owner may hold as much as it leaves free for the others:
 * half if alone, a third beside another that holds a third. So a newcomer always finds room, though ever less of it.
 * `what` names in refusals what is held.
 */
export function createHoldings(maxBytes: () => number, what: string): Holdings {
  const held = createTally();
  let waiting: PromiseWithResolvers<void> | undefined;

  /** Once for all that is released in one round of the event loop: many may wait. */
  function tell(): void {
    if (waiting !== undefined) setImmediate(waiting.resolve);
    waiting = undefined;
  }

  function hasRoom(owner: string, bytes: number): boolean {
    // The first always has room: its own limit is max_body_bytes.
    if (held.total === 0) return true;
    const free = maxBytes() - held.total - bytes;
    const own = held.of(owner);
    return own === 0 ? free >= 0 : own + bytes <= free;
  }

  function check(owner: string, bytes: number): void {
    if (hasRoom(owner, bytes)) return;
    throw new GatewayError(
      "overloaded",
      `${what} may take ${maxBytes()} bytes in total, and one token's name as much as it leaves to the others (gateway.http.limits.max_held_bytes). Try again shortly.`,
      { retryAfterSeconds: 1 },
    );
  }

  return {
    get bytes() {
      return held.total;
    },
    check,
    released: () => (waiting ??= Promise.withResolvers()).promise,
    hold(owner, bytes = 0) {
      let mine = 0;
      let isReleased = false;
      function set(next: number): void {
        if (isReleased) return;
        held.add(owner, next - mine);
        if (next < mine) tell();
        mine = next;
      }
      set(bytes);
      return {
        add: (change) => set(mine + change),
        take(next) {
          if (next > mine && !hasRoom(owner, next - mine)) return false;
          set(next);
          return true;
        },
        check(next) {
          if (next > mine) check(owner, next - mine);
        },
        release() {
          set(0);
          isReleased = true;
        },
      };
    },
  };
}

/** Counts a whole answer until it is read. If there is no room, a lookup is refused, but what a turn has made is sent. */
export function holdWhole(held: Holdings, reply: FastifyReply, payload: unknown): void {
  const { request } = reply;
  if (typeof payload !== "string" || !isCounted(reply, payload.length) || request.token === undefined) return;
  const bytes = Buffer.byteLength(payload);
  if (request.method === "GET" && reply.statusCode < 400) checkRepeated(held, reply, bytes);
  holdUntilRead(held, reply, bytes);
}

/** Throws if there is no room for a whole answer that was made for an earlier request. */
export function checkRepeated(held: Holdings, reply: FastifyReply, bytes: number): void {
  if (held.bytes > maxUncounted && isCounted(reply, bytes)) held.check(reply.request.token.owner, bytes);
}

export interface FollowerHold {
  /** Before events are told: takes room for their text, or waits for it, longer than for a caller that stops reading. */
  room(events: readonly Event[]): Promise<void> | undefined;
  /** After that: only what its caller has not taken counts, and the items that have ended. */
  sent(): void;
  release(): void;
}

/**
 * Counts what is held for a caller that follows an answer made for an earlier request: it may read nothing and ask
 * again, any number of times. If the answer's `size` in characters is known, it is refused now or never; otherwise its
 * stream waits for room, and is cut if there is none in time. The signal aborts when the caller leaves.
 */
export function holdFollower(held: Holdings, reply: FastifyReply, signal: AbortSignal, size?: number): FollowerHold {
  const { raw: response, request } = reply;
  const hold = held.hold(request.token.owner);
  // The answer, and its items again as text for the end, which repeats them. A running one is kept anyway, its items as
  // text once they have ended.
  let keptBytes = 2 * (size ?? 0);
  // The end of an item repeats it three times.
  const mostBytes = keptBytes + 3 * (size ?? 0);
  /** The items that end with the events to be told. */
  let endingBytes = 0;
  let counted = 0;

  function toCounted(newBytes: number): number {
    const bytes = Math.max(mostBytes, keptBytes + response.writableLength + newBytes);
    return isCounted(reply, bytes) ? bytes : 0;
  }

  function take(bytes: number): boolean {
    if (held.bytes - counted <= maxUncounted) hold.add(bytes - counted);
    else if (!hold.take(bytes)) return false;
    counted = bytes;
    return true;
  }

  function recount(): void {
    const bytes = toCounted(0);
    hold.add(bytes - counted);
    counted = bytes;
  }

  async function wait(newBytes: number): Promise<void> {
    const { stalledClientTimeoutMs } = request.terms.limits;
    // What it has not read could keep others waiting that keep it waiting.
    if (response.writableNeedDrain) await drained(response, stalledClientTimeoutMs);
    recount();
    // Whoever stops reading is cut before: Node looks twice whether anything has moved.
    const limitMs = Math.min(3 * stalledClientTimeoutMs, maxTimerMs);
    const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    while (!take(toCounted(newBytes))) {
      await unlessAborted(held.released(), limit).catch(() => {});
      signal.throwIfAborted();
      if (limit.aborted) hold.check(toCounted(newBytes));
    }
  }

  if (size !== undefined && !take(toCounted(0))) hold.check(toCounted(0));
  return {
    room(events) {
      if (size !== undefined) return undefined;
      const ending = events.flatMap((event) => (event.type === "item-end" ? [event.item] : []));
      endingBytes = lengthOfItems(ending, Buffer.byteLength);
      const newBytes = lengthOfText(events, Buffer.byteLength) + endingBytes;
      // However much it keeps, it does not wait for every word.
      if (!isCounted(reply, response.writableLength + newBytes)) return undefined;
      return take(toCounted(newBytes)) ? undefined : wait(newBytes);
    },
    sent() {
      keptBytes += endingBytes;
      endingBytes = 0;
      recount();
    },
    release: hold.release,
  };
}

const maxTimerMs = 2 ** 31 - 1;

/** Counts what is left of a stream when all of it is written. */
export function holdRest(held: Holdings, reply: FastifyReply): void {
  const { writableLength } = reply.raw;
  if (isCounted(reply, writableLength)) holdUntilRead(held, reply, writableLength);
}

/**
 * The system takes so much at once, unless the answer waits for earlier ones on its connection. Where no more is held,
 * such as the request itself, any answer has room.
 */
const maxUncounted = 64 * 1024;
const maxUncountedWaiting = 1024;

function isCounted({ raw: response }: FastifyReply, bytes: number): boolean {
  return bytes > (response.socket === null ? maxUncountedWaiting : maxUncounted);
}

function holdUntilRead(held: Holdings, { raw: response, request }: FastifyReply, bytes: number): void {
  if (!response.closed) response.once("close", held.hold(request.token.owner, bytes).release);
}

/** How much memory a text takes at most: one byte per character, or two if any is not ASCII. */
export function toHeldBytes(text: string, utf8Bytes = Buffer.byteLength(text)): number {
  return utf8Bytes === text.length ? text.length : 2 * text.length;
}
