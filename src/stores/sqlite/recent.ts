/** Turns that were kept or read just now, within a bound, so that a thread in use is not read from the file for every turn. */
import type { PathTurn } from "../../core/store.ts";

export interface Recent {
  get(turnId: string): PathTurn | undefined;
  /** `size` is how many characters it has. */
  add(turn: PathTurn, size: number): void;
  forget(turnIds: readonly string[]): void;
  clear(): void;
}

/** Whoever changes or deletes a turn in the file must have it forgotten here. The oldest go first. */
export function createRecent(maxSize: number): Recent {
  const turns = new Map<string, { readonly turn: PathTurn; readonly size: number }>();
  let total = 0;
  function remove(turnId: string): void {
    total -= turns.get(turnId)?.size ?? 0;
    turns.delete(turnId);
  }
  return {
    get: (turnId) => turns.get(turnId)?.turn,
    add(turn, size) {
      if (turns.has(turn.id) || size > maxSize) return;
      turns.set(turn.id, { turn, size });
      total += size;
      for (const oldest of turns.keys()) {
        if (total <= maxSize) break;
        remove(oldest);
      }
    },
    forget(turnIds) {
      for (const turnId of turnIds) remove(turnId);
    },
    clear() {
      turns.clear();
      total = 0;
    },
  };
}
