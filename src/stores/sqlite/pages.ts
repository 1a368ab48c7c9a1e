/** Finds a page of the SQLite store's sessions by their activity, little by little, so that others can proceed. */
import { setImmediate as letOthersGo } from "node:timers/promises";
import type { SessionPage } from "../../core/store.ts";
import type { Access } from "./access.ts";

/** Where a session is in the order: by the hour of its last turn, by its time, and of two at once the younger first. */
export interface Activity {
  readonly id: string;
  readonly active: number;
  readonly updated: number;
  readonly number: number;
}

export const activityColumns = "id, active, updated, rowid AS number";

/** The sessions of an owner, or of all, behind a place. */
export type FindPage = (page: Pick<SessionPage, "owner" | "limit">, place?: Activity) => Promise<readonly Activity[]>;

/** What it takes to read. */
export type Reading = Pick<Access, "prepare" | "read">;

/** Only the hour is indexed, so the sessions of an hour must all be compared: a bounded number at a time. */
export function createFindPage({ prepare, read }: Reading, first: keyof typeof directions): FindPage {
  const direction = directions[first];
  const start = direction.sign * Number.MAX_SAFE_INTEGER;
  const end = -start;
  const ofAll = prepareHours(prepare, direction, "sessions_by_activity", "");
  const ofOwner = prepareHours(prepare, direction, "sessions_by_owner", ofTheOwner);

  return async ({ owner, limit }, place) => {
    const { findHour, findEnd, compare } = owner === undefined ? ofAll : ofOwner;
    const whose: Readonly<Record<string, string>> = owner === undefined ? {} : { owner };
    const page: Activity[] = [];
    let hours = 0;

    function hourBehind(active: number): number | undefined {
      return (read(() => findHour.get({ ...whose, active })) as { active: number | null }).active ?? undefined;
    }

    for (let active = place?.active ?? hourBehind(start); active !== undefined; active = hourBehind(active)) {
      const room = limit - page.length;
      const { updated, number: behind } = active === place?.active ? place : { updated: start, number: start };
      let best: readonly Activity[] = [];
      for (let number: number | undefined = start; number !== undefined;) {
        const part = { ...whose, active, number };
        const next = read(() => findEnd.get(part)) as { number: number } | undefined;
        // Most parts have none that is better than those found before.
        const worst = (best.length === room ? best.at(-1) : undefined) ?? { updated: end, number: end };
        const bounds = { updated, behind, worstUpdated: worst.updated, worst: worst.number };
        const rest = { ...part, ...bounds, end: next?.number ?? end, limit: room };
        const found = read(() => compare.all(rest)) as unknown as Activity[];
        const known = [...best, ...found].toSorted((one, other) => direction.sign * byTime(one, other));
        best = known.slice(0, room);
        number = next?.number;
        if (number !== undefined) await letOthersGo();
      }
      page.push(...best);
      if (page.length >= limit) break;
      hours += 1;
      if (hours % maxHours === 0) await letOthersGo();
    }
    return page;
  };
}

/** Counts the sessions of an owner, as many at a time. */
export function createCount({ prepare, read }: Reading): (owner: string) => Promise<number> {
  const from = `SELECT active, rowid AS number FROM sessions INDEXED BY sessions_by_owner WHERE deleted = 0 ${ofTheOwner}`;
  // Not `(active, rowid) > …`, for which SQLite would read the hour from its start.
  const behind = `${from} AND active = $active AND rowid > $number UNION ALL ${from} AND active > $active`;
  const findEnd = prepare(`${behind} ORDER BY active, number LIMIT 1 OFFSET ${maxCompared - 1}`);
  const countRest = prepare(`SELECT count(*) AS count FROM (${behind})`);
  return async (owner) => {
    let place = { active: Number.MIN_SAFE_INTEGER, number: Number.MIN_SAFE_INTEGER };
    for (let count = 0; ; count += maxCompared) {
      await letOthersGo();
      const end = read(() => findEnd.get({ owner, ...place })) as typeof place | undefined;
      if (end === undefined) return count + (read(() => countRest.get({ owner, ...place })) as { count: number }).count;
      place = end;
    }
  };
}

/** How many sessions are compared before others can proceed: some milliseconds. */
const maxCompared = 5_000;
/** The same for hours with few sessions. */
const maxHours = 100;

const ofTheOwner = "AND owner = $owner";

export function byTime(one: Activity, other: Activity): number {
  return other.active - one.active || other.updated - one.updated || other.number - one.number;
}

/** Which way an order goes: `sign` is that of its start, `behind` and `before` compare with a place in it. */
const directions = {
  newest: { sign: 1, behind: "<", before: ">", order: "DESC", nearest: "max" },
  idlest: { sign: -1, behind: ">", before: "<", order: "ASC", nearest: "min" },
} as const;

type Direction = (typeof directions)[keyof typeof directions];

/** An index on the hour has the sessions of each by their numbers, which grow with time as their activity mostly does. */
function prepareHours(
  prepare: Access["prepare"],
  { behind, before, order, nearest }: Direction,
  index: string,
  condition: string,
) {
  const from = `FROM sessions INDEXED BY ${index} WHERE deleted = 0 ${condition}`;
  const hour = `${from} AND active = $active AND rowid ${behind} $number`;
  return {
    findHour: prepare(`SELECT ${nearest}(active) AS active ${from} AND active ${behind} $active`),
    findEnd: prepare(`SELECT rowid AS number ${hour} ORDER BY rowid ${order} LIMIT 1 OFFSET ${maxCompared - 1}`),
    compare: prepare(`
      SELECT ${activityColumns} ${hour} AND rowid ${before}= $end
        AND (updated, rowid) ${behind} ($updated, $behind) AND (updated, rowid) ${before} ($worstUpdated, $worst)
      ORDER BY updated ${order}, rowid ${order} LIMIT $limit`),
  };
}
