/** Adds turns to the memory store, and removes them. */
import { shownSuffix } from "../../../src/core/conversation/address.ts";
import { toAbandoned } from "../../../src/core/frame/replay.ts";
import type { Commit, IdempotencyKey, TurnWriter, PruneRules, StoredTurn } from "../../../src/core/store.ts";
import { type CommitLookup, judge, remainingSession, toRemainingPlace } from "../../../src/stores/verdict.ts";
import { createSessionless } from "./sessionless.ts";
import { isFollowable, type StoredSession, type Tables } from "./tables.ts";

export function createTurnWriter(tables: Tables, lookup: CommitLookup): TurnWriter {
  const { turns, sessions, keys, now, checkOpen } = tables;
  const sessionless = createSessionless(tables);

  function add(turn: StoredTurn): void {
    if (turns.has(turn.id)) throw new Error(`The turn ${turn.id} is already stored.`);
    tables.addTurn(turn);
  }

  function storeKey(owner: string, { key, fingerprint }: IdempotencyKey, turnId: string): void {
    tables.putKey(owner, key, { fingerprint, turnId, createdAt: now() });
  }

  /** Also moves it to the end of the order, because it arrives only now. */
  function replaceRunning(turn: StoredTurn): boolean {
    const running = turns.get(turn.id);
    if (running?.owner !== turn.owner || running.status !== "running") return false;
    tables.removeTurn(running);
    tables.addTurn(turn);
    return true;
  }

  function remove(turn: StoredTurn, parent: string | undefined): void {
    const children = [...tables.listed("children", turn.id)].map((childId) => turns.get(childId));
    for (const child of children) if (child !== undefined) tables.changeTurn({ ...child, parent, gap: true });
    tables.removeTurn(turn);
    tables.removeKeysOf(turn.id);
    const session = turn.session === undefined ? undefined : sessions.get(turn.session);
    if (session?.tip === turn.id) tables.putSession({ ...session, tip: parent });
  }

  function removeSession(session: StoredSession): number {
    const inIt = [...tables.listed("session", session.id), ...tables.listed("beside", session.id)];
    tables.removeSession(session);
    return removeAll(inIt.toReversed());
  }

  /** Children that stay become roots. Returns how many of the turns existed. */
  function removeAll(turnIds: readonly string[]): number {
    let count = 0;
    for (const turnId of turnIds) {
      const turn = turns.get(turnId);
      if (turn === undefined) continue;
      remove(turn, undefined);
      count += 1;
    }
    return count;
  }

  function store(commit: Commit): boolean {
    const { turns: added, session: move, key, begun, forget = [] } = commit;
    const last = added[1] ?? added[0];
    const known = added.find((turn) => turns.has(turn.id) && !(begun === true && turn === last));
    if (known !== undefined) throw new Error(`The turn ${known.id} is already stored.`);
    const verdict = judge(commit, lookup);
    if (verdict === "refuse") return false;
    for (const turn of added) if (!(begun === true && turn === last && replaceRunning(turn))) add(turn);
    const sessionId = move?.id ?? last.session;
    const before = sessionId === undefined ? undefined : sessions.get(sessionId);
    const time = now();
    if (verdict === "keep-and-create" && move?.hint !== undefined) {
      const { id, resends } = move;
      const hint = tables.nameOf(last.owner, move.hint);
      const { owner } = last;
      tables.putSession({ id, owner, hint, tip: last.id, resends, metadata: {}, createdAt: time, updatedAt: time });
    } else if (before !== undefined) {
      const tip = verdict === "keep-and-move" ? last.id : before.tip;
      tables.putSession({ ...before, tip, resends: before.resends || move?.resends === true, updatedAt: time });
    }
    if (key !== undefined) storeKey(last.owner, key, last.id);
    removeAll(forget.filter((turnId) => turns.get(turnId)?.owner === last.owner));
    return true;
  }

  function findIdle(
    { idleBefore, maxSessionsPerOwner = Number.POSITIVE_INFINITY }: PruneRules,
    inUse: ReadonlySet<string>,
  ): StoredSession[] {
    const ofOwners = Map.groupBy(sessions.values(), ({ owner }) => owner);
    return [...ofOwners.values()].flatMap((own) => {
      const unused = own.filter(({ id }) => !inUse.has(id));
      const idle = idleBefore === undefined ? [] : unused.filter(({ updatedAt }) => updatedAt < idleBefore);
      const surplus = own.length - maxSessionsPerOwner;
      return surplus <= idle.length ? idle : unused.toSorted(byLastUse).slice(0, surplus);
    });
  }

  function findSessionless(idleBefore: Date, inUse: ReadonlySet<string>): string[] {
    const isIdle = ({ id, createdAt, status }: StoredTurn) =>
      createdAt < idleBefore && status !== "running" && !inUse.has(id);
    const idle = sessionless.trees().filter((tree) => tree.every(isIdle));
    return idle.flatMap((tree) => tree.toReversed().map(({ id }) => id));
  }

  /** Failed and cancelled turns go by their own age: the session beside them may be in use forever. */
  function findFailed(idleBefore: Date): string[] {
    const failed = [...turns.values()].filter(({ status }) => status === "failed" || status === "cancelled");
    const isOld = ({ id, createdAt }: StoredTurn) => createdAt < idleBefore && tables.listed("children", id).size === 0;
    return failed.filter(isOld).map(({ id }) => id);
  }

  /** Abandoned threads, each from its end up to where another branches off: children come after their parents. */
  function removeAbandoned(idleBefore: Date, inUse: ReadonlySet<string>): number {
    const newestFirst = [...turns.values()].toReversed();
    return newestFirst.filter((turn) => {
      const session = turn.session === undefined ? undefined : sessions.get(turn.session);
      const isOld = turn.createdAt < idleBefore && isFollowable(turn.status);
      if (!isOld || inUse.has(turn.id) || session === undefined || session.tip === turn.id || isFollowed(turn.id))
        return false;
      remove(turn, undefined);
      return true;
    }).length;
  }

  /** Failed and cancelled turns do not count. */
  function isFollowed(turnId: string): boolean {
    const statuses = tables
      .listed("children", turnId)
      .values()
      .map((childId) => turns.get(childId)?.status);
    return statuses.some((status) => status !== "failed" && status !== "cancelled");
  }

  function clearPieces(before: Date): void {
    for (const turn of turns.values()) {
      const { pieces, ...told } = turn.told ?? {};
      if (pieces === undefined || turn.told?.endedAt === undefined || turn.told.endedAt >= before) continue;
      tables.changeTurn({ ...turn, told: told as StoredTurn["told"] });
    }
  }

  return {
    async commit(commit) {
      checkOpen();
      return store(commit);
    },
    async begin(turn, key) {
      checkOpen();
      add({ ...turn, session: remainingSession(turn, lookup) });
      if (key !== undefined) storeKey(turn.owner, key, turn.id);
    },
    async end(turn) {
      checkOpen();
      return replaceRunning(toRemainingPlace(turn, lookup));
    },
    async endRunning(failure, endedAt, isAbandoned = () => true) {
      checkOpen();
      const left = [...turns.values()].filter((turn) => turn.status === "running" && isAbandoned(turn));
      for (const turn of left) replaceRunning(toAbandoned(turn, failure, endedAt));
      return left.length;
    },
    async deleteTurn(owner, turnId) {
      checkOpen();
      const turn = turns.get(turnId);
      if (turn?.owner !== owner) return false;
      const shown = turn.parent === `${turnId}${shownSuffix}` ? turns.get(turn.parent) : undefined;
      const isShared = shown !== undefined && tables.listed("children", shown.id).size > 1;
      remove(turn, turn.parent);
      if (shown !== undefined && !isShared) remove(shown, shown.parent);
      return true;
    },
    async deleteBelow(owner, turnId) {
      checkOpen();
      const below = turns.get(turnId)?.owner === owner ? sessionless.below(turnId) : [];
      for (const turn of below.toReversed().map((id) => turns.get(id))) if (turn !== undefined) remove(turn, turnId);
      return below.length;
    },
    async deleteSession(owner, sessionId) {
      checkOpen();
      const session = sessions.get(sessionId);
      if (session?.owner !== owner) return false;
      removeSession(session);
      return true;
    },
    async prune(rules) {
      checkOpen();
      const { idleBefore, keysBefore, piecesBefore } = rules;
      const inUse = rules.inUse?.() ?? new Set();
      const idle = findIdle(rules, inUse);
      const old = idleBefore === undefined ? [] : [...findFailed(idleBefore), ...findSessionless(idleBefore, inUse)];
      const inSessions = idle.reduce((sum, session) => sum + removeSession(session), 0);
      const others = removeAll(old) + (idleBefore === undefined ? 0 : removeAbandoned(idleBefore, inUse));
      if (keysBefore !== undefined) for (const [name, key] of keys) if (key.createdAt < keysBefore) keys.delete(name);
      if (piecesBefore !== undefined) clearPieces(piecesBefore);
      return { sessions: idle.length, turns: inSessions + others, more: false };
    },
  };
}

/** The longest idle first, and of two at once the older. */
function byLastUse(one: StoredSession, other: StoredSession): number {
  return +one.updatedAt - +other.updatedAt;
}
