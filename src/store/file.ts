/**
 * The file of a store: its tables; only ours, private to its user, and at any time one gateway's alone. Everything stored
 * is in a session; a turn that nobody names a session for has a hidden one. Keys are small and grow with time, so that
 * what is written together stands together: a session's is 52 bits of its name, a turn's the first 52 bits of its public
 * key, which are its moment. Nothing cascades: `deletions.ts` says what goes with what.
 */
import { randomBytes } from "node:crypto";
import { accessSync, closeSync, constants, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { GatewayError } from "../core/errors.ts";
import { primary, primaryOf } from "./trouble.ts";

/** Of the layout below. A newer one is refused untouched. */
const layout = 1;

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
      database.exec(`${schema} PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${layout}`);
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

const schema = `
CREATE TABLE secret (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- The name is a keyed hash of owner and hint, known before the session is. n is small: indexes of turns begin with it.
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  n INTEGER NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  shows INTEGER NOT NULL,
  tip INTEGER,
  metadata TEXT NOT NULL,
  created INTEGER NOT NULL,
  used INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX session_n ON session (n);
CREATE INDEX session_owner ON session (owner, n) WHERE kind <> 'hidden';

-- question and digest are what a client shows of it; a turn that was broken off has none, so only its key finds it.
CREATE TABLE turn (
  n INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  session INTEGER NOT NULL,
  parent INTEGER,
  depth INTEGER NOT NULL,
  question TEXT,
  digest TEXT,
  remembers INTEGER NOT NULL,
  model TEXT NOT NULL,
  created INTEGER NOT NULL,
  input TEXT NOT NULL,
  answer TEXT NOT NULL,
  told TEXT NOT NULL,
  echo TEXT
) STRICT;
CREATE INDEX turn_said ON turn (session, question, digest);
CREATE INDEX turn_parent ON turn (parent) WHERE parent IS NOT NULL;

-- Who made a call, by the id that its output names; of a repeated id the latest.
CREATE TABLE call (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

-- Long texts that agents send with every turn, their instructions and tools: once a session.
CREATE TABLE text (
  session INTEGER NOT NULL,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;

-- Which turns have it: with the last of them it goes.
CREATE TABLE text_use (
  session INTEGER NOT NULL,
  digest TEXT NOT NULL,
  turn INTEGER NOT NULL,
  PRIMARY KEY (session, digest, turn)
) STRICT, WITHOUT ROWID;

-- Sessions that were deleted, for a day: a turn that had begun before that moment may not bring them back.
CREATE TABLE erased (
  id INTEGER PRIMARY KEY,
  moment INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;

-- The numbers of sessions that are gone, while turns of theirs are still to be removed.
CREATE TABLE doomed (n INTEGER PRIMARY KEY) STRICT;

-- How far the retention has come, and what a probing write leaves.
CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Turns that outlive their caller: how they are told again, and what their key was used for. told says how they were placed.
CREATE TABLE record (
  turn INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  background INTEGER NOT NULL,
  unnamed INTEGER NOT NULL,
  told TEXT NOT NULL,
  items INTEGER NOT NULL,
  name TEXT,
  fingerprint TEXT,
  log TEXT
) STRICT;
CREATE INDEX record_name ON record (name) WHERE name IS NOT NULL;
`;
