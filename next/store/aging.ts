/** The writer's part of the retention: old threads go from their ends, long ones from their beginnings, a step at a time. */
import { cold } from "./cold.ts";
import { createNotes, type Deletions, type DoomedTurn } from "./deletions.ts";
import type { Prepare } from "./prepared.ts";

/** How many turns one step removes, at most: some milliseconds. */
const stepTurns = 100;
/** How many turns one step looks at. */
const stepReads = 500;
/** How many pages one step gives back. */
const stepPages = 256;

export interface Step {
  readonly turns: number;
  readonly isDone: boolean;
}

/** As it was when it was found: one that was used since stays. */
export interface UnusedSession {
  readonly n: number;
  readonly used: number;
}

export function createAging(prepare: Prepare, { read, isFollowed, removeTurn }: Deletions) {
  const notes = createNotes(prepare);
  const turnsBehind = (n: number) => prepare(cold.turnsBehind).all(n, stepReads) as unknown as readonly TurnRead[];

  /** From an old end upwards, until something that stays. Tells how many went, and where it stopped because they were enough. */
  function removeUp(from: number, before: number, kept: ReadonlySet<number>, most: number) {
    let turns = 0;
    let row = read(from);
    while (row !== undefined && isOver(row, before) && !kept.has(row.n) && !isFollowed(row.n)) {
      if (turns === most) return { turns, rest: row.n };
      removeTurn(row);
      turns += 1;
      row = row.parent === null ? undefined : read(row.parent);
    }
    return { turns, rest: 0 };
  }

  /** Beyond its newest turns a thread keeps nothing but what another thread has as well. */
  function cutBeginning(end: number, most: number): number {
    let first: number | null = end;
    for (let count = 0; count < most && first !== null; count += 1) first = parentOf(first);
    const surplus: DoomedTurn[] = [];
    for (let row = first === null ? undefined : read(first); row !== undefined;) {
      if (prepare(cold.followers).all(row.n).length > 1) break;
      surplus.push(row);
      row = row.parent === null ? undefined : read(row.parent);
    }
    for (const row of surplus) removeTurn(row);
    return surplus.length;
  }

  function parentOf(n: number): number | null {
    return (prepare(cold.parent).get(n) as { readonly parent: number | null } | undefined)?.parent ?? null;
  }

  function countFree(): number {
    return Number(prepare("PRAGMA freelist_count").get()?.["freelist_count"]);
  }

  return {
    /**
     * Each turn is looked at once, when it has become old: an end goes, and with it what then is an end above it. What
     * is none goes with its last follower.
     */
    age({ before, inUse }: { readonly before: number; readonly inUse: readonly number[] }): Step {
      const kept = new Set(inUse);
      let { turns, rest } = removeUp(notes.read("aging"), before, kept, stepTurns);
      const rows = rest === 0 ? turnsBehind(notes.read("aged")) : [];
      let isDone = rest === 0 && rows.length < stepReads;
      for (const { n, created } of rows) {
        if (created >= before || (kept.has(n) && !isFollowed(n))) {
          isDone = true;
          break;
        }
        const done = removeUp(n, before, kept, stepTurns - turns);
        notes.write("aged", n);
        turns += done.turns;
        ({ rest } = done);
        if (rest === 0) continue;
        isDone = false;
        break;
      }
      notes.write("aging", rest);
      return { turns, isDone };
    },

    /** Each turn is looked at once, when it is new; all of them when threads may be shorter than before. */
    shorten({ most }: { readonly most: number }): Step {
      const rows = turnsBehind(most < notes.read("most") ? 0 : notes.read("shortened"));
      let turns = 0;
      for (const { n, depth } of rows) {
        if (depth > most && !isFollowed(n)) turns += cutBeginning(n, most);
        notes.write("shortened", n);
        if (turns >= stepTurns) break;
      }
      notes.write("most", most);
      return { turns, isDone: rows.length < stepReads && turns < stepTurns };
    },

    dropUnused(given: { readonly sessions: readonly UnusedSession[]; readonly inUse: readonly number[] }): number {
      const kept = new Set(given.inUse.map((n) => prepare(cold.sessionOfTurn).get(n)?.["session"]));
      let dropped = 0;
      for (const { n, used } of given.sessions) {
        if (kept.has(n) || Number(prepare(cold.removeUnusedSession).run(n, used).changes) === 0) continue;
        prepare(cold.doom).run(n);
        dropped += 1;
      }
      return dropped;
    },

    forgetErased({ before }: { readonly before: number }): void {
      prepare(cold.forgetErased).run(before);
    },

    /** Space that is free goes back to the disk. */
    giveBack(): Step {
      const before = countFree();
      if (before > 0) prepare(`PRAGMA incremental_vacuum(${stepPages})`).all();
      const left = countFree();
      return { turns: 0, isDone: left === 0 || left === before };
    },
  };
}

/** Old, or an empty node. */
function isOver({ created, told }: DoomedTurn, before: number): boolean {
  return created < before || told === "";
}

interface TurnRead {
  readonly n: number;
  readonly depth: number;
  readonly created: number;
}
