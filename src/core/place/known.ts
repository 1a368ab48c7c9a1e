/**
 * How much of a shown history a thread already has, found by comparing words: that costs a twentieth of hashing them,
 * and most callers show exactly what they have just heard.
 */
import type { Content, Item } from "../item.ts";
import type { Path, Track } from "./path.ts";
import type { Shown } from "./shown.ts";
import { canonicalJson, canonOf, canonOfOther, sideOf, stripBlanks } from "./runs.ts";

/** A beginning of the shown items. */
export interface Beginning {
  /** How many items it has. */
  readonly length: number;
  /** The chain's digest after them. */
  readonly digest: string;
  /** Where it begins, if there are only words from there on. Undefined: reasoning or instructions stand among them. */
  readonly start: number | undefined;
}

/** The longest known beginning, up to the end of a turn on the path; undefined: they differ from the start. */
export function findKnown({ items, end }: Shown, { comparable, track }: Path): Beginning | undefined {
  const { turns, talk, ends } = track;
  /** The caller's ids of our calls. */
  const names = new Map<string, string>();
  const start = findSaid(items, 0, end);
  const verbatim = countVerbatim(items, start, end, comparable, track);
  let ours = ends[verbatim - 1] ?? 0;
  let theirs = start + ours;
  let met = ours;
  let last = talk[ours - 1];

  /** Whether the caller shows all of the turn next. */
  function meets(turn: number): boolean {
    for (const until = ends[turn] ?? 0; ours < until; ours += 1) {
      const item = talk[ours];
      if (item === undefined || sideOf(item) === undefined) continue;
      const next = findSaid(items, theirs, end);
      const shown = items[next];
      if (shown === undefined || next === end) return false;
      if (!isSame(item, shown, names)) return meetsAsOne(next, until);
      theirs = next + 1;
      met += 1;
      last = item;
    }
    return true;
  }

  /**
   * Some wires tell an answer of several messages as one text, followed by its calls; their clients show it that way.
   */
  function meetsAsOne(next: number, until: number): boolean {
    const answer = talk.slice(ours, until).filter((item) => sideOf(item) !== undefined);
    const messages = answer.filter((item) => item.type === "message" && item.role === "assistant");
    const calls = answer.filter((item) => item.type === "tool-call");
    const [shown, ...behind] = items.slice(next, Math.min(end, next + 1 + calls.length));
    if (messages.length + calls.length < answer.length || shown?.type !== "message") return false;
    const text = messages.map((item) => (item.type === "message" ? canonOf(item.content) : "")).join("");
    if (shown.role !== "assistant" || !isSameText(text, shown.content)) return false;
    if (!calls.every((call, at) => behind[at] !== undefined && isSame(call, behind[at], names))) return false;
    ours = until;
    theirs = next + 1 + calls.length;
    met += 1 + calls.length;
    last = answer.at(-1);
    return true;
  }

  /** Whether the caller's next word is by another side. */
  function isBetween(): boolean {
    const next = findSaid(items, theirs, end);
    const shown = items[next];
    return shown === undefined || last === undefined || next === end || sideOf(shown) !== sideOf(last);
  }

  let known = turns[verbatim - 1];
  let length = theirs;
  let isPure = true;
  for (let turn = verbatim; turn < comparable && meets(turn); turn += 1) {
    if (!isBetween()) continue;
    known = turns[turn];
    length = theirs;
    isPure = theirs === start + met;
  }
  return known?.digest === undefined ? undefined : { length, digest: known.digest, start: isPure ? start : undefined };
}

/**
 * How many turns, from the first on, are shown message by message and end where another side goes on: nearly all are,
 * and a loop over the messages alone takes half the time.
 */
function countVerbatim(items: readonly Item[], start: number, end: number, comparable: number, track: Track): number {
  const { talk, ends } = track;
  const length = Math.min(ends[comparable - 1] ?? 0, end - start);
  let same = Math.min(countShownBefore(items, start, track), length);
  while (same < length && isSameMessage(talk[same], items[start + same])) same += 1;
  if (same >= minRemembered) track.shown = { items: new WeakRef(items), start, length: same };

  /** Between comparable turns the side changes, so only what follows the same messages may be of the same side. */
  function isVerbatim(turn: number): boolean {
    const last = ends[turn] ?? 0;
    if (last !== same) return last < same;
    return start + last >= end || isFromOthers(talk[last - 1], items[start + last]);
  }

  let turns = comparable;
  while (turns > 0 && !isVerbatim(turns - 1)) turns -= 1;
  return turns;
}

/** Fewer are compared in less time than it takes to remember them. */
const minRemembered = 32;

/** How many are the very items that were compared last time. */
function countShownBefore(items: readonly Item[], start: number, { shown }: Track): number {
  const before = shown?.start === start ? shown.items.deref() : undefined;
  if (shown === undefined || before === undefined) return 0;
  let same = 0;
  while (same < shown.length && items[start + same] === before[start + same]) same += 1;
  return same;
}

function isSameMessage(ours: Item | undefined, theirs: Item | undefined): boolean {
  if (ours?.type !== "message" || theirs?.type !== "message") return false;
  return ours.content === theirs.content && ours.role === theirs.role;
}

function isFromOthers(last: Item | undefined, next: Item | undefined): boolean {
  if (last?.type !== "message" || next?.type !== "message") return false;
  return last.role === "user" ? next.role === "assistant" : next.role === "user";
}

/** The place of the next item that counts. */
function findSaid(items: readonly Item[], start: number, end: number): number {
  let next = start;
  for (let item = items[next]; item !== undefined && next < end && sideOf(item) === undefined; item = items[next]) {
    next += 1;
  }
  return next;
}

function isSame(ours: Item, theirs: Item, names: Map<string, string>): boolean {
  if (ours.type === "message") {
    if (theirs.type !== "message") return false;
    return ours.role === theirs.role && (ours.content === theirs.content || isSameText(ours.content, theirs.content));
  }
  if (ours.type === "tool-call") {
    if (theirs.type !== "tool-call" || ours.name !== theirs.name) return false;
    names.set(ours.callId, theirs.callId);
    return ours.arguments === theirs.arguments || canonicalJson(ours.arguments) === canonicalJson(theirs.arguments);
  }
  if (ours.type === "other") {
    return theirs.type === "other" && sideOf(ours) === sideOf(theirs) && canonOfOther(ours) === canonOfOther(theirs);
  }
  return (
    ours.type === "tool-output" &&
    theirs.type === "tool-output" &&
    names.get(ours.callId) === theirs.callId &&
    isSameText(ours.output, theirs.output)
  );
}

/** The same words in whatever parts, ignoring trailing blanks and blank lines. */
export function isSameText(ours: Content, theirs: Content): boolean {
  const [one, other] = [canonOf(ours), canonOf(theirs)];
  return one === other || stripBlanks(one) === stripBlanks(other);
}
