/** Brings the write-ahead log to the disk beside the requests, which a slow disk would otherwise hold up. */
import { closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";

export interface Sync {
  /** Resolves once all that is written by now is on the disk. One runs at a time; whoever comes meanwhile shares the next. */
  whenOnDisk(): Promise<void>;
  /** Must come when nobody waits any more, and before the database is closed. */
  close(): void;
}

/** Nothing for a database that is nowhere on a disk. `bring` is only given by tests. */
export function createSync(
  database: DatabaseSync,
  file: string,
  bring: (log: number) => Promise<void> = promisify(fdatasync),
): Sync | undefined {
  if (file === ":memory:") return undefined;
  const log = openSync(`${file}-wal`, "r");
  nameOnDisk(file);
  const takeOver = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)");
  let isOpen = true;
  let isDoubtful = false;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  /**
   * What the system could not write it forgets, and the next time it says that all is well. So after a failure only what
   * SQLite takes over from the log into the file, and syncs there, is believed.
   */
  async function sync(): Promise<void> {
    if (!isDoubtful) {
      try {
        return await bring(log);
      } catch {
        isDoubtful = true;
      }
    }
    const { busy } = takeOver.get() as { busy: number };
    if (busy !== 0) throw new Error("The log could not be brought to the disk, and somebody reads it just now.");
    isDoubtful = false;
  }

  function run(): Promise<void> {
    next = undefined;
    const own = sync().finally(() => {
      if (next === undefined) running = undefined;
    });
    return (running = own);
  }

  return {
    whenOnDisk() {
      if (running === undefined) return run();
      return (next ??= running.then(run, run));
    },
    close() {
      if (isOpen) closeSync(log);
      isOpen = false;
    },
  };
}

/** A log that was just made could be on the disk without its name. */
function nameOnDisk(file: string): void {
  try {
    const folder = openSync(dirname(file), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  } catch {
    // A folder that may not be listed, or a system that has no such thing: it writes the name by itself, in a while.
  }
}
