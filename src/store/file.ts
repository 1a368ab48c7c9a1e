/** The file of a store: its tables; only ours, private to its user, and at any time one gateway's alone. */
import { randomBytes } from "node:crypto";
import { accessSync, closeSync, constants, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { GatewayError } from "../core/errors.ts";
import { layout, writeTables } from "./tables.ts";
import { primary, primaryOf } from "./trouble.ts";

const dialect = { number: "INTEGER", text: "TEXT", end: ") STRICT", keyedEnd: ") STRICT, WITHOUT ROWID" };

/** Marks a file as ours: "Ptco" in ASCII. */
const applicationId = 0x5074636f;
/** Of files older than the first layout: "Port" in ASCII. */
const formerId = 0x506f7274;

/** Of a new file: fewer pages are touched by a turn than with the usual 4 KB; what is deleted gives its space back. */
const beginning = ["page_size = 8192", "auto_vacuum = INCREMENTAL"];

/** What is deleted is overwritten. */
const pragmas = ["journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "wal_autocheckpoint = 4000"];

/** How long whoever opens or writes waits for another process at the same file. */
const patienceMs = 10_000;

/** A connection that writes. */
export function openToWrite(file: string, first: readonly string[] = []): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: patienceMs });
  for (const pragma of [...first, ...pragmas]) database.exec(`PRAGMA ${pragma}`);
  return database;
}

export function openToRead(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: patienceMs });
  database.exec("PRAGMA query_only = ON");
  return database;
}

/** Makes a new file, or throws for one that is not ours to read, which stays as it was. */
export function prepareFile(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const found = statSync(file, { throwIfNoEntry: false });
    if (found === undefined) closeSync(openSync(file, "a", 0o600));
    // For a read-only file SQLite would make a read-only log.
    else accessSync(file, constants.R_OK | constants.W_OK);
    if (found === undefined || found.size === 0 || isWithoutTables(file)) begin(file);
  } catch (thrown) {
    throw cannotOpen(file, thrown);
  }
}

/**
 * Keeps other gateways away until it is called: a transaction that never ends on a file beside, so that the command
 * line can use the store. The system releases it when the process ends, however it ends.
 */
export function lockFile(file: string): () => void {
  const path = lockPath(file);
  let lock: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    makePrivate(path);
    // On a read-only file SQLite would give everybody the lock.
    accessSync(path, constants.R_OK | constants.W_OK);
    lock = new DatabaseSync(path, { timeout: 0 });
    // Without a journal's file a crash leaves nothing to clean up.
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (thrown) {
    lock?.close();
    if (primaryOf(thrown) !== primary.busy) throw cannotOpen(path, thrown);
    throw refusal(
      file,
      "is in use by another gateway.",
      "Stop that one, or name another file (gateway.sessions.store).",
    );
  }
  const held = lock;
  return () => held.close();
}

export const lockPath = (file: string): string => `${file}-gateway`;

/** An existing one is not opened: to close it again would release the lock that this process may have on it. */
function makePrivate(path: string): void {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) closeSync(openSync(path, "a", 0o600));
}

function isWithoutTables(file: string): boolean {
  const database = new DatabaseSync(file, { readOnly: true, timeout: patienceMs });
  try {
    database.exec("BEGIN");
    const read = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
    const found = read("user_version") as number;
    const owner = read("application_id");
    if (database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined && owner === 0) return true;
    if (owner === formerId) throw refusal(file, "has an older layout, which this version cannot read.", newFile);
    if (owner !== applicationId) throw refusal(file, "is another program's database.", anotherFile);
    if (found <= layout) return false;
    const remedy = "Start the newer release that wrote it, or name another file for the session store.";
    throw refusal(file, `has layout ${found}, and this release knows layouts up to ${layout}.`, remedy);
  } finally {
    database.close();
  }
}

function begin(file: string): void {
  const database = openToWrite(file, beginning);
  try {
    database.exec("BEGIN IMMEDIATE");
    // Another process may have made them meanwhile.
    if (database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined) {
      database.exec(
        `${writeTables(dialect)} PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${layout}`,
      );
      const add = database.prepare("INSERT INTO secret (name, value) VALUES (?, ?)");
      for (const name of ["hints", "seals"]) add.run(name, randomBytes(32).toString("hex"));
    }
    database.exec("COMMIT");
  } finally {
    database.close();
  }
}

const newFile = "Start with a new file (gateway.sessions.store); this one was left as it is.";
const anotherFile = "Name another file for the session store; this one was left as it is.";
const usualRemedy =
  "Check that the gateway's user may read and write it, what is beside it under its name, and its folder, and that there is room.";
function cannotOpen(file: string, thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const code = primaryOf(thrown);
  if (code === primary.notDatabase) return refusal(file, "is not a database.", anotherFile, thrown);
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return refusal(file, `cannot be opened: ${reason}.`, usualRemedy, thrown);
}

function refusal(file: string, what: string, remedy: string, cause?: unknown): GatewayError {
  const message = `The session store ${file} ${what} ${remedy}`;
  return new GatewayError("store_unavailable", message, { cause, isLasting: true });
}
