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

  function addTurn(n: number, { values, calls = none, texts = none }: TurnRow): void {
    const [turn = null] = values;
    addTurnRow.run(n, ...values);
    for (const call of calls) run(callStatement, n, call, turn);
    for (const [digest, text] of texts) {
      run(textStatement, n, digest, text);
      run(useStatement, n, digest, turn);
    }
  }

  function addSession(session: NewSession, metadata: string): number {
    const [, , , , created] = session;
    return one<Numbered>(addStatement, ...session, created, metadata)?.n ?? 0;
  }

  /** Nobody else may take the place of a session that was deleted meanwhile, or whose name has the same number. */
  function refuse(id: number, name: string): void {
    const known = one<{ readonly name: string }>(cold.sessionById, id);
    if (known !== undefined && known.name !== name)
      throw new Error(`The sessions ${name} and ${known.name} have the same key.`);
  }

  return {
    ...deletions.writes,
    ...createAging(tables, deletions),
    ...createImport(tables, {
      addSession,
      addTurn: (row) => addTurn(one<Numbered>(cold.sessionById, row.session[0])?.n ?? 0, row),
    }),

    /** In the place of what was kept when it began. False: the session was deleted after that. */
    commit(row: TurnRow): boolean {
      const { session, values, tip, learns, record } = row;
      const [id, name, owner, kind, created] = session;
      const turn = Number(values[0]);
      const begun = record && deletions.read(turn);
      if (begun !== undefined) deletions.removeTurn(begun);
      const own = lead.get(id, name, owner, kind, learns ? 1 : 0, created, turn, tip) as Numbered | undefined;
      if (own === undefined) {
        refuse(id, name);
        return false;
      }
      addTurn(own.n, row);
      if (record !== undefined) run(recordStatement, turn, own.n, ...record);
      return true;
    },

    /** It hangs below the tip, wherever that stands by now. False: there is no such conversation. */
    append(row: TurnRow): boolean {
      const { session, values } = row;
      const [id, name, owner, , created] = session;
      const known = one<Tip & Numbered>(cold.conversation, id, name, owner);
      if (known === undefined) return false;
      const { n, tip } = known;
      const above = tip === null ? undefined : one<{ readonly depth: number }>(cold.depth, tip);
      addTurn(n, { ...row, values: values.with(parentAt, tip).with(depthAt, (above?.depth ?? 0) + 1) });
      run(moveStatement, values[0] ?? null, created, n);
      return true;
    },

    createConversation({ first, ...described }: Described & { readonly first: TurnRow | undefined }): void {
      const { name, owner, metadata, at: created } = described;
      const n = addSession([toNumber(name), name, owner, "named", created], JSON.stringify(metadata));
      if (first === undefined) return;
      addTurn(n, first);
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

interface Numbered {
  readonly n: number;
}

interface Tip {
  readonly tip: number | null;
}

const none: readonly never[] = [];

/** Numbers are given by the file, for the command line may make sessions beside us; not those of sessions half removed. */
const nextNumber = "1 + max((SELECT coalesce(max(n), 0) FROM session), (SELECT coalesce(max(n), 0) FROM doomed))";
const addStatement = `INSERT INTO session (id, n, name, owner, kind, shows, created, used, metadata)
  VALUES (?, ${nextNumber}, ?, ?, ?, 0, ?, ?, ?) RETURNING n`;
/** Makes the session, or moves its tip if it stands where it was seen; a deleted one stays deleted for turns that began before. */
const leadStatement = `INSERT INTO session (id, n, name, owner, kind, shows, tip, metadata, created, used)
  SELECT ?1, ${nextNumber}, ?2, ?3, ?4, ?5, CASE WHEN ?8 IS NULL THEN ?7 END, '{}', ?6, ?6
    WHERE NOT EXISTS (SELECT 1 FROM erased WHERE id = ?1 AND moment >= ?7)
  ON CONFLICT (id) DO UPDATE SET tip = CASE WHEN tip IS ?8 THEN ?7 ELSE tip END,
    shows = max(shows, excluded.shows), used = max(used, excluded.used)
    WHERE name = excluded.name AND owner = excluded.owner
  RETURNING n`;
const moveStatement = "UPDATE session SET tip = ?, used = max(used, ?) WHERE n = ?";
const turnStatement = `INSERT INTO turn
  (session, n, key, parent, depth, question, digest, remembers, model, created, input, answer, told, echo)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const callStatement = `INSERT INTO call (session, id, turn) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET turn = max(turn, excluded.turn)`;
const textStatement = "INSERT INTO text (session, digest, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const useStatement = "INSERT INTO text_use (session, digest, turn) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const recordStatement = `INSERT INTO record
  (turn, session, background, unnamed, told, items, name, fingerprint, log) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
