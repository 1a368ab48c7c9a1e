/** What is held of requests while they are worked on, and of answers until they are read: bounded together, shared among owners. */
import { GatewayError } from "../core/errors.ts";

export interface Holdings {
  /** How much it is in all. */
  readonly bytes: number;
  /** Throws when there is no room for so much more of this owner. */
  check(owner: string, bytes: number): void;
  /** Counts what is there, whether there is room for it or not. */
  hold(owner: string, bytes?: number): Hold;
}

export interface Hold {
  /** It grows or shrinks by so much, whether there is room for it or not. */
  add(bytes: number): void;
  /** It is so much from now on, if there is room for that. */
  take(bytes: number): boolean;
  /** Throws when there is none. */
  check(bytes: number): void;
  /** It is let go of, for good. */
  release(): void;
}

/**
 * `maxBytes` is asked whenever it counts: it may change. An owner may have as much as it leaves free for the others: half when
 * it is alone, a third beside another one that has a third. So whoever comes next finds room, though ever less of it. `what` is
 * held stands in the refusal.
 */
export function createHoldings(maxBytes: () => number, what: string): Holdings {
  const owners = new Map<string, number>();
  let held = 0;

  function hasRoom(owner: string, bytes: number): boolean {
    // One alone always has room: its own limit is max_body_bytes.
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

/** How much memory a text takes: a byte for each character or, if one of them is not of ASCII, two. */
export function toHeldBytes(text: string, utf8Bytes = Buffer.byteLength(text)): number {
  return utf8Bytes === text.length ? text.length : 2 * text.length;
}

function tooMuch(what: string, most: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `${what} may take ${most} bytes together, and one token's name as much as it leaves to the others (gateway.http.limits.max_held_bytes). Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}
