/** What requests take while they last: turns' places, and bytes of memory, of which each owner has its share. */
import { GatewayError } from "../core/errors.ts";
import type { Token } from "./settings.ts";

/** What one request takes. */
export interface Share {
  /** Throws if it cannot have a turn's place now. `follows`: it may only join a turn, which has one of its owner's. */
  check(follows: boolean): void;
  /** Takes that place. */
  enter(follows: boolean): void;
  /** For a turn that outlives its request: they have one place together. Returns what gives it back. */
  hold(): () => void;
  /** Gives back the request's part of it. */
  leave(): void;
  /** Throws if so many more bytes have no room now. */
  checkBytes(more: number): void;
  /** Counts bytes, whether or not they have room. */
  addBytes(more: number): void;
  /** Gives all bytes back. */
  release(): void;
}

/** Bodies, and answers that nobody has read. */
const maxBytes = 512 * 1024 * 1024;

export type Shares = ReturnType<typeof createShares>;

export function createShares() {
  const turns = new Map<string, number>();
  const held = new Map<string, number>();
  let entered = 0;
  let allBytes = 0;

  function open({ owner, maxConcurrentTurns: most = Infinity }: Token, maxTurns: number): Share {
    let bytes = 0;
    /** Of the turn's place: the request, and turns that outlive it. */
    let holders = 0;
    let leave: (() => void) | undefined;

    function checkOwn(): void {
      if ((turns.get(owner) ?? 0) >= most) throw tooManyOwn(most);
    }
    function check(follows: boolean): void {
      if (entered >= maxTurns) throw tooMany(maxTurns);
      if (!follows) checkOwn();
    }
    function hold(): () => void {
      if (holders === 0) checkOwn();
      if (holders === 0) add(turns, owner, 1);
      holders += 1;
      return () => {
        holders -= 1;
        if (holders === 0) add(turns, owner, -1);
      };
    }
    function addBytes(more: number): void {
      bytes += more;
      allBytes += more;
      add(held, owner, more);
    }

    return {
      check,
      enter(follows) {
        check(follows);
        leave = follows ? () => {} : hold();
        entered += 1;
      },
      hold,
      leave() {
        if (leave === undefined) return;
        leave();
        leave = undefined;
        entered -= 1;
      },
      checkBytes(more) {
        const own = held.get(owner) ?? 0;
        const free = maxBytes - allBytes - more;
        // An owner may have as much as it leaves to the others, so whoever comes finds room, though ever less of it.
        const hasRoom = free >= (own === 0 ? 0 : own + more);
        if (!hasRoom && allBytes > 0) throw tooMuch();
      },
      addBytes,
      release: () => addBytes(-bytes),
    };
  }

  return {
    open,
    /** How many requests have a place. */
    entered: (): number => entered,
    bytes: (): number => allBytes,
  };
}

function add(amounts: Map<string, number>, owner: string, amount: number): void {
  const own = (amounts.get(owner) ?? 0) + amount;
  if (own === 0) amounts.delete(owner);
  else amounts.set(owner, own);
}

const soon = { retryAfterSeconds: 1 } as const;

function tooMany(most: number): GatewayError {
  const message = `The gateway is already running ${most} turns (gateway.http.limits.max_concurrent_turns). Try again shortly.`;
  return new GatewayError("overloaded", message, soon);
}

function tooManyOwn(most: number): GatewayError {
  const message = `This token may have ${most} turns running at the same time. Wait for one to end.`;
  return new GatewayError("rate_limit_exceeded", message, soon);
}

function tooMuch(): GatewayError {
  const message = `Requests and unread answers may take ${maxBytes} bytes, those of one token's name as much as they leave to the others. Try again shortly.`;
  return new GatewayError("overloaded", message, soon);
}
