/** Who is told how turns go, so that it can be counted. It has a clock of its own, and neither throws nor holds anything up. */
import type { ErrorCode } from "./errors.ts";
import type { History } from "./ports.ts";
import type { Trace, Turn, Usage } from "./turn.ts";

export interface Witness {
  /** A turn has its place. */
  placed(history: History): void;
  /** An adapter is asked for this turn. */
  asked(adapter: string, turn: Turn): Asked;
  /** An adapter is asked again, as its failure may have passed. */
  askedAgain(adapter: string): void;
  /** The adapter could not answer, and its turn goes on to one behind it. */
  handedOn(adapter: string): void;
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
