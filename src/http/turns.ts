/** The turns that run now: how many there may be, and how they are called off. */
import { GatewayError } from "../core/errors.ts";

export interface Turns {
  /** Does a turn's work in a place of its own, or a 503 when there is none. Draining calls the turn off. */
  run<Result>(turn: AbortController, work: () => Promise<Result>): Promise<Result>;
  /** Lets no more turns in. */
  drain(): void;
  /** Calls off those that still run. */
  abort(): void;
  readonly draining: boolean;
  /** How many run now. */
  readonly count: number;
}

/** `maxConcurrent` is asked for every turn: it may change. */
export function createTurns(maxConcurrent: () => number): Turns {
  const running = new Set<AbortController>();
  let draining = false;
  return {
    async run(turn, work) {
      if (draining) throw drainingError();
      const most = maxConcurrent();
      if (running.size >= most) {
        throw new GatewayError(
          "overloaded",
          `The gateway already runs ${most} turns (gateway.http.limits.max_concurrent_turns). Try again shortly.`,
          { retryAfterSeconds: 1 },
        );
      }
      running.add(turn);
      try {
        return await work();
      } finally {
        running.delete(turn);
      }
    },
    drain() {
      draining = true;
    },
    abort() {
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

export function drainingError(): GatewayError {
  return new GatewayError(
    "draining",
    "The gateway is shutting down. Send the request again; another instance or the restarted one will take it.",
    {
      retryAfterSeconds: 5,
    },
  );
}
