/** The third door of the core: who remembers. Turns form a tree, sessions point into it. Every store passes one contract suite. */
import type { ErrorCode } from "./errors.ts";
import type { Extra, Item } from "./item.ts";
import type { Pieces } from "./frame/pieces.ts";
import type { Peers } from "./peers.ts";
import type { Path } from "./place/path.ts";
import type { About, Remark } from "./ports.ts";
import type { Choice, Finish, Notes, Usage } from "./turn.ts";

export interface SessionStore extends Search, TurnWriter, Conversations, Archive {
  /**
   * Claims the store for this gateway until it is closed. Without peers, only one gateway may claim it, and this
   * throws `store_unavailable` if another has: two would end each other's running turns, and neither would know the
   * other's keys and queues.
   */
  claim(): Promise<void>;
  /** The other gateways, if several may share the store. */
  readonly peers?: Peers | undefined;
  /** Throws `store_unavailable` if turns cannot be stored now. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** How a request finds its place. */
export interface Search {
  findSession(owner: string, hint: string): Promise<Session | undefined>;
  readSession(sessionId: string): Promise<Conversation | undefined>;
  findTurn(owner: string, turnId: string): Promise<StoredTurn | undefined>;
  /** The turns from the root to this one, oldest first, without `told`. */
  readPath(turnId: string): Promise<Path>;
  /** The same if all of it is cached, or all but its end; undefined if more would have to be read. */
  recallPath(turnId: string): Promise<Path | undefined>;
  /**
   * The session's turns with the first of these digests that any of them has, or ending with such an exchange: at most
   * `maxTwins`, newest first.
   */
  findTwins(sessionId: string, by: "digest" | "exchange", marks: readonly string[]): Promise<Twins | undefined>;
  /** How many threads the session has (turns that nothing follows), counted up to two. */
  countThreads(sessionId: string): Promise<number>;
  /** An earlier request of the owner with this idempotency key. */
  findKey(owner: string, key: string): Promise<StoredKey | undefined>;
}

type Running = Pick<StoredTurn, "id" | "createdAt">;

/** How turns are kept and deleted. */
export interface TurnWriter {
  /**
   * Stores a turn, with what the caller showed before it, atomically and durably, and moves the session's tip to it if
   * the tip is still the expected one. False: the tip has moved (see `otherwise`), or the parent or session is gone;
   * nothing is stored.
   */
  commit(commit: Commit): Promise<boolean>;
  /**
   * Stores a turn without a place, durably: a `running` one, to be known after a restart, or one that failed or was
   * cancelled. It is deleted with its session, if that exists, though it is not one of the turns said there.
   */
  begin(turn: StoredTurn, key?: IdempotencyKey): Promise<void>;
  /**
   * Replaces a running turn with its failed or cancelled form. False: that one is gone, and nothing is stored. A store
   * that cannot now may do it later.
   */
  end(turn: StoredTurn): Promise<boolean>;
  /**
   * Ends as failed, with this failure, every running turn that nobody works on any more; returns how many. The store
   * itself knows what other gateways work on; `isAbandoned` says which turns of this one are abandoned; without it, all are.
   */
  endRunning(failure: StoredFailure, endedAt: Date, isAbandoned?: (turn: Running) => boolean): Promise<number>;
  /**
   * Removes a turn from the tree for good, with what its caller showed before it unless something else follows that.
   * What followed the turn now follows its parent, with a gap; a tip moves to the parent. False: the owner has no such
   * turn.
   */
  deleteTurn(owner: string, turnId: string): Promise<boolean>;
  /**
   * Deletes all that follows a turn outside of sessions, last first, so that nobody ever sees one without those before
   * it. What follows them in a session, or arrives meanwhile, now follows the turn, with a gap. Returns how many.
   */
  deleteBelow(owner: string, turnId: string): Promise<number>;
  /** Deletes a session with all its turns. False: the owner has no such session. */
  deleteSession(owner: string, sessionId: string): Promise<boolean>;
  /**
   * Deletes a bounded number of what the rules no longer keep, and frees its space; called again while `more`, so that
   * no call takes long.
   */
  prune(rules: PruneRules): Promise<Pruned>;
}

/** Sessions that callers address by id. */
export interface Conversations {
  /** Creates a session without a hint; what was already said in it is a turn of status `shown`. */
  createSession(session: Omit<Conversation, "tip" | "resends">, shown?: StoredTurn): Promise<void>;
  /** False: the owner has no such session. */
  updateMetadata(owner: string, sessionId: string, metadata: Metadata): Promise<boolean>;
  /** Replaces the items of a stored turn, and marks it as having a gap. False: the turn is gone. */
  replaceItems(turnId: string, input: readonly Item[], output: readonly Item[]): Promise<boolean>;
}

/** The operator's view of a store. */
export interface Archive {
  /** Newest activity first. `after` is the last session of the page before. */
  listSessions(page: SessionPage): Promise<readonly SessionSummary[]>;
  /** What is outside of sessions: each tree under the id of its root, youngest root first. */
  listSessionless(page: Omit<SessionPage, "hint">): Promise<readonly SessionSummary[]>;
  /**
   * Everything, or one session, or a turn outside of sessions with what came before it and all that follows it; in an
   * order that can be imported: the store, then sessions, then turns after their parents.
   */
  exportRecords(id?: string): AsyncIterable<ArchiveRecord>;
  /**
   * Imports what was exported, all of it or nothing. Existing sessions and turns stay as they are, but a session that
   * lost its hint regains it if no other has it now, and one without a tip gets the archive's.
   */
  importRecords(records: AsyncIterable<ArchiveRecord>): Promise<ImportResult>;
  /**
   * Secrets of 32 bytes that live in the store, in base64url. The first one seals: it is created when first requested,
   * unless an archive brought one before. The others came with archives, and only open what was sealed elsewhere.
   */
  sealKeys(): Promise<readonly [own: string, ...foreign: string[]]>;
}

/** The conversations of one owner under one hint. */
export interface Session {
  readonly id: string;
  readonly owner: string;
  /** The newest turn of its current thread. */
  readonly tip: string | undefined;
  /** Its callers show their history, so a request without one begins a new thread. */
  readonly resends: boolean;
}

/** A session as its owner sees it. */
export interface Conversation extends Session {
  readonly createdAt: Date;
  readonly metadata: Metadata;
}

export type Metadata = Readonly<Record<string, string>>;

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
  /**
   * `shown`: no answer of ours, but a history that a caller brought along. Nothing can follow a turn that is `running`,
   * `failed` or `cancelled`.
   */
  readonly status: "completed" | "incomplete" | "shown" | "running" | "failed" | "cancelled";
  readonly usage: Usage | undefined;
  /** Of all that was said in its thread up to its end; only in a session. */
  readonly digest: string | undefined;
  /** Of the last question and answer alone, for callers that show only the end of a thread. */
  readonly exchange: string | undefined;
  /** Something before it or in it was deleted, so the path is no longer complete. */
  readonly gap?: boolean | undefined;
  /** What its caller was told besides the items, for a replay. */
  readonly told?: Told | undefined;
}

/** A turn as a step of a path: what was said, not how it was told. */
export type PathTurn = Omit<StoredTurn, "told">;

export interface Told extends Pick<About, "history" | "contextItems" | "omittedItems" | "truncation"> {
  /** Of a turn without a place: the session its caller was told, which may not exist. */
  readonly session?: string | undefined;
  readonly endedAt: Date | undefined;
  readonly finish: Finish;
  /** The other answers requested; nothing continues from them. */
  readonly others?: readonly Choice[] | undefined;
  /** What the dialect added to the message, for the caller alone. */
  readonly extra?: Extra | undefined;
  readonly notes: Notes;
  readonly remarks?: readonly Remark[] | undefined;
  /** It runs in the background, so it can be cancelled. */
  readonly background?: boolean | undefined;
  readonly failure?: StoredFailure | undefined;
  /** The index of the item that was being said when the answer broke off. */
  readonly brokenOff?: number | undefined;
  /** The pieces the answer was streamed in; absent: its stream cannot be resumed in the middle. */
  readonly pieces?: Pieces | undefined;
  /** The caller's request as its dialect remembers it. */
  readonly memo?: string | undefined;
}

/** A stored GatewayError. */
export interface StoredFailure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly param?: string | undefined;
  readonly wireCode?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** The most twins that are returned: they all say the same, and there may be thousands. */
export const maxTwins = 8;

/** One of the turns with the same digest, or the same exchange. */
export interface Twin {
  readonly id: string;
  /** Something was said after it. */
  readonly hasChildren: boolean;
}

export interface Twins {
  /** Which of the marks they have. */
  readonly index: number;
  readonly twins: readonly [newest: Twin, ...others: Twin[]];
}

export interface Commit {
  /** One turn, or what was shown and the turn that follows it: each is the parent of the next. */
  readonly turns: readonly [StoredTurn] | readonly [StoredTurn, StoredTurn];
  /** The session whose tip moves to the last turn. */
  readonly session?: SessionMove | undefined;
  /** The request's idempotency key, kept with the last turn. */
  readonly key?: IdempotencyKey | undefined;
  /** The last turn is stored as running and is replaced; if it is gone, nothing is stored. */
  readonly begun?: boolean | undefined;
  /** The oldest turns of a thread that has grown too long: they are deleted, leaving a gap. */
  readonly forget?: readonly string[] | undefined;
}

export interface SessionMove {
  readonly id: string;
  /** What the session is found by; absent: it already exists. */
  readonly hint?: string | undefined;
  readonly expectedTip: string | undefined;
  /**
   * If the tip is no longer the expected one: store nothing, or store the turn as a branch and leave the tip; or do
   * that only in a session whose callers show their history, since each has a thread of its own.
   */
  readonly otherwise: "refuse" | "branch" | "branch-if-resends";
  /** The caller showed its history: the session is known for it from now on. */
  readonly resends: boolean;
}

/** Identifies a repeated request. Only a keyed hash of the key is stored. */
export interface IdempotencyKey {
  readonly key: string;
  /** A digest of the request; the same key with another is an error. */
  readonly fingerprint: string;
}

export interface StoredKey {
  readonly fingerprint: string;
  readonly turnId: string;
  readonly createdAt: Date;
}

export interface PruneRules {
  /**
   * Sessions, and trees outside of sessions, idle since then; turns that failed or were cancelled before, anywhere; and
   * in an active session, threads abandoned before: from their end back to where something younger follows, or to the
   * session's tip. Failed and cancelled turns, unlike running ones, follow nothing.
   */
  readonly idleBefore?: Date | undefined;
  /** Keys stored before then. */
  readonly keysBefore?: Date | undefined;
  /** The pieces of turns that ended before then. */
  readonly piecesBefore?: Date | undefined;
  /** Of an owner with more sessions than this, those idle longest. */
  readonly maxSessionsPerOwner?: number | undefined;
  /** The ids, now, of the sessions and turns that running turns continue. They stay, however old they are. */
  readonly inUse?: (() => ReadonlySet<string>) | undefined;
}

export interface Pruned {
  readonly sessions: number;
  readonly turns: number;
  readonly more: boolean;
}

/** The result of an import. */
export interface ImportResult {
  readonly sessions: number;
  readonly turns: number;
  /** Sessions of the archive that cannot be found by their hint: another session has it. */
  readonly hintsTaken: number;
}

export interface SessionPage {
  readonly owner?: string | undefined;
  /** Only those under this hint: at most one per owner. */
  readonly hint?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface SessionSummary {
  readonly id: string;
  readonly owner: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly turns: number;
  /** What its caller said first, shortened; absent if not text. */
  readonly beginning: string | undefined;
}

export type ArchiveRecord =
  | {
      /** The first: secrets, in base64url. */
      readonly type: "store";
      /** Without it no hint is recognised again. */
      readonly hintKey: string;
      /**
       * Without them nothing sealed can be opened: the key that seals, if there is one yet, and those of other stores.
       */
      readonly sealKeys?: readonly string[] | undefined;
    }
  | (Conversation & {
      readonly type: "session";
      /** The hint's keyed hash, in base64url. */
      readonly hint: string | undefined;
      readonly updatedAt: Date;
    })
  | { readonly type: "turn"; readonly turn: StoredTurn };
