/** Which turns of a thread make room for new ones: it is bounded in turns and in characters. */
import { type Item, sizeOfItems } from "../item.ts";
import type { PathTurn } from "../store.ts";
import { countBeyond, type Path, surplusOf } from "./path.ts";

export interface ThreadLimits {
  readonly maxTurnsPerThread: number;
  /** The same in characters. */
  readonly maxCharactersPerThread: number;
}

/** The oldest, as many as must go. `added`: the items of each new turn, which stay even if they alone are too many. */
export function surplusWith(
  path: Path,
  added: readonly (readonly Item[])[],
  { maxTurnsPerThread, maxCharactersPerThread }: ThreadLimits,
): readonly PathTurn[] {
  if (path.length === 0) return [];
  const addedSize = added.reduce((size, items) => size + sizeOfItems(items), 0);
  const surplus = path.length + added.length - maxTurnsPerThread;
  return surplusOf(path, Math.max(surplus, countBeyond(path, maxCharactersPerThread - addedSize)));
}
