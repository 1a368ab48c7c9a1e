/** Caches the paths to turns. Each grows with its thread, so that a long one is not rebuilt for every turn. */
import { extend, noPath, type Path } from "../core/place/path.ts";
import type { PathTurn, StoredTurn } from "../core/store.ts";

/** A turn of a path, and how many characters its items have. */
export interface Step {
  readonly turn: PathTurn;
  readonly size: number;
}

export interface Paths {
  /** The path to a turn; undefined if `get` lacks a turn of it. */
  find(turnId: string, get: (turnId: string) => Step | undefined): Path | undefined;
  /** Extends the path to a new turn's parent to the turn. */
  grow(step: Step): void;
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
      const newest: Step[] = [];
      let known: Path | undefined;
      for (let next: string | undefined = turnId; next !== undefined; next = newest.at(-1)?.turn.parent) {
        known = paths.get(next);
        if (known !== undefined) break;
        const step = get(next);
        if (step === undefined) return undefined;
        newest.push(step);
      }
      if (known !== undefined && newest.length === 0) return known;
      const path = joinSteps(newest, known);
      put(turnId, path);
      return path;
    },
    grow({ turn, size }) {
      const path = turn.parent === undefined ? undefined : paths.get(turn.parent);
      if (turn.parent === undefined || path === undefined) return;
      paths.delete(turn.parent);
      items -= path.talkLength;
      put(turn.id, extend(path, turn, size));
    },
    clear,
  };
}

/** The path that these make, newest first, after another. */
export function joinSteps(steps: readonly Step[], path = noPath): Path {
  return steps.reduceRight((joined, { turn, size }) => extend(joined, turn, size), path);
}

/** Leaves out how the turn was told, which readers of what was said do not need. */
export function withoutTold({ told: _told, ...turn }: StoredTurn): PathTurn {
  return turn;
}
