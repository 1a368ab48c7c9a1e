/** One of the processes on a database: it shows that it lives, and learns the time that all of them share. */
import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import type { Database } from "./database.ts";

const beatMs = 1_000;
/** Whoever gave no sign of life while this process gave so many is dead: while the database is away nobody dies. */
const silentBeats = 3;
/** Its place is free. */
const vacancyMs = 60_000;
const slots = 256;
/** How long one measurement of the database's time may count. */
const offsetMs = 10_000;
/** How long the mark of a transaction is kept: longer than it may be repeated. */
const doneMs = 60_000;

export interface Process {
  /** Its number among those that live; another one if it was silent for long. */
  slot(): number;
  /** The database's time. */
  now(): number;
  /** Who was heard of last before this is dead. */
  deadBefore(): number;
  /** Resolves when this process knows again what the others did while it was silent. Undefined: it was not silent. */
  awake(): Promise<void> | undefined;
  leave(): Promise<void>;
}

/** `onBeat` is called once a second, when the database has answered. */
export async function joinProcesses(database: Database, onBeat: () => Promise<void>): Promise<Process> {
  const { ask, askTogether, transact, tables } = database;
  const token = randomBytes(8).toString("hex");
  let slot = 0;
  let offset = 0;
  /** The round trip that the offset is from. */
  let shortest = { tookMs: Number.POSITIVE_INFINITY, at: 0 };
  /** When, by the database. */
  let beats: readonly number[] = [];
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> | undefined;
  let beatenAt = performance.now();
  const sleepers: (() => void)[] = [];

  const now = (): number => Date.now() + offset;

  function note(sentAt: number, answered: number): void {
    beats = [answered, ...beats].slice(0, silentBeats + 1);
    beatenAt = performance.now();
    const tookMs = Date.now() - sentAt;
    // A busy process reads the answer late, so the shortest of the last round trips tells the time best.
    if (tookMs > shortest.tookMs && beatenAt - shortest.at < offsetMs) return;
    shortest = { tookMs, at: beatenAt };
    offset = Math.round(answered - (sentAt + Date.now()) / 2);
  }

  async function join(): Promise<void> {
    const sentAt = Date.now();
    const found = await transact(async ({ one, run }) => {
      const place = await one<{ readonly slot: number; readonly at: number }>(vacancyStatement, vacancyMs);
      if (place === undefined) throw new GatewayError("store_unavailable", crowded, { isLasting: true });
      await run(enterStatement, place.slot, token, place.at, place.at - vacancyMs);
      for (const statement of leftovers) await run(statement, place.at - vacancyMs, place.slot);
      await run(removeUnownedDeltas);
      return place;
    });
    ({ slot } = found);
    note(sentAt, found.at);
  }

  async function beat(): Promise<void> {
    const sentAt = Date.now();
    const [, [row] = []] = await askTogether([withoutSync], [beatStatement, slot, token]);
    if (row === undefined) await join();
    else note(sentAt, Number(row[0]));
    await onBeat();
    await ask(["DELETE FROM done WHERE at < $1", now() - doneMs]);
  }

  function beatLater(took = 0): void {
    timer = setTimeout(
      () => {
        const since = performance.now();
        // Whoever is not heard is asked again.
        beating = beat()
          .catch(() => {})
          .finally(() => {
            for (const wake of sleepers.splice(0)) wake();
            beatLater(performance.now() - since);
          });
      },
      Math.max(beatMs - took, 0),
    ).unref();
  }

  await join();
  beatLater();
  return {
    slot: () => slot,
    now,
    deadBefore: () => beats[silentBeats] ?? 0,
    awake() {
      if (performance.now() - beatenAt < silentBeats * beatMs) return undefined;
      return Promise.race([new Promise<void>((resolve) => sleepers.push(resolve)), wait(beatMs * 2)]);
    },
    async leave() {
      clearTimeout(timer);
      await beating;
      clearTimeout(timer);
      await tables.run("DELETE FROM claim WHERE holder = ?", slot).catch(() => {});
      await tables.run("DELETE FROM process WHERE slot = ? AND token = ?", slot, token).catch(() => {});
    },
  };
}

/** What is written after it in its transaction is not waited for until it is on the disk. */
export const withoutSync = "SET LOCAL synchronous_commit = off";

const nowMs = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
const vacancyStatement = `SELECT each AS slot, ${nowMs} AS at FROM generate_series(0, ${slots - 1}) AS each
  WHERE NOT EXISTS (SELECT 1 FROM process p WHERE p.slot = each AND p.beat > ${nowMs} - CAST(? AS BIGINT))
  ORDER BY each LIMIT 1`;
const enterStatement = `INSERT INTO process (slot, token, beat) VALUES (?, ?, ?)
  ON CONFLICT (slot) DO UPDATE SET token = excluded.token, beat = excluded.beat WHERE process.beat <= ?`;
const beatStatement = `UPDATE process SET beat = ${nowMs} WHERE slot = $1 AND token = $2 RETURNING beat`;
/** Of whoever had the place before, and of all whose place is free. */
const gone = "NOT IN (SELECT slot FROM process WHERE beat > ? AND slot <> ?)";
const leftovers = [`DELETE FROM claim WHERE holder ${gone}`, `DELETE FROM running WHERE process ${gone}`];
/** The deltas of turns that no longer run. */
export const removeUnownedDeltas =
  "DELETE FROM delta d WHERE NOT EXISTS (SELECT 1 FROM running r WHERE r.turn = d.turn)";
const crowded = `${slots} gateways use the session store's database already (gateway.sessions.store). Stop some, or use another database.`;
