/**
 * Turns at rest. Everything stored is in a session; a turn that nobody names a session for has a hidden one. Keys are
 * small and grow with time, so that what is written together stands together: a session's is 52 bits of its name, a
 * turn's the first 52 bits of its public key, which are its moment. Deletions are written out (`deletions.ts`).
 */

/** Of the layout below. A newer one is refused untouched. */
export const layout = 1;

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
`;

/** The number that stands for a name or a key in the tables: 13 hexadecimal digits are exact as a number. */
export function toNumber(name: string): number {
  return Number.parseInt(name.slice(0, 13), 16);
}
