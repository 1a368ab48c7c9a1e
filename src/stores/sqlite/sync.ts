/** Syncs the write-ahead log to disk beside the requests, which a slow disk would otherwise delay. */
import { closeSync, fdatasync, fdatasyncSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { messageOf } from "../../core/errors.ts";

export interface Sync {
  /**
   * Resolves once all that is written by now is on disk. One sync runs at a time; calls meanwhile share the next. A
   * caller that has written nothing may have read what is not synced yet.
   */
  whenOnDisk(isWritten: boolean): Promise<void>;
  /** Throws while the log may not be on disk although it should: then nothing of it is told, and nothing added. */
  requireSynced(): void;
  /** Call it when nobody waits any more, before the database is closed. */
  close(): void;
}

/** How the log is synced, beside the requests and synchronously, and how long after a failure that is retried. */
interface Disk {
  readonly sync: (log: number) => Promise<void>;
  readonly syncNow: (log: number) => void;
  readonly restMs: number;
}

/** Undefined for a database in memory. */
export function createSync(
  database: DatabaseSync,
  file: string,
  warn: (message: string) => void,
  { sync: syncLog, syncNow, restMs }: Disk = usualDisk(),
): Sync | undefined {
  if (file === ":memory:") return undefined;
  let log: number | undefined;
  /** Its cause, and when recovery was last tried. */
  let doubt: { readonly thrown: unknown; readonly triedAt: number } | undefined;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function openLog(): number {
    if (log !== undefined) return log;
    syncFolder(file);
    return (log = openSync(`${file}-wal`, "r+"));
  }

  async function sync(): Promise<void> {
    try {
      if (doubt === undefined) return await syncLog(openLog());
    } catch (thrown) {
      doubt = { thrown, triedAt: -Infinity };
      warn(`The log of the session store ${file} could not be written to disk: ${messageOf(thrown)}. Check the disk.`);
    }
    requireSynced();
  }

  /** The system forgets what it could not write, and reports success the next time: so the whole log is rewritten. */
  function requireSynced(): void {
    if (doubt === undefined) return;
    if (performance.now() - doubt.triedAt < restMs) throw doubt.thrown;
    try {
      whileNobodyWrites(() => {
        writeAgain(openLog());
        syncNow(openLog());
      });
      doubt = undefined;
    } catch (thrown) {
      doubt = { thrown, triedAt: performance.now() };
      throw thrown;
    }
  }

  function whileNobodyWrites(work: () => void): void {
    if (database.isTransaction) return work();
    database.exec("BEGIN IMMEDIATE");
    try {
      work();
    } finally {
      database.exec("ROLLBACK");
    }
  }

  function run(): Promise<void> {
    next = undefined;
    const own = sync().finally(() => {
      if (next === undefined) running = undefined;
    });
    return (running = own);
  }

  return {
    async whenOnDisk(isWritten) {
      if (!isWritten) return next ?? running;
      if (running === undefined) return run();
      return (next ??= running.then(run, run));
    },
    requireSynced,
    close() {
      if (log !== undefined) closeSync(log);
      log = undefined;
    },
  };
}

function usualDisk(): Disk {
  return { sync: promisify(fdatasync), syncNow: fdatasyncSync, restMs: 1_000 };
}

function writeAgain(log: number): void {
  const part = Buffer.allocUnsafe(1024 * 1024);
  for (let at = 0; ;) {
    const length = readSync(log, part, 0, part.length, at);
    if (length === 0) return;
    writeSync(log, part, 0, length, at);
    at += length;
  }
}

/** A new log could be on disk without its name. */
function syncFolder(file: string): void {
  try {
    syncPath(dirname(file), "r");
  } catch {
    // An unreadable folder, or a system that cannot sync one: it writes the name by itself, in a while.
  }
}

/** Only for what this process holds no lock on: closing the descriptor would drop it. */
export function syncPath(path: string, flags: "r" | "r+"): void {
  const descriptor = openSync(path, flags);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
