/** Turns that outlive their caller, while they run: in which process, and what was said of them, for whoever follows them elsewhere. */
import { setTimeout as wait } from "node:timers/promises";
import type { Far, Hands, News, Others, Placed, StoredTurn } from "../../core/store.ts";
import { toNumber } from "../cold.ts";
import { add, type Database, type Rows, toColumns } from "./database.ts";
import { type Process, withoutSync } from "./process.ts";

/** How often what was said is written, and looked for. */
const stepMs = 100;

export interface RunningParts {
  readonly database: Database;
  readonly process: Process;
  nameKey(owner: string, key: string): string;
  stored(owner: string, key: string): Promise<StoredTurn | undefined>;
}

/** What of a turn is not written yet, and how many pieces of it are. */
interface Unwritten {
  at: number;
  news: News[];
}

/** What somebody here waits to hear of a turn of another process. */
interface Follower {
  at: number;
  wake: ((news: readonly News[] | undefined) => void) | undefined;
}

export function createRunning({ database, process, nameKey, stored }: RunningParts) {
  const { tables, ask, askTogether } = database;
  const unwritten = new Map<string, Unwritten>();
  const followed = new Map<number, Follower>();
  const withdrawn: number[] = [];
  let hands: Hands | undefined;
  let heardSince = 0;
  let writing: Promise<void> | undefined;
  let isLooking = false;
  let isClosed = false;

  /** Until nothing is left to write; what fails is tried again. */
  async function write(): Promise<void> {
    while (withdrawn.length > 0 || [...unwritten.values()].some(({ news }) => news.length > 0)) {
      if (withdrawn.length === 0) await wait(stepMs);
      await writeOnce().catch(() => wait(stepMs));
      if (isClosed) return;
    }
    writing = undefined;
  }

  async function writeOnce(): Promise<void> {
    const pieces = toColumns(3);
    const gone = withdrawn.splice(0);
    const taken = Array.from(unwritten, ([key, turn]) => ({ key, turn, news: turn.news.splice(0) }));
    for (const { key, turn, news } of taken)
      if (news.length > 0) add(pieces, toNumber(key), turn.at, JSON.stringify(news));
    try {
      await askTogether(
        [withoutSync],
        [addStatement, ...pieces],
        ["DELETE FROM running WHERE turn = ANY ($1::bigint[])", gone],
        ["DELETE FROM delta WHERE turn = ANY ($1::bigint[])", gone],
      );
      for (const { turn, news } of taken) if (news.length > 0) turn.at += 1;
    } catch (thrown) {
      withdrawn.push(...gone);
      for (const { turn, news } of taken) turn.news.unshift(...news);
      throw thrown;
    }
  }

  const mayLook = (): boolean => followed.size > 0 && !isClosed;

  /** What is new of all that is followed here, in one round trip. */
  async function look(): Promise<void> {
    isLooking = true;
    while (mayLook()) {
      await lookOnce().catch(() => {});
      await wait(stepMs);
    }
    isLooking = false;
  }

  async function lookOnce(): Promise<void> {
    const columns = toColumns(2);
    const turns = [...followed].filter(([, { wake }]) => wake !== undefined);
    for (const [turn, { at }] of turns) add(columns, turn, at);
    const [standing = [], pieces = []] = await ask(
      [standingStatement, columns[0] ?? [], process.deadBefore()],
      [piecesStatement, ...columns],
    );
    const isRunning = new Set(standing.map(([turn]) => turn));
    for (const [turn, follower] of turns) {
      const news = takePieces(follower, turn, pieces);
      if (news.length === 0 && isRunning.has(turn)) continue;
      const { wake } = follower;
      follower.wake = undefined;
      wake?.(isRunning.has(turn) ? news : undefined);
    }
  }

  function toFar({ turn, key, owner, fingerprint, placed }: RunningRow): Far {
    const follower: Follower = { at: 0, wake: undefined };
    return {
      key,
      owner,
      fingerprint: fingerprint ?? undefined,
      placed: placed === null ? undefined : (JSON.parse(placed) as Placed),
      next: () =>
        new Promise((resolve) => {
          if (isClosed) return resolve(undefined);
          follower.wake = (news) => {
            if (news === undefined) followed.delete(turn);
            resolve(news);
          };
          followed.set(turn, follower);
          if (!isLooking) void look();
        }),
      cancel: async () => void (await tables.run("UPDATE running SET stopped = 1 WHERE turn = ?", turn)),
      stored: () => stored(owner, key),
    };
  }

  function publish(key: string, news: News): void {
    const known: Unwritten = unwritten.get(key) ?? { at: 0, news: [] };
    unwritten.set(key, known);
    known.news.push(news);
    writing ??= write();
  }

  const port: Omit<Others, "claims" | "now" | "slot"> = {
    async reserve({ key, owner }, { key: name, fingerprint }) {
      const [turn, own] = [toNumber(key), nameKey(owner, name)];
      for (;;) {
        const { slot, deadBefore } = process;
        const given = [turn, key, owner, slot(), own, fingerprint, deadBefore()];
        if ((await tables.one(reserveStatement, ...given)) !== undefined) return undefined;
        const row = await tables.one<RunningRow>(`SELECT ${columns} FROM running r WHERE r.name = ?`, own);
        if (row !== undefined) return toFar(row);
      }
    },
    async announce({ key, owner }, placed) {
      const session = toNumber(placed.heading.session?.slice("conv_".length) ?? key);
      await tables.run(announceStatement, toNumber(key), key, owner, process.slot(), session, JSON.stringify(placed));
      publish(key, { placed });
    },
    publish,
    withdraw(key) {
      unwritten.delete(key);
      withdrawn.push(toNumber(key));
      writing ??= write();
    },
    async find(owner, key) {
      const { slot, now, deadBefore } = process;
      const row = await tables.one<RunningRow>(findStatement, now(), toNumber(key), key, owner, slot(), deadBefore());
      return row && toFar(row);
    },
    listen: (given) => void (hands = given),
  };

  return {
    port,
    /** What others want of our turns, and that theirs are followed here. */
    async beat(): Promise<void> {
      const { slot, now } = process;
      const since = heardSince;
      heardSince = now();
      const [rows = []] = await ask(
        ["SELECT key, stopped, heard FROM running WHERE process = $1 AND (stopped = 1 OR heard >= $2)", slot(), since],
        ["UPDATE running SET heard = $1 WHERE turn = ANY ($2::bigint[])", now(), [...followed.keys()]],
      );
      for (const [key, stopped, heard] of rows) {
        if (Number(heard) >= since) hands?.heard(String(key));
        if (Number(stopped) === 1) hands?.stop(String(key));
      }
    },
    async close(): Promise<void> {
      await Promise.race([writing, wait(stepMs * 20)]);
      isClosed = true;
      for (const { wake } of followed.values()) wake?.(undefined);
    },
  };
}

/** In their order: one that got lost with the database ends what can be told before the turn's end. */
function takePieces(follower: Follower, turn: number, pieces: Rows): News[] {
  const news: News[] = [];
  for (const [of, at, text] of pieces) {
    if (of !== turn || at !== follower.at) continue;
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
}

const columns = "r.turn, r.key, r.owner, r.fingerprint, r.placed";
/** Free is the key of a turn that ended here, and of one whose process is dead. */
const reserveStatement = `INSERT INTO running (turn, key, owner, process, name, fingerprint) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (name) WHERE name IS NOT NULL DO UPDATE SET turn = excluded.turn, key = excluded.key,
    process = excluded.process, fingerprint = excluded.fingerprint, placed = NULL, stopped = 0
  WHERE running.process = excluded.process
    OR NOT EXISTS (SELECT 1 FROM process p WHERE p.slot = running.process AND p.beat >= ?)
  RETURNING turn`;
const announceStatement = `INSERT INTO running (turn, key, owner, process, session, placed) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (turn) DO UPDATE SET session = excluded.session, placed = excluded.placed`;
const findStatement = `UPDATE running r SET heard = ? WHERE r.turn = ? AND r.key = ? AND r.owner = ? AND r.process <> ?
  AND r.placed IS NOT NULL AND EXISTS (SELECT 1 FROM process p WHERE p.slot = r.process AND p.beat >= ?)
  RETURNING ${columns}`;
const addStatement = `INSERT INTO delta (turn, at, text)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]) ON CONFLICT DO NOTHING`;
const standingStatement = `SELECT r.turn FROM running r JOIN process p ON p.slot = r.process AND p.beat >= $2::bigint
  WHERE r.turn = ANY ($1::bigint[])`;
const piecesStatement = `SELECT d.turn, d.at, d.text FROM unnest($1::bigint[], $2::bigint[]) AS g (turn, at)
  JOIN delta d ON d.turn = g.turn AND d.at >= g.at ORDER BY d.turn, d.at`;
