/** Ask → Turn → Answer: what the caller wants, what the adapter gets, and what came of it. */
import type { GatewayError } from "./errors.ts";
import type { Item } from "./item.ts";
import type { Extra, Settings } from "./settings.ts";

/** What a caller wants, in no dialect. */
export interface Ask {
  readonly model: string;
  /** What the caller sent: only what is new, or its whole history. */
  readonly items: readonly Item[];
  /** The caller's name for these items, in errors: `messages` or `input`. */
  readonly itemsParam: string;
  readonly settings: Settings;
  /** The caller wants the answer piece by piece. */
  readonly stream: boolean;
  /** The response that this request continues. */
  readonly previous?: string | undefined;
  readonly conversation?: string | undefined;
  /** Whom the caller speaks for; a session hint. */
  readonly user?: string | undefined;
  /** `in-session`: only under a hint or with an idempotency key. */
  readonly keep: "yes" | "no" | "in-session";
  readonly background?: boolean | undefined;
  /** The conversation is to be compacted: its summary is the answer. */
  readonly compacts?: boolean | undefined;
  /** What to do with what does not fit the window; absent: depends on the turn's place. */
  readonly truncation?: "auto" | "disabled" | undefined;
  /** The parts of this request that the wire repeats later: a JSON list of two objects. Absent: none. */
  readonly echo?: string | undefined;
}

/** What an adapter gets: history in front, the model resolved. */
export interface Turn {
  readonly id: string;
  /** The caller's trace context, to be passed on. */
  readonly trace?: Trace | undefined;
  readonly model: string;
  readonly items: readonly Item[];
  readonly settings: Settings;
  readonly stream: boolean;
}

export interface Trace {
  readonly parent: string;
  readonly state: string | undefined;
}

/** What came of a turn. */
export interface Answer {
  readonly status: Status;
  readonly finish: Finish;
  readonly items: readonly Item[];
  /** What the dialect adds to its message, for the caller alone. */
  readonly extra?: Extra | undefined;
  readonly usage?: Usage | undefined;
  readonly error?: GatewayError | undefined;
  readonly notes: Notes;
  readonly endedAt: number;
  /** The last item was being said when the answer broke off. */
  readonly isBrokenOff?: boolean | undefined;
  /** What its caller should know of how it was made, whenever the answer is told. */
  readonly remarks?: readonly Remark[] | undefined;
}

/** What a caller or the operator should know of how a turn was handled, told before the first word. */
export type Remark =
  /** An earlier adapter that could not answer. */
  | { readonly type: "tried"; readonly adapter: string; readonly code: string }
  /** Part of the request that the adapter cannot accept, e.g. `tool web_search`. */
  | { readonly type: "left-out"; readonly what: string }
  /** Part of the request that it accepts only with another value. */
  | { readonly type: "changed"; readonly what: string; readonly to: string }
  /** Who is asked now, and its own name for the model. */
  | { readonly type: "asked"; readonly adapter: string; readonly model: string };

export type Status = "completed" | "incomplete" | "failed" | "cancelled";
export type Finish = "stop" | "length" | "content-filter" | "tool-calls" | "interrupted";

export interface Usage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  /** How many input tokens were written to a cache; absent: not reported. */
  readonly cacheWriteTokens?: number | undefined;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** What the adapter said about itself and the answer. */
export interface Notes {
  readonly fingerprint?: string | undefined;
  readonly serviceTier?: string | undefined;
  /** Fields of its dialect that we have no word for, for the caller alone. */
  readonly extra?: Extra | undefined;
}
