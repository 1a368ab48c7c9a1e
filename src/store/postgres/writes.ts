/** What is written though no turn waits for it, while other processes write as well. */
import { cold, type Tables, toNumber } from "../cold.ts";
import type { Erasure } from "../deletions.ts";
import { createWrites } from "../writes.ts";
import { nextNumber } from "./layout.ts";

export function createOwnWrites(tables: Tables) {
  const { run } = tables;
  const writes = createWrites(tables, nextNumber);
  return {
    ...writes,
    /** Whoever makes the session just now is waited for; whoever makes it next sees that it was erased. */
    async dropSession(erasure: Erasure): Promise<boolean> {
      const id = toNumber(erasure.name);
      if ((await run(takePlace, id, erasure.name)) === 1) await run(cold.removeSession, id);
      const isGone = await writes.dropSession(erasure);
      if (isGone) for (const statement of unsaid) await run(statement, id);
      return isGone;
    },
  };
}

const takePlace = `INSERT INTO session (id, n, name, owner, kind, shows, metadata, created, used)
  VALUES (?, ${nextNumber}, ?, '', 'hidden', 0, '{}', 0, 0) ON CONFLICT DO NOTHING`;
/** What turns of it have said, wherever they run. */
const unsaid = [
  "DELETE FROM delta WHERE turn IN (SELECT turn FROM running WHERE session = ?)",
  "DELETE FROM running WHERE session = ?",
];
