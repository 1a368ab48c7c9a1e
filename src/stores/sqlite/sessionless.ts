/** What the SQLite store keeps outside of sessions, as the operator sees it: trees, each named by its root. */
import { setImmediate as letOthersGo } from "node:timers/promises";
import type { Archive, SessionSummary } from "../../core/store.ts";
import { maxReadBytes, toBeginning } from "../beginning.ts";
import { noSessionless } from "../refusals.ts";
import type { Access } from "./access.ts";
import { turnBytes } from "./size.ts";

interface Sessionless extends Pick<Archive, "listSessionless"> {
  isSessionless(turnId: string): boolean;
  /** The row numbers and ids of a turn, its ancestors and its descendants, parents first. */
  turnsAround(turnId: string, last: number): readonly { readonly number: number; readonly id: string }[];
}

export function createSessionless({ prepare, read }: Access): Sessionless {
  const find = prepare("SELECT 1 FROM turns WHERE id = ? AND session IS NULL");
  const findRoot = prepare(
    "SELECT created, rowid AS number FROM turns WHERE id = ? AND session IS NULL AND parent IS NULL",
  );
  const listRoots = prepare(`
    SELECT rowid AS number, id, owner, created FROM turns INDEXED BY loose_roots
    WHERE session IS NULL AND parent IS NULL AND (created, rowid) < ($created, $number)
    ORDER BY created DESC, rowid DESC LIMIT ${pageSize}`);
  const measure = prepare(`
    WITH RECURSIVE ${toTree("id = $id")}
    SELECT count(*) AS turns, max(created) AS updated, ${toShortInput("id = $id")} AS input FROM tree`);
  const around = prepare(`
    WITH RECURSIVE ${toTree("id = $id")}, before (number, id, parent) AS (
      SELECT rowid, id, parent FROM turns WHERE id = $id
      UNION ALL
      SELECT turns.rowid, turns.id, turns.parent FROM before JOIN turns ON turns.id = before.parent AND turns.session IS NULL
    ) SELECT number, id FROM (SELECT number, id FROM before UNION SELECT number, id FROM tree)
    WHERE number <= $last ORDER BY number`);

  /** The roots after a place; others can proceed after each page. */
  async function* rootsBehind(place: Place): AsyncGenerator<RootRow, void, void> {
    for (let { created, number } = place; ;) {
      const page = read(() => listRoots.all({ created, number })) as unknown as RootRow[];
      yield* page;
      const last = page.at(-1);
      if (last === undefined) return;
      ({ created, number } = last);
      await letOthersGo();
    }
  }

  return {
    async listSessionless({ owner, after, limit }) {
      const place = after === undefined ? atEnd : (read(() => findRoot.get(after)) as Place | undefined);
      if (place === undefined) throw noSessionless(after ?? "");
      const found: SessionSummary[] = [];
      let walked = 0;
      for await (const root of rootsBehind(place)) {
        if (owner !== undefined && root.owner !== owner) continue;
        const summary = read(() => toSummary({ ...root, ...measure.get({ id: root.id }) }));
        // It is gone by now.
        if (summary.turns === 0) continue;
        found.push(summary);
        if (found.length >= limit) break;
        walked += summary.turns;
        if (walked < maxWalked) continue;
        walked = 0;
        await letOthersGo();
      }
      return found;
    },
    isSessionless: (turnId) => read(() => find.get(turnId)) !== undefined,
    turnsAround: (id, last) => read(() => around.all({ id, last })) as { number: number; id: string }[],
  };
}

/** How many roots are read, and about how many turns walked, before others can proceed: some milliseconds. */
const pageSize = 32;
const maxWalked = 1_000;

/** A turn and its descendants outside of sessions. */
export function toTree(start: string): string {
  return `tree (number, id, created, status, bytes) AS (
    SELECT rowid, id, created, status, ${turnBytes} FROM turns WHERE ${start}
    UNION ALL
    SELECT turns.rowid, turns.id, turns.created, turns.status, ${turnBytes}
    FROM tree JOIN turns ON turns.parent = tree.id AND turns.session IS NULL)`;
}

interface Place {
  readonly created: number;
  readonly number: number;
}

interface RootRow extends Place {
  readonly id: string;
  readonly owner: string;
}

/** The input of a turn; null if it is long. The row has its length, so little is read. */
export function toShortInput(turn: string): string {
  return `(SELECT CASE WHEN octet_length(input) < ${maxReadBytes} THEN input END FROM turns WHERE ${turn})`;
}

interface SummaryRow extends Omit<SessionSummary, "createdAt" | "updatedAt" | "beginning"> {
  readonly created: number;
  readonly updated: number;
  /** Of its first turn. */
  readonly input: string | null;
}

/** How a list shows a session, or a tree outside of sessions. */
export function toSummary(row: unknown): SessionSummary {
  const { id, owner, created, updated, turns, input } = row as SummaryRow;
  const times = { createdAt: new Date(created), updatedAt: new Date(updated) };
  return { id, owner, ...times, turns, beginning: toBeginning(input ?? undefined) };
}

const atEnd: Place = { created: Number.MAX_SAFE_INTEGER, number: 0 };
