/** Turns that were kept or read just now, within a bound, so that a thread in use is not read from the file for every turn. */
import type { StoredTurn } from "../../core/ports.ts";

export interface Recent {
  get(turnId: string): StoredTurn | undefined;
  /** `size` is how many characters its items have. */
  add(turn: StoredTurn, size: number): void;
}

/** A turn never changes, so what is here is always true. The oldest go first. */
export function createRecent(maxSize: number): Recent {
  const turns = new Map<string, { readonly turn: StoredTurn; readonly size: number }>();
  let total = 0;
  return {
    get: (turnId) => turns.get(turnId)?.turn,
    add(turn, size) {
      if (turns.has(turn.id) || size > maxSize) return;
      turns.set(turn.id, { turn, size });
      total += size;
      for (const [oldest, { size: freed }] of turns) {
        if (total <= maxSize) break;
        turns.delete(oldest);
        total -= freed;
      }
    },
  };
}
