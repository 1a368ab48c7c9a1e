/** Bounds the memory of requests in progress and of unread answers together, and shares it among owners. */
import type { FastifyReply } from "fastify";
import { GatewayError } from "../core/errors.ts";
import { createTally } from "./tally.ts";

export interface Holdings {
  /** The total. */
  readonly bytes: number;
  /** Throws if this owner has no room for so many more bytes. */
  check(owner: string, bytes: number): void;
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
    hold(owner, bytes = 0) {
      let mine = 0;
      let isReleased = false;
      function set(next: number): void {
        if (isReleased) return;
        held.add(owner, next - mine);
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
  if (request.method === "GET" && reply.statusCode < 400) checkRepeated(held, reply, payload);
  holdUntilRead(held, reply, Buffer.byteLength(payload));
}

/** Throws if there is no room for a whole answer that was made for an earlier request. */
export function checkRepeated(held: Holdings, reply: FastifyReply, text: string): void {
  if (held.bytes <= maxUncounted || !isCounted(reply, text.length)) return;
  held.check(reply.request.token.owner, Buffer.byteLength(text));
}

export interface FollowerHold {
  /** Before a text is sent: throws if there is no room for it, and it may be refused. */
  take(text: string): void;
  /** After that: what its caller has taken no longer counts. */
  sent(): void;
  release(): void;
}

/**
 * Counts what is held for a caller that follows an answer made for an earlier request: it may read nothing and ask
 * again, any number of times. If the answer's `size` in characters is known, it is refused at the start or never.
 */
export function holdFollower(held: Holdings, reply: FastifyReply, size?: number): FollowerHold {
  const hold = held.hold(reply.request.token.owner);
  // The answer, and its items again as text for the end, which repeats them.
  const keptBytes = 2 * (size ?? 0);
  // The end of an item repeats it three times.
  const mostBytes = keptBytes + 3 * (size ?? 0);
  let counted: number | undefined;
  function count(newBytes: number, mayRefuse: boolean): void {
    const bytes = Math.max(mostBytes, keptBytes + reply.raw.writableLength + newBytes);
    const next = isCounted(reply, bytes) ? bytes : 0;
    const before = counted ?? 0;
    if (mayRefuse && held.bytes - before > maxUncounted) hold.check(next);
    hold.add(next - before);
    counted = next;
  }
  return {
    take: (text) => count(Buffer.byteLength(text), size === undefined || counted === undefined),
    sent: () => count(0, false),
    release: hold.release,
  };
}

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
