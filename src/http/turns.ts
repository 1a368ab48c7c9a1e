/** The turns that run now: how many there may be, and how they are called off. */
import { GatewayError } from "../core/errors.ts";
import type { Token } from "./auth.ts";

export interface Turns {
  /**
   * Does a turn's work in a place of its own, or a 503 when there is none, a 429 when its token has as many as it may have. Who
   * was let in before the gateway began to drain is served, until what still runs is called off.
   */
  run<Result>(turn: AbortController, token: Token, work: () => Promise<Result>): Promise<Result>;
  /** Throws what `run` would throw now: who has no place need not send a body. */
  check(token: Token): void;
  /** Lets nobody in any more. */
  drain(): void;
  /** Calls off the turns that still run, and lets none begin. */
  abort(): void;
  readonly draining: boolean;
  /** How many run now. */
  readonly count: number;
}

/** `maxConcurrent` is asked for every turn: it may change. */
export function createTurns(maxConcurrent: () => number): Turns {
  const running = new Set<AbortController>();
  /** How many of them each owner has. */
  const owners = new Map<string, number>();
  let draining = false;
  let isOver = false;

  function check({ owner, maxConcurrentTurns: own = Infinity }: Token): void {
    if (isOver) throw drainingError();
    const most = maxConcurrent();
    if (running.size >= most) throw tooMany(most);
    if ((owners.get(owner) ?? 0) >= own) throw tooManyOfToken(own);
  }

  function count(owner: string, change: 1 | -1): void {
    const turns = (owners.get(owner) ?? 0) + change;
    if (turns > 0) owners.set(owner, turns);
    else owners.delete(owner);
  }

  return {
    check,
    async run(turn, token, work) {
      check(token);
      running.add(turn);
      count(token.owner, 1);
      try {
        return await work();
      } finally {
        running.delete(turn);
        count(token.owner, -1);
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

function tooMany(most: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `The gateway already runs ${most} turns (gateway.http.limits.max_concurrent_turns). Try again shortly.`,
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

export function drainingError(): GatewayError {
  return new GatewayError(
    "draining",
    "The gateway is shutting down. Send the request again; another instance or the restarted one will take it.",
    {
      retryAfterSeconds: 5,
    },
  );
}
