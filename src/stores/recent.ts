/** Turns that were kept or read just now, within a bound, so that a thread in use is not read from the store for every turn. */
import type { Path } from "../core/place/path.ts";
import type { PathTurn } from "../core/store.ts";
import { createPaths } from "./paths.ts";

export interface Recent {
  get(turnId: string): PathTurn | undefined;
  /** The path to a turn, if all of it is here. */
  path(turnId: string): Path | undefined;
  /** `size` is how many characters its items have. One that runs is not put here, as it will be another when it is over. */
  add(turn: PathTurn, size: number): void;
  forget(turnIds: readonly string[]): void;
  forgetSessions(sessionIds: readonly string[]): void;
  clear(): void;
}

/**
 * Whoever changes or deletes a turn in the store must have it forgotten here. The oldest go first, half of the bound at once:
 * to look for the oldest one each time a turn comes would cost as much as a quarter of keeping it. Each turn takes some room
 * beside its items, which of short turns is the most.
 */
export function createRecent(maxSize = usualSize): Recent {
  let newer = createShelf();
  let older = createShelf();
  const paths = createPaths();
  const get = (turnId: string) => (newer.turns.get(turnId) ?? older.turns.get(turnId))?.turn;

  /** Of turns that are not here there is no path either. */
  function forget(turnIds: readonly string[]): void {
    let isAny = false;
    for (const turnId of turnIds) for (const shelf of [newer, older]) isAny = remove(shelf, turnId) || isAny;
    if (isAny) paths.clear();
  }

  return {
    get,
    path: (turnId) => paths.find(turnId, get),
    add(turn, itemsSize) {
      const size = itemsSize + turnSize;
      if (get(turn.id) !== undefined || turn.status === "running" || size > maxSize) return;
      if (newer.size + size > maxSize / 2) {
        older = newer.size + size > maxSize ? createShelf() : newer;
        newer = createShelf();
        paths.clear();
      }
      newer.turns.set(turn.id, { turn, size });
      newer.size += size;
      paths.grow(turn);
    },
    forget,
    forgetSessions(sessionIds) {
      const gone = new Set<string | undefined>(sessionIds);
      if (gone.size === 0) return;
      for (const shelf of [newer, older]) {
        const going = shelf.turns.values().filter(({ turn }) => gone.has(turn.session));
        forget(going.map(({ turn }) => turn.id).toArray());
      }
    },
    clear() {
      newer = createShelf();
      older = createShelf();
      paths.clear();
    },
  };
}

const usualSize = 32 * 1024 * 1024;

/** What a turn takes in memory beside the characters of its items, about: objects, names, its places in the maps. */
const turnSize = 1_000;

interface Shelf {
  readonly turns: Map<string, { readonly turn: PathTurn; readonly size: number }>;
  size: number;
}

function createShelf(): Shelf {
  return { turns: new Map(), size: 0 };
}

/** False: it was not there. */
function remove(shelf: Shelf, turnId: string): boolean {
  shelf.size -= shelf.turns.get(turnId)?.size ?? 0;
  return shelf.turns.delete(turnId);
}
