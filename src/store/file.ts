/** The file of a store: its tables; only ours, private to its user, and at any time one gateway's alone. */
import { randomBytes } from "node:crypto";
import { accessSync, closeSync, constants, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { GatewayError } from "../core/errors.ts";
import { layout, statementsSince } from "./tables.ts";
import { type Failure, moved, primary, primaryOf } from "./trouble.ts";

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

/**
 * Empties the log into the file, unless another program reads the file: then it returns false. It waits for no reader,
 * because no turn can be stored while it waits.
 */
export function emptyLog(database: DatabaseSync): boolean {
  database.exec("PRAGMA busy_timeout = 0");
  try {
    return database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.["busy"] === 0;
  } finally {
    database.exec(`PRAGMA busy_timeout = ${patienceMs}`);
  }
}

/** Where a store is. */
export interface Place {
  /** As the operator wrote it, for messages. */
  readonly file: string;
  /** The same without symbolic links. The lock, SQLite's log and its index are beside it. */
  readonly path: string;
}

/** Follows symbolic links to the file, and makes an empty one if there is none. Throws if it has several names. */
export function findPlace(file: string): Place {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    // For a link to a file that does not exist yet, this makes the file.
    if (statSync(file, { throwIfNoEntry: false }) === undefined) closeSync(openSync(file, "a", 0o600));
    const path = realpathSync(file);
    const found = statSync(path);
    // SQLite names its log after the path. Under two names a file has two logs, and each overwrites what the other holds.
    if (found.isFile() && found.nlink > 1)
      throw refusal(file, `has ${found.nlink} names (hard links), and SQLite loses data in such a file.`, oneName);
    return { file, path };
  } catch (thrown) {
    throw cannotOpen(file, thrown);
  }
}

/** A place, and which file was opened there. */
export interface OpenedFile extends Place {
  readonly device: bigint;
  readonly inode: bigint;
}

/** To be asked once the file is open: some file systems give a file its number when it is first opened for writing. */
export function identify(place: Place): OpenedFile {
  const { dev: device, ino: inode } = statSync(place.path, { bigint: true });
  return { ...place, device, inode };
}

/** Why the path no longer leads to the file that was opened; undefined while it does. */
export function findMove({ path, device, inode }: OpenedFile): Failure | undefined {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (found?.dev === device && found.ino === inode) return undefined;
    return { message: found === undefined ? "The file is gone." : "It is another file.", number: moved };
  } catch (thrown) {
    return { message: String(thrown), number: primary.cannotOpen };
  }
}

/**
 * Makes the tables of a new file, or brings those of an older layout to the newest if `mayMigrate`. Returns the layout
 * of a file that was migrated. Throws for a file that Portico cannot use, and leaves that unchanged.
 */
export function prepareFile({ file }: Place, mayMigrate: boolean): number | undefined {
  try {
    // For a read-only file SQLite would make a read-only log.
    accessSync(file, constants.R_OK | constants.W_OK);
    const before = statSync(file).size === 0 ? 0 : readLayout(file);
    if (before === layout) return undefined;
    if (before > 0 && !mayMigrate) throw refusal(file, ...olderLayout(before));
    migrate(file, before);
    return before || undefined;
  } catch (thrown) {
    throw cannotOpen(file, thrown);
  }
}

/**
 * Keeps other gateways away until it is called: a transaction that never ends on a file beside, so that the command
 * line can use the store. The system releases it when the process ends, however it ends.
 */
export function lockFile({ file, path: real }: Place): () => void {
  const path = lockPath(real);
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

/** Of a file's path without symbolic links, so that all names of a file have one lock. */
export const lockPath = (path: string): string => `${path}-gateway`;

/** An existing one is not opened: to close it again would release the lock that this process may have on it. */
function makePrivate(path: string): void {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) closeSync(openSync(path, "a", 0o600));
}

/** 0: it has no tables yet. */
function readLayout(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true, timeout: patienceMs });
  try {
    database.exec("BEGIN");
    const owner = readPragma(database, "application_id");
    const found = readPragma(database, "user_version");
    if (owner === 0 && isEmpty(database)) return 0;
    if (owner === formerId) throw refusal(file, "has an older layout, which this version cannot read.", newFile);
    if (owner !== applicationId) throw refusal(file, "is another program's database.", anotherFile);
    if (found <= layout) return found;
    const remedy = "Start the newer release that wrote it, or name another file for the session store.";
    throw refusal(file, `has layout ${found}, and this release knows layouts up to ${layout}.`, remedy);
  } finally {
    database.close();
  }
}

const readPragma = (database: DatabaseSync, name: string): number =>
  Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);

const isEmpty = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;

/** All steps from the layout before to the newest are one transaction. */
function migrate(file: string, before: number): void {
  const database = openToWrite(file, before === 0 ? beginning : []);
  try {
    database.exec("BEGIN IMMEDIATE");
    // Another process may have done it meanwhile.
    if (before === 0 ? isEmpty(database) : readPragma(database, "user_version") === before) {
      for (const statement of statementsSince(before, dialect)) database.exec(statement);
      database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${layout}`);
      const add = database.prepare("INSERT INTO secret (name, value) VALUES (?, ?)");
      for (const name of before === 0 ? ["hints", "seals"] : []) add.run(name, randomBytes(32).toString("hex"));
    }
    database.exec("COMMIT");
  } finally {
    database.close();
  }
}

const newFile = "Start with a new file (gateway.sessions.store); this one was left as it is.";
const anotherFile = "Name another file for the session store; this one was left as it is.";
const oneName = "Keep the name that the gateway has used, and replace the others by copies of the file.";
const usualRemedy =
  "Check that the gateway's user may read and write it, what is beside it under its name, and its folder, and that there is room.";
function cannotOpen(file: string, thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const code = primaryOf(thrown);
  if (code === primary.notDatabase) return refusal(file, "is not a database.", anotherFile, thrown);
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return refusal(file, `cannot be opened: ${reason}.`, usualRemedy, thrown);
}

/** What is wrong with a store of an older layout, and the remedy. */
const olderLayout = (found: number): readonly [what: string, remedy: string] => [
  `has layout ${found}, and this release reads layout ${layout}.`,
  "Back it up, then start the gateway: `portico start` migrates it. It was not changed.",
];

function refusal(file: string, what: string, remedy: string, cause?: unknown): GatewayError {
  const message = `The session store ${file} ${what} ${remedy}`;
  return new GatewayError("store_unavailable", message, { cause, isLasting: true });
}
