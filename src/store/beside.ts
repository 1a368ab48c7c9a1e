/** The store as the command line opens it, whether or not a gateway runs on the same file. */
import { DatabaseSync } from "node:sqlite";
import type { Operator } from "../core/store.ts";
import type { Access } from "./access.ts";
import { prepareFile } from "./file.ts";
import { createOperator } from "./operator.ts";
import { createCache, createTables } from "./prepared.ts";
import { createReads } from "./reads.ts";
import { createReadText } from "./rows.ts";
import { patienceMs, pragmas } from "./schema.ts";
import { createSecrets } from "./secrets.ts";
import { createWrites } from "./writes.ts";

export interface ColdStore extends Operator {
  close(): Promise<void>;
}

/** Makes the file if there is none. */
export function openCold(file: string): ColdStore {
  prepareFile(file);
  const database = new DatabaseSync(file, { timeout: patienceMs });
  for (const pragma of pragmas) database.exec(`PRAGMA ${pragma}`);
  const prepare = createCache(database);
  const reads = createReads(database);
  const writes = createWrites(database);
  const access: Access = {
    secrets: createSecrets(createTables(prepare), () => false),
    readText: createReadText(prepare),
    read: async (name, given) => reads[name](given as never) as never,
    async write(name, given) {
      database.exec("BEGIN IMMEDIATE");
      try {
        const result = writes[name](given as never);
        database.exec("COMMIT");
        return result as never;
      } catch (thrown) {
        if (database.isTransaction) database.exec("ROLLBACK");
        throw thrown;
      }
    },
    emptyLog: async () => database.exec("PRAGMA wal_checkpoint(TRUNCATE)"),
  };
  return {
    ...createOperator(access),
    check: () => access.write("probe", { bytes: 1 }),
    close: async () => database.close(),
  };
}
