/** All that is ever written, as functions of one connection: the writer's thread runs them, many in one transaction. */
import type { DatabaseSync } from "node:sqlite";
import type { Metadata } from "../core/store.ts";
import { createAging } from "./aging.ts";
import { cold } from "./cold.ts";
import { createDeletions } from "./deletions.ts";
import { createImport } from "./import.ts";
import { createCache, createTables } from "./prepared.ts";
import type { NewSession, SessionRow, TurnRow } from "./rows.ts";
import { toNumber } from "./schema.ts";

export type Writes = ReturnType<typeof createWrites>;

/** A conversation, as its owner described it. */
interface Described {
  readonly name: string;
  readonly owner: string;
  readonly metadata: Metadata;
  readonly at: number;
}

export function createWrites(database: DatabaseSync) {
  const prepare = createCache(database);
  const tables = createTables(prepare);
  const { one, run } = tables;
  const deletions = createDeletions(tables);

  /**
   * The small number of a session, which is made if it is new. Undefined: it was deleted after the turn had begun. Of
   * two names with the same key the second is refused.
   */
  function sessionNumber(session: SessionRow): number | undefined {
    const { id, name, owner, turn } = session;
    const known = prepare(knownStatement).get(id) as KnownSession | undefined;
    const erased = known === undefined ? (prepare(erasedStatement).get(id) as Erased | undefined) : known;
    if (erased !== undefined && erased.moment !== null && turn <= erased.moment) return undefined;
    if (known === undefined) return addSession(session, "{}");
    if (known.name === name && known.owner === owner) return known.n;
    throw new Error(`The sessions ${name} and ${known.name} have the same key.`);
  }

  function addSession({ id, name, owner, kind, created }: NewSession, metadata: string): number {
    return (prepare(addStatement).get(id, name, owner, kind, metadata, created, created) as { readonly n: number }).n;
  }

  function addTurn(n: number, { session, values, calls, texts }: TurnRow): void {
    prepare(turnStatement).run(n, ...values);
    for (const call of calls) prepare(callStatement).run(n, call, session.turn);
    for (const [digest, text] of texts) {
      prepare(textStatement).run(n, digest, text);
      prepare(useStatement).run(n, digest, session.turn);
    }
  }

  return {
    ...deletions.writes,
    ...createAging(tables, deletions),
    ...createImport(tables, { addSession, addTurn }),

    /** False: the session was deleted after the turn had begun. */
    commit(row: TurnRow): boolean {
      const { id, leads, tip, turn, learns, created } = row.session;
      if (row.record !== undefined) prepare("DELETE FROM running WHERE turn = ?").run(turn);
      const n = sessionNumber(row.session);
      if (n === undefined) return false;
      addTurn(n, row);
      if (row.record !== undefined) prepare(recordStatement).run(turn, n, ...row.record);
      if (leads) prepare(leadStatement).run(tip, turn, learns ? 1 : 0, created, id);
      else prepare(usedStatement).run(learns ? 1 : 0, created, id);
      return true;
    },

    /** It hangs below the tip, wherever that stands by now. False: there is no such conversation. */
    append(row: TurnRow): boolean {
      const { id, name, owner, turn, created } = row.session;
      const known = one<Tip>(cold.conversation, id, name, owner);
      if (known === undefined) return false;
      const { n, tip } = known;
      const above = tip === null ? undefined : one<{ readonly depth: number }>(cold.depth, tip);
      addTurn(n, { ...row, values: row.values.with(2, tip).with(3, (above?.depth ?? 0) + 1) });
      prepare(leadStatement).run(tip, turn, 0, created, id);
      return true;
    },

    createConversation({ first, ...described }: Described & { readonly first: TurnRow | undefined }): void {
      const { name, owner, metadata, at: created } = described;
      const n = addSession({ id: toNumber(name), name, owner, kind: "named", created }, JSON.stringify(metadata));
      if (first === undefined) return;
      addTurn(n, first);
      run(cold.setTip, first.session.turn, n);
    },

    describe({ name, owner, metadata, at }: Described): boolean {
      return run(cold.describe, JSON.stringify(metadata), at, toNumber(name), name, owner) === 1;
    },

    begin(values: readonly (string | number | null)[]): void {
      prepare(runningStatement).run(...values);
    },

    /** Whether anything of this size can be written. */
    probe({ bytes }: { readonly bytes: number }): void {
      run(cold.setNote, "probe", "0".repeat(bytes));
    },
  };
}

interface Erased {
  readonly moment: number | null;
}

interface KnownSession extends Erased {
  readonly n: number;
  readonly name: string;
  readonly owner: string;
}

interface Tip {
  readonly n: number;
  readonly tip: number | null;
}

const knownStatement =
  "SELECT s.n, s.name, s.owner, e.moment FROM session s LEFT JOIN erased e ON e.id = s.id WHERE s.id = ?";
const erasedStatement = "SELECT moment FROM erased WHERE id = ?";
/** Numbers are given by the file, for the command line may make sessions beside us; not those of sessions half removed. */
const addStatement = `INSERT INTO session (id, n, name, owner, kind, shows, metadata, created, used)
  VALUES (?, 1 + max((SELECT coalesce(max(n), 0) FROM session), (SELECT coalesce(max(n), 0) FROM doomed)), ?, ?, ?, 0, ?, ?, ?)
  RETURNING n`;
const turnStatement = `INSERT INTO turn
  (session, n, key, parent, depth, question, digest, remembers, model, created, input, answer, told, echo)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const callStatement = `INSERT INTO call (session, id, turn) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET turn = max(turn, excluded.turn)`;
const textStatement = "INSERT INTO text (session, digest, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const useStatement = "INSERT INTO text_use (session, digest, turn) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const recordStatement = `INSERT INTO record
  (turn, session, background, unnamed, told, items, name, fingerprint, log) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const runningStatement =
  "INSERT INTO running (turn, key, session, owner, model, created, echo) VALUES (?, ?, ?, ?, ?, ?, ?)";
const leadStatement = `UPDATE session SET tip = CASE WHEN tip IS ? THEN ? ELSE tip END,
  shows = max(shows, ?), used = max(used, ?) WHERE id = ?`;
const usedStatement = "UPDATE session SET shows = max(shows, ?), used = max(used, ?) WHERE id = ?";
