/**
 * Turns at rest, as the story needs them: found by what a request shows, read as a path, kept in one piece. Below that
 * what nobody waits for: conversations, deletion, the operator's view, retention and the archive.
 */
import type { GatewayError } from "./errors.ts";
import type { Delta } from "./event.ts";
import type { Heading } from "./heading.ts";
import type { Marks, Shown } from "./history.ts";
import type { Item } from "./item.ts";
import type { Claims } from "./lines.ts";
import type { Step } from "./pair.ts";
import type { Found, Node, Program } from "./place.ts";
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
  /** It may continue the session's tip: what it is about, for those who come while it runs. */
  readonly claim?: (() => string) | undefined;
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
  readonly input: readonly Item[];
  readonly answer: Answer;
  readonly echo: string | undefined;
  readonly leads: boolean;
  /** The tip that was seen: it moves only if it still stands there. */
  readonly tip: number | undefined;
  /** Of a root in a session that a header names. */
  readonly program?: Program | undefined;
  /** It takes the tip from another program's root without tools, even if it saw a different tip. */
  readonly takesTip?: boolean | undefined;
  /** The hint from its `user`: a keyed hash of it is stored if something else names the session. */
  readonly userHint?: string | undefined;
  readonly learns: boolean;
  /** It was broken off: only its id finds it, and nothing continues it. */
  readonly isLoose: boolean;
  /** Of a turn that outlives its caller. */
  readonly record?: Recording | undefined;
}

/** A caller's key, and what it was used for: whoever repeats it gets the same answer. */
export interface Idempotency {
  readonly key: string;
  readonly fingerprint: string;
}

/** What is kept of a turn that outlives its caller, so that it can be told again event by event. */
export interface Recording {
  readonly isBackground: boolean;
  readonly idempotency: Idempotency | undefined;
  /** Nothing but its key finds it: the caller wanted nothing kept. */
  readonly isUnnamed: boolean;
  /** What the model said, as long as streams resume; later the turn is told whole. */
  readonly deltas: readonly Delta[];
  readonly told: string;
  readonly contextItems: number;
}

/** A background turn that runs, so that whoever comes after a crash is told that it was interrupted. */
export type RunningTurn = Pick<Commit, "key" | "owner" | "session" | "createdAt" | "model" | "echo" | "userHint">;

/** The part of the store that turns need that outlive their caller. */
export interface Records {
  /** Durable when it resolves; the turn's commit ends it. One that the process before left reads as a failed turn. */
  begin(turn: RunningTurn): Promise<void>;
  /** What a key was used for, since then; not by a turn that failed. */
  keyed(owner: string, key: string, since: number): Promise<KeyedTurn | undefined>;
}

type KeyedTurn = StoredTurn & Pick<Idempotency, "fingerprint">;

/** The other processes of a gateway, where there may be some. */
export interface Others {
  readonly claims: Claims;
  /** The time of all of them. */
  now(): number;
  /** Resolves when this process knows again what the others did while it was silent. Undefined: it was not silent. */
  awake(): Promise<void> | undefined;
  /** Which of at most 256 this process is now. */
  slot(): number;
  /** A turn with a caller's key begins, unless one with that key runs elsewhere: then it is that one. */
  reserve(turn: Pick<Far, "key" | "owner">, idempotency: Idempotency): Promise<Far | undefined>;
  /** Makes the turn known to all processes. Throws `interrupted` if another process answered its reserved key meanwhile. */
  announce(turn: Announced, placed: Placed): Promise<void>;
  /** What they hear of it, a moment later. */
  publish(key: string, news: News): void;
  /** It is over and kept, or will never be. */
  withdraw(key: string): void;
  /** A turn that runs elsewhere. */
  find(owner: string, key: string): Promise<Far | undefined>;
  /** What they want of our turns. */
  listen(hands: Hands): void;
}

interface Announced extends Pick<Commit, "key" | "owner" | "userHint"> {
  /** It has a caller's key. */
  readonly isReserved: boolean;
}

export interface Hands {
  /** It is cancelled, or ends for this reason. */
  stop(key: string, reason?: GatewayError): void;
  heard(key: string): void;
}

/** A turn that has its place. */
export interface Placed {
  readonly heading: Heading;
  /** It stands in line. */
  readonly waits: boolean;
  readonly isBackground: boolean;
  readonly echo: string | undefined;
  readonly items: readonly Item[];
}

/** What becomes of a turn: it has its place, it begins with this heading, something is said. */
export interface News {
  readonly placed?: Placed;
  readonly heading?: Heading;
  readonly deltas?: readonly Delta[];
}

/** A turn that runs in another process. */
export interface Far {
  readonly key: string;
  readonly owner: string;
  readonly fingerprint: string | undefined;
  /** Undefined: it has no place yet. */
  readonly placed: Placed | undefined;
  /** What becomes of it, from its beginning on, until it is over or the signal aborts. */
  news(signal: AbortSignal): AsyncIterable<readonly News[]>;
  cancel(): Promise<void>;
  /** What was kept of it. */
  stored(): Promise<StoredTurn | undefined>;
}

export interface StoredRecording extends Pick<Recording, "isBackground" | "told" | "contextItems"> {
  readonly deltas: readonly Delta[] | undefined;
}

export interface StoredTurn extends Step, Pick<Commit, "key" | "model" | "createdAt" | "echo"> {
  readonly record?: StoredRecording | undefined;
  readonly session: string;
  readonly isHidden: boolean;
  readonly told: Omit<Answer, "items">;
}

export interface Store {
  /** Undefined: this process is alone. */
  readonly others?: Others | undefined;
  /** A session's id is known before it exists: a keyed hash, for the raw hint is never kept. */
  sessionOf(owner: string, hint: string): string | Promise<string>;
  find(query: Query): Promise<Finding>;
  /** Every turn from the root to here. */
  path(node: Node): Promise<readonly Step[]>;
  /** Durable when it resolves. Throws `not_found` if the session was deleted after the turn had begun. */
  commit(turn: Commit): Promise<void>;

  turn(owner: string, key: string): Promise<StoredTurn | undefined>;
  /** Throws `store_unavailable` while nothing can be kept: then no model need be asked. */
  checkKeeping(): void;
  close(): Promise<void>;
}

/** What callers name, change and delete. A `moment` is a key made now: turns with an earlier one bring nothing back. */
export interface Conversations {
  /** Deletes a response: its text is gone at once, and where others follow it an empty node holds the tree together. */
  forget(owner: string, key: string): Promise<boolean>;
  /** With what was said in it before. */
  createConversation(owner: string, conversation: Conversation, first?: Commit): Promise<void>;
  conversation(owner: string, id: string): Promise<Conversation | undefined>;
  /** Replaces the metadata. */
  describeConversation(owner: string, id: string, metadata: Metadata, now: number): Promise<boolean>;
  /** Items that no model was asked about hang below the tip, wherever it stands by now. False: there is no such session. */
  append(turn: Commit): Promise<boolean>;
  deleteConversation(owner: string, id: string, moment: string, now: number): Promise<boolean>;
  /** Undefined: there is no such conversation. Throws `not_found` if `after` names nothing in it. */
  conversationItems(owner: string, id: string, wanted: ItemsWanted): Promise<Page<Item> | undefined>;
  /** The other items keep their ids. */
  deleteConversationItem(owner: string, id: string, item: string): Promise<boolean>;
}

export interface Conversation {
  readonly id: string;
  readonly createdAt: number;
  readonly metadata: Metadata;
}

export type Metadata = Readonly<Record<string, string>>;

export interface Page<Entry> {
  readonly entries: readonly Entry[];
  readonly hasMore: boolean;
}

export interface ItemsWanted {
  readonly order: "asc" | "desc";
  /** The id of the last one of the page before; it may have been deleted since. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** What is stored, of all owners. An `id` is a session's, or that of any turn in a hidden one, with whatever prefix. */
export interface Operator {
  /** Newest activity first. */
  listSessions(wanted: SessionsWanted): Promise<Page<SessionSummary>>;
  /** Throws `not_found`. */
  readSession(id: string): Promise<SessionRecord>;
  /** All turns of a session, those before others that follow them first. */
  readTurns(session: SessionRecord): AsyncIterable<TurnRecord>;
  /** Deletes a session, or a hidden turn with all that follows it. Throws `not_found`. */
  erase(id: string, moment: string, now: number): Promise<Erased>;
  /**
   * Deletes all under a hint, for one owner or for all. For a `user` hint this includes that user's turns in sessions
   * that something else named. `owners` may have turns running, and nothing stored yet.
   */
  eraseHint(wanted: HintWanted, moment: string, now: number): Promise<readonly Erased[]>;
  /** Everything, or these sessions, as lines of an archive. */
  exportLines(ids?: readonly string[]): AsyncIterable<string>;
  /** All of an archive or nothing. Throws `invalid_value` with the line and the field that is wrong. */
  importLines(bytes: AsyncIterable<Uint8Array>): Promise<Imported>;
  /** Deletes what the rules no longer keep, in steps that hold up no turn for long. */
  prune(rules: PruneRules, now: number): Promise<Pruned>;
  /** Whether deleted text is still in the store's files, because another program reads them. */
  hasUnfinishedErasure(): boolean;
  /** Throws `store_unavailable` if nothing can be kept now. */
  check(): Promise<void>;
}

interface SessionsWanted extends Omit<ItemsWanted, "order"> {
  readonly owner?: string | undefined;
  readonly hint?: string | undefined;
}

export interface HintWanted extends Pick<SessionsWanted, "owner"> {
  readonly hint: string;
  readonly owners?: readonly string[] | undefined;
}

export interface SessionSummary {
  /** The session's id, or the key of a hidden one's first turn. */
  readonly id: string;
  readonly owner: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly turns: number;
  /** What its caller said first, shortened; absent if that is long, or not text. */
  readonly beginning?: string | undefined;
}

export interface SessionRecord extends Omit<SessionSummary, "turns" | "beginning"> {
  readonly isHidden: boolean;
  readonly metadata: Metadata;
  /** The key of the turn that a new one continues. */
  readonly tip: string | undefined;
}

export interface TurnRecord extends StoredTurn {
  readonly parent: string | undefined;
}

export interface Erased {
  /** As it was named. */
  readonly id: string;
  readonly type: "session" | "thread" | "turn";
  readonly turns: number;
}

export interface Pruned {
  readonly sessions: number;
  readonly turns: number;
}

export type Imported = Pruned;

export interface PruneRules {
  /** Threads whose last turn began before this go, from their end back to where a younger one leaves them. */
  readonly idleBefore?: number | undefined;
  readonly maxTurnsPerThread?: number | undefined;
  /** Of an owner with more, those idle longest go. */
  readonly maxSessionsPerOwner?: number | undefined;
  /** Keys and streams of turns that began before this are over. */
  readonly recordsBefore?: number | undefined;
  /** The turns that running turns continue: they stay, and so do their sessions. */
  readonly inUse?: (() => Iterable<Node>) | undefined;
}
