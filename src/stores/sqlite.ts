/** Turns in one SQLite file: durable when a commit resolves, in one fsync for all commits of an event-loop tick. */
import { createHmac, createSecretKey } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { GatewayError } from "../core/errors.ts";
import type { Commit, FoundTurn, Session, SessionStore, StoredTurn } from "../core/ports.ts";
import { createGroup } from "./sqlite/group.ts";
import { openDatabase, rememberFile } from "./sqlite/database.ts";
import { createRecent } from "./sqlite/recent.ts";
import { type TurnRow, sizeOf, toRow, toTurn } from "./sqlite/row.ts";
import { prepareStatements } from "./sqlite/statements.ts";
import { type Shelf, judge } from "./verdict.ts";

export interface SqliteStoreOptions {
  /** An absolute path, or `:memory:`. */
  readonly file: string;
  readonly now?: (() => Date) | undefined;
  /** How many characters of turns stay in memory. */
  readonly maxRecentSize?: number | undefined;
}

const defaultRecentSize = 32 * 1024 * 1024;

/** A store in a file; it is made if it is not there, and brought to the newest schema if it is older. */
export function createSqliteStore(options: SqliteStoreOptions): SessionStore {
  const { file, now = () => new Date(), maxRecentSize = defaultRecentSize } = options;
  const database = openDatabase(file);
  const checkFile = rememberFile(file);
  const statements = prepareStatements(database);
  const hashHint = createHintHash(database);
  const group = createGroup(database, keep);
  const recent = createRecent(maxRecentSize);

  const shelf: Shelf = {
    hasTurn: (owner, turnId) => statements.hasTurn.get(turnId, owner) !== undefined,
    readSession: (sessionId) => toSession(statements.readSession.get(sessionId)),
    findSession: (owner, hint) => toSession(statements.findSession.get(owner, hashHint(owner, hint))),
  };

  /** Judges a commit and writes it, inside the group's transaction. */
  function keep({ commit, rows }: Written): boolean {
    const verdict = judge(commit, shelf);
    if (verdict === "refuse") return false;
    const { turns, session: move } = commit;
    const { id: tip, owner, session } = turns[1] ?? turns[0];
    const sessionId = move?.id ?? session;
    const resends = move?.resends === true ? 1 : 0;
    const time = now().getTime();
    if (verdict === "keep-and-create" && move?.hint !== undefined) {
      statements.addSession.run(move.id, owner, hashHint(owner, move.hint), tip, resends, time, time);
    } else if (sessionId !== undefined) {
      statements.touchSession.run(verdict === "keep-and-move" ? tip : null, resends, time, sessionId);
    }
    for (const row of rows) statements.addTurn.run(...row);
    return true;
  }

  function findTurnWith(digest: string, index: number, sessionId: string): FoundTurn | undefined {
    const row = statements.findByDigest.get({ digest, session: sessionId }) as DigestRow | undefined;
    return row && { id: row.id, index, hasChildren: row.has_children === 1 };
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
      const path: StoredTurn[] = [];
      let next: string | undefined = turnId;
      while (next !== undefined && database.isOpen) {
        const known = recent.get(next);
        if (known === undefined) break;
        path.push(known);
        next = known.parent;
      }
      if (next === undefined) return path.toReversed();
      const rest = next;
      for (const row of attempt(() => statements.readPath.all(rest)) as unknown as TurnRow[]) {
        const turn = toTurn(row);
        recent.add(turn, sizeOf(row));
        path.push(turn);
      }
      return path.toReversed();
    },
    async findByDigest(sessionId, digests) {
      return attempt(() => {
        // Most callers show what they heard last, and it is the first digest: the others are seldom worth their list.
        const [first] = digests;
        const found = first === undefined ? undefined : findTurnWith(first, 0, sessionId);
        if (found !== undefined || digests.length < 2) return found;
        const hit = statements.findKnownDigest.get(JSON.stringify(digests), sessionId) as KnownRow | undefined;
        return hit && findTurnWith(hit.digest, hit.place, sessionId);
      });
    },
    async findByExchange(sessionId, exchange) {
      const rows = attempt(() => statements.findByExchange.all(exchange, sessionId)) as { id: string }[];
      return rows.map(({ id }) => id);
    },
    async countRoots(sessionId) {
      const row = attempt(() => statements.countRoots.get(sessionId)) as { count: number };
      return row.count;
    },
    async commit(commit) {
      // Written out before it joins the group, so that what cannot be written fails alone and the transaction stays short.
      const rows = commit.turns.map(toRow);
      const kept = await group.add({ commit, rows });
      if (kept) for (const [index, turn] of commit.turns.entries()) recent.add(turn, sizeOf(rows[index]));
      return kept;
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
  const session = row as { id: string; owner: string; tip: string | null; resends: number } | undefined;
  return (
    session && {
      id: session.id,
      owner: session.owner,
      tip: session.tip ?? undefined,
      resends: session.resends === 1,
    }
  );
}

interface Written {
  readonly commit: Commit;
  readonly rows: readonly TurnRow[];
}

interface DigestRow {
  readonly id: string;
  readonly has_children: number;
}

interface KnownRow {
  readonly digest: string;
  readonly place: number;
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
