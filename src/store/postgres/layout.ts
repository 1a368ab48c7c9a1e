/** The tables in a database of our own: the first process makes them, a start migrates them, newer ones are refused and left untouched. */
import { randomBytes } from "node:crypto";
import { GatewayError } from "../../core/errors.ts";
import type { Tables } from "../cold.ts";
import { layout, statementsSince } from "../tables.ts";
import { codeOf, type Database, openDatabase } from "./database.ts";

const dialect = { number: "BIGINT", text: 'TEXT COLLATE "C"', end: ")", keyedEnd: ")" };

/** A migration reads every turn once. */
const migrationMs = 3_600_000;

/**
 * Makes the tables, or brings those of an older layout to the newest if `mayMigrate`. Returns the layout of tables that
 * were migrated.
 */
export async function prepareTables(
  address: string,
  database: Database,
  mayMigrate: boolean,
): Promise<number | undefined> {
  const before = await readLayout(database.tables);
  if (before === layout) return undefined;
  if (before > layout) throw newer(before);
  if (before > 0 && !mayMigrate) throw older(before);
  const patient = openDatabase(address, () => {}, 1, migrationMs);
  try {
    return await patient.transact((tables) => migrate(tables, mayMigrate));
  } catch (thrown) {
    // One who starts beside us has just made them.
    if (codeOf(thrown) !== "23505") throw thrown;
    return await prepareTables(address, database, mayMigrate);
  } finally {
    await patient.close();
  }
}

/** 0: there are no tables yet. Changes nothing. */
export async function readLayout({ one }: Pick<Tables, "one">): Promise<number> {
  const there = await one<{ readonly name: string | null }>("SELECT to_regclass('layout') AS name");
  if (typeof there?.name !== "string") return 0;
  return (await one<{ readonly version: number }>("SELECT version FROM layout WHERE one = 1"))?.version ?? 0;
}

/** Another process may have done it meanwhile. */
async function migrate({ one, run }: Tables, mayMigrate: boolean): Promise<number | undefined> {
  await run("CREATE TABLE IF NOT EXISTS layout (version BIGINT NOT NULL, one BIGINT PRIMARY KEY)");
  await run("INSERT INTO layout (version, one) VALUES (0, 1) ON CONFLICT DO NOTHING");
  const found = await one<{ readonly version: number }>("SELECT version FROM layout WHERE one = 1 FOR UPDATE");
  const before = found?.version ?? 0;
  if (before === layout) return undefined;
  if (before > layout) throw newer(before);
  if (before > 0 && !mayMigrate) throw older(before);
  for (const statement of statementsSince(before, dialect, own)) await run(statement).catch(refuse);
  for (const name of before === 0 ? ["hints", "seals"] : [])
    await run("INSERT INTO secret (name, value) VALUES (?, ?)", name, randomBytes(32).toString("hex"));
  await run("UPDATE layout SET version = ?", layout);
  return before || undefined;
}

/** What only this engine has, by layout. */
const own = [
  [
    // Matches are found by their digest alone, and a sequence numbers the sessions.
    "CREATE INDEX turn_digest ON turn (session, digest) WHERE digest IS NOT NULL",
    "CREATE SEQUENCE session_number",
    // The live processes.
    "CREATE TABLE process (slot BIGINT PRIMARY KEY, token TEXT NOT NULL, beat BIGINT NOT NULL)",
    // The holder of a session's line.
    `CREATE UNLOGGED TABLE claim (session BIGINT PRIMARY KEY, holder BIGINT NOT NULL, round BIGINT NOT NULL,
      about TEXT NOT NULL, wanted BIGINT)`,
    // Running turns that outlive their caller, and their deltas so far.
    `CREATE TABLE running (turn BIGINT PRIMARY KEY, key TEXT NOT NULL, owner TEXT NOT NULL, process BIGINT NOT NULL,
      session BIGINT, name TEXT, fingerprint TEXT, placed TEXT,
      stopped BIGINT NOT NULL DEFAULT 0, heard BIGINT NOT NULL DEFAULT 0)`,
    "CREATE UNIQUE INDEX running_name ON running (name) WHERE name IS NOT NULL",
    "CREATE TABLE delta (turn BIGINT NOT NULL, at BIGINT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (turn, at))",
  ],
  [
    // `person` as in a turn; `begun` is 1 once the turn has left the line.
    "ALTER TABLE running ADD COLUMN person BIGINT",
    "ALTER TABLE running ADD COLUMN begun BIGINT",
    // The transactions of the last minute: one whose COMMIT was not answered is looked up before it is repeated.
    "CREATE TABLE done (token TEXT PRIMARY KEY, at BIGINT NOT NULL)",
  ],
];

export const nextNumber = "nextval('session_number')";

function refuse(thrown: unknown): never {
  if (codeOf(thrown) !== "42P07") throw thrown;
  const message =
    "The session store's database has tables of another program. Name a database of its own (gateway.sessions.store); this one was left as it is.";
  throw new GatewayError("store_unavailable", message, { cause: thrown, isLasting: true });
}

function newer(version: number): GatewayError {
  const message = `The session store has layout ${version}, and this release knows layouts up to ${layout}. Start the newer release that wrote it, or name another database (gateway.sessions.store).`;
  return new GatewayError("store_unavailable", message, { isLasting: true });
}

function older(version: number): GatewayError {
  const message = `The session store has layout ${version}, and this release reads layout ${layout}. Back it up, then start the gateway: \`portico start\` migrates it. It was not changed.`;
  return new GatewayError("store_unavailable", message, { isLasting: true });
}
