/** The writer's part of the retention: old threads go from their ends, long ones from their beginnings, a step at a time. */
import { cold, type Tables } from "./cold.ts";
import { createNotes, type Deletions, type DoomedTurn, type Step } from "./deletions.ts";
import type { UnusedSession } from "./reads.ts";

/** How many turns one step removes, at most: some milliseconds. */
const stepTurns = 50;
/** How many turns one step looks at. */
const stepReads = 500;
/** How many pages one step gives back. */
const stepPages = 256;

export function createAging({ one, all, run }: Tables, { read, isFollowed, removeTurn }: Deletions) {
  const notes = createNotes({ one, run });
  const turnsBehind = (n: number) => all<TurnRead>(cold.turnsBehind, n, stepReads);
  const countFree = () => one<{ readonly freelist_count: number }>("PRAGMA freelist_count")?.freelist_count ?? 0;

  /** From an old end upwards, until something that stays. Tells how many went, and where it stopped because they were enough. */
  function removeUp(from: number, before: number, kept: ReadonlySet<number>, most: number) {
    let turns = 0;
    for (let row = read(from); row !== undefined; row = read(row.parent)) {
      const isOver = row.created < before || row.told === "";
      if (!isOver || kept.has(row.n) || isFollowed(row.n)) break;
      if (turns === most) return { turns, rest: row.n };
      removeTurn(row);
      turns += 1;
    }
    return { turns, rest: 0 };
  }

  /** Beyond its newest turns a thread keeps nothing but what another thread has as well. */
  function cutBeginning(end: number, most: number): number {
    let first: number | null = end;
    for (let count = 0; count < most && first !== null; count += 1)
      first = one<{ readonly parent: number | null }>(cold.parent, first)?.parent ?? null;
    const surplus: DoomedTurn[] = [];
    for (let row = read(first); row !== undefined; row = read(row.parent)) {
      if (all(cold.followers, row.n).length > 1) break;
      surplus.push(row);
    }
    for (const row of surplus) removeTurn(row);
    return surplus.length;
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
      let isDone = false;
      for (const { n, created } of rows) {
        isDone = created >= before || (kept.has(n) && !isFollowed(n));
        if (isDone) break;
        const done = removeUp(n, before, kept, stepTurns - turns);
        notes.write("aged", n);
        turns += done.turns;
        ({ rest } = done);
        if (rest > 0) break;
      }
      notes.write("aging", rest);
      return { turns, isDone: rest === 0 && (isDone || rows.length < stepReads) };
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
      const kept = new Set(given.inUse.map((n) => one<{ readonly session: number }>(cold.sessionOfTurn, n)?.session));
      const unused = given.sessions.filter(({ n }) => !kept.has(n));
      const dropped = unused.filter(({ n, used }) => run(cold.removeUnusedSession, n, used) === 1);
      for (const { n } of dropped) run(cold.doom, n);
      return dropped.length;
    },

    /** Space that is free goes back to the disk. */
    giveBack(): Step {
      const before = countFree();
      if (before > 0) all(`PRAGMA incremental_vacuum(${stepPages})`);
      const left = countFree();
      return { turns: 0, isDone: left === 0 || left === before };
    },
  };
}

interface TurnRead {
  readonly n: number;
  readonly depth: number;
  readonly created: number;
}
