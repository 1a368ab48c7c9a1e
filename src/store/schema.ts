/**
 * Turns at rest. Everything stored is in a session; a turn that nobody names a session for has a hidden one. Keys are
 * small and grow with time, so that what is written together stands together: a session's is 52 bits of its name, a
 * turn's the first 52 bits of its public key, which are its moment. Nothing cascades: `deletions.ts` says what goes with what.
 */

/** Of the layout below. A newer one is refused untouched. */
export const layout = 1;

/** Of an archive's lines. The engine before this one wrote version 1. */
export const archiveVersion = 2;

/** Marks a file as ours: "Ptco" in ASCII. */
export const applicationId = 0x5074636f;

/** Of a new file: fewer pages are touched by a turn than with the usual 4 KB; what is deleted gives its space back. */
export const beginning = ["page_size = 8192", "auto_vacuum = INCREMENTAL"];

/** How long whoever opens or writes waits for another process at the same file. */
export const patienceMs = 10_000;

/** What is deleted is overwritten. */
export const pragmas = ["journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "wal_autocheckpoint = 4000"];

export const schema = `
CREATE TABLE secret (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- The name is a keyed hash of owner and hint, known before the session is. n is small: indexes of turns begin with it.
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  n INTEGER NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  shows INTEGER NOT NULL,
  tip INTEGER,
  metadata TEXT NOT NULL,
  created INTEGER NOT NULL,
  used INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX session_n ON session (n);
CREATE INDEX session_owner ON session (owner) WHERE kind <> 'hidden';

-- question and digest are what a client shows of it; a turn that was broken off has none, so only its key finds it.
CREATE TABLE turn (
  n INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  session INTEGER NOT NULL,
  parent INTEGER,
  depth INTEGER NOT NULL,
  question TEXT,
  digest TEXT,
  remembers INTEGER NOT NULL,
  model TEXT NOT NULL,
  created INTEGER NOT NULL,
  input TEXT NOT NULL,
  answer TEXT NOT NULL,
  told TEXT NOT NULL,
  echo TEXT
) STRICT;
CREATE INDEX turn_said ON turn (session, question, digest);
CREATE INDEX turn_parent ON turn (parent) WHERE parent IS NOT NULL;

-- Who made a call, by the id that its output names; of a repeated id the latest.
CREATE TABLE call (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

-- Long texts that agents send with every turn, their instructions and tools: once a session.
CREATE TABLE text (
  session INTEGER NOT NULL,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;

-- Which turns have it: with the last of them it goes.
CREATE TABLE text_use (
  session INTEGER NOT NULL,
  digest TEXT NOT NULL,
  turn INTEGER NOT NULL,
  PRIMARY KEY (session, digest, turn)
) STRICT, WITHOUT ROWID;

-- Sessions that were deleted, for a day: a turn that had begun before that moment may not bring them back.
CREATE TABLE erased (
  id INTEGER PRIMARY KEY,
  moment INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;

-- The numbers of sessions that are gone, while turns of theirs are still to be removed.
CREATE TABLE doomed (n INTEGER PRIMARY KEY) STRICT;

-- How far the retention has come, and what a probing write leaves.
CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Turns that outlive their caller: how they are told again, and what their key was used for. told says how they were placed.
CREATE TABLE record (
  turn INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  background INTEGER NOT NULL,
  unnamed INTEGER NOT NULL,
  told TEXT NOT NULL,
  items INTEGER NOT NULL,
  name TEXT,
  fingerprint TEXT,
  log TEXT
) STRICT;
CREATE INDEX record_name ON record (name) WHERE name IS NOT NULL;

-- Background turns that run. Whoever finds one that nobody runs any more reads that it was interrupted.
CREATE TABLE running (
  turn INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  session TEXT,
  owner TEXT NOT NULL,
  model TEXT NOT NULL,
  created INTEGER NOT NULL,
  echo TEXT
) STRICT;
`;

/** The number that stands for a name or a key in the tables: 13 hexadecimal digits are exact as a number. */
export function toNumber(name: string): number {
  return Number.parseInt(name.slice(0, 13), 16);
}
