/** How turns and sessions leave the SQLite store: for good, little by little, and with their space given back. */
import { shownSuffix } from "../../core/conversation/address.ts";
import type { Keeping } from "../../core/store.ts";
import type { Ground } from "./ground.ts";
import { isThere } from "./search.ts";
import { maxStep, takeWithin, turnBytes } from "./size.ts";

/** What a write does to let go of turns; each must run in the group. */
export interface Removal {
  /** Deletes turns; those of their children that stay are roots now, with a gap. Tells the ids of all that changed. */
  forget(owner: string, sessionId: string | undefined, turnIds: readonly string[]): readonly string[];
  /** Makes a session invisible and frees its hint. False: the owner has no such session. */
  mark(owner: string, sessionId: string): boolean;
  /** Deletes as many turns of a marked session as the budget is enough for, and with the last of them the session. */
  removeSome(sessionId: string, budget: number): Removed;
  /** Deletes turns; those of their children that stay are roots now, with a gap. Tells the ids of all that changed. */
  removeTurns(turnIds: readonly string[]): readonly string[];
  /** A session that is marked and not gone yet. */
  nextMarked(): string | undefined;
  /** Gives a bounded number of free pages back. False: there are more. */
  giveBack(): boolean;
}

/** What came of deleting some turns of a session. */
interface Removed {
  readonly turns: number;
  /** What it took of the budget. */
  readonly cost: number;
  /** The ids of all that changed. */
  readonly changed: readonly string[];
  /** The session is gone. */
  readonly done: boolean;
}

const maxReturnedPages = 256;

export function createRemoval({ database }: Ground): Removal {
  const statements = {
    cutChildren: database.prepare(`
      UPDATE turns SET parent = NULL, gap = 1
      WHERE parent IN (SELECT value FROM json_each($ids)) AND id NOT IN (SELECT value FROM json_each($ids))
      RETURNING id`),
    loseTip: database.prepare(
      "UPDATE sessions SET tip = NULL WHERE id = ? AND tip IN (SELECT value FROM json_each(?))",
    ),
    ofOwner: database.prepare("SELECT id FROM turns WHERE owner = ? AND id IN (SELECT value FROM json_each(?))"),
    removeTurns: database.prepare("DELETE FROM turns WHERE id IN (SELECT value FROM json_each(?))"),
    mark: database.prepare(
      "UPDATE sessions SET deleted = 1, hint = NULL, tip = NULL WHERE id = ? AND owner = ? AND deleted = 0",
    ),
    // Children came later than their parents, so the newest go first. The index saves a walk through all turns.
    newestOf: database.prepare(`
      SELECT id, ${turnBytes} AS bytes FROM turns WHERE rowid IN (
        SELECT rowid FROM turns INDEXED BY turns_by_digest WHERE session = ? ORDER BY rowid DESC LIMIT ?)
      ORDER BY rowid DESC`),
    removeSession: database.prepare("DELETE FROM sessions WHERE id = ?"),
    nextMarked: database.prepare("SELECT id FROM sessions INDEXED BY deleted_sessions WHERE deleted = 1 LIMIT 1"),
    countFree: database.prepare("PRAGMA freelist_count"),
  };

  function countFree(): number {
    return (statements.countFree.get() as { freelist_count: number }).freelist_count;
  }

  function removeTurns(turnIds: readonly string[]): readonly string[] {
    const ids = JSON.stringify(turnIds);
    const children = statements.cutChildren.all({ ids }) as { id: string }[];
    statements.removeTurns.run(ids);
    return [...turnIds, ...children.map(({ id }) => id)];
  }

  return {
    forget(owner, sessionId, turnIds) {
      const found = statements.ofOwner.all(owner, JSON.stringify(turnIds)) as { id: string }[];
      const own = found.map(({ id }) => id);
      if (sessionId !== undefined) statements.loseTip.run(sessionId, JSON.stringify(own));
      return removeTurns(own);
    },
    mark: (owner, sessionId) => statements.mark.run(sessionId, owner).changes === 1,
    removeSome(sessionId, budget) {
      const limit = Math.ceil(budget);
      const found = statements.newestOf.all(sessionId, limit) as { id: string; bytes: number }[];
      const { taken, cost } = takeWithin(found, budget);
      const changed = removeTurns(taken.map(({ id }) => id));
      const done = taken.length < limit && taken.length === found.length;
      if (done) statements.removeSession.run(sessionId);
      return { turns: taken.length, cost, changed, done };
    },
    removeTurns,
    nextMarked: () => (statements.nextMarked.get() as { id: string } | undefined)?.id,
    giveBack() {
      const before = countFree();
      if (before > 0) database.exec(`PRAGMA incremental_vacuum(${maxReturnedPages})`);
      const after = countFree();
      // A file that was made without this ability keeps its pages for later turns: to go on would never end.
      return after === 0 || after === before;
    },
  };
}

/** Gives the space of what was just deleted back, of the file and of its log. */
export async function returnSpace({ group, checkpoints }: Ground, removal: Removal): Promise<void> {
  for (let steps = 1; !(await group.add(removal.giveBack)) && steps < maxReturns; steps += 1) await pause();
  await checkpoints.emptyLog();
}

/** Between two steps another process gets its turn: it looks for the file only now and then, and gives up after a second. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, pauseMs));
}

const pauseMs = 10;

/** A megabyte each, and more than a request brings. What else is free goes when the store is pruned, and nobody waits for it. */
const maxReturns = 32;

/** What a caller deletes is invisible at once, and gone when the promise resolves. */
export function createDeletion(ground: Ground, removal: Removal): Pick<Keeping, "deleteTurn" | "deleteSession"> {
  const { database, checkpoints, group, recent } = ground;
  const findPlace = database.prepare(`SELECT session, parent FROM turns WHERE id = ? AND owner = ? AND ${isThere}`);
  const moveChildren = database.prepare("UPDATE turns SET parent = ?, gap = 1 WHERE parent = ? RETURNING id");
  const hasTwoChildren = database.prepare("SELECT 1 FROM turns WHERE parent = ? LIMIT 1 OFFSET 1");
  const moveTip = database.prepare("UPDATE sessions SET tip = ? WHERE id = ? AND tip = ?");

  /** Tells the ids of all that changed. */
  function removeTurn(owner: string, turnId: string): readonly string[] | undefined {
    const place = findPlace.get(turnId, owner) as { session: string | null; parent: string | null } | undefined;
    if (place === undefined) return undefined;
    const { session, parent } = place;
    const takesShown = parent === `${turnId}${shownSuffix}` && hasTwoChildren.get(parent) === undefined;
    const children = moveChildren.all(parent, turnId) as { id: string }[];
    if (session !== null) moveTip.run(parent, session, turnId);
    removal.removeTurns([turnId]);
    const changed = [turnId, ...children.map(({ id }) => id)];
    return takesShown ? [...changed, ...(removeTurn(owner, parent) ?? [])] : changed;
  }

  /** True: the session is gone, and its space too. */
  async function removeStep(sessionId: string): Promise<boolean> {
    const { isGone } = await group.add(
      () => {
        const { changed, done } = removal.removeSome(sessionId, maxStep);
        return { changed, isGone: removal.giveBack() && done };
      },
      ({ changed }) => recent.forget(changed),
    );
    return isGone;
  }

  return {
    async deleteTurn(owner, turnId) {
      const changed = await group.add(
        () => removeTurn(owner, turnId),
        (ids) => recent.forget(ids ?? []),
      );
      if (changed !== undefined) await returnSpace(ground, removal);
      return changed !== undefined;
    },
    async deleteSession(owner, sessionId) {
      const isMarked = await group.add(
        () => removal.mark(owner, sessionId),
        (isDone) => isDone && recent.forgetSessions([sessionId]),
      );
      if (!isMarked) return false;
      while (!(await removeStep(sessionId))) await pause();
      await checkpoints.emptyLog();
      return true;
    },
  };
}
