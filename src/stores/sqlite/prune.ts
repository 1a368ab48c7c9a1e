/** Deletes what the rules no longer keep: a bounded number at a time, the oldest first. */
import type { PruneRules, Pruned } from "../../core/store.ts";
import type { Access } from "./access.ts";
import { hourOf } from "./writer.ts";
import { toTree } from "./sessionless.ts";
import type { Removal } from "./removal.ts";
import { maxStep, takeWithin, turnBytes } from "./size.ts";
import { createFindSurplus, type Surplus } from "./surplus.ts";

export function createPrune(access: Access, removal: Removal): (rules: PruneRules) => Promise<Pruned> {
  const { checkpoints, group, recent } = access;
  const statements = preparePrune(access);
  const findSurplus = createFindSurplus(access);
  /** Old roots with new descendants stay: the next call continues after the last one examined. */
  let lastRoot = beforeAll;
  /** The rest of a tree being deleted, leaves first: a large one is not read again for each part of it. */
  let removing: readonly Leaf[] = [];
  /** Its age limit, the ids in it, and the newest turn when it was last examined. */
  let [removingBefore, removingIds, newest] = [0, new Set<string>(), 0];
  /** What owners have too many, and is not deleted yet: finding it takes too long to do so again in every step of a run. */
  let [surplus, surplusRules] = [noSurplus, noRules];

  /** Each step spends from the budget, and later ones get what is left. None stops early unless it is spent. */
  function prune(rules: PruneRules, found: Surplus): Done {
    const spent: Spent = { sessions: 0, turns: 0, budget: maxStep, marked: [], changed: [] };
    const { idleBefore, keysBefore, piecesBefore, maxSessionsPerOwner: max } = rules;
    const inUse = rules.inUse?.() ?? new Set();
    removeMarked(spent);
    if (idleBefore !== undefined) removeIdle(idleBefore.getTime(), inUse, spent);
    const left = max === undefined ? found : removeSurplus(found, max, inUse, spent);
    if (idleBefore !== undefined) removeFailed(idleBefore.getTime(), spent);
    if (idleBefore !== undefined) removeAbandoned(idleBefore.getTime(), inUse, spent);
    if (idleBefore !== undefined) removeSessionless(idleBefore.getTime(), inUse, spent);
    const keys = keysBefore === undefined ? 0 : statements.removeKeys.run(keysBefore.getTime(), maxKeys).changes;
    if (piecesBefore !== undefined) clearPieces(piecesBefore.getTime(), spent);
    const isGivenBack = removal.giveBack();
    const { sessions, turns, budget } = spent;
    const hasSurplus = left.sessions.length > 0 || !left.isAll;
    const more = budget <= 0 || hasSurplus || Number(keys) === maxKeys || !isGivenBack;
    return { pruned: { sessions, turns, more }, spent, left };
  }

  function removeMarked(spent: Spent): void {
    while (spent.budget > 0) {
      const sessionId = removal.nextMarked();
      if (sessionId === undefined) return;
      const { turns, cost, changed, done } = removal.removeSome(sessionId, spent.budget);
      spent.turns += turns;
      spent.budget -= cost + 1;
      spent.changed.push(...changed);
      if (done) spent.sessions += 1;
    }
  }

  function removeIdle(before: number, inUse: InUse, spent: Spent): void {
    if (spent.budget <= 0) return;
    markAll(statements.findIdle.all(hourOf(before), before, toJson(inUse), spent.budget), spent);
    removeMarked(spent);
  }

  /** Returns what is left of it. Sessions that were used since they were found stay, and others may go instead. */
  function removeSurplus({ sessions, isAll }: Surplus, max: number, inUse: InUse, spent: Spent): Surplus {
    const examined = sessions.slice(0, Math.max(0, Math.ceil(spent.budget)));
    const unused = examined.filter(({ id }) => !inUse.has(id));
    const unchanged = statements.findUnchanged.all(JSON.stringify(unused)) as { id: string; owner: string }[];
    for (const [owner, own] of Map.groupBy(unchanged, (session) => session.owner)) {
      // It may have deleted others meanwhile.
      const { count } = statements.countUpTo.get(owner, max + own.length) as { count: number };
      markAll(own.slice(0, Math.max(0, count - max)), spent);
    }
    removeMarked(spent);
    return { sessions: sessions.slice(examined.length), isAll: isAll && unchanged.length === examined.length };
  }

  function markAll(rows: readonly unknown[], { marked }: Spent): void {
    for (const { id, owner } of rows as { id: string; owner: string }[]) if (removal.mark(owner, id)) marked.push(id);
  }

  /** Failed and cancelled turns go by their own age: the session beside them may be in use forever. */
  function removeFailed(before: number, spent: Spent): void {
    if (spent.budget <= 0) return;
    const found = statements.findFailed.all(before, Math.ceil(spent.budget)) as { id: string; bytes: number }[];
    const { taken, cost } = takeWithin(found, spent.budget);
    spent.changed.push(...removal.removeTurns(taken.map(({ id }) => id)));
    spent.turns += taken.length;
    spent.budget -= cost;
  }

  /** What the first turn of an abandoned thread followed may then be an end, so it is examined next. */
  function removeAbandoned(before: number, inUse: InUse, spent: Spent): void {
    while (spent.budget > 0) {
      const { ids, cost } = removal.findAbandoned(before, inUse, spent.budget);
      if (cost === 0) return;
      spent.changed.push(...removal.removeTurns(ids));
      spent.turns += ids.length;
      spent.budget -= cost;
    }
  }

  /** Whole trees outside of sessions without new turns, leaves first. */
  function removeSessionless(before: number, inUse: InUse, spent: Spent): void {
    if (before < removingBefore || isContinued(inUse)) removing = [];
    continueRemoving(spent);
    if (spent.budget <= 0) return;
    const roots = statements.findRoots.all({ ...lastRoot, before, limit: maxStep }) as unknown as Root[];
    for (const root of roots) {
      if (spent.budget <= 0) return;
      const tree = statements.readTree.all(root.number) as unknown as Leaf[];
      if (tree.some(({ id, created, status }) => created >= before || status === "running" || inUse.has(id))) {
        lastRoot = { created: root.created, number: root.number };
        spent.budget -= 1 + tree.length / readsPerRemoval;
        continue;
      }
      removing = tree;
      removingBefore = before;
      removingIds = new Set(tree.map(({ id }) => id));
      continueRemoving(spent);
    }
    // Else the same roots might use up the budget again and again.
    if (spent.budget > 0) lastRoot = beforeAll;
  }

  /** Whether a new turn follows what is left, or will: then it stays. */
  function isContinued(inUse: InUse): boolean {
    if (removing.length === 0) return false;
    if (!removingIds.isDisjointFrom(inUse)) return true;
    const parents = statements.parentsBehind.all(newest) as { parent: string }[];
    return parents.some(({ parent }) => removingIds.has(parent));
  }

  function continueRemoving(spent: Spent): void {
    while (spent.budget > 0 && removing.length > 0) {
      const { taken, cost } = takeWithin(removing, spent.budget);
      const ids = taken.map(({ id }) => id);
      // Something follows them by now: the tree is examined again later.
      if (statements.isFollowed.get({ ids: JSON.stringify(ids) }) !== undefined) removing = [];
      else {
        removing = removing.slice(taken.length);
        spent.changed.push(...removal.removeTurns(ids));
        spent.turns += taken.length;
      }
      spent.budget -= cost;
    }
    if (removing.length > 0) ({ newest } = statements.findNewest.get() as { newest: number });
  }

  /** Clearing them rewrites the whole turn. */
  function clearPieces(before: number, spent: Spent): void {
    if (spent.budget <= 0) return;
    const found = statements.findPieces.all(before, Math.ceil(spent.budget)) as { number: number; bytes: number }[];
    const { taken, cost } = takeWithin(found, spent.budget);
    statements.clearPieces.run(JSON.stringify(taken.map(({ number }) => number)));
    spent.budget -= cost;
  }

  async function readSurplus(rules: PruneRules): Promise<Surplus> {
    const { maxSessionsPerOwner, inUse = () => new Set() } = rules;
    if (maxSessionsPerOwner === undefined) return noSurplus;
    if (rules === surplusRules && (surplus.isAll || surplus.sessions.length > 0)) return surplus;
    return findSurplus(maxSessionsPerOwner, inUse());
  }

  return async (rules) => {
    const found = await readSurplus(rules);
    const { pruned } = await group.add(
      () => prune(rules, found),
      ({ spent, left }) => {
        [surplus, surplusRules] = [left, rules];
        recent.forgetSessions(spent.marked);
        recent.forget(spent.changed);
      },
    );
    if (!pruned.more) await checkpoints.emptyLog();
    return pruned;
  };
}

/** How many keys go in one call. */
const maxKeys = 500;

/** How much cheaper reading a turn is than deleting it. */
const readsPerRemoval = 20;

const noRules: PruneRules = {};
const noSurplus: Surplus = { sessions: [], isAll: true };

const beforeAll: Pick<Root, "created" | "number"> = { created: Number.MIN_SAFE_INTEGER, number: 0 };

interface Spent {
  sessions: number;
  turns: number;
  budget: number;
  /** The sessions that are invisible now. */
  readonly marked: string[];
  /** The ids of turns deleted or changed. */
  readonly changed: string[];
}

interface Done {
  readonly pruned: Pruned;
  readonly spent: Spent;
  /** What owners still have too many. */
  readonly left: Surplus;
}

interface Root {
  readonly number: number;
  readonly created: number;
}

interface Leaf {
  readonly id: string;
  readonly created: number;
  readonly status: string;
  readonly bytes: number;
}

type InUse = ReadonlySet<string>;

function toJson(inUse: InUse): string {
  return JSON.stringify([...inUse]);
}

const isUnused = "id NOT IN (SELECT value FROM json_each(?))";

function preparePrune({ prepare }: Access) {
  return {
    // In any order within an hour: to sort a million sessions for each step would delay requests.
    findIdle: prepare(`
      SELECT id, owner FROM sessions INDEXED BY sessions_by_activity
      WHERE deleted = 0 AND active <= ? AND updated < ? AND ${isUnused} ORDER BY active LIMIT ?`),
    findUnchanged: prepare(`
      SELECT sessions.id, owner FROM json_each(?) AS found
      CROSS JOIN sessions ON sessions.id = found.value ->> 'id' AND updated = found.value ->> 'updated'
      WHERE deleted = 0`),
    countUpTo: prepare(`
      SELECT count(*) AS count
      FROM (SELECT 1 FROM sessions INDEXED BY sessions_by_owner WHERE deleted = 0 AND owner = ? LIMIT ?)`),
    findFailed: prepare(`
      SELECT id, ${turnBytes} AS bytes FROM turns INDEXED BY failed_turns
      WHERE status IN ('failed', 'cancelled') AND created < ?
        AND NOT EXISTS (SELECT 1 FROM turns AS child WHERE child.parent = turns.id)
      ORDER BY created LIMIT ?`),
    findRoots: prepare(`
      SELECT rowid AS number, created FROM turns INDEXED BY loose_roots
      WHERE session IS NULL AND parent IS NULL AND created < $before AND (created, rowid) > ($created, $number)
      ORDER BY created, rowid LIMIT $limit`),
    // Children came later than their parents, so the newest go first.
    readTree: prepare(`
      WITH RECURSIVE ${toTree("rowid = ?")} SELECT id, created, status, bytes FROM tree ORDER BY number DESC`),
    findNewest: prepare("SELECT ifnull(max(rowid), 0) AS newest FROM turns"),
    parentsBehind: prepare("SELECT parent FROM turns WHERE rowid > ? AND session IS NULL AND parent IS NOT NULL"),
    isFollowed: prepare(`
      SELECT 1 FROM turns WHERE session IS NULL AND parent IN (SELECT value FROM json_each($ids))
        AND id NOT IN (SELECT value FROM json_each($ids)) LIMIT 1`),
    removeKeys: prepare(`
      DELETE FROM keys WHERE (owner, hash) IN (SELECT owner, hash FROM keys WHERE created < ? ORDER BY created LIMIT ?)`),
    findPieces: prepare(`
      SELECT rowid AS number, ${turnBytes} AS bytes FROM turns INDEXED BY pieces_by_end
      WHERE pieces IS NOT NULL AND ended < ? ORDER BY ended LIMIT ?`),
    clearPieces: prepare("UPDATE turns SET pieces = NULL WHERE rowid IN (SELECT value FROM json_each(?))"),
  };
}
