/** What is written though no turn waits for it, while other processes write as well. */
import { cold, type Tables, toNumber } from "../cold.ts";
import type { Erasure } from "../deletions.ts";
import { createWrites } from "../writes.ts";
import { nextNumber } from "./layout.ts";
import { removeUnownedDeltas } from "./process.ts";

export function createOwnWrites(tables: Tables) {
  const { run } = tables;
  const writes = createWrites(tables, nextNumber);

  /** What was said of turns that run, or ran in a process that died. */
  async function unsay(column: "session" | "turn" | "person", id: number): Promise<void> {
    await run(`DELETE FROM running WHERE ${column} = ?`, id);
    await run(removeUnownedDeltas);
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
      await unsay("person", given.person);
      return writes.takeOutPerson(given);
    },
    /** Waits for the turns that looked for the mark of an erasure too early: writing them holds a lock on the table. */
    async awaitCommits(): Promise<void> {
      await run("LOCK TABLE turn IN SHARE MODE");
    },
    async forget(given: { readonly owner: string; readonly key: string }): Promise<boolean> {
      const isGone = await writes.forget(given);
      if (isGone) await unsay("turn", toNumber(given.key));
      return isGone;
    },
  };
}

const takePlace = `INSERT INTO session (id, n, name, owner, kind, shows, metadata, created, used)
  VALUES (?, ${nextNumber}, ?, '', 'hidden', 0, '{}', 0, 0) ON CONFLICT DO NOTHING`;
