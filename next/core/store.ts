/** Turns at rest, as the story needs them: found by what a request shows, read as a path, kept in one piece. */
import type { Step } from "./context.ts";
import type { Marks, Shown } from "./history.ts";
import type { Item } from "./item.ts";
import type { Found, Node } from "./place.ts";
import type { Answer } from "./turn.ts";

/** What is asked of the store about a request, once. */
export interface Query {
  readonly owner: string;
  readonly session: string | undefined;
  /** The key of the turn that it names. */
  readonly named: string | undefined;
  /** What it shows, deepest first. */
  readonly shown: readonly Pick<Shown, "digest" | "question">[];
  /** A question that may be one of the session's, though nothing that was answered is shown. */
  readonly prefilled: (() => string) | undefined;
  /** The ids of the calls whose makers are wanted. */
  readonly calls: readonly string[];
}

export interface Finding extends Omit<Found, "match"> {
  readonly match: { readonly node: Node; readonly depth: number } | undefined;
}

/** A turn to keep. */
export interface Commit {
  readonly owner: string;
  /** Absent: a hidden session of its own. */
  readonly session: string | undefined;
  readonly key: string;
  readonly createdAt: number;
  readonly parent: Node | undefined;
  readonly marks: Marks;
  readonly remembers: boolean;
  readonly model: string;
  readonly instructions: string | undefined;
  readonly input: readonly Item[];
  readonly answer: Answer;
  readonly echo: string | undefined;
  readonly leads: boolean;
  /** The tip that was seen: it moves only if it still stands there. */
  readonly tip: number | undefined;
  readonly learns: boolean;
  /** It was broken off: it can be named, and nothing else finds it. */
  readonly isLoose: boolean;
}

export interface StoredTurn extends Step {
  readonly key: string;
  readonly session: string;
  readonly isHidden: boolean;
  readonly model: string;
  readonly createdAt: number;
  readonly told: Omit<Answer, "items">;
  readonly echo: string | undefined;
}

export interface Store {
  /** A session's id is known before it exists: a keyed hash, for the raw hint is never kept. */
  sessionOf(owner: string, hint: string): string;
  find(query: Query): Promise<Finding>;
  /** Every turn from the root to here. */
  path(node: Node): Promise<readonly Step[]>;
  /** Durable when it resolves. */
  commit(turn: Commit): Promise<void>;

  turn(owner: string, key: string): Promise<StoredTurn | undefined>;
  close(): Promise<void>;
}
