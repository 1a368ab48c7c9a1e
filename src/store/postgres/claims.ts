/** Which process has which line. A claim is taken where a session is looked up that may be continued, and goes to whoever wants it. */
import { setTimeout as wait } from "node:timers/promises";
import type { Claims } from "../../core/lines.ts";
import type { Query } from "../../core/store.ts";
import { toNumber } from "../cold.ts";
import { createGrouped } from "../grouped.ts";
import { add, type Database, type Rows, type Statement, toColumns } from "./database.ts";
import type { Process } from "./process.ts";

/** Whoever waits looks whether the line is its own: at first this often, then after a tenth of the time that it has waited. */
const [leastMs, mostMs] = [20, 400];

export interface Before {
  readonly statements: readonly Statement[];
  /** Called once; with nothing if it was not answered. */
  take(told: readonly Rows[]): void;
}

interface Waiter {
  readonly about: string;
  readonly since: number;
  resolve(): void;
}

export function createClaims({ ask, tables }: Database, process: Process) {
  /** Lines in which somebody of this process stands. */
  const held = new Set<string>();
  /** Those in which nobody stands yet, and in which round they were taken. */
  const taken = new Map<string, number>();
  /** What is asked just now. Its answer says nothing of a line that was entered or given back meanwhile. */
  const asked = new Set<Map<string, string>>();
  /** What others have, and what they are about there. */
  const elsewhere = new Map<string, string>();
  const waiters = new Map<string, Waiter>();
  let rounds = 0;
  let roundsBefore = 0;
  let isLooking = false;

  const releases = createGrouped(async (given: readonly (readonly [session: string, round: number])[]) => {
    const columns = toColumns(2);
    for (const [session, round] of given) add(columns, numberOf(session), round);
    const slot = process.slot();
    await ask([dropStatement, ...columns, slot], [handStatement, ...columns, slot]);
    return given.map(() => undefined);
  });

  function settle(session: string): void {
    for (const sessions of asked) sessions.delete(session);
  }

  /** Takes these lines, as far as they are free, marks the others as wanted if they are, and sees who has them. */
  function claim(sessions: Map<string, string>, isWaiting: boolean): Before {
    if (sessions.size === 0) return { statements: [], take() {} };
    asked.add(sessions);
    const round = (rounds += 1);
    const slot = process.slot();
    const columns = toColumns(2);
    for (const [session, about] of sessions) add(columns, numberOf(session), about);
    const numbers = columns[0] ?? [];
    return {
      statements: [
        [takeStatement, ...columns, slot, round, process.deadBefore()],
        ...(isWaiting ? [[wantStatement, numbers, slot] as const] : []),
        [seeStatement, numbers],
      ],
      take(told) {
        asked.delete(sessions);
        const found = new Map(told[isWaiting ? 2 : 1]?.map(([session, ...holder]) => [session, holder]));
        for (const session of sessions.keys()) {
          const [holder, about, since = 0] = found.get(numberOf(session)) ?? [];
          elsewhere.delete(session);
          if (holder !== slot && holder !== undefined) elsewhere.set(session, String(about));
          // One that was handed over since it was asked for is taken when it is asked for again.
          else if (Number(since) >= round) taken.set(session, round);
        }
      },
    };
  }

  async function look(): Promise<void> {
    isLooking = true;
    while (waiters.size > 0) {
      const sessions = new Map(Array.from(waiters, ([session, { about }]) => [session, about]));
      const { statements, take } = claim(sessions, true);
      // While the database is away nobody goes on.
      take(await ask(...statements).catch(() => []));
      for (const [session, { resolve }] of waiters) if (port.enter(session)) resolve();
      const youngest = Math.max(...Array.from(waiters.values(), ({ since }) => since));
      if (waiters.size > 0) await wait(Math.min(Math.max((performance.now() - youngest) / 10, leastMs), mostMs));
    }
    isLooking = false;
  }

  const port: Claims = {
    enter(session) {
      if (!taken.delete(session)) return false;
      held.add(session);
      settle(session);
      return true;
    },
    front: (session) => elsewhere.get(session),
    wait: (session, about, signal) =>
      new Promise((resolve, reject) => {
        const leave = (): void => {
          waiters.delete(session);
          port.release(session);
          reject(signal.reason);
        };
        signal.addEventListener("abort", leave, { once: true });
        waiters.set(session, {
          about,
          since: performance.now(),
          resolve() {
            waiters.delete(session);
            signal.removeEventListener("abort", leave);
            resolve();
          },
        });
        if (!isLooking) void look();
      }),
    async offer(session) {
      const slot = process.slot();
      const asked = tables.one<{ readonly holder: number }>(offerStatement, numberOf(session), slot);
      const isOurs = (await asked.catch(() => undefined))?.holder === slot;
      if (!isOurs) held.delete(session);
      return isOurs;
    },
    release(session) {
      held.delete(session);
      taken.delete(session);
      settle(session);
      // What is not given back now, the next beat gives back; what is taken in a later round stays.
      releases.send([session, rounds]).catch(() => {});
    },
  };

  return {
    port,
    /** What is asked ahead of these look-ups, and what its answers mean. */
    before(queries: readonly Query[]): Before {
      const sessions = new Map<string, string>();
      for (const { session, claim } of queries)
        if (session !== undefined && claim !== undefined && !held.has(session) && !taken.has(session))
          sessions.set(session, claim());
      return claim(sessions, false);
    },
    /** What nobody here stands in since the last beat is given back. */
    async beat(): Promise<void> {
      elsewhere.clear();
      for (const [session, round] of taken) if (round <= roundsBefore) taken.delete(session);
      const kept = [held, taken, waiters, ...asked].flatMap((lines) => Array.from(lines.keys(), numberOf));
      const before = roundsBefore;
      roundsBefore = rounds;
      await ask([sweepStatement, process.slot(), before, kept]);
    },
  };
}

const numberOf = (session: string): number => toNumber(session.slice("conv_".length));

const takeStatement = `INSERT INTO claim (session, about, holder, round)
  SELECT g.session, g.about, $3::bigint, $4::bigint FROM unnest($1::bigint[], $2::text[]) AS g (session, about) ORDER BY 1
  ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, round = excluded.round, about = excluded.about,
    wanted = nullif(claim.wanted, excluded.holder)
  WHERE claim.holder = excluded.holder
    OR NOT EXISTS (SELECT 1 FROM process p WHERE p.slot = claim.holder AND p.beat >= $5::bigint)`;
const seeStatement = "SELECT session, holder, about, round FROM claim WHERE session = ANY ($1::bigint[])";
/** All lock in the same order. */
const locked = (condition: string): string =>
  `WITH mine AS (SELECT c.session FROM claim c WHERE ${condition} ORDER BY c.session FOR UPDATE)`;
const wantStatement = `${locked("c.session = ANY ($1::bigint[]) AND c.holder <> $2")}
  UPDATE claim c SET wanted = $2 FROM mine m WHERE c.session = m.session AND c.holder <> $2
    AND (c.wanted IS NULL OR NOT EXISTS (SELECT 1 FROM process p WHERE p.slot = c.wanted))`;
const own = locked(`c.session = ANY ($1::bigint[]) AND c.holder = $3
  AND EXISTS (SELECT 1 FROM unnest($1::bigint[], $2::bigint[]) AS g (session, round)
    WHERE g.session = c.session AND c.round <= g.round)`);
const dropStatement = `${own} DELETE FROM claim c USING mine m
  WHERE c.session = m.session AND c.holder = $3 AND (c.wanted IS NULL OR c.wanted = $3)`;
const handStatement = `${own} UPDATE claim c SET holder = c.wanted, wanted = NULL, round = 0 FROM mine m
  WHERE c.session = m.session AND c.holder = $3 AND c.wanted <> $3`;
const offerStatement = `UPDATE claim SET holder = coalesce(wanted, holder), wanted = NULL,
    round = CASE WHEN wanted IS NULL THEN round ELSE 0 END
  WHERE session = ? AND holder = ? RETURNING holder`;
const sweepStatement = "DELETE FROM claim WHERE holder = $1 AND round <= $2 AND session <> ALL ($3::bigint[])";
