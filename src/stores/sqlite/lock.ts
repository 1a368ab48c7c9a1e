/** Holds a store's file for one gateway; the system lets go of it when the process ends, however it ends. */
import { accessSync, chmodSync, closeSync, constants, openSync, statSync } from "node:fs";
import { GatewayError } from "../../core/errors.ts";
import { primary, primaryCodeOf } from "../codes.ts";
import { DatabaseSync } from "../engine.ts";
import { cannotOpen } from "./database.ts";

/**
 * A file beside the store's own, locked by a transaction that never ends: so the store itself stays open to the command line.
 * Throws `store_unavailable` when another gateway has it. What it returns lets go of it.
 */
export function lockFile(file: string): () => void {
  if (file === ":memory:") return () => {};
  const database = openLock(`${file}-gateway`);
  try {
    // Without a journal there is nothing to clean up after a crash.
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
    // SQLite would lock one that may only be read for all who read it, too.
    accessSync(file, constants.R_OK | constants.W_OK);
    return new DatabaseSync(file, { timeout: 0 });
  } catch (thrown) {
    throw cannotOpen(file, thrown);
  }
}

/**
 * Whoever may read the file may lock it too, and keep the gateway from starting. One that is there is not opened here: to close
 * it would let go of the lock that another store of this process may have on it.
 */
function prepareFile(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return closeSync(openSync(file, "a", 0o600));
  if (found.uid !== process.getuid?.() || (found.mode & 0o077) === 0) return;
  try {
    chmodSync(file, 0o600);
  } catch {
    // A disk without modes, such as a memory stick: nothing on it is private, and a gateway that does not start helps nobody.
  }
}
