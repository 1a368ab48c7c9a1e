/** What steers a thread: the newest instructions replace earlier ones; changed settings stay beside them. */
import type { Item } from "../item.ts";

/** What is in force when a turn adds `own` steering to what was in force `before`. */
export function mergeSteering(before: readonly Item[], own: readonly Item[]): readonly Item[] {
  if (own.length === 0) return before;
  const again = new Set(own.filter(changesSettings).map((item) => JSON.stringify(item)));
  const isInstructed = !own.every(changesSettings);
  return before
    .filter((item) => (changesSettings(item) ? !again.has(JSON.stringify(item)) : !isInstructed))
    .concat(own);
}

/** It says nothing to a model, so it neither replaces instructions nor is replaced by them. */
export function changesSettings(item: Item): boolean {
  return item.type === "other" && item.updates !== undefined;
}
