/** Keeps turns away from an adapter that is down: after five failed turns in a row nobody asks it for ten seconds, then one turn tries again. */
import type { ErrorCode } from "../errors.ts";

export interface Breaker {
  /** How long nobody may ask yet; 0: whoever asked this may, and learns for all how it went. */
  enter(): number;
  /** Absent: it has answered. */
  learn(failure?: ErrorCode): void;
  state(): BreakerState;
}

export type BreakerState = "closed" | "open" | "half-open";

const maxFailures = 5;
const openMs = 10_000;

export function createBreaker(now: () => number): Breaker {
  let failures = 0;
  let opensUntil = 0;

  function restMs(): number {
    const rest = failures < maxFailures ? 0 : opensUntil - now();
    // A clock that was set back does not prolong it.
    return rest > openMs ? 0 : Math.max(0, rest);
  }

  return {
    enter() {
      const rest = restMs();
      // Whoever tries may think for long before its first word: then another may try as well.
      if (rest === 0) opensUntil = now() + openMs;
      return rest;
    },
    learn(failure) {
      if (failure === undefined || saysItIsUp.has(failure)) failures = 0;
      if (failure === undefined || !saysItIsDown.has(failure)) return;
      failures += 1;
      opensUntil = now() + openMs;
    },
    state() {
      if (failures < maxFailures) return "closed";
      return restMs() > 0 ? "open" : "half-open";
    },
  };
}

const saysItIsDown: ReadonlySet<ErrorCode> = new Set([
  "adapter_error",
  "adapter_protocol",
  "adapter_timeout",
  "overloaded",
]);

/** Others are failures of callers and of ours, which say nothing. */
const saysItIsUp: ReadonlySet<ErrorCode> = new Set([
  "adapter_refused",
  "adapter_bad_request",
  "adapter_not_found",
  "adapter_rate_limit",
]);
