/** Whether a gateway has the configured store: the sign by which whoever answers at its address is known for it, and may see a token. */
import { existsSync, realpathSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileOfStore } from "../config/store.ts";
import { primaryCodeOf } from "../stores/sqlite/trouble.ts";

/** What SQLite says of a file that another process has locked. */
const busy = 5;

/** Nothing where the store gives no such sign: one in Redis or in memory. A file that may not be looked at gives it to nobody. */
export function hasGateway(store: string): boolean | undefined {
  const file = fileOfStore(store);
  if (file === undefined) return undefined;
  // The store itself may have been moved away from under its gateway.
  const lock = `${existsSync(file) ? realpathSync(file) : file}-gateway`;
  if (!existsSync(lock)) return false;
  try {
    const database = new DatabaseSync(lock, { readOnly: true, timeout: 0 });
    try {
      database.prepare("SELECT count(*) FROM sqlite_schema").get();
    } finally {
      database.close();
    }
    return false;
  } catch (thrown) {
    return primaryCodeOf(thrown) === busy;
  }
}
