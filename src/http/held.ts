/** Bounds the memory of requests in progress and of unread answers together, and shares it among owners. */
import { GatewayError } from "../core/errors.ts";

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
  const owners = new Map<string, number>();
  let held = 0;

  function hasRoom(owner: string, bytes: number): boolean {
    // The first always has room: its own limit is max_body_bytes.
    if (held === 0) return true;
    const free = maxBytes() - held - bytes;
    const own = owners.get(owner) ?? 0;
    return own === 0 ? free >= 0 : own + bytes <= free;
  }

  function check(owner: string, bytes: number): void {
    if (!hasRoom(owner, bytes)) throw tooMuch(what, maxBytes());
  }

  function add(owner: string, bytes: number): void {
    held += bytes;
    const own = (owners.get(owner) ?? 0) + bytes;
    if (own > 0) owners.set(owner, own);
    else owners.delete(owner);
  }

  return {
    get bytes() {
      return held;
    },
    check,
    hold(owner, bytes = 0) {
      let mine = 0;
      let isReleased = false;
      function set(next: number): void {
        if (isReleased) return;
        add(owner, next - mine);
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

/** How much memory a text takes at most: one byte per character, or two if any is not ASCII. */
export function toHeldBytes(text: string, utf8Bytes = Buffer.byteLength(text)): number {
  return utf8Bytes === text.length ? text.length : 2 * text.length;
}

function tooMuch(what: string, most: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `${what} may take ${most} bytes in total, and one token's name as much as it leaves to the others (gateway.http.limits.max_held_bytes). Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}
