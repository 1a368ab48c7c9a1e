/** What is written though no turn waits for it, while other processes write as well. */
import { setTimeout as wait } from "node:timers/promises";
import { cold, type Tables, toNumber } from "../cold.ts";
import type { Erasure } from "../deletions.ts";
import { createWrites } from "../writes.ts";
import { nextNumber } from "./layout.ts";
import { removeUnownedDeltas } from "./process.ts";

export function createOwnWrites(tables: Tables) {
  const { run, all } = tables;
  const writes = createWrites(tables, nextNumber);

  /** What was said of turns that run, or ran in a process that died. */
  async function unsay(column: "session" | "turn" | "person", id: number): Promise<void> {
    await run(`DELETE FROM running WHERE ${column} = ?`, id);
    await run(removeUnownedDeltas);
  }

  /** The transactions that write turns now. */
  async function findWriters(): Promise<readonly string[]> {
    return (await all<{ readonly id: string }>(writersStatement)).map(({ id }) => id);
  }

  return {
    ...writes,
    /** Whoever makes the session just now is waited for; whoever makes it next sees that it was erased. */
    async dropSession(erasure: Erasure): Promise<boolean> {
      const id = toNumber(erasure.name);
      if ((await run(takePlace, id, erasure.name)) === 1) await run(cold.removeSession, id);
      const isGone = await writes.dropSession(erasure);
      // An operator erases also what was not stored yet.
      if (isGone || erasure.owner === undefined) await unsay("session", id);
      return isGone;
    },
    async takeOutPerson(given: { readonly person: number }): Promise<readonly string[]> {
      const keys = await writes.takeOutPerson(given);
      await unsay("person", given.person);
      return keys;
    },
    /**
     * Waits for the transactions that may have looked for the mark of an erasure too early: each holds a lock on the
     * table of turns from before it looks until it ends. To ask for a lock instead would hold up all later turns.
     */
    async awaitCommits(): Promise<void> {
      const early = new Set(await findWriters());
      while ((await findWriters()).some((id) => early.has(id))) await wait(pauseMs);
    },
    async forget(given: { readonly owner: string; readonly key: string }): Promise<boolean> {
      const isGone = await writes.forget(given);
      if (isGone) await unsay("turn", toNumber(given.key));
      return isGone;
    },
  };
}

const pauseMs = 20;
const writersStatement = `SELECT virtualtransaction AS id FROM pg_locks WHERE locktype = 'relation'
  AND relation = 'turn'::regclass AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid()
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
const takePlace = `INSERT INTO session (id, n, name, owner, kind, shows, metadata, created, used)
  VALUES (?, ${nextNumber}, ?, '', 'hidden', 0, '{}', 0, 0) ON CONFLICT DO NOTHING`;
