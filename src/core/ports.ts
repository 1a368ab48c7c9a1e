/** Two of the three doors of the core: who answers (Adapter) and who speaks a wire (Protocol). The third is the store. */
import type { Delta } from "./delta.ts";
import type { ErrorCode } from "./errors.ts";
import type { Event, OutputItem } from "./event.ts";
import type { Dialect } from "./item.ts";
import type { Answer, Ask, Truncation, Turn } from "./turn.ts";

/** A model or an agent. One method is enough. */
export interface Adapter {
  /**
   * Answers a turn in batches of deltas, one batch a network read. It throws a GatewayError when it fails, and lets go of
   * everything it holds as soon as the signal aborts. What the caller should know beside the answer is told before the
   * first delta.
   */
  stream(turn: Turn, signal: AbortSignal, tell?: Tell): AsyncIterable<readonly Delta[]>;
  /** The wire dialects whose own tools and fields it passes on; what only another dialect knows is left out for it. */
  readonly speaks?: readonly Dialect[] | undefined;
  /** How many tokens a model takes, question and answer together, where that is known. */
  contextWindow?(model: string): number | undefined;
  /** How many tokens the turn's input has, exactly; nothing: it cannot count. */
  countTokens?(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  /** The models that it offers by itself, when nobody has chosen one for it. */
  models?(): Promise<readonly string[]>;
  close?(): Promise<void>;
}

export type Tell = (remark: Remark) => void;

/** What a caller should know about how its turn was taken, beside the answer itself. */
export type Remark =
  /** An adapter that was asked first and could not answer. */
  | { readonly type: "tried"; readonly adapter: string; readonly code: ErrorCode }
  /** Something of the request that the adapter cannot take, e.g. `tool web_search`. */
  | { readonly type: "left-out"; readonly what: string }
  /** Something of the request that the adapter takes only with another value. */
  | { readonly type: "changed"; readonly what: string; readonly to: string }
  /** The adapter that is asked now; it is for the operator's log, and no caller is told. */
  | { readonly type: "asked"; readonly adapter: string };

/** A wire dialect: it reads a body, and gives a voice that answers in the same dialect. */
export interface Protocol {
  /** What its owner was given to carry, and nobody else's, is opened. */
  parse(body: unknown, owner: string): Request;
}

interface Request {
  readonly ask: Ask;
  readonly voice: Voice;
}

export interface Voice {
  /** What must be kept of a request so that its answer can be asked for again, as text; absent: only its repetition can. */
  readonly memo?: (() => string) | undefined;
  /** The whole answer as JSON text. Never asked for a failed one. */
  whole(about: About, answer: Answer): string;
  /** A turn that is not over yet, as JSON text, in a dialect that can be asked about one. */
  progress?(about: About, status: "queued" | "running", items: readonly OutputItem[]): string;
  /** A speaker that turns batches of events into server-sent events; what it returns is one write. */
  stream(about: About): (events: readonly Event[]) => string;
}

/** What is known of an answer before its first word. */
export interface About {
  /** Names the turn: `resp_` and hexadecimal digits. The wires make their other ids of it. */
  readonly id: string;
  readonly createdAt: Date;
  /** The model's name as the caller wrote it. */
  readonly model: string;
  /** Of a turn in the background, these are known when it has found its place. */
  readonly session: string | undefined;
  readonly history: History | undefined;
  /** How many items the model sees. */
  readonly contextItems: number | undefined;
  /** How many of the thread's items do not fit into the model's context window. */
  readonly omittedItems: number;
  readonly truncation: Truncation;
  /** They come until the first word is told. */
  readonly remarks: readonly Remark[];
  /** The adapter that was asked last, where a turn goes to several; known with the first word. */
  readonly adapter?: string | undefined;
}

/** What is known of a turn that has no place, or none yet. */
export const unplaced = {
  session: undefined,
  history: undefined,
  contextItems: undefined,
  omittedItems: 0,
  truncation: "disabled",
  remarks: [],
} as const;

/**
 * What became of the caller's history: a new thread; the session's thread gone on with; the shown history found as a
 * thread's end, or before its end or in part, so that a branch begins there; shown to a session that does not know it; or
 * none kept.
 */
export type History = "new" | "continued" | "matched" | "forked" | "foreign" | "stateless";
