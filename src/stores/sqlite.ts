/** Turns in one SQLite file: durable when a commit resolves, in one fsync for all commits of an event-loop tick. */
import { createHmac, createSecretKey } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { GatewayError } from "../core/errors.ts";
import type { Commit, Session, SessionStore } from "../core/ports.ts";
import { createGroup } from "./sqlite/group.ts";
import { openDatabase, rememberFile } from "./sqlite/database.ts";
import { type TurnRow, toRow, toTurn, turnColumns } from "./sqlite/row.ts";
import { type Shelf, judge } from "./verdict.ts";

export interface SqliteStoreOptions {
  /** An absolute path, or `:memory:`. */
  readonly file: string;
  readonly now?: (() => Date) | undefined;
}

/** A store in a file; it is made if it is not there, and brought to the newest schema if it is older. */
export function createSqliteStore({ file, now = () => new Date() }: SqliteStoreOptions): SessionStore {
  const database = openDatabase(file);
  const checkFile = rememberFile(file);
  const statements = prepareStatements(database);
  const hashHint = createHintHash(database);
  const group = createGroup(database, keep);

  const shelf: Shelf = {
    hasTurn: (owner, turnId) => statements.hasTurn.get(turnId, owner) !== undefined,
    readSession: (sessionId) => toSession(statements.readSession.get(sessionId)),
    findSession: (owner, hint) => toSession(statements.findSession.get(owner, hashHint(owner, hint))),
  };

  /** Judges a commit and writes it, inside the group's transaction. */
  function keep({ commit, row }: Written): boolean {
    const verdict = judge(commit, shelf);
    if (verdict === "refuse") return false;
    const { turn, session: move } = commit;
    const sessionId = move?.id ?? turn.session;
    const time = now().getTime();
    if (verdict === "keep-and-create" && move?.hint !== undefined) {
      statements.addSession.run(move.id, turn.owner, hashHint(turn.owner, move.hint), turn.id, time, time);
    } else if (sessionId !== undefined) {
      statements.touchSession.run(verdict === "keep-and-move" ? turn.id : null, time, sessionId);
    }
    statements.addTurn.run(...row);
    return true;
  }

  return {
    async findSession(owner, hint) {
      return attempt(() => shelf.findSession(owner, hint));
    },
    async readSession(sessionId) {
      return attempt(() => shelf.readSession(sessionId));
    },
    async findTurn(owner, turnId) {
      const row = attempt(() => statements.findTurn.get(turnId, owner)) as TurnRow | undefined;
      return row && toTurn(row);
    },
    async readPath(turnId) {
      const rows = attempt(() => statements.readPath.all(turnId)) as unknown as TurnRow[];
      return rows.toReversed().map(toTurn);
    },
    async commit(commit) {
      // Written out before it joins the group, so that what cannot be written fails alone and the transaction stays short.
      return group.add({ commit, row: toRow(commit.turn) });
    },
    async check() {
      attempt(() => statements.check.get());
      checkFile();
    },
    async close() {
      group.close();
      if (database.isOpen) database.close();
    },
  };
}

function toSession(row: unknown): Session | undefined {
  const session = row as { id: string; owner: string; tip: string | null } | undefined;
  return session && { id: session.id, owner: session.owner, tip: session.tip ?? undefined };
}

interface Written {
  readonly commit: Commit;
  readonly row: TurnRow;
}

function prepareStatements(database: DatabaseSync) {
  const findTurn = database.prepare(`SELECT ${turnColumns} FROM turns WHERE id = ? AND owner = ?`);
  // Whole rows go through the recursion, from the tip to the root: one look-up a turn. Rows as arrays cost a seventh less.
  const readPath = database.prepare(`
    WITH RECURSIVE path AS (
      SELECT ${turnColumns} FROM turns WHERE id = ?
      UNION ALL
      SELECT ${turnColumns.replaceAll(/\w+/g, "turns.$&")} FROM path JOIN turns ON turns.id = path.parent
    ) SELECT * FROM path`);
  findTurn.setReturnArrays(true);
  readPath.setReturnArrays(true);
  return {
    findTurn,
    readPath,
    hasTurn: database.prepare("SELECT 1 FROM turns WHERE id = ? AND owner = ?"),
    addTurn: database.prepare(`INSERT INTO turns (${turnColumns}) VALUES (${turnColumns.replaceAll(/\w+/g, "?")})`),
    findSession: database.prepare("SELECT id, owner, tip FROM sessions WHERE owner = ? AND hint = ?"),
    readSession: database.prepare("SELECT id, owner, tip FROM sessions WHERE id = ?"),
    addSession: database.prepare(
      "INSERT INTO sessions (id, owner, hint, tip, created, updated) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    touchSession: database.prepare("UPDATE sessions SET tip = coalesce(?, tip), updated = ? WHERE id = ?"),
    check: database.prepare("SELECT count(*) FROM meta"),
  };
}

/** What is kept of a hint: without the key that lives in the file nobody can tell, by trying, whose session it is. */
function createHintHash(database: DatabaseSync): (owner: string, hint: string) => Uint8Array {
  const row = database.prepare("SELECT value FROM meta WHERE key = 'hint_key'").get() as { value: Uint8Array };
  // A key object is prepared once; from the plain bytes every hash would cost five times as much.
  const key = createSecretKey(row.value);
  // A turn asks for the same hash when it looks for its session and again when it is kept.
  const recent = new Map<string, Uint8Array>();
  return (owner, hint) => {
    const name = JSON.stringify([owner, hint]);
    const known = recent.get(name);
    if (known !== undefined) return known;
    const hash = createHmac("sha256", key).update(name).digest();
    if (recent.size >= maxRecentHashes) recent.clear();
    recent.set(name, hash);
    return hash;
  };
}

const maxRecentHashes = 1_000;

function attempt<T>(read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    throw new GatewayError("store_unavailable", "The session store cannot be read now. Try again in a moment.", {
      retryAfterSeconds: 1,
      cause: thrown,
    });
  }
}
