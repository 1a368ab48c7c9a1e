/** Who answers in a conversation: a gateway elsewhere, or one in this process. */
import type { Event } from "../../core/event.ts";

export interface ChatBackend {
  /** The names of its models. */
  models(): Promise<readonly string[]>;
  /** A failure before the first word is thrown, a later one is in the one `turn-end`. */
  ask(question: Question, signal: AbortSignal): AsyncIterable<readonly Event[]>;
  close(): Promise<void>;
}

export interface Question {
  /** The last one is new. */
  readonly messages: readonly Said[];
  readonly session: string;
  readonly model: string;
}

export interface Said {
  readonly role: "user" | "assistant";
  readonly content: string;
}
