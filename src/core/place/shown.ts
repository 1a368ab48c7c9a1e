/** What a request shows of its conversation, told apart from what is new, and as it stands beside a path that is remembered. */
import { type Item, isRemoved, isSteering } from "../item.ts";
import type { Beginning } from "./known.ts";
import type { Match } from "./match.ts";
import { hasBeside, hasGap, itemsOf, type Path, talkFrom, turnsOf } from "./path.ts";
import { canonOf, isWord, type Run, sideOf, toRuns } from "./runs.ts";

/** A request's items, told apart: what was said before, and what is new. */
export interface Shown {
  readonly items: readonly Item[];
  /** Where the model's last word ends among them; 0: the caller shows no history. */
  readonly end: number;
}

export function readShown(items: readonly Item[]): Shown {
  const newest = items.findLastIndex((item) => sideOf(item) === "caller" || sideOf(item) === "tools");
  // An answer may have been blank, which tells from a place that is left for the next one that somebody has spoken since.
  const last = items.findLastIndex((item, index) => sideOf(item) === "model" && (isWord(item) || index < newest));
  if (last === -1) return { items, end: 0 };
  // Blank words behind it belong to the same run.
  let end = last + 1;
  for (const [index, item] of items.slice(end).entries()) {
    const side = sideOf(item);
    if (side === "model") end = last + index + 2;
    else if (side !== undefined) break;
  }
  return { items, end };
}

/**
 * It shows no more than the turn that it goes on with, step by step: nothing is asked right behind words of the model. What is
 * said behind a tool's output is still of that turn.
 */
export function isStep({ items, end }: Shown): boolean {
  if (end === 0) return false;
  let last: Run["side"] | undefined;
  for (const item of items) {
    const side = sideOf(item);
    if (side === "caller" && last === "model") return false;
    last = side ?? last;
  }
  return true;
}

/** The runs up to the model's last word. */
export function historyOf({ items, end }: Shown): readonly Run[] {
  return toRuns(items.slice(0, end));
}

/** The last words that are shown of the model hold calls, and all of these are of the newest turn. */
export function namesCall({ items, end }: Shown, { tip }: Path): boolean {
  const ours = callIdsOf(tip?.output ?? []);
  const shown: string[] = [];
  for (let index = end - 1; index >= 0; index -= 1) {
    const item = items[index];
    const side = item && sideOf(item);
    if (side !== undefined && side !== "model") break;
    if (item?.type === "tool-call") shown.push(item.callId);
  }
  return shown.length > 0 && shown.every((callId) => ours.includes(callId));
}

/**
 * What is new of items of a caller that shows no history: it may ask again what was answered without a word, as it has nothing
 * to show of that, or send along what belongs to its newest turn.
 */
export function withoutKnown(items: readonly Item[], path: Path): readonly Item[] {
  return withoutUnanswered(withoutRepeat(items, path), path);
}

/** Whoever asks the same alone means it. */
function withoutUnanswered(items: readonly Item[], path: Path): readonly Item[] {
  if (path.tip === undefined || path.tip.output.some(isWord)) return items;
  const talk = talkFrom(path, 0);
  const asked = talk.slice(talk.findLastIndex((item) => sideOf(item) !== "caller" && isWord(item)) + 1);
  let left = asked.map((item) => wordsOf(item) ?? "").join("");
  if (left === "") return items;
  const own = items.filter((item) => sideOf(item) !== undefined);
  const known = new Set<Item>();
  // It may cut its messages otherwise than before.
  for (const item of own) {
    if (left === "") break;
    const words = wordsOf(item);
    if (words === undefined || !left.startsWith(words)) return items;
    left = left.slice(words.length);
    known.add(item);
  }
  if (left !== "" || known.size === own.length) return items;
  // Its thoughts may stand between what was asked and what is new.
  return items.filter((item) => !known.has(item) && item.type !== "reasoning");
}

/** What a user says, without any blanks. */
function wordsOf(item: Item): string | undefined {
  return item.type === "message" && item.role === "user" ? canonOf(item.content).replaceAll(/\s+/g, "") : undefined;
}

/**
 * What is new of items that answer the newest calls: some clients send along, with every step of a turn, what they have asked in
 * it, with its instructions, what the model said since, and the outputs that they have given already.
 */
export function withoutRepeat(items: readonly Item[], path: Path): readonly Item[] {
  const { tip } = path;
  const first = items.findIndex(({ type }) => type === "tool-output");
  if (first === -1 || tip === undefined) return items;
  const open = callIdsOf(tip.output);
  if (!items.some((item) => item.type === "tool-output" && open.includes(item.callId))) return items;
  const asked = items.slice(0, first).filter((item) => sideOf(item) === "caller");
  const isOld = (item: Item) =>
    item.type === "tool-call" || (item.type === "tool-output" && !open.includes(item.callId));
  // Most send no more than what is new, and a turn may be long.
  if (asked.length === 0 && !items.some(isOld)) return items;
  const turn = stepsOf(path);
  const isAskedAgain = asked.length > 0 && toRuns(asked)[0]?.canon === toRuns(turn)[0]?.canon;
  const repeated = new Set(isAskedAgain ? [...asked, ...instructionsAgain(items.slice(0, first), path)] : []);
  for (const item of stepsAgain(items, turn, open)) repeated.add(item);
  const given = new Set(turn.map((item) => (item.type === "tool-output" ? item.callId : undefined)));
  const isKept = (item: Item) =>
    !repeated.has(item) && (item.type !== "tool-output" || open.includes(item.callId) || !given.has(item.callId));
  // Thoughts go with what they led to.
  return items.filter((item, index) =>
    isKept(item.type === "reasoning" ? (items.slice(index).find(({ type }) => type !== "reasoning") ?? item) : item),
  );
}

/** System messages that stand in the path already. */
function instructionsAgain(items: readonly Item[], path: Path): readonly Item[] {
  const again = items.filter(isSteering);
  if (again.length === 0) return again;
  const known = new Set(turnsOf(path).flatMap(({ input }) => input.filter(isSteering).map(toKnown)));
  return again.filter((item) => known.has(toKnown(item)));
}

/** What the model said in the turn and was given, shown again up to its newest calls; whatever stands behind something new is new. */
function stepsAgain(items: readonly Item[], turn: readonly Item[], open: readonly string[]): readonly Item[] {
  const end = items.findLastIndex((item) => item.type === "tool-call" && open.includes(item.callId)) + 1;
  if (end === 0) return [];
  const known = turn.map(toKnown);
  const again: Item[] = [];
  let at = 0;
  for (const item of items.slice(0, end)) {
    if (!["model", "tools"].includes(sideOf(item) ?? "")) continue;
    const found = known.indexOf(toKnown(item), at);
    if (found === -1) break;
    again.push(item);
    at = found + 1;
  }
  return again;
}

/** By what an item is known to be the same again; an output by its call alone, since a client may show less of it by then. */
function toKnown(item: Item): string {
  switch (item.type) {
    case "tool-output":
      return JSON.stringify([item.callId, "output"]);
    case "tool-call":
      return JSON.stringify([item.callId]);
    case "message":
      return JSON.stringify([item.role, canonOf(item.content).trim(), "said"]);
    default:
      return "";
  }
}

/** What was said from the last question on. */
function stepsOf(path: Path): readonly Item[] {
  const talk = talkFrom(path, 0);
  const last = talk.findLastIndex((item) => sideOf(item) === "caller");
  const before = talk.findLastIndex((item, index) => index < last && !["caller", undefined].includes(sideOf(item)));
  return talk.slice(before + 1);
}

/** Calls go by our ids, though the caller may have given them others: the n-th from the end is the same. */
export function withOwnIds(shown: Shown, end: number, path: Path): Shown {
  if (!path.hasCalls) return shown;
  // Behind a gap they can no longer be counted, but those that may still be answered are the newest.
  const known = hasGap(path) ? itemsOf(turnsOf(path).slice(-1)) : talkFrom(path, 0);
  const ours = known.some(isRemoved) ? [] : callIdsOf(known);
  const theirs = callIdsOf(shown.items.slice(0, end)).slice(-ours.length);
  // A caller may use an id again; then the newest call with it is meant.
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

/** Most accounts are words alone, so they are worth no more than a glance. */
export function besideOf({ items }: Shown, end: number, path: Path): Match["account"] {
  if (path.hasBeside) return items.slice(0, end);
  for (let index = 0; index < end; index += 1) {
    const item = items[index];
    if (item !== undefined && hasBeside(item) && !isSteering(item)) return items.slice(0, end);
  }
  return undefined;
}

/** The caller's own account in place of a path that has lost something. */
export function accountOf(shown: Shown, end: number): Pick<Match, "instead" | "base" | "input"> {
  const instead = shown.items.slice(0, end).filter((item) => !isSteering(item));
  return { instead, ...divide(shown, end) };
}

/** `known` items stand in a path already. System messages are never part of a history: they are the request's own. */
export function divide(shown: Shown, known: number, beginning?: Beginning): Pick<Match, "base" | "input"> {
  const { items, end } = shown;
  return {
    base: items.slice(known, end).filter((item) => !isSteering(item)),
    input: steeringOf(shown, beginning).concat(items.slice(end)),
  };
}

/** The system messages before the model's last word; in a pure `beginning` they need not be looked for. */
export function steeringOf({ items, end }: Shown, beginning?: Beginning): readonly Item[] {
  const { start, length } = beginning?.start === undefined ? { start: 0, length: 0 } : beginning;
  return items.slice(0, start).concat(items.slice(length, end)).filter(isSteering);
}
