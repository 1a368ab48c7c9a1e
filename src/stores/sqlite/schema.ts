/** The tables, as the list of steps that led to them. */
import { randomBytes } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";

/** Marks a file as ours: "Port" in ASCII. */
export const applicationId = 0x506f7274;

/** Step n brings a database from version n to version n + 1. A step that was released never changes. */
const migrations: readonly ((database: DatabaseSync) => void)[] = [createTables];

/** The version that this program reads and writes. */
export const newestVersion = migrations.length;

/** Runs the steps that are missing, each with its version in one transaction. */
export function migrate(database: DatabaseSync): void {
  while (readVersion(database) < newestVersion) {
    database.exec("BEGIN IMMEDIATE");
    try {
      // Read again under the lock: another process may have taken the step while we waited for it.
      const version = readVersion(database);
      const step = migrations[version];
      step?.(database);
      if (step !== undefined) database.exec(`PRAGMA user_version = ${version + 1}`);
      database.exec("COMMIT");
    } catch (thrown) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw thrown;
    }
  }
}

export function readVersion(database: DatabaseSync): number {
  const row = database.prepare("PRAGMA user_version").get() as { user_version: number };
  return row.user_version;
}

/**
 * Rows stay in order of arrival and are found by an index: keyed by their random ids they would take three times the space
 * and twice the time. The indexes on `session` and `parent` are for deletion. A tip is no foreign key, as it would point
 * in a circle with a turn's session.
 */
function createTables(database: DatabaseSync): void {
  database.exec(`
    PRAGMA application_id = ${applicationId};
    CREATE TABLE meta (
      key TEXT PRIMARY KEY NOT NULL,
      value BLOB NOT NULL
    ) STRICT;
    CREATE TABLE sessions (
      id TEXT PRIMARY KEY NOT NULL,
      owner TEXT NOT NULL,
      hint BLOB,
      tip TEXT,
      created INTEGER NOT NULL,
      updated INTEGER NOT NULL,
      UNIQUE (owner, hint)
    ) STRICT;
    CREATE TABLE turns (
      id TEXT PRIMARY KEY NOT NULL,
      owner TEXT NOT NULL,
      session TEXT REFERENCES sessions (id) ON DELETE CASCADE,
      parent TEXT REFERENCES turns (id),
      created INTEGER NOT NULL,
      model TEXT NOT NULL,
      status TEXT NOT NULL,
      input TEXT NOT NULL,
      output TEXT NOT NULL,
      usage TEXT
    ) STRICT;
    CREATE INDEX turns_by_session ON turns (session) WHERE session IS NOT NULL;
    CREATE INDEX turns_by_parent ON turns (parent) WHERE parent IS NOT NULL;
  `);
  database.prepare("INSERT INTO meta (key, value) VALUES ('hint_key', ?)").run(randomBytes(32));
}
