/** What fits into a model's context window of a conversation: the middle goes first, the newest never. */
import { exchangeOf, isSteering, type Item, typeOf } from "../item.ts";
import { type CountText, countItems, tokensOf } from "./tokens.ts";

export interface Window {
  /** How many tokens the model takes, input and output together. */
  readonly tokens: number;
  /** The share reserved for the answer, unless the newest message needs it. */
  readonly reserve: number;
}

/**
 * System messages stay, and everything from the newest user message on; of the steps that a model with tools has made
 * since, at least the newest. If not even that fits, the result is undefined. Then, as far as there is room, come the
 * newest compaction, and ours if that is a server's; the first user message (the task); and earlier exchanges, newest
 * first. `fixed` is what goes along with the items, as text: instructions, tools.
 */
export function fitWindow(
  items: readonly Item[],
  fixed: readonly string[],
  window: Window,
  count: CountText,
): readonly Item[] | undefined {
  const kept = new Set<number>();
  let left = window.tokens - countItems([], fixed, count);

  /** Keeps all of them, or none. */
  function keep(indices: Iterable<number>): boolean {
    const added: number[] = [];
    let cost = 0;
    for (const index of indices) {
      const item = items[index];
      if (item === undefined || kept.has(index)) continue;
      cost += tokensOf(item, count);
      if (cost > left) return false;
      added.push(index);
    }
    if (cost > left) return false;
    left -= cost;
    for (const index of added) kept.add(index);
    return true;
  }

  const [newest = 0, ...older] = findStarts(items, isQuestion);
  if (!keep(items.flatMap((item, index) => (isSteering(item) ? [index] : [])))) return undefined;
  /** Where the parts that may be left out begin, and what follows them. */
  let starts = older;
  let behind = newest;
  if (!keep(range(newest, items.length))) {
    const [last, ...steps] = findStarts(items, isStep).filter((start) => start > newest);
    const firstStep = steps.at(-1) ?? last;
    if (last === undefined || firstStep === undefined) return undefined;
    if (!keep(range(newest, firstStep)) || !keep(range(last, items.length))) return undefined;
    starts = steps;
    behind = last;
  }
  left -= window.reserve;
  keep([items.findLastIndex(isCompaction)]);
  // Which adapter will read it is not known here: one of another dialect gets nothing of a server's.
  keep([items.findLastIndex((item) => item.type === "compaction")]);
  keep([items.findIndex(isQuestion)]);
  for (const start of starts) {
    if (!keep(range(start, behind))) break;
    behind = start;
  }
  return kept.size === items.length ? items : items.filter((_, index) => kept.has(index));
}

/** One that a server made in the middle of an answer is known to its dialect alone. */
function isCompaction(item: Item): boolean {
  return item.type === "compaction" || (item.type === "other" && typeOf(item.extra) === "compaction");
}

/**
 * What a model must have word for word to go on, and what is older. That is the newest user message and what follows it;
 * of the steps that it has made since only the newest, unless all of it is short. The older ones need their question.
 */
export function divideAtNewest(
  items: readonly Item[],
  isShort: (items: readonly Item[]) => boolean,
): { readonly older: readonly Item[]; readonly newest: readonly Item[] } {
  const [start = 0] = findStarts(items, isQuestion);
  const newest = items.slice(start);
  const steps = isShort(newest) ? [] : findStarts(items, isStep).filter((step) => step > start);
  const [last = start, first = last] = [steps[0], steps.at(-1)];
  if (first === last) return { older: items.slice(0, start), newest };
  // A summary before them goes into the next one.
  const question = items.slice(start, first).filter((item) => !isCompaction(item));
  return { older: items.slice(0, last), newest: question.concat(items.slice(last)) };
}

/** Where a conversation may be divided, oldest first: at a question or at a step, once something has been said. */
export function findCuts(items: readonly Item[]): readonly number[] {
  const first = items.findIndex((item) => !isSteering(item));
  const starts = findStarts(items, (item, before) => isQuestion(item) || isStep(item, before));
  return starts.filter((start) => start > first).toReversed();
}

/**
 * Where what is kept may begin, newest first: at a user message, so that no answer lacks its question, or at the next
 * step of an answer; never between a tool call and its output. The very beginning always counts.
 */
function findStarts(
  items: readonly Item[],
  isStart: (item: Item, before: Item | undefined) => boolean,
): readonly number[] {
  const callOf = findCalls(items);
  const starts: number[] = [];
  let oldestCall = items.length;
  for (let index = items.length - 1; index > 0; index--) {
    oldestCall = Math.min(oldestCall, callOf.get(index) ?? index);
    const item = items[index];
    if (item !== undefined && isStart(item, items[index - 1]) && oldestCall >= index) starts.push(index);
  }
  starts.push(0);
  return starts;
}

/** For each tool output the index of its call. Ids may recur in another answer: the nearest call before it is meant. */
function findCalls(items: readonly Item[]): ReadonlyMap<number, number> {
  const calls = new Map<string, number>();
  const callOf = new Map<number, number>();
  for (const [index, item] of items.entries()) {
    const { side, id } = exchangeOf(item) ?? {};
    if (id === undefined) continue;
    if (side === "model") calls.set(id, index);
    else callOf.set(index, calls.get(id) ?? index);
  }
  return callOf;
}

function isQuestion(item: Item): boolean {
  return item.type === "message" && item.role === "user";
}

/** The model begins or continues. */
function isStep(item: Item, before: Item | undefined): boolean {
  return isOfModel(item) && before !== undefined && !isOfModel(before);
}

function isOfModel(item: Item): boolean {
  if (item.type === "message") return item.role === "assistant";
  return item.type === "reasoning" || exchangeOf(item)?.side === "model";
}

/** From the end backwards. */
function* range(start: number, end: number): Generator<number> {
  for (let index = end - 1; index >= start; index--) yield index;
}
