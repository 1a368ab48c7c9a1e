/**
 * Keeps turns away from an upstream that is down: after several failed turns in a row none passes for a while, then one
 * as a probe.
 */
import type { ErrorCode, GatewayError } from "../errors.ts";
import type { Observer } from "../observer.ts";

export interface BreakerSettings {
  /** How many in a row open it. */
  readonly failures: number;
  /** How long it stays open. */
  readonly openMs: number;
}

export interface Breaker {
  /** Lets one through, which must report its outcome to the pass; undefined: it is open. */
  enter(): Pass | undefined;
  state(): BreakerState;
}

/** Reports the outcome, and the cause of a failure. `unknown`: nothing was learned, e.g. the caller left. */
export type Pass = (outcome: Outcome, failure?: Failure) => void;
type Failure = Pick<GatewayError, "code" | "message">;
export type Outcome = "answered" | "failed" | "unknown";

export interface BreakerState {
  readonly state: "closed" | "open" | "half-open";
  /** In a row, so far. */
  readonly failures: number;
  /** Until when none passes, in milliseconds since 1970. */
  readonly opensUntil: number | undefined;
  /** The last failure's. Its message may quote another caller's turn. */
  readonly code?: ErrorCode | undefined;
}

/** `name`: the adapter whose breaker it is. */
export function createBreaker(
  name: string,
  { failures: maxFailures, openMs }: BreakerSettings,
  now: () => Date,
  observer?: Pick<Observer, "breakerOpened" | "breakerClosed">,
): Breaker {
  let failures = 0;
  let lastCode: ErrorCode | undefined;
  /** Undefined: closed. */
  let opensUntil: number | undefined;
  /** A probe was let through. */
  let isProbed = false;
  /** Counts state changes: what began before the last one says nothing about now. */
  let era = 0;

  function change(until: number | undefined): void {
    opensUntil = until;
    isProbed = false;
    era++;
  }

  /** A clock that was set back does not prolong it. */
  function isResting(time: number, until: number): boolean {
    return time < until && time >= until - openMs;
  }

  function learn(outcome: Outcome, failure: Failure | undefined): void {
    if (outcome === "answered") {
      failures = 0;
      if (opensUntil === undefined) return;
      change(undefined);
      observer?.breakerClosed(name);
    } else if (outcome === "failed") {
      lastCode = failure?.code;
      const wasOpen = opensUntil !== undefined;
      if (++failures < maxFailures) return;
      change(now().getTime() + openMs);
      if (!wasOpen) observer?.breakerOpened(name, failure?.message ?? "");
    } else if (opensUntil !== undefined) {
      opensUntil = now().getTime();
    }
  }

  return {
    enter() {
      if (opensUntil !== undefined) {
        const time = now().getTime();
        if (isResting(time, opensUntil)) return undefined;
        isProbed = true;
        // A model may think for long before its first word: if this one does, another probe may pass meanwhile.
        opensUntil = time + openMs;
      }
      let entered: number | undefined = era;
      return (outcome, failure) => {
        if (entered === era) learn(outcome, failure);
        entered = undefined;
      };
    },
    state() {
      if (opensUntil === undefined) return { state: "closed", failures, opensUntil };
      const isOpen = !isProbed && isResting(now().getTime(), opensUntil);
      const code = lastCode !== undefined && { code: lastCode };
      return { state: isOpen ? "open" : "half-open", failures, opensUntil, ...code };
    },
  };
}

/** An upstream that refuses, limits or does not know something is up; only these mean it may be down. */
const downCodes: ReadonlySet<ErrorCode> = new Set([
  "adapter_error",
  "adapter_protocol",
  "adapter_timeout",
  "overloaded",
]);

/** Failures of callers, adapters and ours that say nothing about the upstream. */
const silentCodes: ReadonlySet<ErrorCode> = new Set([
  "client_closed",
  "internal_error",
  "invalid_value",
  "unsupported_parameter",
]);

/** What a failure with this code says about the upstream. */
export function outcomeOf(code: ErrorCode): Outcome {
  if (downCodes.has(code)) return "failed";
  return silentCodes.has(code) ? "unknown" : "answered";
}
