/** Parallel calls, which some callers show one by one, each with its output, joined as the path has them. */
import type { Item } from "../item.ts";
import { type Path, turnsOf } from "./path.ts";
import { sideOf } from "./runs.ts";
import { callIdsOf, type Shown } from "./shown.ts";

/**
 * The steps of a path's newest turn, with whatever was said between the calls of one answer after the last of them.
 * Between the newest calls, all of it is new.
 */
export function joinCalls(shown: Shown, path: Path): Shown {
  const lastCalls = findLastCalls(shown, path);
  const [newest] = lastCalls.values();
  const said: Item[] = [];
  let between: Item[] = [];
  let last = -1;
  for (const [index, item] of shown.items.slice(0, shown.end).entries()) {
    const side = sideOf(item);
    if (index < last && (side === "tools" || side === "caller")) between.push(item);
    else said.push(item);
    last = lastCalls.get(item) ?? last;
    if (index !== last || last === newest) continue;
    for (const each of between) said.push(each);
    between = [];
  }
  return { items: said.concat(between, shown.items.slice(shown.end)), end: said.length };
}

/** Where the last call of its answer stands, for each call; those of the newest answer come first. */
function findLastCalls({ items, end }: Shown, path: Path): ReadonlyMap<Item, number> {
  const lastCalls = new Map<Item, number>();
  const turns = turnsOf(path);
  let answer = turns.length;
  let last = end;
  // Answers may have the same ids, so each is used up before the one before it.
  let open = new Set<string>();
  for (let index = end - 1; index >= 0; index -= 1) {
    const item = items[index];
    if (item?.type !== "tool-call") continue;
    if (!open.delete(item.callId)) {
      answer -= 1;
      open = new Set(callIdsOf(turns[answer]?.output ?? []));
      if (!open.delete(item.callId)) break;
      last = index;
    }
    lastCalls.set(item, last);
  }
  return lastCalls;
}
