/** What a request shows of its conversation, told apart from what is new, and compared with a remembered path. */
import { type Item, isRemoved, isSteering } from "../item.ts";
import type { Known } from "./known.ts";
import type { CallerVersion, Match } from "./match.ts";
import { hasExtras, hasGap, itemsOf, keepsSome, type Path, talkFrom, turnsOf } from "./path.ts";
import { isWord, type Run, sideOf } from "./runs.ts";
import type { PathTurn } from "../store.ts";

/** A request's items, told apart: what was said before, and what is new. */
export interface Shown {
  readonly items: readonly Item[];
  /** Where the model's last word ends among them; 0: the caller shows no history. */
  readonly end: number;
}

export function readShown(items: readonly Item[]): Shown {
  const newest = items.findLastIndex((item) => sideOf(item) === "caller" || sideOf(item) === "tools");
  // A blank model message is an answer if somebody has spoken since; otherwise it is a placeholder for the next one.
  const last = items.findLastIndex((item, index) => sideOf(item) === "model" && (isWord(item) || index < newest));
  if (last === -1) return { items, end: 0 };
  // Blank ones after it belong to the same run.
  const end = newest > last ? last : items.findLastIndex((item) => sideOf(item) === "model");
  return { items, end: end + 1 };
}

/** It shows only the turn it continues, step by step. */
export function isStep({ items, end }: Shown): boolean {
  return end > 0 && isOneTurn(items);
}

/**
 * Nothing is asked right after the model's words. What is said after a tool's output still belongs to that turn. A thread
 * of several turns need not be read beyond its second question.
 */
export function isOneTurn(items: Iterable<Item>): boolean {
  let last: Run["side"] | undefined;
  for (const item of items) {
    const side = sideOf(item);
    if (side === "caller" && last === "model") return false;
    last = side ?? last;
  }
  return true;
}

/** A history that begins with a compaction is only that of a path that has it, whatever words follow. */
export function hasBeginning(path: Path, { items }: Shown): boolean {
  const first = items.find((item) => sideOf(item) !== undefined || keepsSome(item));
  if (first === undefined || !keepsSome(first)) return true;
  if (!path.isCompacted) return false;
  const beginning = JSON.stringify(first);
  return talkFrom(path, 0).some((item) => keepsSome(item) && JSON.stringify(item) === beginning);
}

/** Where the words of the model begin that end here. */
export function findAnswer(items: readonly Item[], end: number): number {
  let start = end;
  for (let item = items[start - 1]; item !== undefined; item = items[start - 1]) {
    const side = sideOf(item);
    if (side === "caller" || side === "tools") break;
    start -= 1;
  }
  return start;
}

/** The model's last words in a turn, and what follows them. A shown history may be long: only its last answer counts. */
export function answerOf(turn: PathTurn | undefined): readonly Item[] {
  const { input, output } = turn ?? { input: [], output: [] };
  if (output.length > 0) return output;
  return input.slice(findAnswer(input, input.findLastIndex((item) => sideOf(item) === "model") + 1));
}

/** Calls get our ids, since the caller's may differ: the n-th from the end is the same. */
export function withOwnIds(shown: Shown, end: number, path: Path): Shown {
  if (path.isPlain) return shown;
  // After a gap they can no longer be counted, but those that may still be answered are the newest.
  const known = hasGap(path) ? itemsOf(turnsOf(path).slice(-1)) : talkFrom(path, 0);
  const ours = callIdsOf(known);
  if (ours.length === 0 || known.some(isRemoved)) return shown;
  const theirs = callIdsOf(shown.items.slice(0, end)).slice(-ours.length);
  // A caller may reuse an id; then the newest call with it is meant.
  const names = new Map(theirs.map((callId, index) => [callId, ours.at(index - theirs.length) ?? callId]));
  if ([...names].every(([callId, name]) => callId === name)) return shown;
  const items = shown.items.map((item) =>
    item.type === "tool-output" || item.type === "tool-call"
      ? { ...item, callId: names.get(item.callId) ?? item.callId }
      : item,
  );
  return { ...shown, items };
}

function callIdsOf(items: readonly Item[]): readonly string[] {
  const callIds: string[] = [];
  for (const item of items) if (item.type === "tool-call") callIds.push(item.callId);
  return callIds;
}

/** What the model sees of the items up to `end`, which are a caller's version of the path, or only of its tail. */
export function versionOf(shown: Shown, end: number, path: Path, isTail: boolean): CallerVersion | undefined {
  const items = shown.items.slice(0, end);
  if (path.isAbridged && !isTail) return { use: "instead", items: items.filter((item) => !isSteering(item)) };
  const isMore = path.hasExtras || items.some((item) => hasExtras(item) && !isSteering(item));
  return isMore ? { use: "merged", items } : undefined;
}

/**
 * The first `length` items are already in a path. System messages are never part of a history: they are the request's
 * own.
 */
export function divide(shown: Shown, length: number, known?: Known): Pick<Match, "base" | "input"> {
  const { items, end } = shown;
  return {
    base: items.slice(length, end).filter((item) => !isSteering(item)),
    input: steeringOf(shown, known).concat(items.slice(Math.max(length, end))),
  };
}

/** Behind its last word, an answer may have reasoning, which is shown there again: as much as the path ends with. */
export function skipReasoning(items: readonly Item[], start: number, { talkLength, track: { talk } }: Path): number {
  let next = start;
  for (let ours = talkLength - 1; talk[ours]?.type === "reasoning" && items[next]?.type === "reasoning"; ours -= 1) {
    next += 1;
  }
  return next;
}

/**
 * A request's items again: its system messages stand before the history that it showed. Some servers take them nowhere
 * else.
 */
export function rejoin<Each>(
  base: readonly Each[],
  input: readonly Each[],
  isFront: (each: Each) => boolean,
): readonly Each[] {
  const said = input.findIndex((each) => !isFront(each));
  const front = said === -1 ? input.length : said;
  return input.slice(0, front).concat(base, input.slice(front));
}

/** The system messages before the model's last word; where only words are `known` to be, none is searched for. */
export function steeringOf({ items, end }: Shown, known?: Known): readonly Item[] {
  const { start, length } = known?.start === undefined ? { start: 0, length: 0 } : known;
  return items.slice(0, start).concat(items.slice(length, end)).filter(isSteering);
}
