/** What an adapter says while it answers. No starts, no ends, no ids: `frame` makes items of them. */
import type { Extra } from "./item.ts";
import type { Finish, Notes, Usage } from "./turn.ts";

export type Delta =
  | { readonly type: "text"; readonly text: string; readonly logprobs?: readonly unknown[] | undefined }
  | { readonly type: "refusal"; readonly text: string }
  /** `summary` counts the sections of a summary from 0; without it the text is the reasoning itself. */
  | { readonly type: "reasoning"; readonly text: string; readonly summary?: number | undefined }
  /** The message just told is whole; what comes is another one. Without it a message goes on until something else is said. */
  | { readonly type: "message-end"; readonly extra?: Extra | undefined }
  /** The opaque form of the reasoning just told, which is whole with it. */
  | { readonly type: "reasoning-seal"; readonly encrypted: string }
  /** A call begins. `index` is the adapter's own number for it within this turn. */
  | {
      readonly type: "tool-call";
      readonly index: number;
      readonly callId?: string | undefined;
      readonly name: string;
      readonly kind?: "function" | "custom" | undefined;
    }
  | { readonly type: "tool-arguments"; readonly index: number; readonly text: string }
  /** The conversation made short, all at once. */
  | { readonly type: "compaction"; readonly summary: string }
  /** The newest count stands. */
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "notes"; readonly notes: Notes }
  | { readonly type: "finish"; readonly reason: Finish };
