/** The tables in a database of ours alone: made by whoever comes first, and refused untouched if they are newer than we are. */
import { randomBytes } from "node:crypto";
import { GatewayError } from "../../core/errors.ts";
import type { Tables } from "../cold.ts";
import { layout, writeTables } from "../tables.ts";
import { codeOf, type Database } from "./database.ts";

const dialect = { number: "BIGINT", text: 'TEXT COLLATE "C"', end: ")", keyedEnd: ")" };

export async function prepareTables(database: Database): Promise<void> {
  try {
    await database.transact(prepare);
  } catch (thrown) {
    // One who starts beside us has just made them.
    if (codeOf(thrown) !== "23505") throw thrown;
    await prepareTables(database);
  }
}

async function prepare({ one, run }: Tables): Promise<void> {
  await run("CREATE TABLE IF NOT EXISTS layout (version BIGINT NOT NULL, one BIGINT PRIMARY KEY)");
  await run("INSERT INTO layout (version, one) VALUES (0, 1) ON CONFLICT DO NOTHING");
  const found = await one<{ readonly version: number }>("SELECT version FROM layout WHERE one = 1 FOR UPDATE");
  const version = found?.version ?? 0;
  if (version > layout) throw newer(version);
  if (version === layout) return;
  for (const statement of [...writeTables(dialect).split(";\n"), ...own]) await run(statement).catch(refuse);
  for (const name of ["hints", "seals"])
    await run("INSERT INTO secret (name, value) VALUES (?, ?)", name, randomBytes(32).toString("hex"));
  await run("UPDATE layout SET version = ?", layout);
}

/** What only this engine has: matches are found by their digest alone, and numbers are given without looking. */
const own = [
  "CREATE INDEX turn_digest ON turn (session, digest) WHERE digest IS NOT NULL",
  "CREATE SEQUENCE session_number",
  // The processes that live.
  "CREATE TABLE process (slot BIGINT PRIMARY KEY, token TEXT NOT NULL, beat BIGINT NOT NULL)",
  // Whose the line of a session is.
  `CREATE UNLOGGED TABLE claim (session BIGINT PRIMARY KEY, holder BIGINT NOT NULL, round BIGINT NOT NULL,
    about TEXT NOT NULL, wanted BIGINT)`,
  // Turns that outlive their caller, while they run, and what was said of them.
  `CREATE TABLE running (turn BIGINT PRIMARY KEY, key TEXT NOT NULL, owner TEXT NOT NULL, process BIGINT NOT NULL,
    session BIGINT, name TEXT, fingerprint TEXT, placed TEXT,
    stopped BIGINT NOT NULL DEFAULT 0, heard BIGINT NOT NULL DEFAULT 0)`,
  "CREATE UNIQUE INDEX running_name ON running (name) WHERE name IS NOT NULL",
  "CREATE TABLE delta (turn BIGINT NOT NULL, at BIGINT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (turn, at))",
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
