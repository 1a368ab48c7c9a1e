/** Finds a page of the SQLite store's sessions, newest activity first, little by little, so that others can proceed. */
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

/** Only the hour is indexed, so the sessions of an hour must all be compared: a bounded number at a time. */
export function createFindPage({ prepare, read }: Access): FindPage {
  const ofAll = prepareHours(prepare, "sessions_by_activity", "");
  const ofOwner = prepareHours(prepare, "sessions_by_owner", "AND owner = $owner");

  return async ({ owner, limit }, place) => {
    const { findHour, findEnd, compare } = owner === undefined ? ofAll : ofOwner;
    const whose: Readonly<Record<string, string>> = owner === undefined ? {} : { owner };
    const page: Activity[] = [];

    function hourBefore(active: number): number | undefined {
      return (read(() => findHour.get({ ...whose, active })) as { active: number | null }).active ?? undefined;
    }

    for (let active = place?.active ?? hourBefore(afterAll); active !== undefined; active = hourBefore(active)) {
      const { updated, number: before } = active === place?.active ? place : behindNone;
      let newest: readonly Activity[] = [];
      for (let number: number | undefined = afterAll; number !== undefined;) {
        const part = { ...whose, active, number };
        const end = read(() => findEnd.get(part)) as { number: number } | undefined;
        const rest = { ...part, end: end?.number ?? 0, updated, before, limit: limit - page.length };
        const found = read(() => compare.all(rest)) as unknown as Activity[];
        newest = [...newest, ...found].toSorted(byTime).slice(0, limit - page.length);
        number = end?.number;
        if (number !== undefined) await letOthersGo();
      }
      page.push(...newest);
      if (page.length >= limit) break;
    }
    return page;
  };
}

/** How many sessions are compared before others can proceed: some milliseconds. */
const maxCompared = 5_000;

const afterAll = Number.MAX_SAFE_INTEGER;
const behindNone = { updated: afterAll, number: afterAll } as const;

export function byTime(one: Activity, other: Activity): number {
  return other.active - one.active || other.updated - one.updated || other.number - one.number;
}

/** An index on the hour has the sessions of each by their numbers. */
function prepareHours(prepare: Access["prepare"], index: string, condition: string) {
  const from = `FROM sessions INDEXED BY ${index} WHERE deleted = 0 ${condition}`;
  const hour = `${from} AND active = $active AND rowid < $number`;
  return {
    findHour: prepare(`SELECT max(active) AS active ${from} AND active < $active`),
    findEnd: prepare(`SELECT rowid AS number ${hour} ORDER BY rowid DESC LIMIT 1 OFFSET ${maxCompared - 1}`),
    compare: prepare(`
      SELECT ${activityColumns} ${hour} AND rowid >= $end AND (updated, rowid) < ($updated, $before)
      ORDER BY updated DESC, rowid DESC LIMIT $limit`),
  };
}
