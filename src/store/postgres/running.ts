/** Turns that outlive their caller, while they run: in which process, and what was said of them, for whoever follows them elsewhere. */
import { setTimeout as wait } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import type { Far, Hands, News, Others, Placed, StoredTurn } from "../../core/store.ts";
import { toNumber } from "../cold.ts";
import type { Secrets } from "../secrets.ts";
import { add, type Database, type Rows, toColumns } from "./database.ts";
import { type Process, withoutSync } from "./process.ts";

/** How often what was said is written, and looked for. */
const stepMs = 100;

export interface RunningParts {
  readonly database: Database;
  readonly process: Process;
  readonly secrets: Pick<Secrets, "nameKey" | "personOf">;
  stored(owner: string, key: string): Promise<StoredTurn | undefined>;
}

/** What of a turn is not written yet, and the number of the next piece. */
interface Unwritten {
  at: number;
  readonly news: News[];
  /** The next piece once it was sent: if the answer got lost, exactly this is sent again. */
  piece: string | undefined;
  /** It has left the line, which is not written yet. */
  hasBegun: boolean;
}

/** A reader of a turn of another process: the next piece it needs and, while it waits, how to wake it. */
interface Follower {
  readonly turn: number;
  at: number;
  wake: ((news: readonly News[] | undefined) => void) | undefined;
}

export function createRunning({ database, process, secrets, stored }: RunningParts) {
  const { tables, ask, askTogether } = database;
  const unwritten = new Map<string, Unwritten>();
  const followers = new Set<Follower>();
  const withdrawn: number[] = [];
  /** The turns of this process that have a row. */
  const own = new Set<string>();
  let hands: Hands | undefined;
  let heardSince = 0;
  let writing: Promise<void> | undefined;
  let isLooking = false;
  let isClosed = false;

  const isUnwritten = ({ news, piece }: Unwritten): boolean => news.length > 0 || piece !== undefined;

  /** Until nothing is left to write; what fails is tried again. */
  async function write(): Promise<void> {
    while (withdrawn.length > 0 || [...unwritten.values()].some(isUnwritten)) {
      if (withdrawn.length === 0) await wait(stepMs);
      await writeOnce().catch(() => wait(stepMs));
      if (isClosed) return;
    }
    writing = undefined;
  }

  async function writeOnce(): Promise<void> {
    const pieces = toColumns(3);
    const gone = withdrawn.splice(0).toSorted(byNumber);
    const taken = Array.from(unwritten).filter(([, turn]) => isUnwritten(turn));
    for (const [key, turn] of taken) {
      turn.hasBegun ||= turn.news.some(({ heading }) => heading !== undefined);
      turn.piece ??= JSON.stringify(turn.news.splice(0));
      add(pieces, toNumber(key), turn.at, turn.piece);
    }
    const begun = taken.flatMap(([key, { hasBegun }]) => (hasBegun ? [toNumber(key)] : [])).toSorted(byNumber);
    try {
      await askTogether(
        [withoutSync],
        [addStatement, ...pieces],
        ...(begun.length === 0 ? [] : [[begunStatement, begun] as const]),
        ["DELETE FROM running WHERE turn = ANY ($1::bigint[])", gone],
        ["DELETE FROM delta WHERE turn = ANY ($1::bigint[])", gone],
      );
    } catch (thrown) {
      withdrawn.push(...gone);
      throw thrown;
    }
    for (const [, turn] of taken) {
      turn.at += 1;
      turn.piece = undefined;
      turn.hasBegun = false;
    }
  }

  const isRead = (): boolean => followers.size > 0 && !isClosed;

  /** Fetches the news of all turns that are followed here, in one round trip, as long as any is. */
  async function look(): Promise<void> {
    isLooking = true;
    while (isRead()) {
      await lookOnce().catch(() => {});
      await wait(stepMs);
    }
    isLooking = false;
  }

  async function lookOnce(): Promise<void> {
    const waiting = Array.from(followers).filter(({ wake }) => wake !== undefined);
    if (waiting.length === 0) return;
    const columns = toColumns(2);
    for (const { turn, at } of waiting) add(columns, turn, at);
    const turns = columns[0] ?? [];
    const [, standing = [], pieces = []] = await ask(
      [bury("running.turn = ANY ($1::bigint[])", "$2::bigint"), turns, process.deadBefore()],
      ["SELECT turn FROM running WHERE turn = ANY ($1::bigint[])", turns],
      [piecesStatement, ...columns],
    );
    const isRunning = new Set(standing.map(([turn]) => turn));
    for (const follower of waiting) {
      const news = takePieces(follower, pieces);
      if (news.length === 0 && isRunning.has(follower.turn)) continue;
      follower.wake?.(isRunning.has(follower.turn) ? news : undefined);
    }
  }

  async function* read(turn: number, signal: AbortSignal): AsyncGenerator<readonly News[], void> {
    const follower: Follower = { turn, at: 0, wake: undefined };
    const leave = (): void => follower.wake?.(undefined);
    followers.add(follower);
    signal.addEventListener("abort", leave);
    try {
      while (!signal.aborted && isRead()) {
        const news = await new Promise<readonly News[] | undefined>((resolve) => {
          follower.wake = resolve;
          if (!isLooking) void look();
        });
        follower.wake = undefined;
        if (news === undefined) return;
        yield news;
      }
    } finally {
      followers.delete(follower);
      signal.removeEventListener("abort", leave);
    }
  }

  function toFar({ turn, key, owner, fingerprint, placed, begun }: RunningRow): Far {
    const known = placed === null ? undefined : (JSON.parse(placed) as Placed);
    return {
      key,
      owner,
      fingerprint: fingerprint ?? undefined,
      placed: known && { ...known, waits: known.waits && begun === null },
      news: (signal) => read(turn, signal),
      cancel: async () => void (await tables.run("UPDATE running SET stopped = 1 WHERE turn = ?", turn)),
      stored: () => stored(owner, key),
    };
  }

  function publish(key: string, news: News): void {
    const known: Unwritten = unwritten.get(key) ?? { at: 0, news: [], piece: undefined, hasBegun: false };
    unwritten.set(key, known);
    known.news.push(news);
    writing ??= write();
  }

  const port: Omit<Others, "claims" | "now" | "slot" | "awake"> = {
    async reserve({ key, owner }, { key: name, fingerprint }) {
      const [turn, used] = [toNumber(key), secrets.nameKey(owner, name)];
      for (;;) {
        await tables.run(bury("running.name = ?", "CAST(? AS BIGINT)"), used, process.deadBefore());
        const given = [turn, key, owner, process.slot(), used, fingerprint];
        if ((await tables.one(reserveStatement, ...given)) !== undefined) {
          own.add(key);
          return undefined;
        }
        const row = await tables.one<RunningRow>(`SELECT ${columns} FROM running r WHERE r.name = ?`, used);
        if (row !== undefined) return toFar(row);
      }
    },
    async announce({ key, owner, userHint, isReserved }, placed) {
      const turn = toNumber(key);
      const session = toNumber(placed.heading.session?.slice("conv_".length) ?? key);
      const person = userHint === undefined ? null : secrets.personOf(owner, userHint);
      const given = [session, person, JSON.stringify(placed)];
      if (!isReserved) await tables.run(addRunningStatement, ...given, turn, key, owner, process.slot());
      else if ((await tables.run(placeStatement, ...given, turn)) === 0) throw takenOver();
      own.add(key);
      publish(key, { placed });
    },
    publish,
    withdraw(key) {
      own.delete(key);
      unwritten.delete(key);
      withdrawn.push(toNumber(key));
      writing ??= write();
    },
    async find(owner, key) {
      const { slot, now, deadBefore } = process;
      const turn = toNumber(key);
      await tables.run(bury("running.turn = ?", "CAST(? AS BIGINT)"), turn, deadBefore());
      const row = await tables.one<RunningRow>(findStatement, now(), turn, key, owner, slot());
      return row && toFar(row);
    },
    listen: (given) => void (hands = given),
  };

  return {
    port,
    /** Learns what other processes did with our turns, and tells them which of theirs are followed here. */
    async beat(): Promise<void> {
      const since = heardSince;
      heardSince = process.now();
      const keys = [...own];
      const followed = Array.from(followers, ({ turn }) => turn);
      const [rows = []] = await ask(
        ["SELECT key, stopped, heard FROM running WHERE turn = ANY ($1::bigint[])", keys.map(toNumber)],
        ["UPDATE running SET heard = $1 WHERE turn = ANY ($2::bigint[])", heardSince, followed],
      );
      const found = new Map(rows.map(([key, ...row]) => [key, row]));
      for (const key of keys) {
        const [stopped, heard] = found.get(key) ?? [];
        if (Number(heard) >= since) hands?.heard(key);
        if (stopped === 1) hands?.stop(key);
        // It has just ended here, or another process took it.
        if (stopped === undefined) hands?.stop(key, takenOver());
      }
    },
    async close(): Promise<void> {
      await Promise.race([writing, wait(stepMs * 20)]);
      isClosed = true;
      for (const { wake } of followers) wake?.(undefined);
    },
  };
}

/** The error of a turn that another process has taken over. */
export function takenOver(): GatewayError {
  return new GatewayError(
    "interrupted",
    "The process that ran this turn was silent for some seconds, so another process reported it as interrupted or answered it. Send the request again.",
  );
}

/** In their order: one that got lost with the database ends what can be told before the turn's end. */
function takePieces(follower: Follower, pieces: Rows): News[] {
  const news: News[] = [];
  for (const [turn, at, text] of pieces) {
    if (turn !== follower.turn || at !== follower.at) continue;
    news.push(...(JSON.parse(String(text)) as News[]));
    follower.at += 1;
  }
  return news;
}

interface RunningRow {
  readonly turn: number;
  readonly key: string;
  readonly owner: string;
  readonly fingerprint: string | null;
  readonly placed: string | null;
  /** 1 once it has left the line. */
  readonly begun: number | null;
}

const byNumber = (one: number, other: number): number => one - other;

const columns = "r.turn, r.key, r.owner, r.fingerprint, r.placed, r.begun";
/**
 * A turn is taken from a dead process before readers are told so: if the process goes on after all, the end that it
 * writes is not stored.
 */
const bury = (which: string, deadBefore: string): string => `WITH dead AS (
    DELETE FROM running WHERE turn IN (SELECT turn FROM running WHERE ${which}
      AND NOT EXISTS (SELECT 1 FROM process p WHERE p.slot = running.process AND p.beat >= ${deadBefore})
      -- Where the row is locked its process is ending the turn just now.
      FOR UPDATE OF running SKIP LOCKED)
    RETURNING turn)
  DELETE FROM delta d USING dead WHERE d.turn = dead.turn`;
const begunStatement = "UPDATE running SET begun = 1 WHERE turn = ANY ($1::bigint[])";
/** Reuses the key of a turn that ended in this process, whose row may still be there. */
const reserveStatement = `INSERT INTO running (turn, key, owner, process, name, fingerprint) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (name) WHERE name IS NOT NULL DO UPDATE SET turn = excluded.turn, key = excluded.key,
    process = excluded.process, fingerprint = excluded.fingerprint, placed = NULL, stopped = 0, session = NULL,
    person = NULL, begun = NULL
  WHERE running.process = excluded.process RETURNING turn`;
const placeStatement = "UPDATE running SET session = ?, person = ?, placed = ? WHERE turn = ?";
const addRunningStatement = `INSERT INTO running (session, person, placed, turn, key, owner, process)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`;
const findStatement = `UPDATE running r SET heard = ? WHERE r.turn = ? AND r.key = ? AND r.owner = ? AND r.process <> ?
  AND r.placed IS NOT NULL RETURNING ${columns}`;
/** Only while the turn has its row: with that its deltas are removed, once and for all. */
const addStatement = `INSERT INTO delta (turn, at, text) SELECT g.turn, g.at, g.text
  FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS g (turn, at, text) JOIN running r ON r.turn = g.turn
  ORDER BY g.turn FOR KEY SHARE OF r ON CONFLICT DO NOTHING`;
const piecesStatement = `SELECT d.turn, d.at, d.text FROM unnest($1::bigint[], $2::bigint[]) AS g (turn, at)
  JOIN delta d ON d.turn = g.turn AND d.at >= g.at ORDER BY d.turn, d.at`;
