/** Finds a request's place in the SQLite store. */
import type { Path } from "../../core/place/path.ts";
import {
  type Conversation,
  maxTwins,
  type Search,
  type Session,
  type StoredTurn,
  type Twins,
} from "../../core/store.ts";
import { joinSteps, type Step } from "../paths.ts";
import { createSharing } from "../sharing.ts";
import type { CommitLookup } from "../verdict.ts";
import type { Access } from "./access.ts";
import { type TurnRow, pathColumns, sizeOf, toPathTurn, toTurn, turnColumns } from "../row.ts";

/** The turn's session is not being deleted. */
export const isVisible = `NOT EXISTS (
  SELECT 1 FROM sessions INDEXED BY deleted_sessions WHERE sessions.deleted = 1 AND sessions.id = turns.session)`;

/** Something can follow it. One by one: SQLite would put a list into a table, which costs 3 µs. */
const toFollowable = (table: string) =>
  ["running", "failed", "cancelled"].map((status) => `${table}.status <> '${status}'`).join(" AND ");
export const isFollowable = toFollowable("turns");

/** Nothing follows it but failed, cancelled or running turns. */
export const isLeaf = `NOT EXISTS (SELECT 1 FROM turns AS next WHERE next.parent = turns.id AND ${toFollowable("next")})`;

/** It was said in its session. Those with a digest were, which an index tells without reading the turn. */
export const isSaid = `(digest IS NOT NULL OR (${isFollowable}))`;

export function createSearch(access: Access, lookup: CommitLookup): Search {
  const { recent, read, refreshOncePerRound } = access;
  const statements = prepareSearch(access);
  const shareTurn = createSharing<StoredTurn | undefined>();

  function recall(turnId: string): Path | undefined {
    read(refreshOncePerRound);
    return recent.path(turnId);
  }

  /** Reads what is not cached of a path, and caches it as far as there is room. */
  function readPath(turnId: string): Path {
    const steps: Step[] = [];
    let rest: string | undefined = turnId;
    while (rest !== undefined) {
      const step = recent.get(rest);
      if (step === undefined) break;
      steps.push(step);
      rest = step.turn.parent;
    }
    for (const row of read(() => statements.readPath.all(rest ?? null)) as unknown as TurnRow[]) {
      const step = { turn: toPathTurn(row), size: sizeOf(row) };
      recent.add(step.turn, step.size);
      steps.push(step);
    }
    return recent.path(turnId) ?? joinSteps(steps);
  }

  return {
    async findSession(owner, hint) {
      return read(() => {
        refreshOncePerRound();
        return lookup.findSession(owner, hint);
      });
    },
    async readSession(sessionId) {
      return read(() => {
        const row = statements.readSession.get(sessionId);
        return row && toConversation(sessionId, row as unknown as ConversationRow);
      });
    },
    findTurn: (owner, turnId) =>
      shareTurn(JSON.stringify([owner, turnId]), async () => {
        const row = read(() => statements.findTurn.get(turnId, owner)) as TurnRow | undefined;
        return row && toTurn(row);
      }),
    async readPath(turnId) {
      return recall(turnId) ?? readPath(turnId);
    },
    async recallPath(turnId) {
      return recall(turnId);
    },
    async findTwins(sessionId, by, marks) {
      const { findTwins, findKnown } = statements.by[by];
      const find = (mark: string, index: number) => toTwins(index, findTwins.all(mark, sessionId));
      return read(() => {
        // Most callers show what they received last, which is the first mark: the others are seldom worth a list.
        const found = find(marks[0] ?? "", 0);
        if (found !== undefined || marks.length < 2) return found;
        const hit = findKnown.get(JSON.stringify(marks), sessionId) as KnownRow | undefined;
        return hit && find(hit.mark, hit.place);
      });
    },
    async countThreads(sessionId) {
      const row = read(() => statements.countThreads.get(sessionId)) as { count: number };
      return row.count;
    },
    async findKey(owner, key) {
      const row = read(() => statements.findKey.get(owner, access.hashKey(owner, key))) as KeyRow | undefined;
      return row && { fingerprint: row.fingerprint, turnId: row.turn, createdAt: new Date(row.created) };
    },
  };
}

export function createCommitLookup({ prepare, hashHint }: Access): CommitLookup {
  const session = "SELECT id, owner, tip, resends FROM sessions WHERE deleted = 0";
  const findSession = prepare(`${session} AND owner = ? AND hint = ?`, "arrays");
  const readSession = prepare(`${session} AND id = ?`, "arrays");
  const canFollow = prepare(`SELECT 1 FROM turns WHERE id = ? AND owner = ? AND ${isFollowable} AND ${isVisible}`);
  const isRunning = prepare(`SELECT 1 FROM turns WHERE id = ? AND owner = ? AND status = 'running' AND ${isVisible}`);
  return {
    canFollow: (owner, turnId) => canFollow.get(turnId, owner) !== undefined,
    isRunning: (owner, turnId) => isRunning.get(turnId, owner) !== undefined,
    readSession: (sessionId) => toSession(readSession.get(sessionId) as SessionRow | undefined),
    findSession: (owner, hint) => toSession(findSession.get(owner, hashHint(owner, hint)) as SessionRow | undefined),
  };
}

type SessionRow = [id: string, owner: string, tip: string | null, resends: number];

function toSession(row: SessionRow | undefined): Session | undefined {
  if (row === undefined) return undefined;
  const [id, owner, tip, resends] = row;
  return { id, owner, tip: tip ?? undefined, resends: resends === 1 };
}

type ConversationRow = [owner: string, tip: string | null, resends: number, created: number, metadata: string];

function toConversation(id: string, [owner, tip, resends, created, metadata]: ConversationRow): Conversation {
  const session = { id, owner, tip: tip ?? undefined, resends: resends === 1 };
  return { ...session, createdAt: new Date(created), metadata: JSON.parse(metadata) };
}

function toTwins(index: number, rows: readonly unknown[]): Twins | undefined {
  const twins = (rows as [string, number][]).map(([id, hasChildren]) => ({ id, hasChildren: hasChildren === 1 }));
  const [newest, ...others] = twins;
  return newest && { index, twins: [newest, ...others] };
}

interface KnownRow {
  readonly mark: string;
  readonly place: number;
}

interface KeyRow {
  readonly fingerprint: string;
  readonly turn: string;
  readonly created: number;
}

/**
 * Finds turns by what was said. Each statement names its index, or the planner might scan the whole session. Rows are
 * numbered as they arrive, so the largest number is the newest.
 */
function prepareSearch({ prepare }: Access) {
  const findTurn = prepare(`SELECT ${turnColumns} FROM turns WHERE id = ? AND owner = ? AND ${isVisible}`, "arrays");
  // Recurses with whole rows, from the tip to the root: one look-up per turn. Rows as arrays cost a seventh less.
  const readPath = prepare(
    `
    WITH RECURSIVE path AS (
      SELECT ${pathColumns} FROM turns WHERE id = ? AND ${isVisible}
      UNION ALL
      SELECT ${pathColumns.replaceAll(/\w+/g, "turns.$&")} FROM path JOIN turns ON turns.id = path.parent
    ) SELECT * FROM path`,
    "arrays",
  );
  const prepareMark = (mark: "digest" | "exchange") => ({
    findTwins: prepare(
      `
      SELECT id, NOT (${isLeaf}) FROM turns INDEXED BY turns_by_${mark}
      WHERE ${mark} = ? AND session = ? ORDER BY rowid DESC LIMIT ${maxTwins}`,
      "arrays",
    ),
    // The rows of json_each come in the order of the list, so the search ends at the first hit.
    findKnown: prepare(`
      SELECT wanted.key AS place, wanted.value AS mark FROM json_each(?) AS wanted
      WHERE EXISTS (SELECT 1 FROM turns INDEXED BY turns_by_${mark} WHERE ${mark} = wanted.value AND session = ?)
      ORDER BY wanted.rowid LIMIT 1`),
  });
  return {
    readSession: prepare(
      "SELECT owner, tip, resends, created, metadata FROM sessions WHERE id = ? AND deleted = 0",
      "arrays",
    ),
    findTurn,
    readPath,
    by: { digest: prepareMark("digest"), exchange: prepareMark("exchange") },
    countThreads: prepare(`
      SELECT count(*) AS count FROM (
        SELECT 1 FROM turns INDEXED BY turns_by_digest WHERE session = ? AND ${isFollowable} AND ${isLeaf} LIMIT 2)`),
    findKey: prepare(`
      SELECT keys.fingerprint, keys.turn, keys.created FROM keys JOIN turns ON turns.id = keys.turn
      WHERE keys.owner = ? AND keys.hash = ? AND ${isVisible}`),
  };
}
