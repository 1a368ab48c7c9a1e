/** The running turns: how many there may be, how much they hold, and how they are cancelled. */
import { drainingError, GatewayError } from "../core/errors.ts";
import type { AcquireSlot } from "../core/gateway.ts";
import type { Token } from "./auth.ts";
import type { Holdings } from "./held.ts";
import { createTally, type Tally } from "./tally.ts";

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
      let hold = held.hold(owner, bytes);
      // The request and whatever outlives it: the last of them releases what they share.
      let holders = 1;
      let isTurn = !onlyFollows;
      (isTurn ? turns : followers).add(owner, 1);
      function leave(): void {
        if (--holders > 0) return;
        hold.release();
        if (isTurn) turns.add(owner, -1);
        isTurn = false;
      }
      function acquireSlot(): () => void {
        if (!isTurn) {
          checkShare(turns, token);
          turns.add(owner, 1);
          isTurn = true;
        }
        // Its request may have left while its key was looked up.
        if (holders === 0) hold = held.hold(owner, bytes);
        holders++;
        return leave;
      }
      running.add(turn);
      try {
        return await work(acquireSlot);
      } finally {
        running.delete(turn);
        if (onlyFollows) followers.add(owner, -1);
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
