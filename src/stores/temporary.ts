/** A database in a temporary file: for what may be larger than memory, and is gone with the process. */
import { accessSync, constants } from "node:fs";
import { tmpdir } from "node:os";
import { primary, primaryCodeOf } from "./codes.ts";
import { DatabaseSync } from "./engine.ts";
import { unavailable } from "./refusals.ts";

export interface Temporary {
  readonly database: DatabaseSync;
  /** Works with it. What its folder has no room for is told with the words that `createTemporary` was given. */
  use<T>(work: () => T): T;
}

/** `what` cannot be done without it, and then comes `remedy`. */
export function createTemporary(what: string, remedy: string): Temporary {
  // A database without a name lives in memory as long as it is small, then in a file that goes with it.
  const database = new DatabaseSync("");
  return {
    database,
    use(work) {
      try {
        return work();
      } catch (thrown) {
        if (!(thrown instanceof Error) || !ofFolder.has(primaryCodeOf(thrown) ?? 0)) throw thrown;
        const room = "Make room there, or name another folder in the environment variable TMPDIR";
        // Without its cause, which would pass for a fault of the store.
        throw unavailable(`${what} in the temporary folder ${findFolder()}: ${thrown.message}. ${room}, and ${remedy}`);
      }
    },
  };
}

/** What is said where the folder cannot be written. */
const ofFolder: ReadonlySet<number> = new Set([primary.diskFails, primary.full, primary.cannotOpen]);

/** SQLite takes the first of these that may be written. */
function findFolder(): string {
  if (process.platform === "win32") return tmpdir();
  const { SQLITE_TMPDIR, TMPDIR } = process.env;
  const folders = [SQLITE_TMPDIR, TMPDIR, "/var/tmp", "/usr/tmp", "/tmp", "."];
  return folders.find((folder) => folder !== undefined && mayWrite(folder)) ?? tmpdir();
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(`${folder}/.`, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
