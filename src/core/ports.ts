/** The three doors of the core: who answers (Adapter), who speaks a wire (Protocol), who remembers (SessionStore). */
import type { Delta } from "./delta.ts";
import type { Event } from "./event.ts";
import type { Item } from "./item.ts";
import type { Answer, Ask, Turn, Usage } from "./turn.ts";

/** A model or an agent. One method is enough. */
export interface Adapter {
  /**
   * Answers a turn in batches of deltas, one batch a network read. It throws a GatewayError when it fails, and lets go of
   * everything it holds as soon as the signal aborts.
   */
  stream(turn: Turn, signal: AbortSignal): AsyncIterable<readonly Delta[]>;
  /** The models that it offers by itself, when nobody has chosen one for it. */
  models?(): Promise<readonly string[]>;
  close?(): Promise<void>;
}

/** A wire dialect: it reads a body, and gives a voice that answers in the same dialect. */
export interface Protocol {
  parse(body: unknown): Request;
}

interface Request {
  readonly ask: Ask;
  readonly voice: Voice;
}

export interface Voice {
  /** The whole answer as JSON text. Never asked for a failed one. */
  whole(about: About, answer: Answer): string;
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
  readonly session: string | undefined;
  readonly history: History;
  /** How many items the model sees. */
  readonly contextItems: number;
}

/**
 * What became of the caller's history: a new thread; the session's thread gone on with; the shown history found as a
 * thread's end, or before its end or in part, so that a branch begins there; shown to a session that does not know it; or
 * none kept.
 */
export type History = "new" | "continued" | "matched" | "forked" | "foreign" | "stateless";

/** Turns at rest. Every store passes one contract suite. */
export interface SessionStore {
  findSession(owner: string, hint: string): Promise<Session | undefined>;
  readSession(sessionId: string): Promise<Session | undefined>;
  findTurn(owner: string, turnId: string): Promise<StoredTurn | undefined>;
  /** The turns from the root to this one, in the order in which they were said. */
  readPath(turnId: string): Promise<readonly StoredTurn[]>;
  /**
   * A turn of the session with the first of these digests that any has: one that nothing follows, if there is such a one,
   * and of several the newest.
   */
  findByDigest(sessionId: string, digests: readonly string[]): Promise<FoundTurn | undefined>;
  /** The ids of the newest turns of the session, at most eight, that end with this exchange. */
  findByExchange(sessionId: string, exchange: string): Promise<readonly string[]>;
  /** How many threads of the session have a root of their own; at most two are counted. */
  countRoots(sessionId: string): Promise<number>;
  /**
   * Keeps a turn, with what the caller showed before it, all of it or nothing, durable when it resolves, and moves the
   * session's tip to it if the tip is still the expected one. False: it was not, or the parent or session is gone, and nothing is kept.
   */
  commit(commit: Commit): Promise<boolean>;
  /** Throws `store_unavailable` when turns cannot be kept now. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** The conversations of one owner under one hint. */
export interface Session {
  readonly id: string;
  readonly owner: string;
  /** The newest turn of its current thread. */
  readonly tip: string | undefined;
  /** Its callers show their history, so that a request without one begins a new thread. */
  readonly resends: boolean;
}

/** One request's new items and its answer: a node of the tree. */
export interface StoredTurn {
  readonly id: string;
  readonly owner: string;
  readonly session: string | undefined;
  readonly parent: string | undefined;
  readonly createdAt: Date;
  readonly model: string;
  readonly input: readonly Item[];
  readonly output: readonly Item[];
  /** `shown`: no answer of ours, but a history that a caller brought along. */
  readonly status: "completed" | "incomplete" | "shown";
  readonly usage: Usage | undefined;
  /** Of all that was said in its thread up to its end; only in a session. */
  readonly digest: string | undefined;
  /** Of the last question and answer alone, for callers that show only the end of a thread. */
  readonly exchange: string | undefined;
}

export interface FoundTurn {
  readonly id: string;
  /** Which of the digests it has. */
  readonly index: number;
  /** Something was said after it. */
  readonly hasChildren: boolean;
}

export interface Commit {
  /** One turn, or what was shown and the turn that follows it: each is the parent of the next. */
  readonly turns: readonly [StoredTurn] | readonly [StoredTurn, StoredTurn];
  /** The session whose tip becomes the last of them. */
  readonly session?: SessionMove | undefined;
}

export interface SessionMove {
  readonly id: string;
  /** What finds the session again; without it the session is there already. */
  readonly hint?: string | undefined;
  readonly expectedTip: string | undefined;
  /** When the tip is no longer the expected one: keep nothing, or keep the turn as a branch and leave the tip. */
  readonly otherwise: "refuse" | "branch";
  /** The caller showed its history: the session is known for it from now on. */
  readonly resends: boolean;
}
