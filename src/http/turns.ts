/** The turns that run now: how many there may be, and how they are called off. */
import { GatewayError } from "../core/errors.ts";

export interface Turns {
  /** Takes a place for a turn, or a 503. The function it gives must be called once, when the turn is over. */
  enter(turn: AbortController): () => void;
  /** Lets no more turns in. */
  drain(): void;
  /** Calls off those that still run. */
  abort(): void;
  readonly draining: boolean;
  /** How many run now. */
  readonly count: number;
}

export function createTurns(maxConcurrent: number): Turns {
  const running = new Set<AbortController>();
  let draining = false;
  return {
    enter(turn) {
      if (draining) throw drainingError();
      if (running.size >= maxConcurrent) {
        throw new GatewayError(
          "overloaded",
          `The gateway already runs ${maxConcurrent} turns (gateway.http.limits.max_concurrent_turns). Try again shortly.`,
          { retryAfterSeconds: 1 },
        );
      }
      running.add(turn);
      return () => running.delete(turn);
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
