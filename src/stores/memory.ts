/** Turns in the memory of this process: quick, and gone with it. */
import { GatewayError } from "../core/errors.ts";
import type { Session, SessionStore, StoredTurn } from "../core/ports.ts";
import { type Shelf, judge } from "./verdict.ts";

/** A store that forgets when the process ends. */
export function createMemoryStore(): SessionStore {
  const turns = new Map<string, StoredTurn>();
  const sessions = new Map<string, Session>();
  const sessionIds = new Map<string, string>();
  const search = createSearch();
  let closed = false;

  const shelf: Shelf = {
    hasTurn: (owner, turnId) => turns.get(turnId)?.owner === owner,
    readSession: (sessionId) => sessions.get(sessionId),
    findSession: (owner, hint) => sessions.get(sessionIds.get(nameOf(owner, hint)) ?? ""),
  };

  function checkOpen(): void {
    if (closed) throw new GatewayError("store_unavailable", "The session store is closed.", { retryAfterSeconds: 1 });
  }

  return {
    async findSession(owner, hint): Promise<Session | undefined> {
      checkOpen();
      return shelf.findSession(owner, hint);
    },
    async readSession(sessionId) {
      checkOpen();
      return shelf.readSession(sessionId);
    },
    async findTurn(owner, turnId) {
      checkOpen();
      const turn = turns.get(turnId);
      return turn?.owner === owner ? turn : undefined;
    },
    async readPath(turnId) {
      checkOpen();
      const path: StoredTurn[] = [];
      let turn = turns.get(turnId);
      while (turn !== undefined) {
        path.push(turn);
        turn = turn.parent === undefined ? undefined : turns.get(turn.parent);
      }
      return path.toReversed();
    },
    async findByDigest(sessionId, digests) {
      checkOpen();
      for (const [index, digest] of digests.entries()) {
        const twins = search.withDigest(sessionId, digest);
        const turn = twins.findLast(({ id }) => !search.hasChildren(id)) ?? twins.at(-1);
        if (turn !== undefined) return { id: turn.id, index, hasChildren: search.hasChildren(turn.id) };
      }
      return undefined;
    },
    async findByExchange(sessionId, exchange) {
      checkOpen();
      const newestFirst = search.withExchange(sessionId, exchange).toReversed();
      return newestFirst.slice(0, 8).map(({ id }) => id);
    },
    async countRoots(sessionId) {
      checkOpen();
      return Math.min(search.rootsOf(sessionId), 2);
    },
    async commit(commit) {
      checkOpen();
      const { turns: added, session: move } = commit;
      const known = added.find(({ id }) => turns.has(id));
      if (known !== undefined) throw new Error(`The turn ${known.id} is kept already.`);
      const verdict = judge(commit, shelf);
      if (verdict === "refuse") return false;
      for (const turn of added) {
        turns.set(turn.id, turn);
        search.add(turn);
      }
      if (move === undefined) return true;
      const last = added[1] ?? added[0];
      const before = sessions.get(move.id);
      const tip = verdict === "keep" ? before?.tip : last.id;
      sessions.set(move.id, { id: move.id, owner: last.owner, tip, resends: before?.resends || move.resends });
      if (verdict === "keep-and-create" && move.hint !== undefined) {
        sessionIds.set(nameOf(last.owner, move.hint), move.id);
      }
      return true;
    },
    async check() {
      checkOpen();
    },
    async close() {
      closed = true;
    },
  };
}

/** Finds turns by what was said, in the order in which they came. */
function createSearch() {
  const byDigest = new Map<string, StoredTurn[]>();
  const byExchange = new Map<string, StoredTurn[]>();
  const rootsBySession = new Map<string, number>();
  const parents = new Set<string>();
  return {
    add(turn: StoredTurn): void {
      append(byDigest, turn.digest, turn);
      append(byExchange, turn.exchange, turn);
      if (turn.parent !== undefined) parents.add(turn.parent);
      else if (turn.session !== undefined)
        rootsBySession.set(turn.session, (rootsBySession.get(turn.session) ?? 0) + 1);
    },
    withDigest: (sessionId: string, digest: string) => ofSession(byDigest.get(digest), sessionId),
    withExchange: (sessionId: string, exchange: string) => ofSession(byExchange.get(exchange), sessionId),
    rootsOf: (sessionId: string) => rootsBySession.get(sessionId) ?? 0,
    hasChildren: (turnId: string) => parents.has(turnId),
  };
}

function append(lists: Map<string, StoredTurn[]>, key: string | undefined, turn: StoredTurn): void {
  if (key === undefined) return;
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [turn]);
  else list.push(turn);
}

function ofSession(turns: readonly StoredTurn[] | undefined, sessionId: string): readonly StoredTurn[] {
  return turns?.filter(({ session }) => session === sessionId) ?? [];
}

function nameOf(owner: string, hint: string): string {
  return JSON.stringify([owner, hint]);
}
