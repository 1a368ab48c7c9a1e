/** Who is told how turns go, so that it can be counted and logged. It has a clock of its own, and neither throws nor holds anything up. */
import type { ErrorCode, GatewayError } from "./errors.ts";
import type { About, History } from "./ports.ts";
import type { Trace, Turn, Usage } from "./turn.ts";

export interface Witness {
  /** A turn has its place. */
  placed(history: History): void;
  /** An adapter is asked for this turn. */
  asked(adapter: string, turn: Turn): Asked;
  /** An adapter is asked again, as its failure may have passed. */
  askedAgain(adapter: string): void;
  /** The adapter could not answer, and its turn goes on to one behind it. */
  handedOn(adapter: string, failure: GatewayError): void;
  /** It has failed too often, and turns are kept away from it for a while. */
  rests(adapter: string, why: string): void;
  /** After that it has answered. */
  isBack(adapter: string): void;
  /** A turn is over of which the caller that has begun it did not hear the end; told once. */
  endedAlone(turn: EndedAlone): void;
}

/** What came of a turn that went on without its caller. */
export interface EndedAlone {
  readonly turnId: string;
  readonly owner: string;
  /** Nothing when it never had a place. */
  readonly about: About | undefined;
  readonly usage?: Usage | undefined;
  /** Why it failed, or that it was called off. */
  readonly failure?: GatewayError | undefined;
  /** From when it was asked to its end. */
  readonly ms: number;
}

/** Who is told of one attempt. */
export interface Asked {
  /** What the attempt is called by who follows it through several services, in place of the turn's own trace. */
  readonly trace?: Trace | undefined;
  /** It is over; told once. */
  over(attempt: Attempt): void;
}

/** What came of asking an adapter once. */
export interface Attempt {
  readonly outcome: "completed" | "incomplete" | "failed" | "cancelled";
  /** Of a failure. */
  readonly code?: ErrorCode | undefined;
  /** As far as the adapter has told it. */
  readonly usage?: Usage | undefined;
}
