/** What an adapter says, and what a wire hears of it. */
import type { Annotation, Item, OtherItem, ToolKind } from "./item.ts";
import type { Extra } from "./settings.ts";
import type { Answer, Finish, Notes, Usage } from "./turn.ts";

/** What an adapter says while it answers, in batches. No starts, no ends, no ids: the frame makes items of it. */
export type Delta =
  /** `extra`: what the dialect adds to a message that begins here. */
  | {
      readonly type: "text";
      readonly text: string;
      readonly logprobs?: readonly unknown[] | undefined;
      readonly extra?: Extra | undefined;
    }
  | { readonly type: "refusal"; readonly text: string; readonly extra?: Extra | undefined }
  /** `summary` counts the sections of a summary; without it the text is the reasoning itself. */
  | { readonly type: "reasoning"; readonly text: string; readonly summary?: number | undefined }
  | { readonly type: "annotation"; readonly annotation: Annotation }
  /** The message is over: what follows belongs to another. */
  | { readonly type: "message-end"; readonly extra?: Extra | undefined }
  /** The opaque form of the preceding reasoning, which it completes. */
  | { readonly type: "reasoning-seal"; readonly encrypted: string }
  /** Fields in which the dialect signs the reasoning, and expects back. They may come late, and their lists grow. */
  | { readonly type: "reasoning-extra"; readonly extra: Extra }
  /** What the dialect adds to the message, for its caller alone. Lists grow. */
  | { readonly type: "message-extra"; readonly extra: Extra }
  /** A call begins. `index` is the adapter's own number for it within this turn. */
  | {
      readonly type: "tool-call";
      readonly index: number;
      readonly callId?: string | undefined;
      readonly name: string;
      readonly group?: string | undefined;
      readonly kind?: ToolKind | undefined;
      readonly extra?: Extra | undefined;
    }
  | { readonly type: "tool-extra"; readonly index: number; readonly extra: Extra }
  | { readonly type: "tool-arguments"; readonly index: number; readonly text: string }
  | { readonly type: "compaction"; readonly summary: string }
  /** An item that only its own dialect knows, all at once. */
  | { readonly type: "other"; readonly extra: Extra; readonly exchange?: OtherItem["exchange"] }
  /** The last count wins. */
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "notes"; readonly notes: Notes }
  | { readonly type: "finish"; readonly reason: Finish };

/** What a wire hears: `turn-queued? turn-start (item-start item-delta* item-end)* turn-interrupted? turn-end`, always closed, one end. */
export type Event =
  /** A background turn stands in line. */
  | { readonly type: "turn-queued" }
  | { readonly type: "turn-start" }
  /** The item is still empty, unless it comes all at once. */
  | { readonly type: "item-start"; readonly index: number; readonly item: Item }
  | ItemDelta
  /** `whole`: it was not broken off. */
  | { readonly type: "item-end"; readonly index: number; readonly item: Item; readonly whole: boolean }
  /** Its caller interrupts it: what is open is broken off, and the end follows. */
  | { readonly type: "turn-interrupted" }
  | { readonly type: "turn-end"; readonly answer: Answer };

export interface ItemDelta {
  readonly type: "item-delta";
  readonly index: number;
  /** The last two have no text: a note on a text, and what its dialect adds to a call that has begun. */
  readonly kind: "text" | "refusal" | "reasoning" | "summary" | "arguments" | "annotation" | "extra";
  /** Which content part (text, refusal, annotation) or summary section it belongs to; a new number opens a new one. */
  readonly part: number;
  readonly text: string;
  readonly logprobs?: readonly unknown[] | undefined;
  readonly annotation?: Annotation | undefined;
  readonly extra?: Extra | undefined;
}
