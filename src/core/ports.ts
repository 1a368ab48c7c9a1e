/** Two of the three doors of the core: who answers (Adapter) and who speaks a wire (Protocol). The third is the store. */
import type { Delta } from "./delta.ts";
import type { ErrorCode } from "./errors.ts";
import type { Event, OutputItem } from "./event.ts";
import type { Dialect } from "./item.ts";
import type { Answer, Ask, Truncation, Turn } from "./turn.ts";

/** A model or an agent. One method is enough. */
export interface Adapter {
  /**
   * Answers a turn in batches of deltas, one batch per network read. It throws a GatewayError on failure, and releases
   * everything it holds as soon as the signal aborts. What the caller should know besides the answer is told before the
   * first delta.
   */
  stream(turn: Turn, signal: AbortSignal, tell?: Tell): AsyncIterable<readonly Delta[]>;
  /** The wire dialects whose own tools and fields it forwards; what only another dialect knows is left out. */
  readonly speaks?: readonly Dialect[] | undefined;
  /** How many tokens a model takes, input and output together, if known. */
  contextWindow?(model: string): number | undefined;
  /** The exact token count of the turn's input; undefined if it cannot count. */
  countTokens?(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  /** The models that it offers by itself, when nobody has chosen one for it. */
  models?(): Promise<readonly string[]>;
  close?(): Promise<void>;
}

export type Tell = (remark: Remark) => void;

/** What a caller should know about the handling of its turn, besides the answer. */
export type Remark =
  /** An earlier adapter that could not answer. */
  | { readonly type: "tried"; readonly adapter: string; readonly code: ErrorCode }
  /** Part of the request that the adapter cannot accept, e.g. `tool web_search`. */
  | { readonly type: "left-out"; readonly what: string }
  /** Part of the request that the adapter accepts only with another value. */
  | { readonly type: "changed"; readonly what: string; readonly to: string }
  /** The adapter being asked now, and its own name for the model, for the operator's log only. */
  | { readonly type: "asked"; readonly adapter: string; readonly model: string };

/** A wire dialect: reads a body, and gives a voice that answers in the same dialect. */
export interface Protocol {
  /** The list in a body that clients resend, each time longer. */
  readonly listName: string;
  /** Opens the sealed items of this owner, and nobody else's. What an `earlier` request had too is not read again. */
  parse(body: unknown, owner: string, earlier?: Earlier): Request;
}

/** The first elements of a body's list, which the owner has sent before, and the items that they became. */
export interface Earlier {
  readonly length: number;
  readonly items: Ask["items"];
}

interface Request {
  readonly ask: Ask;
  readonly voice: Voice;
  /** The same elements of its list may be read otherwise next time: with others behind them, or with keys that came. */
  readonly isUnsettled?: boolean | undefined;
}

export interface Voice {
  /** What to store of a request, as text, so that its answer can be retrieved; absent: only repeating it gets it. */
  readonly memo?: (() => string) | undefined;
  /** The whole answer as JSON text; not called for a failed one. */
  whole(about: About, answer: Answer): string;
  /** An unfinished turn as JSON text, in a dialect that can retrieve one. */
  progress?(about: About, status: "queued" | "running", items: readonly OutputItem[]): string;
  /** A speaker that turns batches of events into server-sent events; what it returns is one write. */
  stream(about: About): (events: readonly Event[]) => string;
}

/** What is known of an answer before its first word. */
export interface About {
  /** The turn's id: `resp_` and hexadecimal digits. The wires derive other ids from it. */
  readonly id: string;
  readonly createdAt: Date;
  /** The model's name as the caller wrote it. */
  readonly model: string;
  /** For a background turn, these are known once it has found its place. */
  readonly session: string | undefined;
  readonly history: History | undefined;
  /** How many items the model sees. */
  readonly contextItems: number | undefined;
  /** How many of the thread's items do not fit into the model's context window. */
  readonly omittedItems: number;
  readonly truncation: Truncation;
  /** More may come until the first word. */
  readonly remarks: readonly Remark[];
  /** The adapter that was asked last, if a turn may go to several; known with the first word. */
  readonly adapter?: string | undefined;
  /** That adapter's own name for the model. */
  readonly upstreamModel?: string | undefined;
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
 * What became of the caller's history: a new thread; the session's thread continued; the shown history matched to the
 * end of a thread, or earlier or only in part, where a branch begins; shown to a session that does not know it; or none
 * kept.
 */
export type History = "new" | "continued" | "matched" | "forked" | "foreign" | "stateless";
