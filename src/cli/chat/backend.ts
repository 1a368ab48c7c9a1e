/** Who answers in a conversation: a gateway elsewhere, or one in this process. */
import type { Events } from "../../core/event.ts";

export interface ChatBackend {
  /** The names of its models. */
  models(): Promise<readonly string[]>;
  /** A failure before the first word is thrown, here or by the events; a later one is in the one `turn-end`. */
  ask(question: Question, signal: AbortSignal): Promise<ChatReply>;
  close(): Promise<void>;
}

interface ChatReply {
  /** What the gateway made of the question, as in `x-portico-history`; undefined if it does not say. */
  readonly history: string | undefined;
  /** As in `x-portico-session`. */
  readonly sessionId: string | undefined;
  /** Returning from them cancels the turn, even if none was read. */
  readonly events: Events;
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
