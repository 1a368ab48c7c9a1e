/** Files for the tests of stores that need one. */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after } from "node:test";

/** Returns a new file name each time, in a folder that does not exist yet; all are deleted after the tests. */
export function createFiles(): () => string {
  const folder = mkdtempSync(join(tmpdir(), "portico-"));
  after(() => rmSync(folder, { recursive: true }));
  let files = 0;
  return () => join(folder, String((files += 1)), "sessions.db");
}

/** The column `value` of the only row of a query. */
export function look(file: string, query: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database.prepare(query).get()?.value;
  } finally {
    database.close();
  }
}

/** A file as left by a program that was killed in a transaction, with its journal beside it. */
export function writeUnfinished(file: string): void {
  const database = new DatabaseSync(`${file}.running`);
  database.exec("CREATE TABLE songs (name TEXT); PRAGMA cache_size = 1; BEGIN");
  // More than the cache holds: the rest is written to the file before the end of the transaction.
  database.exec("INSERT INTO songs SELECT hex(zeroblob(2000)) FROM json_each('[1, 2, 3, 4, 5, 6, 7, 8]')");
  for (const ending of ["", "-journal"]) copyFileSync(`${file}.running${ending}`, `${file}${ending}`);
  database.close();
}
