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
    return rest > 0 && rest <= openMs ? rest : 0;
  }

  return {
    enter() {
      const rest = restMs();
      // It may think for long before its first word: then another turn tries.
      if (rest === 0 && failures >= maxFailures) opensUntil = now() + openMs;
      return rest;
    },
    learn(failure) {
      if (failure === undefined || !(isDown.has(failure) || saysNothing.has(failure))) {
        failures = 0;
      } else if (isDown.has(failure)) {
        failures += 1;
        opensUntil = now() + openMs;
      } else {
        opensUntil = 0;
      }
    },
    state() {
      if (failures < maxFailures) return "closed";
      return restMs() > 0 ? "open" : "half-open";
    },
  };
}

/** Whoever refuses, limits or does not know something is up. */
const isDown: ReadonlySet<ErrorCode> = new Set(["adapter_error", "adapter_protocol", "adapter_timeout", "overloaded"]);

/** Failures of callers and of ours. */
const saysNothing: ReadonlySet<ErrorCode> = new Set([
  "client_closed",
  "cancelled",
  "context_length_exceeded",
  "internal_error",
  "invalid_value",
  "unsupported_parameter",
]);
