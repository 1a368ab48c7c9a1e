/** A bounded cache of turns recently stored or read, so that a thread in use is not read anew for every turn. */
import { shapeOf, toPartBytes } from "../core/json-shape.ts";
import type { Path } from "../core/place/path.ts";
import type { PathTurn } from "../core/store.ts";
import { createPaths, type Step } from "./paths.ts";

export interface Recent {
  get(turnId: string): Step | undefined;
  /** The path to a turn, if all is cached. */
  path(turnId: string): Path | undefined;
  /** `size` is how many characters its items have. A running turn is not added, because it changes when it ends. */
  add(turn: PathTurn, size: number): void;
  forget(turnIds: readonly string[]): void;
  forgetSessions(sessionIds: readonly string[]): void;
  clear(): void;
}

/**
 * Whoever changes or deletes a turn in the store must have it forgotten here. The oldest are evicted first, half of the
 * limit at once: finding the oldest for each new turn would cost a quarter of storing it. Each turn takes some memory
 * beside its items' characters; in short turns, that is most of it, and in those with thousands of small values too.
 */
export function createRecent(maxSize = usualSize): Recent {
  let newer = createGeneration();
  let older = createGeneration();
  const paths = createPaths();
  const get = (turnId: string) => newer.turns.get(turnId) ?? older.turns.get(turnId);

  /** Turns that are not cached are in no path either. */
  function forget(turnIds: readonly string[]): void {
    let isAny = false;
    for (const turnId of turnIds) for (const generation of [newer, older]) isAny = remove(generation, turnId) || isAny;
    if (isAny) paths.clear();
  }

  return {
    get,
    path: (turnId) => paths.find(turnId, get),
    add(turn, size) {
      if (get(turn.id) !== undefined || turn.status === "running") return;
      // There are few parts in items, but callers and models may add fields of their own.
      const held = Math.max(size + turnSize, toPartBytes(shapeOf([turn.input, turn.output])));
      if (held > maxSize) return;
      if (newer.size + held > maxSize / 2) {
        older = newer.size + held > maxSize ? createGeneration() : newer;
        newer = createGeneration();
        paths.clear();
      }
      newer.turns.set(turn.id, { turn, size, held });
      newer.size += held;
      paths.grow({ turn, size });
    },
    forget,
    forgetSessions(sessionIds) {
      const gone = new Set<string | undefined>(sessionIds);
      if (gone.size === 0) return;
      for (const generation of [newer, older]) {
        const going = generation.turns.values().filter(({ turn }) => gone.has(turn.session));
        forget(going.map(({ turn }) => turn.id).toArray());
      }
    },
    clear() {
      newer = createGeneration();
      older = createGeneration();
      paths.clear();
    },
  };
}

const usualSize = 32 * 1024 * 1024;

/** About what a turn takes in memory beside its items' characters: objects, names, entries in the maps. */
const turnSize = 1_000;

interface Generation {
  readonly turns: Map<string, CachedStep>;
  size: number;
}

interface CachedStep extends Step {
  /** About what it takes in memory. */
  readonly held: number;
}

function createGeneration(): Generation {
  return { turns: new Map(), size: 0 };
}

/** False if it is not there. */
function remove(generation: Generation, turnId: string): boolean {
  const step = generation.turns.get(turnId);
  if (step === undefined) return false;
  generation.size -= step.held;
  return generation.turns.delete(turnId);
}
