/**
 * The tables of every engine. Everything stored is in a session; a turn that nobody names a session for has a hidden one.
 * Keys are small and grow with time, so that what is written together stands together: a session's is 52 bits of its
 * name, a turn's the first 52 bits of its public key, which are its moment. Nothing cascades: `deletions.ts` says what
 * goes with what.
 */

/** How one engine writes the types of columns and the end of a table. */
export interface Dialect {
  readonly number: string;
  readonly text: string;
  /** How a table ends, and one that is kept in the order of its key. */
  readonly end: string;
  readonly keyedEnd: string;
}

/**
 * The statements that make each layout out of the one before; the first makes a new store. A new store goes through all
 * of them, so it has the same columns in the same order as one that was migrated. A layout only adds: nullable columns,
 * tables and indexes, so that processes of the layout before go on working until they are replaced.
 */
const layouts: readonly ((dialect: Dialect) => string)[] = [writeFirstLayout, writeProgramsAndPersons];

/** The layout that this release reads and writes. */
export const layout = layouts.length;

/** The statements that bring a store of this layout to the newest one; 0: there is nothing yet. `own`: the engine's own, by layout. */
export function statementsSince(found: number, dialect: Dialect, own: readonly (readonly string[])[] = []): string[] {
  const statements: string[] = [];
  for (const [index, write] of layouts.entries()) {
    if (index < found) continue;
    const shared = write(dialect).split(";\n");
    statements.push(...shared.filter((statement) => statement.trim() !== ""), ...(own[index] ?? []));
  }
  return statements;
}

/** The columns of a turn, in the order in which every statement and every row has them. */
const turnColumns = {
  n: "number",
  key: "text",
  parent: "number",
  depth: "number",
  question: "text",
  digest: "text",
  remembers: "number",
  model: "text",
  created: "number",
  input: "text",
  answer: "text",
  told: "text",
  echo: "text",
  instructions: "text",
  tools: "number",
  person: "number",
} as const;

/** The columns of a record after its turn and its session, in their order. */
const recordColumns = {
  background: "number",
  unnamed: "number",
  told: "text",
  items: "number",
  name: "text",
  fingerprint: "text",
  log: "text",
} as const;

export type TurnColumn = keyof typeof turnColumns;

/** A list of columns, as statements need it. */
export interface Columns {
  readonly names: readonly string[];
  readonly types: readonly ("number" | "text")[];
  /** `a, b, c`, each behind the prefix. */
  list(prefix?: string): string;
  /** `?, ?, ?` */
  readonly marks: string;
}

export const ofTurn = toColumnList(turnColumns);
export const ofRecord = toColumnList(recordColumns);

/** Where a turn's values have this column. */
export const at = (column: TurnColumn): number => ofTurn.names.indexOf(column);

function toColumnList(columns: Readonly<Record<string, "number" | "text">>): Columns {
  const names = Object.keys(columns);
  return {
    names,
    types: Object.values(columns),
    list: (prefix = "") => names.map((name) => prefix + name).join(", "),
    marks: names.map(() => "?").join(", "),
  };
}

/**
 * Layout 2. Of a root: a hash of its instructions and whether it offered tools, by which two programs in one session are
 * told apart. The person is a keyed hash of the request's `user` where something else named the session, so that
 * deleting the person finds the turn. Turns of layout 1 have none of them.
 */
function writeProgramsAndPersons({ number, text }: Dialect): string {
  return `
ALTER TABLE turn ADD COLUMN instructions ${text};
ALTER TABLE turn ADD COLUMN tools ${number};
ALTER TABLE turn ADD COLUMN person ${number};
CREATE INDEX turn_person ON turn (person) WHERE person IS NOT NULL;
`;
}

function writeFirstLayout({ number, text, end, keyedEnd }: Dialect): string {
  return `
CREATE TABLE secret (name ${text} PRIMARY KEY, value ${text} NOT NULL${keyedEnd};

-- The name is a keyed hash of owner and hint, known before the session is. n is small: indexes of turns begin with it.
CREATE TABLE session (
  id ${number} PRIMARY KEY,
  n ${number} NOT NULL,
  name ${text} NOT NULL,
  owner ${text} NOT NULL,
  kind ${text} NOT NULL,
  shows ${number} NOT NULL,
  tip ${number},
  metadata ${text} NOT NULL,
  created ${number} NOT NULL,
  used ${number} NOT NULL
${end};
CREATE UNIQUE INDEX session_n ON session (n);
CREATE INDEX session_owner ON session (owner, n) WHERE kind <> 'hidden';

-- question and digest are what a client shows of it; a turn that was broken off has none, so only its key finds it.
CREATE TABLE turn (
  n ${number} PRIMARY KEY,
  key ${text} NOT NULL,
  session ${number} NOT NULL,
  parent ${number},
  depth ${number} NOT NULL,
  question ${text},
  digest ${text},
  remembers ${number} NOT NULL,
  model ${text} NOT NULL,
  created ${number} NOT NULL,
  input ${text} NOT NULL,
  answer ${text} NOT NULL,
  told ${text} NOT NULL,
  echo ${text}
${end};
CREATE INDEX turn_said ON turn (session, question, digest);
CREATE INDEX turn_parent ON turn (parent) WHERE parent IS NOT NULL;

-- Who made a call, by the id that its output names; of a repeated id the latest.
CREATE TABLE call (
  session ${number} NOT NULL,
  id ${text} NOT NULL,
  turn ${number} NOT NULL,
  PRIMARY KEY (session, id)
${keyedEnd};

-- Long texts that agents send with every turn, their instructions and tools: once a session.
CREATE TABLE text (
  session ${number} NOT NULL,
  digest ${text} NOT NULL,
  text ${text} NOT NULL,
  PRIMARY KEY (session, digest)
${keyedEnd};

-- Which turns have it: with the last of them it goes.
CREATE TABLE text_use (
  session ${number} NOT NULL,
  digest ${text} NOT NULL,
  turn ${number} NOT NULL,
  PRIMARY KEY (session, digest, turn)
${keyedEnd};

-- Sessions that were deleted, for a day: a turn that had begun before that moment may not bring them back.
CREATE TABLE erased (
  id ${number} PRIMARY KEY,
  moment ${number} NOT NULL,
  at ${number} NOT NULL
${end};

-- The numbers of sessions that are gone, while turns of theirs are still to be removed.
CREATE TABLE doomed (n ${number} PRIMARY KEY${end};

-- How far the retention has come, and what a probing write leaves.
CREATE TABLE note (name ${text} PRIMARY KEY, value ${text} NOT NULL${keyedEnd};

-- Turns that outlive their caller: how they are told again, and what their key was used for. told says how they were placed.
CREATE TABLE record (
  turn ${number} PRIMARY KEY,
  session ${number} NOT NULL,
  background ${number} NOT NULL,
  unnamed ${number} NOT NULL,
  told ${text} NOT NULL,
  items ${number} NOT NULL,
  name ${text},
  fingerprint ${text},
  log ${text}
${end};
CREATE INDEX record_name ON record (name) WHERE name IS NOT NULL;
`;
}
