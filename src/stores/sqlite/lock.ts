/** Holds a store's file for one gateway; the system lets go of it when the process ends, however it ends. */
import { DatabaseSync } from "node:sqlite";
import { GatewayError } from "../../core/errors.ts";

export interface Lock {
  release(): void;
}

/**
 * A file beside the store's own, locked by a transaction that never ends: so the store itself stays open to the command line.
 * Throws `store_unavailable` when another gateway has it.
 */
export function lockFile(file: string): Lock {
  if (file === ":memory:") return { release: () => {} };
  const database = new DatabaseSync(`${file}-gateway`, { timeout: 0 });
  try {
    // Without a journal there is nothing to clean up after a crash.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (thrown) {
    database.close();
    throw new GatewayError(
      "store_unavailable",
      `The session store ${file} is in use by another gateway. Stop that one, or name another file (gateway.sessions.store).`,
      { cause: thrown },
    );
  }
  return {
    release() {
      if (database.isOpen) database.close();
    },
  };
}
