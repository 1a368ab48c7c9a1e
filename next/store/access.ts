/** How the rest of the store reads and writes: by name, in the gateway through threads, on the command line directly. */
import type { DatabaseSync } from "node:sqlite";
import { createReads, type Reads } from "./reads.ts";
import type { ReadText } from "./rows.ts";
import type { Secrets } from "./secrets.ts";
import { createWrites, type Writes } from "./writes.ts";

export interface Access {
  /** What may take long, where nobody waits for it. */
  readonly read: Caller<Reads>;
  /** In a transaction of its own, or with others that come at the same time; durable when it resolves. */
  readonly write: Caller<Writes>;
  /** What was deleted is not in SQLite's log either. */
  emptyLog(): Promise<void>;
  readonly secrets: Secrets;
  readonly readText: ReadText;
}

export type Caller<Functions extends Record<keyof Functions, (given: never) => unknown>> = <
  Name extends keyof Functions,
>(
  name: Name,
  given: Parameters<Functions[Name]>[0],
) => Promise<ReturnType<Functions[Name]>>;

/** One connection for all. */
export function createDirect(database: DatabaseSync): Pick<Access, "read" | "write" | "emptyLog"> {
  const reads = createReads(database);
  const writes = createWrites(database);
  return {
    read: async (name, given) => (reads[name] as (given: unknown) => never)(given),
    write: async (name, given) => {
      database.exec("BEGIN IMMEDIATE");
      try {
        const result = (writes[name] as (given: unknown) => never)(given);
        database.exec("COMMIT");
        return result;
      } catch (thrown) {
        if (database.isTransaction) database.exec("ROLLBACK");
        throw thrown;
      }
    },
    async emptyLog() {
      database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    },
  };
}
