/** Whether a gateway has the configured store open; if so, whoever answers at its address may see a token. */
import { realpathSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileOfStore } from "../config/store.ts";
import { primary, primaryCodeOf } from "../stores/codes.ts";

/** `unreadable`: this user may not read the lock; `no-sign`: the store has no lock, as in Redis or in memory. */
type Holding = "held" | "free" | "unreadable" | "no-sign";

/** Reads the lock that a gateway holds beside its store. */
export function readHolding(store: string): Holding {
  const file = fileOfStore(store);
  if (file === undefined) return "no-sign";
  try {
    // The store may have been moved away while its gateway runs.
    const lock = `${fileExists(file) ? realpathSync(file) : file}-gateway`;
    return fileExists(lock) ? readLock(lock) : "free";
  } catch {
    return "unreadable";
  }
}

/** Throws if it cannot tell, unlike `existsSync`. */
function fileExists(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false }) !== undefined;
}

function readLock(lock: string): Holding {
  try {
    const database = new DatabaseSync(lock, { readOnly: true, timeout: 0 });
    try {
      database.prepare("SELECT count(*) FROM sqlite_schema").get();
    } finally {
      database.close();
    }
    return "free";
  } catch (thrown) {
    const code = primaryCodeOf(thrown);
    if (code === primary.cannotOpen) return "unreadable";
    return code === primary.busy ? "held" : "free";
  }
}
