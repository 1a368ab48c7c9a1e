/** A turn as a step of a path. */
import type { PathTurn, StoredTurn } from "../core/store.ts";

/** Leaves out how the turn was told, which nobody needs who only reads what was said. */
export function withoutTold({ told: _told, ...turn }: StoredTurn): PathTurn {
  return turn;
}
