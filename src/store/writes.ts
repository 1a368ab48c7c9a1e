/** All that is ever written, as functions of one connection: the writer's thread runs them, many in one transaction. */
import type { Metadata } from "../core/store.ts";
import { cold, createTables, type Prepare, toNumber } from "./cold.ts";
import { createDeletions } from "./deletions.ts";
import { createImport } from "./import.ts";
import { createAging } from "./retention.ts";
import { depthAt, type NewSession, parentAt, type TurnRow } from "./rows.ts";

export type Writes = ReturnType<typeof createWrites>;

/** A conversation, as its owner described it. */
interface Described {
  readonly name: string;
  readonly owner: string;
  readonly metadata: Metadata;
  readonly at: number;
}

export function createWrites(prepare: Prepare) {
  const tables = createTables(prepare);
  const { one, run } = tables;
  const deletions = createDeletions(tables);
  const addTurnRow = prepare(turnStatement);
  const lead = prepare(leadStatement);

  /** False: its session is not there, or was deleted after the turn had begun. */
  function addTurn({ session, values, calls = none, texts = none }: TurnRow): boolean {
    const [id, name, owner] = session;
    const [turn = null] = values;
    if (addTurnRow.run(...values, id, name, owner, turn).changes === 0) return false;
    if (calls.length === 0 && texts.length === 0) return true;
    const n = numberOf(turn);
    for (const call of calls) run(callStatement, n, call, turn);
    for (const [digest, text] of texts) {
      run(textStatement, n, digest, text);
      run(useStatement, n, digest, turn);
    }
    return true;
  }

  const numberOf = (turn: TurnRow["values"][number]): number =>
    one<{ readonly session: number }>(cold.sessionOfTurn, turn)?.session ?? 0;

  /** False: it was deleted after the turn had begun. Of two names with the same key the second is refused. */
  function addMissing(session: NewSession, turn: number): boolean {
    const [id, name, owner] = session;
    const erased = one<{ readonly moment: number }>(erasedStatement, id);
    if (erased !== undefined && turn <= erased.moment) return false;
    const known = one<{ readonly name: string; readonly owner: string }>(cold.sessionById, id);
    if (known !== undefined && (known.name !== name || known.owner !== owner))
      throw new Error(`The sessions ${name} and ${known.name} have the same key.`);
    addSession(session, "{}");
    return true;
  }

  function addSession(session: NewSession, metadata: string): number {
    const [, , , , created] = session;
    return one<{ readonly n: number }>(addStatement, ...session, created, metadata)?.n ?? 0;
  }

  return {
    ...deletions.writes,
    ...createAging(tables, deletions),
    ...createImport(tables, { addSession, addTurn }),

    /** In the place of what was kept when it began. False: the session was deleted after that. */
    commit(row: TurnRow): boolean {
      const { session, values, tip, learns, record } = row;
      const turn = Number(values[0]);
      const begun = record && deletions.read(turn);
      if (begun !== undefined) deletions.removeTurn(begun);
      if (!addTurn(row) && !(addMissing(session, turn) && addTurn(row))) return false;
      if (record !== undefined) run(recordStatement, turn, numberOf(turn), ...record);
      const [id, , , , created] = session;
      lead.run(tip, turn, learns ? 1 : 0, created, id);
      return true;
    },

    /** It hangs below the tip, wherever that stands by now. False: there is no such conversation. */
    append(row: TurnRow): boolean {
      const { session, values } = row;
      const [id, name, owner, , created] = session;
      const known = one<Tip>(cold.conversation, id, name, owner);
      if (known === undefined) return false;
      const { tip } = known;
      const above = tip === null ? undefined : one<{ readonly depth: number }>(cold.depth, tip);
      addTurn({
        ...row,
        values: values.with(parentAt, tip).with(depthAt, (above?.depth ?? 0) + 1),
      });
      lead.run(tip, Number(values[0]), 0, created, id);
      return true;
    },

    createConversation({ first, ...described }: Described & { readonly first: TurnRow | undefined }): void {
      const { name, owner, metadata, at: created } = described;
      const n = addSession([toNumber(name), name, owner, "named", created], JSON.stringify(metadata));
      if (first === undefined) return;
      addTurn(first);
      run(cold.setTip, Number(first.values[0]), n);
    },

    describe({ name, owner, metadata, at }: Described): boolean {
      return run(cold.describe, JSON.stringify(metadata), at, toNumber(name), name, owner) === 1;
    },

    /** Whether anything of this size can be written. */
    probe({ bytes }: { readonly bytes: number }): void {
      run(cold.setNote, "probe", "0".repeat(bytes));
    },
  };
}

interface Tip {
  readonly tip: number | null;
}

const none: readonly never[] = [];

const erasedStatement = "SELECT moment FROM erased WHERE id = ?";
/** Numbers are given by the file, for the command line may make sessions beside us; not those of sessions half removed. */
const addStatement = `INSERT INTO session (id, n, name, owner, kind, shows, created, used, metadata)
  VALUES (?, 1 + max((SELECT coalesce(max(n), 0) FROM session), (SELECT coalesce(max(n), 0) FROM doomed)), ?, ?, ?, 0, ?, ?, ?)
  RETURNING n`;
/** One statement finds the session, and adds. */
const turnStatement = `INSERT INTO turn
  (session, n, key, parent, depth, question, digest, remembers, model, created, input, answer, told, echo)
  SELECT s.n, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM session s WHERE s.id = ? AND s.name = ? AND s.owner = ?
    AND NOT EXISTS (SELECT 1 FROM erased e WHERE e.id = s.id AND e.moment >= ?)`;
const callStatement = `INSERT INTO call (session, id, turn) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET turn = max(turn, excluded.turn)`;
const textStatement = "INSERT INTO text (session, digest, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const useStatement = "INSERT INTO text_use (session, digest, turn) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const recordStatement = `INSERT INTO record
  (turn, session, background, unnamed, told, items, name, fingerprint, log) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const leadStatement = `UPDATE session SET tip = CASE WHEN tip IS ? THEN ? ELSE tip END,
  shows = max(shows, ?), used = max(used, ?) WHERE id = ?`;
