/** All that is ever written, as functions of one connection: the writer's thread runs them, many in one transaction. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { SessionRow, TurnRow } from "./rows.ts";

export type Writes = ReturnType<typeof createWrites>;

export function createWrites(database: DatabaseSync) {
  const prepare = createCache(database);
  let nextSession = (prepare("SELECT coalesce(max(n), 0) AS n FROM session").get() as { n: number }).n;

  /** The small number of a session, which is made if it is new. Of two names with the same key the second is refused. */
  function sessionNumber({ id, name, owner, kind, created }: SessionRow): number {
    const known = prepare("SELECT n, name, owner FROM session WHERE id = ?").get(id) as KnownSession | undefined;
    if (known !== undefined) {
      if (known.name === name && known.owner === owner) return known.n;
      throw new Error(`The sessions ${name} and ${known.name} have the same key.`);
    }
    nextSession += 1;
    prepare(
      "INSERT INTO session (id, n, name, owner, kind, shows, metadata, created, used) VALUES (?, ?, ?, ?, ?, 0, '{}', ?, ?)",
    ).run(id, nextSession, name, owner, kind, created, created);
    return nextSession;
  }

  return {
    commit({ session, values, calls, texts }: TurnRow): void {
      const n = sessionNumber(session);
      prepare(
        "INSERT INTO turn (session, n, key, parent, depth, question, digest, remembers, model, created, input, answer, told, echo) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      ).run(n, ...values);
      for (const call of calls) {
        prepare(
          "INSERT INTO call (session, id, turn) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET turn = excluded.turn",
        ).run(n, call, session.turn);
      }
      for (const [digest, text] of texts)
        prepare("INSERT INTO text (session, digest, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING").run(
          n,
          digest,
          text,
        );
      const moved = session.leads ? "CASE WHEN tip IS ? THEN ? ELSE tip END" : "tip";
      prepare(`UPDATE session SET tip = ${moved}, shows = max(shows, ?), used = max(used, ?) WHERE id = ?`).run(
        ...(session.leads ? [session.tip, session.turn] : []),
        session.learns ? 1 : 0,
        session.created,
        session.id,
      );
    },
  };
}

interface KnownSession {
  readonly n: number;
  readonly name: string;
  readonly owner: string;
}

/** Statements by their text, each prepared once. */
export function createCache(database: DatabaseSync): (text: string) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  return (text) => {
    const known = prepared.get(text);
    if (known !== undefined) return known;
    const statement = database.prepare(text);
    prepared.set(text, statement);
    return statement;
  };
}
