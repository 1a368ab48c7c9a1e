/** Every statement that no turn waits for, in SQL that any database speaks, and how statements are run: by their text, each prepared once. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { ofRecord, ofTurn } from "./tables.ts";

const turn = `t.n, t.key, t.session, s.name, s.kind, t.model, t.created, t.input, t.answer, t.told, t.echo`;
const summary = `s.name, s.kind, s.owner, s.created AS "createdAt", s.used AS "updatedAt",
  (SELECT count(*) FROM turn t WHERE t.session = s.n AND t.digest IS NOT NULL) AS turns,
  (SELECT t.input FROM turn t WHERE length(t.input) < 100000
    AND t.n = (SELECT min(f.n) FROM turn f WHERE f.session = s.n AND f.digest IS NOT NULL)) AS input`;
const kept = `${turn}, r.background, r.told AS placed, r.items, r.log`;
const keptIn = "turn t JOIN session s ON s.n = t.session LEFT JOIN record r ON r.turn = t.n";
const record = `s.n, s.name, s.kind, s.owner, s.created AS "createdAt", s.used AS "updatedAt", s.metadata, s.shows,
  (SELECT t.key FROM turn t WHERE t.n = s.tip) AS tip`;

export const cold = {
  // What is told again.
  turn: `SELECT ${kept} FROM ${keptIn}
    WHERE t.n = ? AND t.key = ? AND s.owner = ? AND t.told <> '' AND coalesce(r.unnamed, 0) = 0`,
  /** Also one that only its key finds. */
  ended: `SELECT ${kept} FROM ${keptIn} WHERE t.n = ? AND t.key = ? AND s.owner = ? AND t.told <> ''`,
  keyed: `SELECT ${kept}, r.fingerprint FROM ${keptIn}
    WHERE r.name = ? AND s.owner = ? AND t.created > ? AND t.told <> '' ORDER BY t.n DESC LIMIT 1`,

  // What takes its place alone.
  keptTurn: "SELECT 1 FROM turn WHERE n = ? AND key = ? AND answer = ? AND told = ?",
  removeBare: `DELETE FROM session WHERE id = ? AND kind <> 'named'
    AND NOT EXISTS (SELECT 1 FROM turn WHERE session = session.n)`,

  // What is deleted. A turn without told is the empty node that a deleted one left.
  response: `SELECT t.n FROM turn t JOIN session s ON s.n = t.session
    WHERE t.n = ? AND t.key = ? AND s.owner = ? AND t.echo IS NOT NULL`,
  doomedTurn: `SELECT t.n, t.key, t.parent, t.session, t.input, t.answer, t.told, t.echo, t.created, s.tip
    FROM turn t LEFT JOIN session s ON s.n = t.session WHERE t.n = ?`,
  turnsOfPerson: "SELECT n FROM turn WHERE person = ? LIMIT ?",
  isFollowed: "SELECT 1 FROM turn WHERE parent = ? LIMIT 1",
  followers: "SELECT n FROM turn WHERE parent = ? LIMIT 2",
  emptyTurn: `UPDATE turn SET question = NULL, digest = NULL, model = '', input = '[]', answer = '[]', told = '', echo = NULL,
    instructions = NULL, tools = NULL, person = NULL WHERE n = ?`,
  removeTurn: "DELETE FROM turn WHERE n = ?",
  removeRecord: "DELETE FROM record WHERE turn = ?",
  /** Streams that can no longer be resumed are told whole. */
  expireLogs:
    "UPDATE record SET log = NULL WHERE log IS NOT NULL AND turn <= (SELECT max(n) FROM turn WHERE created < ?)",
  /** Keys that have had their time are free. */
  expireKeys: `UPDATE record SET name = NULL, fingerprint = NULL
    WHERE name IS NOT NULL AND turn <= (SELECT max(n) FROM turn WHERE created < ?)`,
  expiredUnnamed: "SELECT turn AS n FROM record WHERE unnamed = 1 AND name IS NULL LIMIT ?",
  freeFollowers: "UPDATE turn SET parent = NULL WHERE parent = ?",
  removeCall: "DELETE FROM call WHERE session = ? AND id = ? AND turn = ?",
  removeTextUse: "DELETE FROM text_use WHERE session = ? AND digest = ? AND turn = ?",
  removeUnusedText: `DELETE FROM text WHERE session = ? AND digest = ?
    AND NOT EXISTS (SELECT 1 FROM text_use u WHERE u.session = text.session AND u.digest = text.digest)`,
  setTip: "UPDATE session SET tip = (SELECT n FROM turn WHERE n = ?) WHERE n = ?",
  removeBareHidden: `DELETE FROM session WHERE n = ? AND kind = 'hidden'
    AND NOT EXISTS (SELECT 1 FROM turn WHERE session = session.n)`,
  sessionNumber: "SELECT n, owner, kind, tip FROM session WHERE id = ? AND name = ?",
  removeSession: "DELETE FROM session WHERE id = ?",
  markErased: `INSERT INTO erased (id, moment, at) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET moment = excluded.moment, at = excluded.at`,
  isErased: "SELECT 1 FROM erased WHERE id IN (?, ?) AND moment >= ?",
  unmarkErased: "DELETE FROM erased WHERE id = ?",
  forgetErased: "DELETE FROM erased WHERE at < ?",
  doom: "INSERT INTO doomed (n) VALUES (?)",
  nextDoomed: "SELECT n FROM doomed LIMIT 1",
  turnsOfDoomed: "SELECT n FROM turn WHERE session = ? LIMIT ?",
  removeDoomed: "DELETE FROM doomed WHERE n = ?",

  // What is no longer kept.
  note: "SELECT value FROM note WHERE name = ?",
  setNote: "INSERT INTO note (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  turnsBehind: "SELECT n, depth, created FROM turn WHERE n > ? ORDER BY n LIMIT ?",
  parent: "SELECT parent FROM turn WHERE n = ?",
  sessionOfTurn: "SELECT session FROM turn WHERE n = ?",
  idleSessions: `SELECT n, used FROM session WHERE kind <> 'hidden' AND used < ?
    AND NOT EXISTS (SELECT 1 FROM turn WHERE session = session.n)`,
  crowdedOwners: `SELECT owner, count(*) AS sessions FROM session WHERE kind <> 'hidden'
    GROUP BY owner HAVING count(*) > ?`,
  idlestSessions: `SELECT n, used FROM session WHERE kind <> 'hidden' AND owner = ? ORDER BY used, n LIMIT ?`,
  removeUnusedSession: "DELETE FROM session WHERE n = ? AND used = ?",

  // What is added.
  addTurn: `INSERT INTO turn (session, ${ofTurn.list()}) VALUES (?, ${ofTurn.marks})`,
  addRecord: `INSERT INTO record (turn, session, ${ofRecord.list()}) VALUES (?, ?, ${ofRecord.marks})`,
  /** From a root of another program that offers no tools. */
  takeTip: `UPDATE session SET tip = ? WHERE n = ? AND EXISTS (SELECT 1 FROM turn t
    WHERE t.n = session.tip AND t.depth = 1 AND t.tools = 0 AND t.instructions <> ?)`,
  addCall: `INSERT INTO call (session, id, turn) VALUES (?, ?, ?)
    ON CONFLICT (session, id) DO UPDATE SET turn = excluded.turn WHERE call.turn < excluded.turn`,
  addText: "INSERT INTO text (session, digest, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  addTextUse: "INSERT INTO text_use (session, digest, turn) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  moveTip: "UPDATE session SET tip = ?, used = CASE WHEN used < ? THEN ? ELSE used END WHERE n = ?",

  // Conversations.
  conversation: `SELECT n, name, tip, metadata, created FROM session
    WHERE id = ? AND name = ? AND owner = ? AND kind <> 'hidden'`,
  describe: "UPDATE session SET metadata = ?, used = ? WHERE id = ? AND name = ? AND owner = ? AND kind <> 'hidden'",
  depth: "SELECT depth FROM turn WHERE n = ?",
  pathNumbers: `WITH RECURSIVE up (n) AS (
      SELECT CAST(? AS BIGINT) UNION ALL SELECT t.parent FROM up JOIN turn t ON t.n = up.n WHERE t.parent IS NOT NULL
    ) SELECT t.n FROM up JOIN turn t ON t.n = up.n ORDER BY t.depth DESC`,
  setItems: "UPDATE turn SET input = ?, answer = ? WHERE n = ?",
  text: "SELECT text FROM text WHERE session = ? AND digest = ?",

  // What an operator sees.
  owners: "SELECT DISTINCT owner FROM session WHERE kind <> 'hidden'",
  allOwners: "SELECT DISTINCT owner FROM session",
  session: `SELECT ${record} FROM session s WHERE s.id = ? AND s.name = ?`,
  /** Also by its first turn, once that is gone. */
  hiddenAround: `SELECT ${record} FROM session s WHERE s.kind = 'hidden'
    AND (s.id = ? AND s.name = ? OR s.n = (SELECT t.session FROM turn t WHERE t.n = ? AND t.key = ?))`,
  sessionsBehind: `SELECT ${summary} FROM session s WHERE s.kind <> 'hidden' AND s.owner = coalesce(?, s.owner)
    AND (s.used < ? OR (s.used = ? AND s.n < ?)) ORDER BY s.used DESC, s.n DESC LIMIT ?`,
  summary: `SELECT ${summary} FROM session s WHERE s.id = ? AND s.name = ? AND s.kind <> 'hidden'`,
  turnNumbers: "SELECT n FROM turn WHERE session = ? ORDER BY depth, n",

  // The archive.
  sessionIds: "SELECT id FROM session ORDER BY id",
  exportedSession: `SELECT ${record} FROM session s WHERE s.id = ?`,
  placedTurn: `SELECT ${turn}, s.owner, t.question, t.digest, t.remembers, t.instructions, t.tools, t.person,
      (SELECT p.key FROM turn p WHERE p.n = t.parent) AS parent
    FROM turn t JOIN session s ON s.n = t.session WHERE t.n = ?`,
  secrets: "SELECT value FROM secret WHERE name >= ? AND name < ? ORDER BY name",
  addSecret: "INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
  sessionById: "SELECT n, name, owner FROM session WHERE id = ?",
  setUse: "UPDATE session SET shows = ?, used = ? WHERE n = ?",
  turnById: "SELECT t.n, t.key, t.depth, s.name FROM turn t JOIN session s ON s.n = t.session WHERE t.n = ?",
  giveTip: `UPDATE session SET tip = ? WHERE id = ? AND tip IS NULL
    AND EXISTS (SELECT 1 FROM turn t WHERE t.n = ? AND t.key = ? AND t.session = session.n)`,
} as const;

export type Prepare = (text: string) => StatementSync;

export function createCache(database: DatabaseSync): Prepare {
  const prepared = new Map<string, StatementSync>();
  return (text) => {
    const known = prepared.get(text);
    if (known !== undefined) return known;
    const statement = database.prepare(text);
    prepared.set(text, statement);
    return statement;
  };
}

/** What a statement gives is known where it is written. */
export interface Tables {
  one<Row>(text: string, ...values: readonly Value[]): Promise<Row | undefined>;
  all<Row>(text: string, ...values: readonly Value[]): Promise<readonly Row[]>;
  /** How many rows it changed. */
  run(text: string, ...values: readonly Value[]): Promise<number>;
}

export type Value = string | number | null;

export function createTables(prepare: Prepare): Tables {
  return {
    one: async <Row>(text: string, ...values: readonly Value[]) => prepare(text).get(...values) as Row | undefined,
    all: async <Row>(text: string, ...values: readonly Value[]) => prepare(text).all(...values) as Row[],
    run: async (text, ...values) => Number(prepare(text).run(...values).changes),
  };
}

/** The number that stands for a name or a key in the tables: 13 hexadecimal digits are exact as a number. Whatever else a caller names is nothing. */
export function toNumber(name: string): number {
  return Number.parseInt(name.slice(0, 13), 16) || 0;
}
