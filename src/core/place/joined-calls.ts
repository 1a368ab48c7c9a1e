/** Parallel calls, which some callers show one by one, each with its output, joined as the path has them. */
import { callsById, openCalls } from "./calls.ts";
import { exchangeOf, type Item } from "../item.ts";
import { type Path, turnsOf } from "./path.ts";
import { isSameWord, sideOf } from "./runs.ts";
import { answerOf, type Shown, skipReasoning } from "./shown.ts";

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
  const next = skipReasoning(shown.items, shown.end, path);
  const items = said.concat(shown.items.slice(shown.end, next), between, shown.items.slice(next));
  return { items, end: said.length };
}

/** Where the last call of its answer stands, for each call; those of the newest answer come first. */
function findLastCalls({ items, end }: Shown, path: Path): ReadonlyMap<Item, number> {
  const lastCalls = new Map<Item, number>();
  const turns = turnsOf(path);
  let answer = turns.length;
  let last = end;
  // Answers may have the same calls, so each is used up before the one before it.
  let calls = callsById([]);
  let open: ReadonlySet<string> = new Set();
  for (let index = end - 1; index >= 0; index -= 1) {
    const item = items[index];
    const exchange = item && exchangeOf(item);
    if (item === undefined || exchange?.side !== "model") continue;
    if (!takeLast(item, calls.get(exchange.id))) {
      answer -= 1;
      const said = answerOf(turns[answer]);
      calls = callsById(said);
      open = openCalls(said);
      if (!takeLast(item, calls.get(exchange.id))) break;
      last = index;
    }
    if (open.has(exchange.id)) lastCalls.set(item, last);
  }
  return lastCalls;
}

/** Answers may also have other calls with the same ids. */
function takeLast(item: Item, calls: Item[] = []): boolean {
  const call = calls.at(-1);
  return call !== undefined && isSameWord(call, item) && calls.pop() !== undefined;
}
