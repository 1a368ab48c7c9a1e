/** Finds the sessions that owners have beyond their number, little by little, so that others can proceed. */
import { type Activity, createCount, createFindPage, type Reading } from "./pages.ts";

export interface Surplus {
  /** Of each owner those idle longest. */
  readonly sessions: readonly Activity[];
  /** Nobody has more. */
  readonly isAll: boolean;
}

/** What is in use is passed over. */
export type FindSurplus = (max: number, inUse: ReadonlySet<string>) => Promise<Surplus>;

export function createFindSurplus(reading: Reading): FindSurplus {
  const owners = reading.prepare(listOwners);
  const count = createCount(reading);
  const findIdlest = createFindPage(reading, "idlest");

  return async (max, inUse) => {
    const sessions: Activity[] = [];
    for (const { owner } of reading.read(() => owners.all()) as { owner: string }[]) {
      const [surplus, room] = [(await count(owner)) - max, maxFound - sessions.length];
      if (surplus <= 0) continue;
      const idlest = await findIdlest({ owner, limit: Math.min(surplus, room) + inUse.size });
      const unused = idlest.filter(({ id }) => !inUse.has(id));
      sessions.push(...unused.slice(0, Math.min(surplus, room)));
      if (surplus > room && unused.length >= room) return { sessions, isAll: false };
    }
    return { sessions, isAll: true };
  };
}

/** To find them takes the longer the more there are in the hour of the last one, and to hold them takes memory. */
const maxFound = 2_000;

/** Steps from owner to owner: there are few, but they may have a million sessions. */
export const listOwners = `
  WITH RECURSIVE owners (owner) AS (
    SELECT min(owner) FROM sessions INDEXED BY sessions_by_owner WHERE deleted = 0
    UNION ALL
    SELECT (SELECT min(owner) FROM sessions INDEXED BY sessions_by_owner WHERE deleted = 0 AND owner > owners.owner)
    FROM owners WHERE owner IS NOT NULL
  ) SELECT owner FROM owners WHERE owner IS NOT NULL`;
