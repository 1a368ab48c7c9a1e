/** What turns write: all that ends in one tick of the event loop in one transaction; if that fails, each alone. */
import { cold, type Value } from "../cold.ts";
import { createCommit } from "../commit.ts";
import { noTip, type TurnRow } from "../rows.ts";
import { at, ofRecord, ofTurn } from "../tables.ts";
import { add, type Database, type Statement, toColumns } from "./database.ts";
import { nextNumber } from "./layout.ts";
import { takenOver } from "./running.ts";

export function createCommits({ askTogether, transact }: Database) {
  /** Which of them took their place. The locks come first, so that what is looked at behind them is true. */
  async function commitTogether(rows: readonly TurnRow[]): Promise<ReadonlySet<number>> {
    const turns = toColumns(given.length);
    const calls = toColumns(2);
    const texts = toColumns(3);
    const made = toColumns(7);
    const records = toColumns(1 + ofRecord.names.length);
    const tips = toColumns(3);
    const running: Value[] = [];
    for (const [index, row] of rows.entries()) {
      const { session, values, tip, learns, outlives = false, takesTipAs } = row;
      const n = values[0] ?? null;
      add(turns, index, ...session, tip, Number(learns), Number(outlives), ...values);
      // Where a tip was seen there is a session.
      if (tip === null || tip === noTip) add(made, ...session, n, values[at("person")] ?? null);
      for (const call of row.calls ?? []) add(calls, index, call);
      if (row.record !== undefined) add(records, index, ...row.record);
      for (const [digest, text] of row.texts ?? []) add(texts, index, digest, text);
      if (takesTipAs !== undefined) add(tips, session[0], n, takesTipAs);
      if (outlives) running.push(n);
    }
    const before: readonly Statement[] = [
      [makeStatement, ...made],
      [lockStatement, turns[1] ?? []],
      ...(running.length > 0 ? [[lockRunning, running] as const] : []),
    ];
    const told = await askTogether(
      ...before,
      [addStatement, ...turns, ...calls, ...texts, ...records],
      ...(tips[0]?.length === 0 ? [] : [[takeTips, ...tips] as const]),
      ...(running.length > 0 ? [[endRunning, running] as const] : []),
    );
    return new Set(told[before.length]?.map(([index]) => Number(index)));
  }

  /** Where something must be looked at first: one that was kept when it began, one whose session was deleted, and all of a group that failed. */
  async function commitAlone(row: TurnRow): Promise<boolean> {
    const [n = null, key = null] = row.values;
    const { [at("answer")]: answer = null, [at("told")]: told = null, [at("person")]: person = null } = row.values;
    const [session] = row.session;
    const outcome = await transact(async (tables) => {
      // First, since it takes no snapshot: an erasure that does not see this lock is seen by what is read below.
      await tables.run("LOCK TABLE turn IN ROW EXCLUSIVE MODE");
      if ((await tables.one(cold.keptTurn, n, key, answer, told)) !== undefined) return "kept";
      const isOwn = row.outlives !== true || (await tables.run("DELETE FROM running WHERE turn = ?", n)) === 1;
      if (row.outlives === true) await tables.run("DELETE FROM delta WHERE turn = ?", n);
      if (isOwn && (await createCommit(tables, nextNumber)(row))) return "kept";
      await tables.run(cold.removeBare, session);
      const isErased = (await tables.one(cold.isErased, session, person, n)) !== undefined;
      return isErased ? "erased" : "taken";
    });
    if (outcome === "taken") throw takenOver();
    return outcome === "kept";
  }

  return async (rows: readonly TurnRow[]): Promise<readonly (boolean | Error)[]> => {
    const plain = rows.filter(({ record: [isBackground] = [] }) => isBackground !== 1);
    // Whether anything of a group that failed was written is not known.
    const led = plain.length === 0 ? undefined : await commitTogether(plain).catch(() => undefined);
    const isLed = new Set(plain.filter((_, index) => led?.has(index)));
    return Promise.all(rows.map((row) => isLed.has(row) || commitAlone(row).catch((thrown: Error) => thrown)));
  };
}

/** All processes lock in the same order. */
const makeStatement = `INSERT INTO session (id, n, name, owner, kind, shows, tip, metadata, created, used)
  SELECT DISTINCT ON (g.id) g.id, ${nextNumber}, g.name, g.owner, g.kind, 0, NULL::bigint, '{}', g.created, g.created
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
      AS g (id, name, owner, kind, created, turn, person)
    WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.id = g.id)
      AND NOT EXISTS (SELECT 1 FROM erased e WHERE e.id IN (g.id, g.person) AND e.moment >= g.turn)
    ORDER BY g.id
  ON CONFLICT DO NOTHING`;
const lockStatement = "SELECT 1 FROM session WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE";
/** A turn that outlives its caller belongs to this process while its row is there: others remove it before they report this process dead. */
const lockRunning = "SELECT 1 FROM running WHERE turn = ANY ($1::bigint[]) ORDER BY turn FOR UPDATE";
/** A stored turn no longer runs. */
const endRunning = `WITH ended AS (
    DELETE FROM running r USING turn t WHERE r.turn = ANY ($1::bigint[]) AND t.n = r.turn RETURNING r.turn)
  DELETE FROM delta d USING ended e WHERE d.turn = e.turn`;
/** See \`takeTip\` of the shared statements. */
const takeTips = `UPDATE session s SET tip = g.n
  FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS g (id, n, instructions) JOIN turn own ON own.n = g.n, turn t
  WHERE s.id = g.id AND own.session = s.n AND t.n = s.tip AND t.depth = 1 AND t.tools = 0 AND t.instructions <> g.instructions`;

type Typed = readonly [name: string, type: "int" | "bigint" | "text"];

const typed = (names: readonly string[], types: readonly ("number" | "text")[]): Typed[] =>
  names.map((name, index) => [name, types[index] === "number" ? "bigint" : "text"]);

/** The statement's values for each turn: its number in the group, its session, how it moves the session, its columns. */
const given: readonly Typed[] = [
  ["i", "int"],
  ["id", "bigint"],
  ["name", "text"],
  ["owner", "text"],
  ["kind", "text"],
  ["began", "bigint"],
  ["seen", "bigint"],
  ["learns", "bigint"],
  ["outlives", "bigint"],
  ...typed(ofTurn.names, ofTurn.types),
];
const givenCalls: readonly Typed[] = [
  ["i", "int"],
  ["id", "text"],
];
const givenTexts: readonly Typed[] = [
  ["i", "int"],
  ["digest", "text"],
  ["text", "text"],
];
const givenRecords: readonly Typed[] = [["i", "int"], ...typed(ofRecord.names, ofRecord.types)];

/** Lists of values as rows; `behind` parameters come before them. */
function rowsOf(alias: string, columns: readonly Typed[], behind: number): string {
  const lists = columns.map(([, type], index) => `$${behind + index + 1}::${type}[]`);
  return `unnest(${lists.join(", ")}) AS ${alias} (${columns.map(([name]) => name).join(", ")})`;
}
const callsAt = given.length;
const textsAt = callsAt + givenCalls.length;
const recordsAt = textsAt + givenTexts.length;

/** Of the turns that saw the same tip, the first one moves it. */
const addStatement = `WITH given AS (SELECT * FROM ${rowsOf("g", given, 0)}),
  live AS MATERIALIZED (
    SELECT g.*, s.n AS session FROM given g JOIN session s ON s.id = g.id AND s.name = g.name AND s.owner = g.owner
    WHERE NOT EXISTS (SELECT 1 FROM erased e WHERE e.id IN (g.id, g.person) AND e.moment >= g.n)
      AND (g.outlives = 0 OR EXISTS (SELECT 1 FROM running r WHERE r.turn = g.n))),
  moves AS (SELECT DISTINCT ON (session, seen) session, seen, n FROM live ORDER BY session, seen, i),
  moved AS (
    UPDATE session s SET tip = coalesce(
        (SELECT m.n FROM moves m WHERE m.session = s.n AND m.seen IS NOT DISTINCT FROM s.tip), s.tip),
      shows = greatest(s.shows, l.learns), used = greatest(s.used, l.began)
    FROM (SELECT session, max(learns) AS learns, max(began) AS began FROM live GROUP BY session) l
    WHERE s.n = l.session),
  turns AS (INSERT INTO turn (session, ${ofTurn.list()}) SELECT session, ${ofTurn.list()} FROM live),
  calls AS (
    INSERT INTO call (session, id, turn)
    SELECT l.session, c.id, max(l.n) FROM ${rowsOf("c", givenCalls, callsAt)} JOIN live l ON l.i = c.i
    GROUP BY l.session, c.id
    ON CONFLICT (session, id) DO UPDATE SET turn = excluded.turn WHERE call.turn < excluded.turn),
  given_texts AS MATERIALIZED (
    SELECT l.session, l.n, x.digest, x.text FROM ${rowsOf("x", givenTexts, textsAt)} JOIN live l ON l.i = x.i),
  texts AS (INSERT INTO text (session, digest, text) SELECT session, digest, text FROM given_texts ON CONFLICT DO NOTHING),
  uses AS (INSERT INTO text_use (session, digest, turn) SELECT session, digest, n FROM given_texts ON CONFLICT DO NOTHING),
  records AS (
    INSERT INTO record (turn, session, ${ofRecord.list()})
    SELECT l.n, l.session, ${ofRecord.list("r.")} FROM ${rowsOf("r", givenRecords, recordsAt)} JOIN live l ON l.i = r.i)
  SELECT i FROM live`;
