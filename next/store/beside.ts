/** The store as the command line opens it, whether or not a gateway runs on the same file. */
import { DatabaseSync } from "node:sqlite";
import type { Operator } from "../core/store.ts";
import { type Access, createDirect } from "./access.ts";
import { patienceMs, prepareFile } from "./file.ts";
import { createOperator } from "./operator.ts";
import { createCache } from "./prepared.ts";
import { createReadText } from "./rows.ts";
import { pragmas } from "./schema.ts";
import { createSecrets } from "./secrets.ts";

export interface ColdStore extends Omit<Operator, "check"> {
  close(): void;
}

/** Makes the file if there is none. */
export function openCold(file: string): ColdStore {
  prepareFile(file);
  const database = new DatabaseSync(file, { timeout: patienceMs });
  for (const pragma of pragmas) database.exec(`PRAGMA ${pragma}`);
  const prepare = createCache(database);
  const secrets = createSecrets(prepare, neverThere, () => performance.now());
  const access: Access = { ...createDirect(database), secrets, readText: createReadText(prepare) };
  return { ...createOperator(access), close: () => database.close() };
}

/** No turn asks for its session here. */
const neverThere = (): boolean => false;
