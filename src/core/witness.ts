/** Hears how turns go, to count and log them. It has its own clock, and neither throws nor holds anything up. */
import type { ErrorCode, GatewayError } from "./errors.ts";
import type { About, History } from "./ports.ts";
import type { Trace, Turn, Usage } from "./turn.ts";

export interface Witness {
  /** A turn has its place. */
  placed(history: History): void;
  /** An adapter is asked for this turn. */
  asked(adapter: string, turn: Turn): Asked;
  /** An adapter is retried: its failure may have passed. */
  askedAgain(adapter: string): void;
  /** The adapter could not answer, and the turn goes to a fallback. */
  handedOn(adapter: string, failure: GatewayError): void;
  /** It has failed too often; turns are kept away from it for a while. */
  rests(adapter: string, why: string): void;
  /** It has answered again. */
  isBack(adapter: string): void;
  /** A turn has ended, and the caller that began it did not hear so; called once. */
  endedAlone(turn: EndedAlone): void;
}

/** How a turn without its caller ended. */
export interface EndedAlone {
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

/** Hears how one attempt goes. */
export interface Asked {
  /** The attempt's own trace context, in place of the turn's. */
  readonly trace?: Trace | undefined;
  /** It is over; told once. */
  over(attempt: Attempt): void;
}

/** The outcome of one attempt. */
export interface Attempt {
  readonly outcome: "completed" | "incomplete" | "failed" | "cancelled";
  /** Of a failure. */
  readonly code?: ErrorCode | undefined;
  /** As far as the adapter reported it. */
  readonly usage?: Usage | undefined;
}
