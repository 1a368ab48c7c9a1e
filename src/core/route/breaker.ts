/** Keeps turns away from an upstream that is down: after some turns in a row that failed nobody is let through for a while, then one to see. */
import type { ErrorCode } from "../errors.ts";

export interface BreakerSettings {
  /** So many turns in a row, and it opens. */
  readonly failures: number;
  /** How long it stays open. */
  readonly openMs: number;
}

export interface Breaker {
  /** Lets one through, who must call the pass when it knows how it went; nothing: it is open. */
  enter(): Pass | undefined;
  state(): BreakerState;
}

/** Says how it went, and of a failure what it was. `unknown`: nothing was learned, as when the caller left. */
export type Pass = (outcome: Outcome, why?: string) => void;
export type Outcome = "answered" | "failed" | "unknown";

export interface BreakerState {
  readonly state: "closed" | "open" | "half-open";
  /** In a row, up to now. */
  readonly failures: number;
  /** Until when nobody is let through, in milliseconds since 1970. */
  readonly opensUntil: number | undefined;
  /** What the last failure was. */
  readonly why?: string | undefined;
}

/** Who hears when it opens, with the last failure, and when it is closed again. */
export interface BreakerWitness {
  rests(why: string | undefined): void;
  isBack(): void;
}

export function createBreaker(settings: BreakerSettings, now: () => Date, witness?: BreakerWitness): Breaker {
  const { failures: maxFailures, openMs } = settings;
  let failures = 0;
  let lastWhy: string | undefined;
  /** Nothing: it is closed. */
  let opensUntil: number | undefined;
  /** Someone was let through to see. */
  let isProbed = false;
  /** Counts the changes of state: what began before the last one tells nothing about now. */
  let era = 0;

  function change(until: number | undefined): void {
    opensUntil = until;
    isProbed = false;
    era++;
  }

  function learn(outcome: Outcome, why: string | undefined): void {
    if (outcome === "answered") {
      failures = 0;
      if (opensUntil === undefined) return;
      change(undefined);
      witness?.isBack();
    } else if (outcome === "failed") {
      lastWhy = why;
      const wasOpen = opensUntil !== undefined;
      if (++failures < maxFailures) return;
      change(now().getTime() + openMs);
      if (!wasOpen) witness?.rests(why);
    } else if (opensUntil !== undefined) {
      opensUntil = now().getTime();
    }
  }

  return {
    enter() {
      if (opensUntil !== undefined) {
        const time = now().getTime();
        if (time < opensUntil) return undefined;
        isProbed = true;
        // A model may think for long before its first word: if this one does, the next may try before it is back.
        opensUntil = time + openMs;
      }
      let entered: number | undefined = era;
      return (outcome, why) => {
        if (entered === era) learn(outcome, why);
        entered = undefined;
      };
    },
    state() {
      if (opensUntil === undefined) return { state: "closed", failures, opensUntil };
      const isOpen = !isProbed && now().getTime() < opensUntil;
      const why = lastWhy !== undefined && { why: lastWhy };
      return { state: isOpen ? "open" : "half-open", failures, opensUntil, ...why };
    },
  };
}

/** An upstream that refuses, limits or does not know something is up; only these say that it may be down. */
const downCodes: ReadonlySet<ErrorCode> = new Set([
  "adapter_error",
  "adapter_protocol",
  "adapter_timeout",
  "overloaded",
]);

/** The adapter's own failures, and bugs of ours, tell nothing about the upstream. */
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
