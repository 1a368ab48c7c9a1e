/** Which process has which line. A claim is taken where a session is looked up that may be continued, and goes to whoever wants it. */
import { setTimeout as wait } from "node:timers/promises";
import type { Claims } from "../../core/lines.ts";
import type { Query } from "../../core/store.ts";
import { toNumber } from "../cold.ts";
import { createGrouped } from "../grouped.ts";
import { add, type Database, type Rows, type Statement, toColumns } from "./database.ts";
import type { Process } from "./process.ts";

/** How often whoever waits looks whether the line is its own, and whoever has it whether it is wanted. */
const lookMs = 40;

export interface Before {
  readonly statements: readonly Statement[];
  take(told: readonly Rows[]): void;
}

interface Waiter {
  readonly about: string;
  resolve(): void;
}

export function createClaims({ ask }: Database, process: Process) {
  /** What this process has, and in which round it took it: what it gives back later than it takes it anew stays. */
  const held = new Map<string, number>();
  /** What others have, and what they are about there. */
  const elsewhere = new Map<string, string>();
  const waiters = new Map<string, Waiter>();
  const contended = new Set<string>();
  const wanted = new Set<string>();
  let rounds = 0;
  let roundsBefore = 0;
  let heldBefore: ReadonlyMap<string, number> = new Map();
  let isLooking = false;

  const releases = createGrouped(async (given: readonly (readonly [session: string, round: number])[]) => {
    const columns = toColumns(2);
    for (const [session, round] of given) add(columns, numberOf(session), round);
    const slot = process.slot();
    await ask(
      [dropStatement, ...columns, slot],
      [handStatement, ...columns, slot],
      [unwantStatement, columns[0] ?? [], slot],
    );
    return given.map(() => undefined);
  });

  /** What takes these lines, as far as they are free, and tells who has them. */
  function take(sessions: ReadonlyMap<string, string>): readonly Statement[] {
    const columns = toColumns(2);
    for (const [session, about] of sessions) add(columns, numberOf(session), about);
    const { slot, deadBefore } = process;
    return [
      [takeStatement, ...columns, slot(), (rounds += 1), deadBefore()],
      [lookStatement, columns[0] ?? []],
    ];
  }

  function note(session: string, found: Found, round: number): void {
    const row = found.get(numberOf(session));
    if (row?.holder === process.slot()) {
      held.set(session, round);
      elsewhere.delete(session);
    } else if (row !== undefined) elsewhere.set(session, row.about);
  }

  async function look(): Promise<void> {
    isLooking = true;
    while (waiters.size > 0 || contended.size > 0) {
      await lookOnce().catch(() => {});
      await wait(lookMs);
    }
    isLooking = false;
  }

  async function lookOnce(): Promise<void> {
    const waiting = new Map(Array.from(waiters, ([session, { about }]) => [session, about]));
    const watched = [...contended].filter((session) => held.has(session));
    const taking = take(waiting);
    const round = rounds;
    const mark: Statement = [wantStatement, [...waiting.keys()].map(numberOf), process.slot()];
    const told = await ask(...taking.slice(0, 1), mark, [lookStatement, [...waiting.keys(), ...watched].map(numberOf)]);
    const found = toFound(told.at(-1));
    for (const session of waiting.keys()) {
      note(session, found, round);
      if (!held.has(session)) continue;
      const waiter = waiters.get(session);
      waiters.delete(session);
      if (waiter === undefined) port.release(session);
      else waiter.resolve();
    }
    for (const session of watched) if (found.get(numberOf(session))?.isWanted) wanted.add(session);
  }

  const port: Claims = {
    has: (session) => held.has(session),
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
          resolve() {
            signal.removeEventListener("abort", leave);
            resolve();
          },
        });
        if (!isLooking) void look();
      }),
    contend(session) {
      contended.add(session);
      if (!isLooking) void look();
    },
    isWanted: (session) => wanted.has(session),
    release(session) {
      const round = held.get(session) ?? rounds;
      held.delete(session);
      contended.delete(session);
      wanted.delete(session);
      // Whatever is not given back now, the next beat gives back.
      releases.send([session, round]).catch(() => {});
    },
  };

  return {
    port,
    /** What is asked ahead of these look-ups, and what its answers mean. */
    before(queries: readonly Query[]): Before {
      const sessions = new Map<string, string>();
      for (const { session, claim } of queries)
        if (session !== undefined && claim !== undefined && !held.has(session)) sessions.set(session, claim());
      if (sessions.size === 0) return { statements: [], take() {} };
      const statements = take(sessions);
      const round = rounds;
      return {
        statements,
        take(told) {
          const found = toFound(told[1]);
          for (const session of sessions.keys()) note(session, found, round);
        },
      };
    },
    /** What got lost with the database is taken again; what nobody here stands in is given back. */
    async beat(): Promise<void> {
      elsewhere.clear();
      const kept = [...held.keys(), ...waiters.keys()].map(numberOf);
      const again = toColumns(2);
      for (const [session, round] of held) if (heldBefore.get(session) === round) add(again, numberOf(session), round);
      const slot = process.slot();
      const statements: Statement[] = [[sweepStatement, slot, roundsBefore, kept]];
      if (again[0]?.length) statements.push([againStatement, ...again, slot]);
      [roundsBefore, heldBefore] = [rounds, new Map(held)];
      await ask(...statements);
    },
  };
}

type Found = ReadonlyMap<number, { readonly holder: number; readonly about: string; readonly isWanted: boolean }>;

function toFound(rows: Rows = []): Found {
  return new Map(
    rows.map(([session, holder, about, wanted]) => [
      Number(session),
      { holder: Number(holder), about: String(about), isWanted: wanted !== null },
    ]),
  );
}

const numberOf = (session: string): number => toNumber(session.slice("conv_".length));

const isAlive = (slot: string, deadBefore: string): string =>
  `EXISTS (SELECT 1 FROM process p WHERE p.slot = ${slot} AND p.beat >= ${deadBefore})`;
const takeStatement = `INSERT INTO claim (session, about, holder, round)
  SELECT g.session, g.about, $3::bigint, $4::bigint FROM unnest($1::bigint[], $2::text[]) AS g (session, about) ORDER BY 1
  ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, round = excluded.round, about = excluded.about,
    wanted = nullif(claim.wanted, excluded.holder)
  WHERE claim.holder = excluded.holder OR NOT ${isAlive("claim.holder", "$5::bigint")}`;
const lookStatement = "SELECT session, holder, about, wanted FROM claim WHERE session = ANY ($1::bigint[])";
/** Locked in the same order by all. */
const locked = (condition: string): string =>
  `SELECT c.session FROM claim c WHERE ${condition} ORDER BY c.session FOR UPDATE`;
const wantStatement = `WITH mine AS (${locked("c.session = ANY ($1::bigint[]) AND c.holder <> $2")})
  UPDATE claim c SET wanted = $2 FROM mine m WHERE c.session = m.session AND c.holder <> $2
    AND (c.wanted IS NULL OR NOT EXISTS (SELECT 1 FROM process p WHERE p.slot = c.wanted))`;
const given = `EXISTS (SELECT 1 FROM unnest($1::bigint[], $2::bigint[]) AS g (session, round)
  WHERE g.session = c.session AND c.round <= g.round)`;
const mine = `WITH mine AS (${locked(`c.session = ANY ($1::bigint[]) AND c.holder = $3 AND ${given}`)})`;
const dropStatement = `${mine} DELETE FROM claim c USING mine m
  WHERE c.session = m.session AND c.holder = $3 AND c.wanted IS NULL`;
const handStatement = `${mine} UPDATE claim c SET holder = c.wanted, wanted = NULL, round = 0 FROM mine m
  WHERE c.session = m.session AND c.holder = $3 AND c.wanted IS NOT NULL`;
const unwantStatement = "UPDATE claim SET wanted = NULL WHERE session = ANY ($1::bigint[]) AND wanted = $2";
const sweepStatement = `DELETE FROM claim WHERE holder = $1 AND round <= $2 AND session <> ALL ($3::bigint[])`;
const againStatement = `INSERT INTO claim (session, round, about, holder)
  SELECT g.session, g.round, '', $3::bigint FROM unnest($1::bigint[], $2::bigint[]) AS g (session, round) ORDER BY 1
  ON CONFLICT DO NOTHING`;
