/** Opens a store's file: only ours, private to its user, set up for durability, and of the newest schema. */
import { type Stats, accessSync, closeSync, constants, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, GatewayError, messageOf } from "../../core/errors.ts";
import { applicationId, migrate, newestVersion, readVersion } from "./schema.ts";
import { hasJournal, primary, primaryCodeOf } from "../codes.ts";
import { DatabaseSync } from "../engine.ts";
import { syncPath } from "./sync.ts";
import { fileGone } from "./trouble.ts";

/** Throws `store_unavailable` for a file that is not ours or newer than we are, and leaves it as it was. */
export function openDatabase(file: string): DatabaseSync {
  try {
    if (file !== ":memory:") prepareFile(file);
    const database = new DatabaseSync(file, { timeout: openingMs, enableForeignKeyConstraints: true });
    try {
      // What queries buffer stays in memory, too.
      if (file === ":memory:") database.exec(`${beginning}; PRAGMA temp_store = MEMORY`);
      database.exec(settings);
      migrate(database);
      database.exec(`PRAGMA busy_timeout = ${busyMs}`);
      return database;
    } catch (thrown) {
      database.close();
      throw thrown;
    }
  } catch (thrown) {
    throw cannotOpen(file, thrown);
  }
}

/** Why a store cannot work with its file. */
export function cannotOpen(file: string, thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const reason = messageOf(thrown);
  const code = primaryCodeOf(thrown);
  if (code === primary.corrupt) return refusal(file, `is damaged: ${reason}.`, damageRemedy, thrown);
  const remedy = codeOf(thrown) === "EROFS" ? readOnlyRemedy : (remedies.get(code) ?? usualRemedy);
  return refusal(file, `cannot be opened: ${reason}.`, remedy, thrown);
}

/** On a full disk it depends on which of the files cannot grow whether SQLite says so. */
const remedies = new Map<number | undefined, string>([
  [primary.full, "Make room on its disk, or name another file for the session store."],
  [primary.diskFails, "Check that it is a file, and that its disk is neither full nor failing."],
]);
const usualRemedy =
  "Check that the gateway's user may read and write it, the files beside it whose names begin with its name, and its folder.";
/** Rights do not help there: the system makes a failing disk read-only. */
const readOnlyRemedy =
  "If it exists, copy it, with its `-wal` if it has one, to another disk. Name the copy, or a new file there (gateway.sessions.store).";
const damageRemedy =
  "Restore a backup (an archive or a copy of the file), or move the file away: the next start creates an empty one.";

/** At the start nobody waits for us yet, so another process may take its time. */
const openingMs = 10_000;
const retryMs = 5;
/** Waiting for another process's lock blocks the event loop, so it is short; only the command line writes beside us. */
const busyMs = 1_000;

/**
 * - synchronous=NORMAL: the log is synced beside the requests (sync.ts); SQLite syncs only when it restarts or is
 *   checkpointed. New tables may wait for the first turn, which is on disk only with all that precedes it in the log.
 * - wal_autocheckpoint: a separate thread checkpoints the log, so that requests continue meanwhile.
 * - secure_delete: deleted data is overwritten. A deletion takes up to twice as long for it, a commit no longer.
 * - journal_size_limit: a log that grew during a long read shrinks after its checkpoint; its size under load stays.
 */
const settings = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA secure_delete = ON;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA journal_size_limit = 33554432;
`;

/** Only a file without tables can be set to give back freed pages later, and setting it again would write at each start. */
const beginning = "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL";

/**
 * There is nothing yet for a journal to save, and one left by a process that is killed here would keep the file from
 * being inspected; but SQLite discards the log of an empty file, so this must not stay so. It has its own connection, so
 * that the file is synced while no lock is held on it.
 */
function begin(file: string): void {
  const database = new DatabaseSync(file, { timeout: openingMs });
  try {
    retryWhileBusy(() => {
      const { journal_mode: mode } = database.prepare("PRAGMA journal_mode").get() as { journal_mode: string };
      // A file that is in this mode has been begun by another process, which may be using it.
      if (mode !== "wal") database.exec("PRAGMA journal_mode = MEMORY");
      database.exec(`PRAGMA synchronous = OFF; ${beginning}; PRAGMA synchronous = NORMAL`);
    });
  } finally {
    database.close();
  }
  syncPath(file, "r+");
}

/** Of two processes that begin a file at once, SQLite refuses one without waiting, as each might wait for the other. */
function retryWhileBusy(work: () => void): void {
  const deadline = performance.now() + openingMs;
  for (;;) {
    try {
      return work();
    } catch (thrown) {
      if (primaryCodeOf(thrown) !== primary.busy || performance.now() > deadline) throw thrown;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
    }
  }
}

function prepareFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  // For a read-only file SQLite would create a read-only log, which stays so when the file is writable again.
  if (size === undefined) closeSync(openSync(file, "a", 0o600));
  else accessSync(file, constants.R_OK | constants.W_OK);
  if (size === undefined || size === 0 || isWithoutTables(file)) begin(file);
}

/** Inspects a file through a read-only connection. A process that died while creating it leaves it without tables. */
function isWithoutTables(file: string): boolean {
  const database = new DatabaseSync(file, { readOnly: true, timeout: openingMs });
  try {
    // One view of all three: another process may be writing the first tables.
    database.exec("BEGIN");
    const mark = database.prepare("PRAGMA application_id").get() as { application_id: number };
    const tables = database.prepare("SELECT count(*) AS count FROM sqlite_schema").get() as { count: number };
    const version = readVersion(database);
    const isNew = mark.application_id === 0 && tables.count === 0;
    if (mark.application_id !== applicationId && !isNew) {
      throw refusal(file, "is another program's database.", anotherFile);
    }
    if (version > newestVersion) {
      throw refusal(
        file,
        `has schema version ${version}, and this release knows versions up to ${newestVersion}.`,
        "Start the newer release that wrote it, or name another file for the session store.",
      );
    }
    return isNew;
  } catch (thrown) {
    if (primaryCodeOf(thrown) === primary.notDatabase) throw refusal(file, "is not a database.", anotherFile, thrown);
    if (hasJournal(thrown)) throw refusal(file, "has the journal of an unfinished change beside it.", finishIt, thrown);
    throw thrown;
  } finally {
    database.close();
  }
}

const anotherFile = "Name another file for the session store; this one was left as it is.";
const finishIt =
  "Name another file for the session store, or open this one once with the program that wrote it, or with the `sqlite3` shell, to undo the change; both files were left as they are.";

/** The path of an open database's file, links resolved: SQLite puts the log beside the file, not the link. */
export function findFile(file: string): string {
  return file === ":memory:" ? file : realpathSync(file);
}

/** A check that the paths still lead to what was opened: turns written to a deleted file or log would be lost. */
export function rememberFile(file: string): () => void {
  if (file === ":memory:") return () => {};
  const opened = [file, `${findFile(file)}-wal`].map((path) => ({ path, found: statSync(path) }));
  return () => {
    for (const { path, found } of opened) if (!isSameFile(path, found)) throw fileGone(path);
  };
}

function isSameFile(path: string, { ino, dev }: Stats): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.ino === ino && found.dev === dev;
  } catch {
    // The folder is no longer accessible.
    return false;
  }
}

function refusal(file: string, what: string, remedy: string, cause?: unknown): GatewayError {
  return new GatewayError("store_unavailable", `The session store ${file} ${what} ${remedy}`, { cause });
}
