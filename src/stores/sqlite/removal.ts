/** Deletes turns and sessions from the SQLite store: for good, a bounded number at a time, and with their space. */
import { shownSuffix } from "../../core/conversation/address.ts";
import type { Access } from "./access.ts";
import { createEnds, type Ends } from "./ends.ts";
import { isVisible } from "./search.ts";
import { maxStep, takeWithin, turnBytes } from "./size.ts";

/** How a write deletes turns, and notes the ends of threads; each must run in the group. */
export interface Removal extends Pick<Ends, "noteEnd" | "findAbandoned"> {
  /**
   * Deletes a turn; its children and its session's tip move to its parent, the tip rather to `tip` if that exists.
   * Returns the ids of all that changed; undefined if the owner has no such turn.
   */
  removeTurn(owner: string, turnId: string, tip?: string): readonly string[] | undefined;
  /**
   * Moves those that follow it to where its removal would, as many as take one step; none if all of them do. Returns
   * their ids.
   */
  moveFollowers(owner: string, turnId: string): readonly string[];
  /** Deletes an owner's turns; children that stay become roots, with a gap. Returns the ids of all that changed. */
  forget(owner: string, sessionId: string | undefined, turnIds: readonly string[]): readonly string[];
  /** Makes a session invisible and frees its hint. False if the owner has no such session. */
  mark(owner: string, sessionId: string): boolean;
  /** Deletes as many turns of a marked session as the budget allows. */
  removeTurnsOf(sessionId: string, budget: number): Removed;
  /** The same, and with the last of them the session. */
  removeSome(sessionId: string, budget: number): Removed;
  /**
   * Deletes turns; children that stay follow the heir or, if there is none, become roots, with a gap. Returns the ids
   * of all that changed.
   */
  removeTurns(turnIds: readonly string[], heir?: string): readonly string[];
  /** A session that is marked and not gone yet. */
  nextMarked(): string | undefined;
  /** Gives back a bounded number of free pages, at most `pages`. False if there are more. */
  giveBack(pages?: number): boolean;
  /** How many pages are free. */
  countFree(): number;
}

/** What deleting some turns of a session did. */
interface Removed {
  readonly turns: number;
  /** What it cost of the budget. */
  readonly cost: number;
  /** The ids of all that changed. */
  readonly changed: readonly string[];
  /** No turn is left. */
  readonly done: boolean;
}

const maxReturnedPages = 256;

export function createRemoval(access: Access): Removal {
  const { database, prepare } = access;
  const { noteEnd, leave, findAbandoned } = createEnds(access);
  const statements = {
    findPlace: prepare(`SELECT session, parent FROM turns WHERE id = ? AND owner = ? AND ${isVisible}`),
    hasTwoChildren: prepare("SELECT 1 FROM turns WHERE parent = ? LIMIT 1 OFFSET 1"),
    moveTip: prepare(
      "UPDATE sessions SET tip = coalesce((SELECT id FROM turns WHERE id = ?), ?) WHERE id = ? AND tip = ?",
    ),
    listFollowers: prepare(`SELECT id, ${turnBytes} AS bytes FROM turns WHERE parent = ? LIMIT ?`),
    follow: prepare("UPDATE turns SET parent = ?, gap = 1 WHERE id IN (SELECT value FROM json_each(?))"),
    moveChildren: prepare(`
      UPDATE turns SET parent = (SELECT id FROM turns WHERE id = $heir), gap = 1
      WHERE parent IN (SELECT value FROM json_each($ids)) AND id NOT IN (SELECT value FROM json_each($ids))
      RETURNING id`),
    loseTip: prepare("UPDATE sessions SET tip = NULL WHERE id = ? AND tip IN (SELECT value FROM json_each(?))"),
    ofOwner: prepare("SELECT id FROM turns WHERE owner = ? AND id IN (SELECT value FROM json_each(?))"),
    removeTurns: prepare("DELETE FROM turns WHERE id IN (SELECT value FROM json_each(?))"),
    mark: prepare("UPDATE sessions SET deleted = 1, hint = NULL WHERE id = ? AND owner = ? AND deleted = 0"),
    // Children came later than their parents, so the newest go first. The index avoids a scan of all turns.
    newestOf: prepare(`
      SELECT id, ${turnBytes} AS bytes FROM turns WHERE rowid IN (
        SELECT rowid FROM turns INDEXED BY turns_by_digest WHERE session = ? ORDER BY rowid DESC LIMIT ?)
      ORDER BY rowid DESC`),
    removeSession: prepare("DELETE FROM sessions WHERE id = ?"),
    nextMarked: prepare("SELECT id FROM sessions INDEXED BY deleted_sessions WHERE deleted = 1 LIMIT 1"),
    countFree: prepare("PRAGMA freelist_count"),
  };

  function countFree(): number {
    return (statements.countFree.get() as { freelist_count: number }).freelist_count;
  }

  function readPlace(owner: string, turnId: string): TurnPlace | undefined {
    const place = statements.findPlace.get(turnId, owner) as Omit<TurnPlace, "shown"> | undefined;
    if (place === undefined) return undefined;
    const { parent } = place;
    const takesShown = parent === `${turnId}${shownSuffix}` && statements.hasTwoChildren.get(parent) === undefined;
    return { ...place, shown: takesShown ? parent : null };
  }

  function removeTurn(owner: string, turnId: string, tip?: string): readonly string[] | undefined {
    const place = readPlace(owner, turnId);
    if (place === undefined) return undefined;
    const { session, parent, shown } = place;
    if (session !== null) statements.moveTip.run(tip ?? null, parent, session, turnId);
    const changed = removeTurns([turnId], parent ?? undefined);
    return shown === null ? changed : [...changed, ...(removeTurn(owner, shown) ?? [])];
  }

  function removeTurns(turnIds: readonly string[], heir: string | null = null): readonly string[] {
    const ids = JSON.stringify(turnIds);
    const children = statements.moveChildren.all({ ids, heir }) as { id: string }[];
    leave(turnIds);
    statements.removeTurns.run(ids);
    return [...turnIds, ...children.map(({ id }) => id)];
  }

  function removeTurnsOf(sessionId: string, budget: number): Removed {
    const limit = Math.ceil(budget);
    const found = statements.newestOf.all(sessionId, limit) as { id: string; bytes: number }[];
    const { taken, cost } = takeWithin(found, budget);
    const changed = removeTurns(taken.map(({ id }) => id));
    return { turns: taken.length, cost, changed, done: taken.length < limit && taken.length === found.length };
  }

  return {
    noteEnd,
    findAbandoned,
    removeTurn,
    moveFollowers(owner, turnId) {
      const followers = statements.listFollowers.all(turnId, maxStep + 1) as { id: string; bytes: number }[];
      const ids = takeWithin(followers, maxStep).taken.map(({ id }) => id);
      const place = ids.length < followers.length ? readPlace(owner, turnId) : undefined;
      if (place === undefined) return [];
      const heir = place.shown === null ? place.parent : readPlace(owner, place.shown)?.parent;
      statements.follow.run(heir ?? null, JSON.stringify(ids));
      return ids;
    },
    forget(owner, sessionId, turnIds) {
      const found = statements.ofOwner.all(owner, JSON.stringify(turnIds)) as { id: string }[];
      const own = found.map(({ id }) => id);
      if (sessionId !== undefined) statements.loseTip.run(sessionId, JSON.stringify(own));
      return removeTurns(own);
    },
    mark: (owner, sessionId) => statements.mark.run(sessionId, owner).changes === 1,
    removeTurnsOf,
    removeSome(sessionId, budget) {
      const removed = removeTurnsOf(sessionId, budget);
      if (removed.done) statements.removeSession.run(sessionId);
      return removed;
    },
    removeTurns,
    nextMarked: () => (statements.nextMarked.get() as { id: string } | undefined)?.id,
    giveBack(pages = maxReturnedPages) {
      const before = countFree();
      if (before > 0) database.exec(`PRAGMA incremental_vacuum(${Math.min(pages, maxReturnedPages)})`);
      const after = countFree();
      // A file created without auto_vacuum keeps its pages for later turns: continuing would never end.
      return after === 0 || after === before;
    },
    countFree,
  };
}

interface TurnPlace {
  readonly session: string | null;
  readonly parent: string | null;
  /** The history that was shown with it, if nothing else follows that: it goes too. */
  readonly shown: string | null;
}
