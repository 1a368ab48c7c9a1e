/** The tables, as the migrations that led to them. */
import { randomBytes } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";

/** Marks a file as ours: "Port" in ASCII. */
export const applicationId = 0x506f7274;

/** Step n brings a database from version n to version n + 1. A released step never changes. */
const migrations: readonly ((database: DatabaseSync) => void)[] = [
  createTables,
  addDigests,
  addReplayAndKeys,
  indexExchangesBySession,
  indexFailedTurns,
  addThreadEnds,
];

/** The version that this program reads and writes. */
export const newestVersion = migrations.length;

/** Runs the missing steps up to a version in one transaction: a new file waits for its disk once, not at each step. */
export function migrate(database: DatabaseSync, wantedVersion = newestVersion): void {
  if (readVersion(database) >= wantedVersion) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    // Read again under the lock: another process may have migrated while we waited for it.
    const missing = migrations.slice(readVersion(database), wantedVersion);
    for (const step of missing) step(database);
    if (missing.length > 0) database.exec(`PRAGMA user_version = ${wantedVersion}`);
    database.exec("COMMIT");
  } catch (thrown) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw thrown;
  }
}

export function readVersion(database: DatabaseSync): number {
  const row = database.prepare("PRAGMA user_version").get() as { user_version: number };
  return row.user_version;
}

/**
 * Rows stay in order of arrival and are found by an index: keyed by their random ids, they would take three times the
 * space and twice the time. The indexes on `session` and `parent` are for deletion. A tip is no foreign key: with a
 * turn's session it would form a cycle.
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

/**
 * A commit costs the pages it touches. The digest goes into the index on `session`, which a commit touches anyway; a
 * separate index would make a turn write 8 KB more. An exchange already names its session, so its index stays small
 * without it.
 */
function addDigests(database: DatabaseSync): void {
  database.exec(`
    ALTER TABLE sessions ADD COLUMN resends INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE turns ADD COLUMN digest TEXT;
    ALTER TABLE turns ADD COLUMN exchange TEXT;
    DROP INDEX turns_by_session;
    CREATE INDEX turns_by_digest ON turns (session, digest) WHERE session IS NOT NULL;
    CREATE INDEX turns_by_exchange ON turns (exchange) WHERE exchange IS NOT NULL;
    CREATE INDEX roots_by_session ON turns (session) WHERE parent IS NULL AND session IS NOT NULL;
  `);
}

/**
 * An index on `updated` would cost every turn of a session two more pages, so sessions are found by the hour of their
 * last turn, which seldom changes. A deleted session is marked first, and its turns go little by little. The other
 * indexes have few rows; a turn in a session touches none of them but the end of the one on pieces.
 */
function addReplayAndKeys(database: DatabaseSync): void {
  database.exec(`
    ALTER TABLE sessions ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE sessions ADD COLUMN active INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET active = updated / 3600000;
    CREATE INDEX sessions_by_activity ON sessions (active) WHERE deleted = 0;
    CREATE INDEX sessions_by_owner ON sessions (owner, active) WHERE deleted = 0;
    CREATE INDEX deleted_sessions ON sessions (id) WHERE deleted = 1;
    ALTER TABLE turns ADD COLUMN gap INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE turns ADD COLUMN ended INTEGER;
    ALTER TABLE turns ADD COLUMN told TEXT;
    ALTER TABLE turns ADD COLUMN pieces TEXT;
    ALTER TABLE turns ADD COLUMN memo TEXT;
    CREATE INDEX loose_roots ON turns (created) WHERE session IS NULL AND parent IS NULL;
    CREATE INDEX running_turns ON turns (id) WHERE status = 'running';
    CREATE INDEX pieces_by_end ON turns (ended) WHERE pieces IS NOT NULL;
    CREATE TABLE keys (
      owner TEXT NOT NULL,
      hash BLOB NOT NULL,
      fingerprint TEXT NOT NULL,
      turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
      created INTEGER NOT NULL,
      PRIMARY KEY (owner, hash)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX keys_by_turn ON keys (turn);
    CREATE INDEX keys_by_age ON keys (created);
  `);
  database.prepare("INSERT INTO meta (key, value) VALUES ('idempotency_key', ?)").run(randomBytes(32));
}

/**
 * Exchanges are as good as random, so in an index of their own each would touch another page. Behind their session,
 * whose id grows with time, those of new turns share the last page. Nothing reads the roots of a session any more.
 */
function indexExchangesBySession(database: DatabaseSync): void {
  database.exec(`
    DROP INDEX roots_by_session;
    DROP INDEX turns_by_exchange;
    CREATE INDEX turns_by_exchange ON turns (session, exchange) WHERE exchange IS NOT NULL;
  `);
}

/** Failed and cancelled turns go by their own age, wherever they are. No other turn is in the index, or pays for it. */
function indexFailedTurns(database: DatabaseSync): void {
  database.exec("CREATE INDEX failed_turns ON turns (created) WHERE status IN ('failed', 'cancelled')");
}

/**
 * Abandoned threads go by their own age, from their ends. Indexing all ends would cost each turn two entries, so only
 * those that are not, or no longer, their session's tip are noted; a turn of a session with one thread costs no more.
 */
function addThreadEnds(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE ends (
      created INTEGER NOT NULL,
      turn TEXT NOT NULL,
      PRIMARY KEY (created, turn)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO ends (created, turn) SELECT created, id FROM turns
    WHERE session IS NOT NULL AND status IN ('completed', 'incomplete', 'shown') AND NOT EXISTS (
      SELECT 1 FROM turns AS next
      WHERE next.parent = turns.id AND next.status IN ('completed', 'incomplete', 'shown'));
  `);
}
