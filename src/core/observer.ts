/** Is told how turns go, to count and log them. It has its own clock, and neither throws nor holds anything up. */
import type { ErrorCode, GatewayError } from "./errors.ts";
import type { About, History } from "./ports.ts";
import type { Trace, Turn, Usage } from "./turn.ts";

export interface Observer {
  /** A turn has its place. */
  placed(history: History): void;
  /** An adapter is asked for this turn. */
  asked(adapter: string, turn: Turn): AttemptObserver;
  /** An adapter is retried: its failure may have passed. */
  retried(adapter: string): void;
  /** The adapter could not answer, and the turn goes to a fallback. */
  fellBack(adapter: string, failure: GatewayError): void;
  /** It has failed too often; turns are kept away from it for a while. */
  breakerOpened(adapter: string, why: string): void;
  /** It has answered again. */
  breakerClosed(adapter: string): void;
  /** A turn has ended, and the caller that began it was not told; called once. */
  endedWithoutCaller(turn: EndedTurn): void;
}

/** How a turn without its caller ended. */
export interface EndedTurn {
  readonly turnId: string;
  readonly owner: string;
  /** Undefined if it never had a place. */
  readonly about: About | undefined;
  readonly usage?: Usage | undefined;
  /** Why it failed, or that it was cancelled. */
  readonly failure?: GatewayError | undefined;
  /** From when it was asked to its end. */
  readonly ms: number;
}

/** Is told how one attempt goes. */
export interface AttemptObserver {
  /** The attempt's own trace context, in place of the turn's. */
  readonly trace?: Trace | undefined;
  /** It is over; told once. */
  ended(attempt: Attempt): void;
}

/** The outcome of one attempt. */
export interface Attempt {
  readonly outcome: "completed" | "incomplete" | "failed" | "cancelled";
  /** Of a failure. */
  readonly code?: ErrorCode | undefined;
  /** As far as the adapter reported it. */
  readonly usage?: Usage | undefined;
}
