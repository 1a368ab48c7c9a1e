/** A database in a temporary file, for what may be larger than memory and ends with the process. */
import { accessSync, constants } from "node:fs";
import { tmpdir } from "node:os";
import { primary, primaryCodeOf } from "./codes.ts";
import { DatabaseSync } from "./engine.ts";
import { unavailable } from "./refusals.ts";

export interface Temporary {
  readonly database: DatabaseSync;
  /** Runs `work`. Failures of the temporary folder are reported in the words given to `createTemporary`. */
  use<T>(work: () => T): T;
}

/** Its errors begin with `what` and end with `remedy`. For a store that is `inMemory` it has no file either. */
export function createTemporary(what: string, remedy: string, inMemory = false): Temporary {
  // A database without a name is in memory while it is small, then in a file that is deleted with it.
  const database = new DatabaseSync(inMemory ? ":memory:" : "");
  return {
    database,
    use(work) {
      try {
        return work();
      } catch (thrown) {
        if (!(thrown instanceof Error) || !ofFolder.has(primaryCodeOf(thrown) ?? 0)) throw thrown;
        const room = "Make room there, or set the environment variable TMPDIR to another folder";
        // Without its cause, which would look like the store's fault.
        throw unavailable(`${what} in the temporary folder ${findFolder()}: ${thrown.message}. ${room}, and ${remedy}`);
      }
    },
  };
}

/** The codes for a folder that cannot be written. */
const ofFolder: ReadonlySet<number> = new Set([primary.diskFails, primary.full, primary.cannotOpen]);

/** SQLite uses the first of these that is writable. */
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
