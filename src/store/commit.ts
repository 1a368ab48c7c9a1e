/** A turn takes its place: it makes its session, or moves its tip; a session that was deleted meanwhile stays deleted. */
import { cold, type Tables } from "./cold.ts";
import { createDeletions } from "./deletions.ts";
import type { TurnRow } from "./rows.ts";
import { at } from "./tables.ts";
import { createAddTurn, type Numbered } from "./writes.ts";

/** `nextNumber`: what gives a new session its number, as each engine can. */
export function createCommit(tables: Tables, nextNumber: string) {
  const { one, run } = tables;
  const { read, removeTurn } = createDeletions(tables);
  const addTurn = createAddTurn(tables);
  const lead = leadStatement(nextNumber);

  /** Nobody else may take the place of a session that was deleted meanwhile, or whose name has the same number. */
  async function refuse(id: number, name: string): Promise<void> {
    const known = await one<{ readonly name: string }>(cold.sessionById, id);
    if (known !== undefined && known.name !== name)
      throw new Error(`The sessions ${name} and ${known.name} have the same key.`);
  }

  /** Replaces the row that was stored when the turn began. False: its session or its person was deleted after that. */
  return async (row: TurnRow): Promise<boolean> => {
    const { session, values, tip, learns, takesTipAs, record } = row;
    const [id, name, owner, kind, created] = session;
    const turn = Number(values[0]);
    const begun = record && (await read(turn));
    if (begun !== undefined) await removeTurn(begun);
    const shows = learns ? 1 : 0;
    const own = await one<Numbered>(
      lead,
      id,
      name,
      owner,
      kind,
      shows,
      tip,
      turn,
      created,
      created,
      id,
      values[at("person")] ?? null,
      turn,
      tip,
      turn,
    );
    if (own === undefined) {
      await refuse(id, name);
      return false;
    }
    await addTurn(own.n, row);
    if (takesTipAs !== undefined) await run(cold.takeTip, turn, own.n, takesTipAs);
    if (record !== undefined) await run(cold.addRecord, turn, own.n, ...record);
    return true;
  };
}

/** Makes the session, or moves its tip if it stands where it was seen; a deleted one stays deleted for turns that began before. */
const leadStatement = (
  nextNumber: string,
): string => `INSERT INTO session (id, n, name, owner, kind, shows, tip, metadata, created, used)
  SELECT CAST(? AS BIGINT), ${nextNumber}, ?, ?, ?, CAST(? AS BIGINT),
      CASE WHEN CAST(? AS BIGINT) IS NULL THEN CAST(? AS BIGINT) END, '{}', CAST(? AS BIGINT), CAST(? AS BIGINT)
    WHERE NOT EXISTS (SELECT 1 FROM erased WHERE id IN (?, ?) AND moment >= ?)
  ON CONFLICT (id) DO UPDATE SET
    tip = CASE WHEN session.tip IS NOT DISTINCT FROM CAST(? AS BIGINT) THEN CAST(? AS BIGINT) ELSE session.tip END,
    shows = CASE WHEN session.shows < excluded.shows THEN excluded.shows ELSE session.shows END,
    used = CASE WHEN session.used < excluded.used THEN excluded.used ELSE session.used END
    WHERE session.name = excluded.name AND session.owner = excluded.owner
  RETURNING n`;
