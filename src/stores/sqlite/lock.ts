/** Locks a store's file for one gateway; the system unlocks it when the process ends, however it ends. */
import { accessSync, chmodSync, closeSync, constants, openSync, statSync } from "node:fs";
import { GatewayError } from "../../core/errors.ts";
import { primary, primaryCodeOf } from "../codes.ts";
import { DatabaseSync } from "../engine.ts";
import { cannotOpen } from "./database.ts";

/**
 * Locks a file beside the store's own with a transaction that never ends, so that the command line can use the store.
 * Throws `store_unavailable` if another gateway has it. Returns what unlocks it.
 */
export function lockFile(file: string): () => void {
  if (file === ":memory:") return () => {};
  const database = openLock(`${file}-gateway`);
  try {
    // Without a journal file, a crash leaves nothing to clean up.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (thrown) {
    database.close();
    if (primaryCodeOf(thrown) !== primary.busy) throw cannotOpen(`${file}-gateway`, thrown);
    throw new GatewayError(
      "store_unavailable",
      `The session store ${file} is in use by another gateway. Stop that one, or name another file (gateway.sessions.store).`,
      { cause: thrown },
    );
  }
  return () => {
    if (database.isOpen) database.close();
  };
}

function openLock(file: string): DatabaseSync {
  try {
    prepareFile(file);
    // On a read-only file, SQLite would give every reader the lock.
    accessSync(file, constants.R_OK | constants.W_OK);
    return new DatabaseSync(file, { timeout: 0 });
  } catch (thrown) {
    throw cannotOpen(file, thrown);
  }
}

/**
 * Whoever may read the file may lock it too, and keep the gateway from starting. An existing one is not opened here:
 * closing it would release the lock that another store of this process may have on it.
 */
function prepareFile(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return closeSync(openSync(file, "a", 0o600));
  if (found.uid !== process.getuid?.() || (found.mode & 0o077) === 0) return;
  try {
    chmodSync(file, 0o600);
  } catch {
    // A disk without modes, such as a memory stick: nothing on it is private, and refusing to start helps nobody.
  }
}
