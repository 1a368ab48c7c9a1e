/** Bounds the memory of requests in progress and of unread answers together, and shares it among owners. */
import { GatewayError } from "../core/errors.ts";
import { createTally } from "../core/tally.ts";

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
  /** Its size. */
  readonly bytes: number;
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
        get bytes() {
          return mine;
        },
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

/** How much memory a text takes at most: one byte per character, or two if any is not ASCII. */
export function toHeldBytes(text: string, utf8Bytes = Buffer.byteLength(text)): number {
  return utf8Bytes === text.length ? text.length : 2 * text.length;
}
