/** Keeps turns away from an adapter that is down: after five failed turns in a row nobody asks it for ten seconds, then one turn tries again. */
import type { ErrorCode } from "../errors.ts";

export type Breaker = ReturnType<typeof createBreaker>;
export type BreakerState = "closed" | "open" | "half-open";

const maxFailures = 5;
const openMs = 10_000;

export function createBreaker(now: () => number) {
  let failures = 0;
  let opensUntil = 0;

  function restMs(): number {
    const rest = failures < maxFailures ? 0 : opensUntil - now();
    // A clock that was set back does not prolong it.
    return rest > openMs ? 0 : Math.max(0, rest);
  }

  return {
    /** How long nobody may ask yet; 0: whoever asked this may, and learns for all how it went. */
    enter(): number {
      const rest = restMs();
      // Whoever tries may think for long before its first word: then another may try as well.
      if (rest === 0) opensUntil = now() + openMs;
      return rest;
    },
    /** Absent: it has answered. */
    learn(failure?: ErrorCode): void {
      if (failure === undefined) failures = 0;
      else if (saysItIsDown.has(failure)) {
        failures += 1;
        opensUntil = now() + openMs;
      }
    },
    state(): BreakerState {
      if (failures < maxFailures) return "closed";
      return restMs() > 0 ? "open" : "half-open";
    },
  };
}

/** Others are failures of callers and of ours, or answers. */
const saysItIsDown: ReadonlySet<ErrorCode> = new Set([
  "adapter_error",
  "adapter_protocol",
  "adapter_timeout",
  "overloaded",
]);
