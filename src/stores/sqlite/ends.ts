/** Notes where threads of the SQLite store may end besides their sessions' tips, to find abandoned ones by age. */
import type { Access } from "./access.ts";
import { isFollowable, isLeaf } from "./search.ts";
import { costOf, turnBytes } from "./size.ts";

/**
 * A tip is not among them, so a session with one thread costs nothing here. Whatever may turn another turn into an end
 * notes it; whether something follows by now is checked when it is old. Each must run in the group.
 */
export interface Ends {
  noteEnd(turnId: string): void;
  /** Notes the parents of turns about to be deleted, and forgets the turns. */
  leave(turnIds: readonly string[]): void;
  /**
   * Abandoned threads, the oldest first: the ids of their turns from the end up to where another branches off or a turn
   * is younger or in use, within the budget, and what finding and deleting them costs. If nothing, there are no more.
   */
  findAbandoned(
    before: number,
    inUse: ReadonlySet<string>,
    budget: number,
  ): { readonly ids: readonly string[]; readonly cost: number };
}

export function createEnds(access: Access): Ends {
  const statements = prepareEnds(access);

  /** The parent of a turn about to be deleted, if it is old too and nothing else follows it. */
  function findBefore({ id, parent }: AbandonedTurn, before: number): AbandonedTurn | undefined {
    return parent === null ? undefined : (statements.findBefore.get(parent, before, id) as AbandonedTurn | undefined);
  }

  return {
    noteEnd: (turnId) => void statements.note.run(turnId),
    leave(turnIds) {
      const ids = JSON.stringify(turnIds);
      statements.noteParents.run(ids);
      statements.forgetAll.run(ids);
    },
    findAbandoned(before, inUse, budget) {
      const found = statements.findOld.all(
        before,
        JSON.stringify([...inUse]),
        Math.ceil(budget),
      ) as unknown as EndRow[];
      const ids: string[] = [];
      let cost = found.length / looksPerRemoval;
      for (const end of found) {
        if (end.is_left !== 1) statements.forget.run(end.created, end.id);
        else {
          for (let turn: AbandonedTurn | undefined = end; turn && cost < budget; turn = findBefore(turn, before)) {
            if (inUse.has(turn.id)) break;
            ids.push(turn.id);
            cost += costOf(turn);
          }
        }
      }
      return { ids, cost };
    },
  };
}

/** How many ends, with what may follow them, can be read for the cost of deleting one. */
const looksPerRemoval = 4;

interface AbandonedTurn {
  readonly id: string;
  readonly parent: string | null;
  readonly bytes: number;
}

interface EndRow extends AbandonedTurn {
  readonly created: number;
  /** Not 1: something follows it, or it is its session's tip, or it is gone. */
  readonly is_left: number | null;
}

/** It was said, and is not its session's tip. */
const isOffTip = `${isFollowable}
  AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = turns.session AND sessions.tip = turns.id)`;

function prepareEnds({ prepare }: Access) {
  const listed = "SELECT value FROM json_each(?)";
  return {
    note: prepare(
      "INSERT OR IGNORE INTO ends (created, turn) SELECT created, id FROM turns WHERE id = ? AND session IS NOT NULL",
    ),
    // The plus keeps the planner from scanning all turns in sessions.
    noteParents: prepare(`
      INSERT OR IGNORE INTO ends (created, turn) SELECT created, id FROM turns
      WHERE +session IS NOT NULL AND id IN (SELECT parent FROM turns WHERE id IN (${listed}))`),
    forget: prepare("DELETE FROM ends WHERE created = ? AND turn = ?"),
    forgetAll: prepare(
      `DELETE FROM ends WHERE (created, turn) IN (SELECT created, id FROM turns WHERE id IN (${listed}))`,
    ),
    findOld: prepare(`
      SELECT ends.turn AS id, ends.created, turns.parent, ${turnBytes} AS bytes, ${isOffTip} AND ${isLeaf} AS is_left
      FROM ends LEFT JOIN turns ON turns.id = ends.turn
      WHERE ends.created < ? AND ends.turn NOT IN (${listed}) AND NOT EXISTS (
        SELECT 1 FROM turns AS next WHERE next.parent = ends.turn AND next.status = 'running')
      ORDER BY ends.created, ends.turn LIMIT ?`),
    findBefore: prepare(`
      SELECT id, parent, ${turnBytes} AS bytes FROM turns
      WHERE id = ? AND +session IS NOT NULL AND created < ? AND ${isOffTip} AND NOT EXISTS (
        SELECT 1 FROM turns AS next WHERE next.parent = turns.id AND next.id <> ?)`),
  };
}
