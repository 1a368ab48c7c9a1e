/** What SQLite's thread writes while a turn waits for it, and what only SQLite has. */
import { cold, createTables, type Prepare } from "./cold.ts";
import { createDeletions, type Step } from "./deletions.ts";
import type { TurnRow } from "./rows.ts";
import { createAddTurn, type Numbered } from "./writes.ts";

/** How many pages one step gives back. */
const stepPages = 256;

export function createCommit(prepare: Prepare) {
  const tables = createTables(prepare);
  const { one, run } = tables;
  const { read, removeTurn } = createDeletions(tables);
  const addTurn = createAddTurn(tables);
  const lead = prepare(leadStatement);

  /** Nobody else may take the place of a session that was deleted meanwhile, or whose name has the same number. */
  async function refuse(id: number, name: string): Promise<void> {
    const known = await one<{ readonly name: string }>(cold.sessionById, id);
    if (known !== undefined && known.name !== name)
      throw new Error(`The sessions ${name} and ${known.name} have the same key.`);
  }

  return {
    /** In the place of what was kept when it began. False: the session was deleted after that. */
    async commit(row: TurnRow): Promise<boolean> {
      const { session, values, tip, learns, record } = row;
      const [id, name, owner, kind, created] = session;
      const turn = Number(values[0]);
      const begun = record && (await read(turn));
      if (begun !== undefined) await removeTurn(begun);
      const own = lead.get(id, name, owner, kind, learns ? 1 : 0, created, turn, tip) as Numbered | undefined;
      if (own === undefined) {
        await refuse(id, name);
        return false;
      }
      await addTurn(own.n, row);
      if (record !== undefined) await run(recordStatement, turn, own.n, ...record);
      return true;
    },

    /** Whether anything of this size can be written. */
    async probe({ bytes }: { readonly bytes: number }): Promise<void> {
      await run(cold.setNote, "probe", "0".repeat(bytes));
    },

    /** Space that is free goes back to the disk. */
    async giveBack(): Promise<Step> {
      const countFree = async () =>
        (await one<{ readonly freelist_count: number }>("PRAGMA freelist_count"))?.freelist_count;
      const before = await countFree();
      if (before !== 0) prepare(`PRAGMA incremental_vacuum(${stepPages})`).all();
      const left = await countFree();
      return { turns: 0, isDone: left === 0 || left === before };
    },
  };
}

/** Numbers are given by the file, for the command line may make sessions beside us; not those of sessions half removed. */
export const nextNumber =
  "1 + max((SELECT coalesce(max(n), 0) FROM session), (SELECT coalesce(max(n), 0) FROM doomed))";
/** Makes the session, or moves its tip if it stands where it was seen; a deleted one stays deleted for turns that began before. */
const leadStatement = `INSERT INTO session (id, n, name, owner, kind, shows, tip, metadata, created, used)
  SELECT ?1, ${nextNumber}, ?2, ?3, ?4, ?5, CASE WHEN ?8 IS NULL THEN ?7 END, '{}', ?6, ?6
    WHERE NOT EXISTS (SELECT 1 FROM erased WHERE id = ?1 AND moment >= ?7)
  ON CONFLICT (id) DO UPDATE SET tip = CASE WHEN tip IS ?8 THEN ?7 ELSE tip END,
    shows = max(shows, excluded.shows), used = max(used, excluded.used)
    WHERE name = excluded.name AND owner = excluded.owner
  RETURNING n`;
const recordStatement = `INSERT INTO record
  (turn, session, background, unnamed, told, items, name, fingerprint, log) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
