/** What the SQLite store keeps outside of sessions, as the operator sees it: trees, each under the name of its root. */
import type { Archive, SessionSummary } from "../../core/store.ts";
import type { Item } from "../../core/item.ts";
import { beginningOf, maxReadBytes } from "../beginning.ts";
import { hasNoLoose } from "../refusals.ts";
import type { Ground } from "./ground.ts";

interface Loose extends Pick<Archive, "listLoose"> {
  isLoose(turnId: string): boolean;
  /** Where a turn stands, with what came before it and all that follows it; parents come first. */
  turnsAround(turnId: string, last: number): readonly { readonly number: number; readonly id: string }[];
}

export function createLoose({ database, read }: Ground): Loose {
  const findRoot = database.prepare("SELECT created, rowid AS number FROM turns WHERE id = ? AND session IS NULL");
  const listRoots = database.prepare(`
    SELECT rowid AS number, id, owner, created, CASE WHEN octet_length(input) < ${maxReadBytes} THEN input END AS input
    FROM turns INDEXED BY loose_roots
    WHERE session IS NULL AND parent IS NULL AND ($owner IS NULL OR owner = $owner)
      AND (created, rowid) < ($created, $number)
    ORDER BY created DESC, rowid DESC LIMIT $limit`);
  const measure = database.prepare(`
    WITH RECURSIVE ${toTree("rowid = ?")} SELECT count(*) AS turns, max(created) AS updated FROM tree`);
  const around = database.prepare(`
    WITH RECURSIVE ${toTree("id = $id")}, before (number, id, parent) AS (
      SELECT rowid, id, parent FROM turns WHERE id = $id
      UNION ALL
      SELECT turns.rowid, turns.id, turns.parent FROM before JOIN turns ON turns.id = before.parent AND turns.session IS NULL
    ) SELECT number, id FROM (SELECT number, id FROM before UNION SELECT number, id FROM tree)
    WHERE number <= $last ORDER BY number`);

  function toSummary({ number, id, owner, created, input }: RootRow): SessionSummary {
    const { turns, updated } = measure.get(number) as { turns: number; updated: number };
    const said: readonly Item[] | undefined = input === null ? undefined : JSON.parse(input);
    const times = { createdAt: new Date(created), updatedAt: new Date(updated) };
    return { id, owner, ...times, turns, beginning: beginningOf(said) };
  }

  return {
    async listLoose({ owner = null, after, limit }) {
      const from = after === undefined ? atEnd : (read(() => findRoot.get(after)) as Place | undefined);
      if (from === undefined) throw hasNoLoose(after ?? "");
      const { created, number } = from;
      return read(() => (listRoots.all({ owner, created, number, limit }) as unknown as RootRow[]).map(toSummary));
    },
    isLoose: (turnId) => read(() => findRoot.get(turnId)) !== undefined,
    turnsAround: (id, last) => read(() => around.all({ id, last })) as { number: number; id: string }[],
  };
}

/** A turn and all that follows it outside of sessions. */
function toTree(start: string): string {
  return `tree (number, id, created) AS (
    SELECT rowid, id, created FROM turns WHERE ${start}
    UNION ALL
    SELECT turns.rowid, turns.id, turns.created
    FROM tree JOIN turns ON turns.parent = tree.id AND turns.session IS NULL)`;
}

interface Place {
  readonly created: number;
  readonly number: number;
}

interface RootRow extends Place {
  readonly id: string;
  readonly owner: string;
  readonly input: string | null;
}

const atEnd: Place = { created: Number.MAX_SAFE_INTEGER, number: 0 };
