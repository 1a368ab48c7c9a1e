/** What an adapter says while it answers. No starts, no ends, no ids: `frame` makes items of them. */
import type { Annotation, Exchange, Extra, Item, ToolKind } from "./item.ts";
import type { Finish, Notes, Usage } from "./turn.ts";

export type Delta = Said & {
  /** Which of the requested answers it belongs to; absent: the turn's own. The others count from 1. */
  readonly choice?: number | undefined;
};

/** What an adapter says, in batches. */
export type Deltas = AsyncGenerator<readonly Delta[], void, void>;

type Said =
  /** `extra`: what the dialect adds to a message that begins here. */
  | {
      readonly type: "text";
      readonly text: string;
      readonly logprobs?: readonly unknown[] | undefined;
      readonly extra?: Extra | undefined;
    }
  | { readonly type: "refusal"; readonly text: string; readonly extra?: Extra | undefined }
  /** `summary` counts the sections of a summary from 0; without it the text is the reasoning itself. */
  | { readonly type: "reasoning"; readonly text: string; readonly summary?: number | undefined }
  /** A note on the preceding text. */
  | { readonly type: "annotation"; readonly annotation: Annotation }
  /**
   * The preceding message is complete; what follows is another. Without this, a message continues until something else
   * is said. `extra`: what the dialect adds to it, as far as unknown when it began.
   */
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
      /** The tool group in which it has that name. */
      readonly group?: string | undefined;
      readonly kind?: ToolKind | undefined;
      /** What its dialect adds, and expects back. */
      readonly extra?: Extra | undefined;
    }
  /** More of what the dialect adds to a call that has begun. */
  | { readonly type: "tool-extra"; readonly index: number; readonly extra: Extra }
  | { readonly type: "tool-arguments"; readonly index: number; readonly text: string }
  /** The compacted conversation, all at once; only the gateway itself keeps something of it. */
  | { readonly type: "compaction"; readonly summary: string; readonly kept?: readonly Item[] | undefined }
  /** An item that only its own dialect knows, all at once. */
  | { readonly type: "other"; readonly extra: Extra; readonly exchange?: Exchange | undefined }
  /** The last count wins. */
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "notes"; readonly notes: Notes }
  | { readonly type: "finish"; readonly reason: Finish };
