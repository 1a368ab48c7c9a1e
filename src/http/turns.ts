/** The running turns: how many there may be, how much they hold, and how they are cancelled. */
import { drainingError, GatewayError } from "../core/errors.ts";
import type { AcquireSlot } from "../core/gateway.ts";
import { createTally, type Tally } from "../core/tally.ts";
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
  const turns = createTally();
  const followers = createTally();
  let draining = false;
  let isOver = false;

  function check({ token, bytes = 0, onlyFollows = false }: SlotRequest): void {
    if (isOver) throw drainingError();
    const most = maxConcurrent();
    if (running.size >= most) throw tooMany(most);
    checkShare(onlyFollows ? followers : turns, token);
    // What is already counted has its room.
    if (bytes > 0) held.check(token.owner, bytes);
  }

  return {
    check,
    async run(turn, asking, work) {
      check(asking);
      const { token, bytes, onlyFollows = false } = asking;
      const { owner } = token;
      // A turn that outlives its request shares both with it.
      const body = createShared(() => held.hold(owner, bytes).release);
      const slot = createShared(() => countIn(turns, owner));
      const leave = [body.take(), onlyFollows ? countIn(followers, owner) : slot.take()];
      function acquireSlot(): () => void {
        if (!slot.isTaken()) checkShare(turns, token);
        const leaveTurn = [body.take(), slot.take()];
        return () => leaveTurn.forEach((release) => release());
      }
      running.add(turn);
      try {
        return await work(acquireSlot);
      } finally {
        running.delete(turn);
        leave.forEach((release) => release());
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

/** Something that several take, each until it calls what it gets; the last of them releases it. */
function createShared(acquire: () => () => void) {
  let takers = 0;
  let release: (() => void) | undefined;
  return {
    isTaken: () => takers > 0,
    take(): () => void {
      if (takers === 0) release = acquire();
      takers += 1;
      return () => {
        takers -= 1;
        if (takers === 0) release?.();
      };
    },
  };
}

/** Returns what counts it out again. */
function countIn(tally: Tally, owner: string): () => void {
  tally.add(owner, 1);
  return () => tally.add(owner, -1);
}

/** An owner may have as many followers as turns. */
function checkShare(tally: Tally, { owner, maxConcurrentTurns: most = Infinity }: Token): void {
  if (tally.of(owner) < most) return;
  throw new GatewayError(
    "rate_limit_exceeded",
    `This token may have ${most} turns running at the same time. Wait for one to end.`,
    { retryAfterSeconds: 1 },
  );
}

function tooMany(most: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `The gateway is already running ${most} turns (gateway.http.limits.max_concurrent_turns). Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}
