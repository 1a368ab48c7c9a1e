/** What the memory store holds, with the indexes that find it. */
import { randomBytes } from "node:crypto";
import type { Conversation, StoredKey, Session, StoredTurn } from "../../../src/core/store.ts";
import { createKeyedHash } from "../../../src/stores/hash.ts";
import { createPaths, type Step, withoutTold } from "../../../src/stores/paths.ts";
import { storeClosed } from "../../../src/stores/refusals.ts";
import type { CommitLookup } from "../../../src/stores/verdict.ts";

export interface StoredSession extends Conversation {
  /** The hint's keyed hash, in base64url. */
  readonly hint: string | undefined;
  readonly updatedAt: Date;
}

export type Tables = ReturnType<typeof createTables>;

export function createTables(now: () => Date) {
  const turns = new Map<string, StoredTurn>();
  const sessions = new Map<string, StoredSession>();
  const sessionIds = new Map<string, string>();
  const keys = new Map<string, StoredKey>();
  /** The seal keys, in base64url: the first is the store's own. */
  const sealKeys: string[] = [];
  const paths = createPaths();
  /** Ids of turns, in order of arrival, and the names of a turn's idempotency keys. */
  const lists = new Map<string, Set<string>>();
  let hintKey: Uint8Array = randomBytes(32);
  let hash = createKeyedHash(hintKey);
  let closed = false;

  const inList = (...name: readonly string[]) => lists.get(JSON.stringify(name)) ?? none;
  const isSteady = (turnId: string) => isFollowable(turns.get(turnId)?.status ?? "running");
  const hasChildren = (turnId: string) => inList("children", turnId).values().some(isSteady);

  function addToList(turnId: string, ...name: readonly string[]): void {
    const key = JSON.stringify(name);
    const list = lists.get(key);
    if (list === undefined) lists.set(key, new Set([turnId]));
    else list.add(turnId);
  }

  function removeFromList(turnId: string, ...name: readonly string[]): void {
    const key = JSON.stringify(name);
    const list = lists.get(key);
    list?.delete(turnId);
    if (list?.size === 0) lists.delete(key);
  }

  return {
    turns,
    paths,
    sessions,
    keys,
    sealKeys,
    now,
    listed: inList,
    hasChildren,
    endsOf: (sessionId: string) => [...inList("session", sessionId)].filter((turnId) => !hasChildren(turnId)).length,
    nameOf: (owner: string, words: string) => hash(owner, words).toString("base64url"),
    findKey: (owner: string, key: string) => keys.get(JSON.stringify([owner, key])),
    putKey(owner: string, key: string, stored: StoredKey): void {
      const name = JSON.stringify([owner, key]);
      keys.set(name, stored);
      addToList(name, "keys", stored.turnId);
    },
    sessionUnder: (owner: string, hint: string) => sessionIds.get(JSON.stringify([owner, hint])),
    hintKey: () => hintKey,
    adoptKey(key: Uint8Array): void {
      hintKey = key;
      hash = createKeyedHash(key);
    },
    addTurn(turn: StoredTurn): void {
      turns.set(turn.id, turn);
      paths.grow(toStep(turn));
      for (const name of listsOf(turn)) addToList(turn.id, ...name);
    },
    removeTurn(turn: StoredTurn): void {
      turns.delete(turn.id);
      paths.clear();
      for (const name of listsOf(turn)) removeFromList(turn.id, ...name);
    },
    removeKeysOf(turnId: string): void {
      for (const name of inList("keys", turnId)) if (keys.get(name)?.turnId === turnId) keys.delete(name);
      lists.delete(JSON.stringify(["keys", turnId]));
    },
    /** Replaces a turn by one with the same id and marks, at the same place in the order. */
    changeTurn(turn: StoredTurn): void {
      const before = turns.get(turn.id)?.parent;
      if (before !== undefined) removeFromList(turn.id, "children", before);
      if (turn.parent !== undefined) addToList(turn.id, "children", turn.parent);
      turns.set(turn.id, turn);
      paths.clear();
    },
    putSession(session: StoredSession): void {
      sessions.set(session.id, session);
      if (session.hint !== undefined) sessionIds.set(JSON.stringify([session.owner, session.hint]), session.id);
    },
    removeSession({ id, owner, hint }: StoredSession): void {
      sessions.delete(id);
      if (hint !== undefined) sessionIds.delete(JSON.stringify([owner, hint]));
    },
    checkOpen(): void {
      if (closed) throw storeClosed();
    },
    close(): void {
      closed = true;
    },
  };
}

/** The lists that a turn is in. One that nothing can follow is not in its session, but beside it. */
function listsOf({ status, session, parent, digest, exchange }: StoredTurn): readonly (readonly string[])[] {
  const names = parent === undefined ? [] : [["children", parent]];
  if (session === undefined) return names;
  names.push([isFollowable(status) ? "session" : "beside", session]);
  if (digest !== undefined) names.push(["digest", session, digest]);
  if (exchange !== undefined) names.push(["exchange", session, exchange]);
  return names;
}

/** Nothing follows a turn that is running, failed or cancelled: it is part of no thread. */
export function isFollowable(status: StoredTurn["status"]): boolean {
  return status === "completed" || status === "incomplete" || status === "shown";
}

const none: ReadonlySet<string> = new Set();

export function createCommitLookup(tables: Tables): CommitLookup {
  const { turns, sessions } = tables;
  const toSession = (sessionId: string | undefined): Session | undefined => {
    const session = sessionId === undefined ? undefined : sessions.get(sessionId);
    return session && { id: session.id, owner: session.owner, tip: session.tip, resends: session.resends };
  };
  const statusOf = (owner: string, turnId: string) => {
    const turn = turns.get(turnId);
    return turn?.owner === owner ? turn.status : undefined;
  };
  return {
    canFollow(owner, turnId) {
      const status = statusOf(owner, turnId);
      return status !== undefined && isFollowable(status);
    },
    isRunning: (owner, turnId) => statusOf(owner, turnId) === "running",
    readSession: toSession,
    findSession: (owner, hint) => toSession(tables.sessionUnder(owner, tables.nameOf(owner, hint))),
  };
}

export function toStep(turn: StoredTurn): Step {
  return { turn: withoutTold(turn), size: JSON.stringify(turn.input).length + JSON.stringify(turn.output).length };
}
