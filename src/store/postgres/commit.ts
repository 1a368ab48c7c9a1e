/** What turns write: all that ends in one tick of the event loop in one transaction; if that fails, each alone. */
import { cold } from "../cold.ts";
import { createCommit } from "../commit.ts";
import { answerAt, noTip, toldAt, type TurnRow } from "../rows.ts";
import { add, type Database, toColumns } from "./database.ts";
import { nextNumber } from "./layout.ts";

export function createCommits({ askTogether, transact }: Database) {
  /** Which of them took their place. The locks come first, so that what is looked at behind them is true. */
  async function commitTogether(rows: readonly TurnRow[]): Promise<ReadonlySet<number>> {
    const turns = toColumns(columnCount);
    const calls = toColumns(2);
    const texts = toColumns(3);
    const made = toColumns(6);
    const records = toColumns(8);
    for (const [index, { session, values, tip, learns, ...row }] of rows.entries()) {
      add(turns, index, ...session, tip, learns ? 1 : 0, ...values);
      // Where a tip was seen there is a session.
      if (tip === null || tip === noTip) add(made, ...session, values[0] ?? null);
      for (const call of row.calls ?? []) add(calls, index, call);
      if (row.record !== undefined) add(records, index, ...row.record);
      for (const [digest, text] of row.texts ?? []) add(texts, index, digest, text);
    }
    const [, , led = []] = await askTogether(
      [makeStatement, ...made],
      [lockStatement, turns[1] ?? []],
      [addStatement, ...turns, ...calls, ...texts, ...records],
    );
    return new Set(led.map(([index]) => Number(index)));
  }

  /** Where something must be looked at first: one that was kept when it began, one whose session was deleted, and all of a group that failed. */
  const commitAlone = (row: TurnRow): Promise<boolean> =>
    transact(async (tables) => {
      const [n = null, key = null] = row.values;
      const { [answerAt]: answer = null, [toldAt]: told = null } = row.values;
      if ((await tables.one(cold.keptTurn, n, key, answer, told)) !== undefined) return true;
      if (await createCommit(tables, nextNumber)(row)) return true;
      await tables.run(cold.removeBare, row.session[0]);
      return false;
    });

  return async (rows: readonly TurnRow[]): Promise<readonly (boolean | Error)[]> => {
    const plain = rows.filter(({ record: [isBackground] = [] }) => isBackground !== 1);
    // Whether anything of a group that failed was written is not known.
    const led = plain.length === 0 ? undefined : await commitTogether(plain).catch(() => undefined);
    const isLed = new Set(plain.filter((_, index) => led?.has(index)));
    return Promise.all(rows.map((row) => isLed.has(row) || commitAlone(row).catch((thrown: Error) => thrown)));
  };
}

const columnCount = 21;

/** All processes lock in the same order. */
const makeStatement = `INSERT INTO session (id, n, name, owner, kind, shows, tip, metadata, created, used)
  SELECT DISTINCT ON (g.id) g.id, ${nextNumber}, g.name, g.owner, g.kind, 0, NULL::bigint, '{}', g.created, g.created
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
      AS g (id, name, owner, kind, created, turn)
    WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.id = g.id)
      AND NOT EXISTS (SELECT 1 FROM erased e WHERE e.id = g.id AND e.moment >= g.turn)
    ORDER BY g.id
  ON CONFLICT DO NOTHING`;
const lockStatement = "SELECT 1 FROM session WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE";
/** Of turns that saw the same tip the first one moves it. */
const addStatement = `WITH given AS (
    SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
      $8::bigint[], $9::bigint[], $10::text[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::bigint[],
      $16::text[], $17::bigint[], $18::text[], $19::text[], $20::text[], $21::text[])
    AS g (i, id, name, owner, kind, began, seen, learns, n, key, parent, depth, question, digest, remembers, model,
      created, input, answer, told, echo)),
  live AS MATERIALIZED (
    SELECT g.*, s.n AS session FROM given g JOIN session s ON s.id = g.id AND s.name = g.name AND s.owner = g.owner
    WHERE NOT EXISTS (SELECT 1 FROM erased e WHERE e.id = g.id AND e.moment >= g.n)),
  moves AS (SELECT DISTINCT ON (session, seen) session, seen, n FROM live ORDER BY session, seen, i),
  moved AS (
    UPDATE session s SET tip = coalesce(
        (SELECT m.n FROM moves m WHERE m.session = s.n AND m.seen IS NOT DISTINCT FROM s.tip), s.tip),
      shows = greatest(s.shows, l.learns), used = greatest(s.used, l.began)
    FROM (SELECT session, max(learns) AS learns, max(began) AS began FROM live GROUP BY session) l
    WHERE s.n = l.session),
  turns AS (
    INSERT INTO turn
      (session, n, key, parent, depth, question, digest, remembers, model, created, input, answer, told, echo)
    SELECT session, n, key, parent, depth, question, digest, remembers, model, created, input, answer, told, echo
    FROM live),
  calls AS (
    INSERT INTO call (session, id, turn)
    SELECT l.session, c.id, max(l.n) FROM unnest($22::int[], $23::text[]) AS c (i, id) JOIN live l ON l.i = c.i
    GROUP BY l.session, c.id
    ON CONFLICT (session, id) DO UPDATE SET turn = excluded.turn WHERE call.turn < excluded.turn),
  texts AS (
    INSERT INTO text (session, digest, text)
    SELECT l.session, x.digest, x.text FROM unnest($24::int[], $25::text[], $26::text[]) AS x (i, digest, text)
    JOIN live l ON l.i = x.i ON CONFLICT DO NOTHING),
  uses AS (
    INSERT INTO text_use (session, digest, turn)
    SELECT l.session, x.digest, l.n FROM unnest($24::int[], $25::text[]) AS x (i, digest)
    JOIN live l ON l.i = x.i ON CONFLICT DO NOTHING),
  records AS (
    INSERT INTO record (turn, session, background, unnamed, told, items, name, fingerprint, log)
    SELECT l.n, l.session, r.background, r.unnamed, r.told, r.items, r.name, r.fingerprint, r.log
    FROM unnest($27::int[], $28::bigint[], $29::bigint[], $30::text[], $31::bigint[], $32::text[], $33::text[], $34::text[])
      AS r (i, background, unnamed, told, items, name, fingerprint, log) JOIN live l ON l.i = r.i)
  SELECT i FROM live`;
