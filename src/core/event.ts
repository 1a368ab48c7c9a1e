/** What a protocol gets: `turn-queued? turn-start (item-start item-delta* item-end)* turn-end`, always closed, exactly one end. */
import type { Annotation, Extra, Item } from "./item.ts";
import type { Answer } from "./turn.ts";

export type Event =
  /** A background turn is waiting for its place. */
  | { readonly type: "turn-queued" }
  | { readonly type: "turn-start" }
  | ItemEvent
  | { readonly type: "turn-end"; readonly answer: Answer };

export type ItemEvent = (ItemStart | ItemDelta | ItemEnd) & {
  /** Which of the requested answers it belongs to; absent: the turn's own. The others count from 1. */
  readonly choice?: number | undefined;
};

interface ItemStart {
  readonly type: "item-start";
  /** Counts the answer's items from 0, including those deleted since. */
  readonly index: number;
  /** Still empty, unless it comes all at once. */
  readonly item: OutputItem;
}

interface ItemEnd {
  readonly type: "item-end";
  readonly index: number;
  readonly item: OutputItem;
  readonly whole: boolean;
}

/** A stream of events, in batches. Its holder must pull to the end or call `return()`. */
export type Events = AsyncGenerator<readonly Event[], void, void>;

/** What an answer is made of: never a tool's output, and only assistant messages. */
export type OutputItem = Exclude<Item, { type: "tool-output" }>;

export interface ItemDelta {
  readonly type: "item-delta";
  readonly index: number;
  /** The last two have no text: a note on a text, and what its dialect adds to a call that has begun. */
  readonly kind: "text" | "refusal" | "reasoning" | "summary" | "arguments" | "annotation" | "extra";
  /** Which content part (text, refusal, annotation) or summary section it belongs to, from 0; a new number opens a new one. */
  readonly part: number;
  readonly text: string;
  readonly logprobs?: readonly unknown[] | undefined;
  readonly annotation?: Annotation | undefined;
  readonly extra?: Extra | undefined;
}
