/** What the memory store keeps outside of sessions, as the operator sees it: trees, each named by its root. */
import type { Archive, SessionSummary, StoredTurn } from "../../../src/core/store.ts";
import { beginningOf } from "./beginning.ts";
import { noSessionless } from "../../../src/stores/refusals.ts";
import type { Tables } from "./tables.ts";

interface Sessionless extends Pick<Archive, "listSessionless"> {
  /** The ids of a turn's ancestors, the turn and its descendants, parents first; none if it is in a session. */
  around(turnId: string): readonly string[];
  /** Only its descendants. */
  below(turnId: string): readonly string[];
  /** Every root with its descendants outside of sessions, parents first. */
  trees(): readonly (readonly StoredTurn[])[];
}

export function createSessionless({ turns, listed, checkOpen }: Tables): Sessionless {
  function find(turnId: string | undefined): StoredTurn | undefined {
    const turn = turnId === undefined ? undefined : turns.get(turnId);
    return turn?.session === undefined ? turn : undefined;
  }

  function treeOf(root: StoredTurn): readonly StoredTurn[] {
    const tree = [root];
    for (const { id } of tree) tree.push(...[...listed("children", id)].flatMap((childId) => find(childId) ?? []));
    return tree;
  }

  function below(turnId: string): readonly string[] {
    const turn = find(turnId);
    const tree = turn === undefined ? [] : treeOf(turn);
    return tree.slice(1).map(({ id }) => id);
  }

  function toSummary(root: StoredTurn): SessionSummary {
    const tree = treeOf(root);
    const { id, owner, createdAt } = root;
    const updatedAt = new Date(Math.max(...tree.map((turn) => +turn.createdAt)));
    return { id, owner, createdAt, updatedAt, turns: tree.length, beginning: beginningOf(root.input) };
  }

  return {
    async listSessionless({ owner, after, limit }) {
      checkOpen();
      const youngestFirst = [...turns.values()]
        .filter(isRoot)
        .toReversed()
        .toSorted((one, other) => +other.createdAt - +one.createdAt)
        .filter((turn) => owner === undefined || turn.owner === owner || turn.id === after);
      const start = youngestFirst.findIndex(({ id }) => id === after) + 1;
      if (after !== undefined && start === 0) throw noSessionless(after);
      return youngestFirst.slice(start, start + limit).map(toSummary);
    },
    below,
    trees: () => [...turns.values()].filter(isRoot).map(treeOf),
    around(turnId) {
      const turn = find(turnId);
      if (turn === undefined) return [];
      const before: StoredTurn[] = [];
      for (let parent = find(turn.parent); parent !== undefined; parent = find(parent.parent)) before.push(parent);
      return [...before.toReversed().map(({ id }) => id), turnId, ...below(turnId)];
    },
  };
}

function isRoot({ session, parent }: StoredTurn): boolean {
  return session === undefined && parent === undefined;
}
