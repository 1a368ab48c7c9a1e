/** All that is ever written, as functions of one connection: the writer's thread runs them, many in one transaction. */
import type { DatabaseSync } from "node:sqlite";
import type { Metadata } from "../core/store.ts";
import { createAging } from "./aging.ts";
import { cold } from "./cold.ts";
import { createDeletions } from "./deletions.ts";
import { createImport } from "./import.ts";
import { createCache } from "./prepared.ts";
import type { SessionRow, TurnRow } from "./rows.ts";
import { toNumber } from "./schema.ts";

export type Writes = ReturnType<typeof createWrites>;

/** A session that its owner names. */
export interface NamedSession {
  readonly name: string;
  readonly owner: string;
  readonly metadata: Metadata;
  readonly created: number;
}

export function createWrites(database: DatabaseSync) {
  const prepare = createCache(database);
  const deletions = createDeletions(prepare);

  /**
   * The small number of a session, which is made if it is new. Undefined: it was deleted after the turn had begun. Of
   * two names with the same key the second is refused.
   */
  function sessionNumber({ id, name, owner, kind, created, turn }: SessionRow): number | undefined {
    const known = prepare(knownStatement).get(id) as KnownSession | undefined;
    const erased = known ?? (prepare("SELECT moment FROM erased WHERE id = ?").get(id) as Erased | undefined);
    if (erased !== undefined && erased.moment !== null && turn <= erased.moment) return undefined;
    if (known === undefined) return addSession(id, name, owner, kind, "{}", created);
    if (known.name === name && known.owner === owner) return known.n;
    throw new Error(`The sessions ${name} and ${known.name} have the same key.`);
  }

  function addSession(
    id: number,
    name: string,
    owner: string,
    kind: string,
    metadata: string,
    created: number,
  ): number {
    return (prepare(addStatement).get(id, name, owner, kind, metadata, created, created) as { readonly n: number }).n;
  }

  function addTurn(n: number, { session, values, calls, texts }: TurnRow): void {
    prepare(turnStatement).run(n, ...values);
    for (const call of calls) prepare(callStatement).run(n, call, session.turn);
    for (const [digest, text] of texts) {
      prepare("INSERT INTO text (session, digest, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING").run(n, digest, text);
      prepare(useStatement).run(n, digest, session.turn);
    }
  }

  return {
    ...deletions.writes,
    ...createAging(prepare, deletions),
    ...createImport(prepare, { addSession, addTurn }),

    /** False: the session was deleted after the turn had begun. */
    commit(row: TurnRow): boolean {
      const { session } = row;
      const n = sessionNumber(session);
      if (n === undefined) return false;
      addTurn(n, row);
      if (session.leads)
        prepare(leadStatement).run(session.tip, session.turn, session.learns ? 1 : 0, session.created, session.id);
      else prepare(usedStatement).run(session.learns ? 1 : 0, session.created, session.id);
      return true;
    },

    /** It hangs below the tip, wherever that stands by now. False: there is no such session. */
    append(row: TurnRow): boolean {
      const { session } = row;
      const known = prepare(cold.sessionNumber).get(session.id, session.name) as Tip | undefined;
      if (known === undefined || known.owner !== session.owner || known.kind === "hidden") return false;
      const above = known.tip === null ? undefined : prepare(cold.depth).get(known.tip);
      const [n, key, , , ...rest] = row.values;
      addTurn(known.n, { ...row, values: [n ?? 0, key ?? "", known.tip, Number(above?.["depth"] ?? 0) + 1, ...rest] });
      prepare(leadStatement).run(known.tip, session.turn, 0, session.created, session.id);
      return true;
    },

    createConversation({
      session,
      first,
    }: {
      readonly session: NamedSession;
      readonly first: TurnRow | undefined;
    }): void {
      const { name, owner, metadata, created } = session;
      const n = addSession(toNumber(name), name, owner, "named", JSON.stringify(metadata), created);
      if (first === undefined) return;
      addTurn(n, first);
      prepare(cold.setTip).run(first.session.turn, n);
    },

    describe({ name, owner, metadata, created }: NamedSession): boolean {
      return prepare(cold.describe).run(JSON.stringify(metadata), created, toNumber(name), name, owner).changes === 1;
    },

    /** As large as a turn, for a small write may still fit on a full disk. */
    probe({ bytes }: { readonly bytes: number }): void {
      prepare(cold.setNote).run("probe", "0".repeat(bytes));
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
  readonly owner: string;
  readonly kind: string;
  readonly tip: number | null;
}

const knownStatement =
  "SELECT s.n, s.name, s.owner, e.moment FROM session s LEFT JOIN erased e ON e.id = s.id WHERE s.id = ?";
/** Numbers are given by the file, for the command line may make sessions beside us; not those of sessions half removed. */
const addStatement = `INSERT INTO session (id, n, name, owner, kind, shows, metadata, created, used)
  VALUES (?, 1 + max((SELECT coalesce(max(n), 0) FROM session), (SELECT coalesce(max(n), 0) FROM doomed)), ?, ?, ?, 0, ?, ?, ?)
  RETURNING n`;
const turnStatement = `INSERT INTO turn
  (session, n, key, parent, depth, question, digest, remembers, model, created, input, answer, told, echo)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const callStatement = `INSERT INTO call (session, id, turn) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET turn = max(turn, excluded.turn)`;
const useStatement = "INSERT INTO text_use (session, digest, turn) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const leadStatement = `UPDATE session SET tip = CASE WHEN tip IS ? THEN ? ELSE tip END,
  shows = max(shows, ?), used = max(used, ?) WHERE id = ?`;
const usedStatement = "UPDATE session SET shows = max(shows, ?), used = max(used, ?) WHERE id = ?";
