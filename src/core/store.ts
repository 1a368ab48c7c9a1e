/** The third door of the core: who remembers. Turns form a tree, sessions point into it. Every store passes one contract suite. */
import type { ErrorCode } from "./errors.ts";
import type { Item } from "./item.ts";
import type { Pieces } from "./frame/pieces.ts";
import type { Neighbours } from "./neighbours.ts";
import type { Path } from "./place/path.ts";
import type { About, Remark } from "./ports.ts";
import type { Choice, Finish, Notes, Usage } from "./turn.ts";

export interface SessionStore extends Search, Keeping, Conversations, Archive {
  /**
   * Takes the store as a gateway that works on it, until it is closed. Where there are no neighbours that is the only one, and
   * it throws `store_unavailable` when another has it: two would end each other's running turns, and neither would know of
   * the other's keys and queues.
   */
  claim(): Promise<void>;
  /** The other gateways, where several may work on the store at once. */
  readonly neighbours?: Neighbours | undefined;
  /** Throws `store_unavailable` when turns cannot be kept now. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** How a request finds its place. */
export interface Search {
  findSession(owner: string, hint: string): Promise<Session | undefined>;
  readSession(sessionId: string): Promise<Conversation | undefined>;
  findTurn(owner: string, turnId: string): Promise<StoredTurn | undefined>;
  /** The turns from the root to this one, in the order in which they were said, without what was told beside the items. */
  readPath(turnId: string): Promise<Path>;
  /** The same, if all of it is at hand; nothing when it would have to be read first. */
  recallPath(turnId: string): Promise<Path | undefined>;
  /**
   * A turn of the session with the first of these digests that any has: one that nothing follows, if there is such a one,
   * and of several the newest.
   */
  findByDigest(sessionId: string, digests: readonly string[]): Promise<FoundTurn | undefined>;
  /** The turns of the session that have this digest, or end with this exchange: at most `maxTwins`, the newest first. */
  findTwins(sessionId: string, by: "digest" | "exchange", mark: string): Promise<readonly Twin[]>;
  /** How many threads the session has: turns that nothing follows. At most two are counted. */
  countThreads(sessionId: string): Promise<number>;
  /** What became of an earlier request of the owner with this idempotency key. */
  findKey(owner: string, key: string): Promise<KeptKey | undefined>;
}

type Running = Pick<StoredTurn, "id" | "createdAt">;

/** How turns are kept, and let go. */
export interface Keeping {
  /**
   * Keeps a turn, with what the caller showed before it, all of it or nothing, durable when it resolves, and moves the
   * session's tip to it if the tip is still the expected one. False: it was not, or the parent or session is gone, and nothing is kept.
   */
  commit(commit: Commit): Promise<boolean>;
  /**
   * Keeps a turn without a place, durable when it resolves: one of status `running`, to be known after a restart, or one that came
   * to nothing. Where its session is, it goes with it when that is deleted, though it is none of the turns that are said in it.
   */
  begin(turn: StoredTurn, key?: IdempotencyKey): Promise<void>;
  /**
   * Puts a turn that came to nothing in the place of the running one. False: that one is gone, and nothing is kept. A store that
   * cannot now may do it later.
   */
  end(turn: StoredTurn): Promise<boolean>;
  /**
   * Ends every running turn on which nobody works any more as failed, with this failure. Tells how many there were. Of other gateways
   * the store itself knows what they work on; `isLeft` says it of those here, of which without it there are none.
   */
  endRunning(failure: StoredFailure, endedAt: Date, isLeft?: (turn: Running) => boolean): Promise<number>;
  /**
   * Takes a turn out of the tree for good, and with it what its caller showed before it, unless something else follows
   * that. What followed the turn follows its parent now, with a gap; a tip moves to the parent.
   * False: the owner has no such turn.
   */
  deleteTurn(owner: string, turnId: string): Promise<boolean>;
  /**
   * Deletes all that follows a turn outside of sessions, the last first, so that nobody ever sees one without those before it.
   * What follows them in a session, or comes meanwhile, follows the turn now, with a gap. Tells how many there were.
   */
  deleteBelow(owner: string, turnId: string): Promise<number>;
  /** Deletes a session with all of its turns. False: the owner has no such session. */
  deleteSession(owner: string, sessionId: string): Promise<boolean>;
  /**
   * Deletes a bounded number of what the rules no longer keep, and gives back its space; called again while `more`, so that
   * no call takes long.
   */
  prune(rules: PruneRules): Promise<Pruned>;
}

/** Sessions as things that callers handle by name. */
export interface Conversations {
  /** Makes a session without a hint, with what is said in it already as a turn of status `shown`. */
  createSession(session: Omit<Conversation, "tip" | "resends">, shown?: StoredTurn): Promise<void>;
  /** False: the owner has no such session. */
  updateMetadata(owner: string, sessionId: string, metadata: Metadata): Promise<boolean>;
  /** Puts other items into a turn that is kept, and marks it as having a gap. False: the turn is gone. */
  replaceItems(turnId: string, input: readonly Item[], output: readonly Item[]): Promise<boolean>;
}

/** The operator's view of a store. */
export interface Archive {
  /** Newest activity first. `after` is the last session of the page before. */
  listSessions(page: SessionPage): Promise<readonly SessionSummary[]>;
  /** What is kept outside of sessions: each tree under the id of its root, the youngest root first. */
  listLoose(page: Omit<SessionPage, "hint">): Promise<readonly SessionSummary[]>;
  /** Whether that list would have anything, without the cost of it. */
  hasLoose(): Promise<boolean>;
  /**
   * Everything, or one session, or a turn outside of sessions with what came before it and all that follows it; in an order in
   * which it can be taken in again: the store, then sessions, then turns after their parents.
   */
  exportRecords(id?: string): AsyncIterable<ArchiveRecord>;
  /**
   * Takes in what was exported; a session or turn that is there already is left as it is, but a session that lost its hint has
   * it again if nobody else has it now, and one without a tip has that of the archive. All of it, or nothing.
   */
  importRecords(records: AsyncIterable<ArchiveRecord>): Promise<TakenIn>;
  /**
   * Secrets of 32 bytes that live in the store, in base64url. The first one seals, and is made when it is first asked for, unless an
   * archive has brought one before; the others came with archives, and only open what was sealed elsewhere.
   */
  sealKeys(): Promise<readonly [own: string, ...foreign: string[]]>;
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

/** A session as its owner handles it. */
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
  /** Something before it or in it was deleted, so that the path is no longer all that was said. */
  readonly gap?: boolean | undefined;
  /** What its caller was told beside the items, so that it can be told again. */
  readonly told?: Told | undefined;
}

/** A turn as a step of a path: what was said, and nothing of how it was told. */
export type PathTurn = Omit<StoredTurn, "told">;

export interface Told extends Pick<About, "history" | "contextItems" | "omittedItems" | "truncation"> {
  /** The session that was named to the caller, of a turn that came to nothing: there may be none of that name. */
  readonly session?: string | undefined;
  readonly endedAt: Date | undefined;
  readonly finish: Finish;
  /** The other answers that were asked for; nothing goes on from them. */
  readonly others?: readonly Choice[] | undefined;
  readonly notes: Notes;
  readonly remarks?: readonly Remark[] | undefined;
  /** It went on without its caller, and so can be cancelled. */
  readonly background?: boolean | undefined;
  readonly failure?: StoredFailure | undefined;
  /** The index of the item that was being said when the answer broke off. */
  readonly brokenOff?: number | undefined;
  /** Into which pieces the answer was cut when it was streamed; nothing: nobody can go on in the middle of it. */
  readonly pieces?: Pieces | undefined;
  /** The caller's request as its dialect remembers it. */
  readonly memo?: string | undefined;
}

/** A GatewayError at rest. */
export interface StoredFailure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly param?: string | undefined;
  readonly wireCode?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** So many turns that are alike are told. */
export const maxTwins = 8;

/** One of the turns in which the same was said, and before which, as far as that was asked for. */
export interface Twin {
  readonly id: string;
  /** Something was said after it. */
  readonly hasChildren: boolean;
}

export interface FoundTurn extends Twin {
  /** Which of the digests it has. */
  readonly index: number;
}

export interface Commit {
  /** One turn, or what was shown and the turn that follows it: each is the parent of the next. */
  readonly turns: readonly [StoredTurn] | readonly [StoredTurn, StoredTurn];
  /** The session whose tip becomes the last of them. */
  readonly session?: SessionMove | undefined;
  /** The request's idempotency key, kept with the last turn. */
  readonly key?: IdempotencyKey | undefined;
  /** The last turn stands there as running already, and is replaced; if it is gone, nothing is kept. */
  readonly begun?: boolean | undefined;
  /** The oldest turns of a thread that has grown too long: they go, and what followed them has a gap. */
  readonly forget?: readonly string[] | undefined;
}

export interface SessionMove {
  readonly id: string;
  /** What finds the session again; without it the session is there already. */
  readonly hint?: string | undefined;
  readonly expectedTip: string | undefined;
  /**
   * When the tip is no longer the expected one: keep nothing, or keep the turn as a branch and leave the tip; or do that
   * only in a session whose callers show their history, as each of them has a thread of its own.
   */
  readonly otherwise: "refuse" | "branch" | "branch-if-resends";
  /** The caller showed its history: the session is known for it from now on. */
  readonly resends: boolean;
}

/** What makes a repeated request known. Of the key only a keyed hash is kept. */
export interface IdempotencyKey {
  readonly key: string;
  /** A digest of the request: the same key with another one is a mistake. */
  readonly fingerprint: string;
}

export interface KeptKey {
  readonly fingerprint: string;
  readonly turnId: string;
  readonly createdAt: Date;
}

export interface PruneRules {
  /**
   * Sessions, and trees outside of sessions, in which nothing was said since; turns that failed or were called off before,
   * anywhere; and in a session that goes on, threads that were left before: from the end up to where something younger follows,
   * or the session's tip. What came to nothing, unlike what runs, does not follow anything.
   */
  readonly idleBefore?: Date | undefined;
  /** Keys that were kept before. */
  readonly keysBefore?: Date | undefined;
  /** Of turns that ended before, the pieces into which they were cut. */
  readonly piecesBefore?: Date | undefined;
  /** Of an owner with more sessions than this, those idle for longest. */
  readonly maxSessionsPerOwner?: number | undefined;
}

export interface Pruned {
  readonly sessions: number;
  readonly turns: number;
  readonly more: boolean;
}

/** What came of an archive. */
export interface TakenIn {
  readonly sessions: number;
  readonly turns: number;
  /** Sessions of the archive that nobody finds by their hint, because another session has it. */
  readonly hintsTaken: number;
}

export interface SessionPage {
  readonly owner?: string | undefined;
  /** Only those that this hint finds: one of each owner at most. */
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
  /** What its caller said first, in short; nothing where that was no text. */
  readonly beginning: string | undefined;
}

export type ArchiveRecord =
  | {
      /** The first: secrets, in base64url. */
      readonly type: "store";
      /** Without it no hint is recognised again. */
      readonly hintKey: string;
      /** Without them nothing that was sealed is opened again: the one that seals, if there is one yet, and those of other stores. */
      readonly sealKeys?: readonly string[] | undefined;
    }
  | {
      readonly type: "session";
      readonly id: string;
      readonly owner: string;
      /** The hint's keyed hash, in base64url. */
      readonly hint: string | undefined;
      readonly tip: string | undefined;
      readonly resends: boolean;
      readonly metadata: Metadata;
      readonly createdAt: Date;
      readonly updatedAt: Date;
    }
  | { readonly type: "turn"; readonly turn: StoredTurn };
