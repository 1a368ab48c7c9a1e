/** Files for the tests of stores that need one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after } from "node:test";

/** Names a new file each time, in a folder that is not there yet; all are deleted after the tests. */
export function createFiles(): () => string {
  const folder = mkdtempSync(join(tmpdir(), "portico-"));
  after(() => rmSync(folder, { recursive: true }));
  let files = 0;
  return () => join(folder, String((files += 1)), "sessions.db");
}

/** The column `value` of the one row of a query. */
export function look(file: string, query: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database.prepare(query).get()?.value;
  } finally {
    database.close();
  }
}
