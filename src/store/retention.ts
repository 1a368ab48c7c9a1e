/** The writer's part of the retention: old threads go from their ends, long ones from their beginnings, a step at a time. */
import { cold, type Tables } from "./cold.ts";
import { createNotes, type Deletions, type DoomedTurn, type Step } from "./deletions.ts";
import type { UnusedSession } from "./reads.ts";

/** How many turns one step removes, at most: some milliseconds. */
const stepTurns = 50;
/** How many turns one step looks at. */
const stepReads = 500;

export function createAging({ one, all, run }: Tables, { read, isFollowed, removeTurn }: Deletions) {
  const notes = createNotes({ one, run });
  const turnsBehind = (n: number) => all<TurnRead>(cold.turnsBehind, n, stepReads);

  /** From an old end upwards, until something that stays. Tells how many went, and where it stopped because they were enough. */
  async function removeUp(from: number, before: number, kept: ReadonlySet<number>, most: number) {
    let turns = 0;
    for (let row = await read(from); row !== undefined; row = await read(row.parent)) {
      const isOver = row.created < before || row.told === "";
      if (!isOver || kept.has(row.n) || (await isFollowed(row.n))) break;
      if (turns === most) return { turns, rest: row.n };
      await removeTurn(row);
      turns += 1;
    }
    return { turns, rest: 0 };
  }

  /** Beyond its newest turns a thread keeps nothing but what another thread has as well. */
  async function cutBeginning(end: number, most: number): Promise<number> {
    let first: number | null = end;
    for (let count = 0; count < most && first !== null; count += 1)
      first = (await one<{ readonly parent: number | null }>(cold.parent, first))?.parent ?? null;
    const surplus: DoomedTurn[] = [];
    for (let row = await read(first); row !== undefined; row = await read(row.parent)) {
      if ((await all(cold.followers, row.n)).length > 1) break;
      surplus.push(row);
    }
    for (const row of surplus) await removeTurn(row);
    return surplus.length;
  }

  return {
    /**
     * Each turn is looked at once, when it has become old: an end goes, and with it what then is an end above it. What
     * is none goes with its last follower.
     */
    async age(given: { readonly before: number; readonly inUse: readonly number[] }): Promise<Step> {
      const { before, inUse } = given;
      const kept = new Set(inUse);
      let { turns, rest } = await removeUp(await notes.read("aging"), before, kept, stepTurns);
      const rows = rest === 0 ? await turnsBehind(await notes.read("aged")) : [];
      let isDone = false;
      for (const { n, created } of rows) {
        isDone = created >= before || (kept.has(n) && !(await isFollowed(n)));
        if (isDone) break;
        const done = await removeUp(n, before, kept, stepTurns - turns);
        await notes.write("aged", n);
        turns += done.turns;
        ({ rest } = done);
        if (rest > 0) break;
      }
      await notes.write("aging", rest);
      return { turns, isDone: rest === 0 && (isDone || rows.length < stepReads) };
    },

    /** Each turn is looked at once, when it is new; all of them when threads may be shorter than before. */
    async shorten({ most }: { readonly most: number }): Promise<Step> {
      const rows = await turnsBehind(most < (await notes.read("most")) ? 0 : await notes.read("shortened"));
      let turns = 0;
      for (const { n, depth } of rows) {
        if (depth > most && !(await isFollowed(n))) turns += await cutBeginning(n, most);
        await notes.write("shortened", n);
        if (turns >= stepTurns) break;
      }
      await notes.write("most", most);
      return { turns, isDone: rows.length < stepReads && turns < stepTurns };
    },

    async dropUnused(given: {
      readonly sessions: readonly UnusedSession[];
      readonly inUse: readonly number[];
    }): Promise<number> {
      const kept = new Set<number | undefined>();
      for (const n of given.inUse) kept.add((await one<{ readonly session: number }>(cold.sessionOfTurn, n))?.session);
      let dropped = 0;
      for (const { n, used } of given.sessions) {
        if (kept.has(n) || (await run(cold.removeUnusedSession, n, used)) === 0) continue;
        await run(cold.doom, n);
        dropped += 1;
      }
      return dropped;
    },
  };
}

interface TurnRead {
  readonly n: number;
  readonly depth: number;
  readonly created: number;
}
