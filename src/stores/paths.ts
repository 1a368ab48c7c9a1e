/** Caches the paths to turns. Each grows with its thread, so that a long one is not rebuilt for every turn. */
import { extend, noPath, type Path } from "../core/place/path.ts";
import type { PathTurn, StoredTurn } from "../core/store.ts";

export interface Paths {
  /** The path to a turn; undefined if `get` lacks a turn of it. */
  find(turnId: string, get: (turnId: string) => PathTurn | undefined): Path | undefined;
  /** Extends the path to a new turn's parent to the turn. */
  grow(turn: PathTurn): void;
  /** Whoever changes or deletes any turn must call this. */
  clear(): void;
}

/** The most items in all paths together, unless a single one is longer. */
const maxItems = 1 << 20;

export function createPaths(): Paths {
  const paths = new Map<string, Path>();
  let items = 0;

  function put(turnId: string, path: Path): void {
    if (items + path.talkLength > maxItems) clear();
    paths.set(turnId, path);
    items += path.talkLength;
  }

  function clear(): void {
    paths.clear();
    items = 0;
  }

  return {
    find(turnId, get) {
      const newest: PathTurn[] = [];
      let known: Path | undefined;
      for (let next: string | undefined = turnId; next !== undefined; next = newest.at(-1)?.parent) {
        known = paths.get(next);
        if (known !== undefined) break;
        const turn = get(next);
        if (turn === undefined) return undefined;
        newest.push(turn);
      }
      if (known !== undefined && newest.length === 0) return known;
      const path = newest.reduceRight(extend, known ?? noPath);
      put(turnId, path);
      return path;
    },
    grow(turn) {
      const path = turn.parent === undefined ? undefined : paths.get(turn.parent);
      if (turn.parent === undefined || path === undefined) return;
      paths.delete(turn.parent);
      items -= path.talkLength;
      put(turn.id, extend(path, turn));
    },
    clear,
  };
}

/** Leaves out how the turn was told, which readers of what was said do not need. */
export function withoutTold({ told: _told, ...turn }: StoredTurn): PathTurn {
  return turn;
}
