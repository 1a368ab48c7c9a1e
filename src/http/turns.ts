/** The running turns: how many there may be, how much they hold, and how they are cancelled. */
import { drainingError, GatewayError } from "../core/errors.ts";
import type { AcquireSlot } from "../core/gateway.ts";
import type { Token } from "./auth.ts";
import type { Holdings } from "./held.ts";

/** Who wants a slot. */
interface SlotRequest {
  readonly token: Token;
  /** The memory that its body takes; 0 if absent. */
  readonly bytes?: number | undefined;
  /** It only follows a turn, which takes a slot of its own when it begins, and keeps it when nobody follows it. */
  readonly onlyFollows?: boolean | undefined;
}

export interface Turns {
  /**
   * Does a turn's work in a slot; throws a 503 if there is none, a 429 if its token has as many as it may have. With
   * `acquireSlot` a turn keeps the slot until it ends, even without its request. A request admitted before the gateway began
   * to drain is served, until the running turns are cancelled.
   */
  run<Result>(
    turn: AbortController,
    asking: SlotRequest,
    work: (acquireSlot: AcquireSlot) => Promise<Result>,
  ): Promise<Result>;
  /** Throws what `run` would throw now: without a slot, no body need be sent. */
  check(asking: SlotRequest): void;
  /** Admits nobody any more. */
  drain(): void;
  /** Cancels the running turns, and lets none begin. */
  abort(): void;
  readonly draining: boolean;
  /** How many requests have a slot now. */
  readonly count: number;
}

/** `maxConcurrent` is read for each turn: it may change. */
export function createTurns(maxConcurrent: () => number, held: Holdings): Turns {
  const running = new Set<AbortController>();
  const turns = createShares();
  const followers = createShares();
  let draining = false;
  let isOver = false;

  function check({ token, bytes = 0, onlyFollows = false }: SlotRequest): void {
    if (isOver) throw drainingError();
    const most = maxConcurrent();
    if (running.size >= most) throw tooMany(most);
    (onlyFollows ? followers : turns).check(token);
    // What is already counted has its room.
    if (bytes > 0) held.check(token.owner, bytes);
  }

  return {
    check,
    async run(turn, asking, work) {
      check(asking);
      const { token, bytes, onlyFollows = false } = asking;
      const hold = held.hold(token.owner, bytes);
      // The request and whatever outlives it: the last of them releases what they share.
      let holders = 1;
      let leaveTurn = onlyFollows ? undefined : turns.enter(token);
      const leaveFollowers = onlyFollows ? followers.enter(token) : undefined;
      function leave(): void {
        if (--holders > 0) return;
        hold.release();
        leaveTurn?.();
        leaveTurn = undefined;
      }
      function acquireSlot(): () => void {
        leaveTurn ??= turns.enter(token);
        holders++;
        return leave;
      }
      running.add(turn);
      try {
        return await work(acquireSlot);
      } finally {
        running.delete(turn);
        leaveFollowers?.();
        leave();
      }
    },
    drain() {
      draining = true;
    },
    abort() {
      isOver = true;
      for (const turn of running) turn.abort(drainingError());
    },
    get count() {
      return running.size;
    },
    get draining() {
      return draining;
    },
  };
}

/** Counts what each owner has, turns or followers, up to its limit of turns. */
function createShares() {
  const owners = new Map<string, number>();

  function check({ owner, maxConcurrentTurns: most = Infinity }: Token): void {
    if ((owners.get(owner) ?? 0) >= most) throw tooManyOfToken(most);
  }

  function count(owner: string, change: 1 | -1): void {
    const share = (owners.get(owner) ?? 0) + change;
    if (share > 0) owners.set(owner, share);
    else owners.delete(owner);
  }

  return {
    check,
    /** Returns what leaves. */
    enter(token: Token): () => void {
      check(token);
      count(token.owner, 1);
      return () => count(token.owner, -1);
    },
  };
}

function tooMany(most: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `The gateway is already running ${most} turns (gateway.http.limits.max_concurrent_turns). Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}

function tooManyOfToken(most: number): GatewayError {
  return new GatewayError(
    "rate_limit_exceeded",
    `This token may have ${most} turns running at the same time. Wait for one to end.`,
    { retryAfterSeconds: 1 },
  );
}
