/**
 * How much of a shown history a thread already has, found by comparing items: that costs a fifteenth of hashing them,
 * and most callers show exactly what they have just heard. What is the same here has the same digest, with one exception.
 */
import type { Item } from "../item.ts";
import type { Path, Track } from "./path.ts";
import type { Shown } from "./shown.ts";
import { isSameText, isSameWord, sideOf, wordsOf } from "./runs.ts";

/** The beginning of the shown items that a thread has. */
export interface Known {
  /** How many items it has. */
  readonly length: number;
  /** The chain's digest after them. */
  readonly digest: string;
  /** Where it begins, if there are only words from there on. Undefined: reasoning or instructions stand among them. */
  readonly start: number | undefined;
}

/** How far a caller's version and a path were found to be the same, at the end of a turn. */
export interface Agreement extends Omit<Known, "digest"> {
  /** How many turns of the path. */
  readonly turns: number;
}

/** The longest known beginning, up to the end of a turn on the path; undefined: they differ from the start. */
export function findKnown(shown: Shown, { comparable, track }: Path): Known | undefined {
  const { items, end } = shown;
  const { turns, talk, ends } = track;
  /** The caller's ids of our calls, where they differ. */
  const renamed = new Map<string, string>();
  const start = findSaid(items, 0, end);
  let agreed = recallAgreement(shown, comparable, track) ?? { turns: 0, length: start, start };
  let { length: theirs } = agreed;
  let isPure = agreed.start !== undefined;
  let ours = ends[agreed.turns - 1] ?? 0;

  /** Whether the caller shows all of the turn next. */
  function meets(turn: number): boolean {
    for (const until = ends[turn] ?? 0; ours < until; ours += 1) {
      const item = talk[ours];
      if (item === undefined || sideOf(item) === undefined) continue;
      const next = findSaid(items, theirs, end);
      const shownItem = items[next];
      if (shownItem === undefined || next === end) return false;
      if (next > theirs) isPure = false;
      if (!isSame(item, shownItem, renamed)) return meetsAsOne(next, until);
      theirs = next + 1;
    }
    return true;
  }

  /**
   * Some wires tell an answer of several messages as one text, followed by its calls; their clients show it that way.
   * The exception: shown so, it has another digest, and only a cached thread is recognised by it.
   */
  function meetsAsOne(next: number, until: number): boolean {
    const answer = talk.slice(ours, until).filter((item) => sideOf(item) !== undefined);
    const messages = answer.filter((item) => item.type === "message" && item.role === "assistant");
    const calls = answer.filter((item) => item.type === "tool-call");
    const [told, ...behind] = items.slice(next, Math.min(end, next + 1 + calls.length));
    if (messages.length + calls.length < answer.length || told?.type !== "message") return false;
    const text = messages.map((item) => (item.type === "message" ? wordsOf(item.content) : "")).join("");
    if (told.role !== "assistant" || !isSameText(text, told.content)) return false;
    if (!calls.every((call, at) => behind[at] !== undefined && isSame(call, behind[at], renamed))) return false;
    ours = until;
    theirs = next + 1 + calls.length;
    return true;
  }

  for (let turn = agreed.turns; turn < comparable && meets(turn); turn += 1) {
    if (isBetween(shown, theirs)) agreed = { turns: turn + 1, length: theirs, start: isPure ? start : undefined };
  }
  const digest = turns[agreed.turns - 1]?.digest;
  if (digest === undefined) return undefined;
  if (agreed.length >= minRemembered && renamed.size === 0) track.agreed = { ...agreed, items: new WeakRef(items) };
  return { length: agreed.length, digest, start: agreed.start };
}

/** Fewer are compared in less time than it takes to remember them. */
const minRemembered = 32;

/** What was found last time, if these are the very items that were compared. */
function recallAgreement(shown: Shown, comparable: number, { agreed }: Track): Agreement | undefined {
  const before = agreed?.items.deref();
  if (agreed === undefined || before === undefined) return undefined;
  const { turns, length } = agreed;
  if (turns > comparable || length > shown.end || !isBetween(shown, length)) return undefined;
  for (let at = 0; at < length; at += 1) if (shown.items[at] !== before[at]) return undefined;
  return agreed;
}

/** Whether another side speaks next: what one side says in a row is one run. */
function isBetween({ items, end }: Shown, from: number): boolean {
  const next = findSaid(items, from, end);
  const [last, item] = [items[from - 1], items[next]];
  return last === undefined || item === undefined || next === end || sideOf(item) !== sideOf(last);
}

/** The place of the next item that counts. */
function findSaid(items: readonly Item[], start: number, end: number): number {
  let next = start;
  for (let item = items[next]; item !== undefined && next < end && sideOf(item) === undefined; item = items[next]) {
    next += 1;
  }
  return next;
}

/** Notes the caller's ids of calls in `renamed`. */
function isSame(ours: Item, theirs: Item, renamed: Map<string, string>): boolean {
  if (!isSameWord(ours, theirs)) return false;
  if (ours.type === "tool-output" && theirs.type === "tool-output")
    return (renamed.get(ours.callId) ?? ours.callId) === theirs.callId;
  if (ours.type === "tool-call" && theirs.type === "tool-call") {
    if (ours.callId === theirs.callId) renamed.delete(ours.callId);
    else renamed.set(ours.callId, theirs.callId);
  }
  return true;
}
