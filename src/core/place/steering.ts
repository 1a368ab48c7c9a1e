/**
 * What steers the model: instructions (system and developer messages) and changed settings, a request's own beside its
 * thread's, and their place in what was said.
 */
import { type Item, isSteering } from "../item.ts";
import { sideOf, type Segment, toSegments } from "./runs.ts";
import type { Shown } from "./shown.ts";

/**
 * What is in force when a turn adds `own` steering to what was in force `before`: the newest instructions replace
 * earlier ones, and changed settings stay beside them.
 */
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

export function isSameSteering(ours: readonly Item[], theirs: readonly Item[]): boolean {
  return ours.length === theirs.length && ours.every((item, at) => isSameMessage(item, theirs[at]));
}

function isSameMessage(one: Item, other: Item | undefined): boolean {
  if (one.type !== "message" || other?.type !== "message") return isSameValue(one, other);
  const isOfOne = one.role === other.role && one.name === other.name;
  return isOfOne && isSameValue(one.content, other.content) && isSameValue(one.extra, other.extra);
}

/** Texts may be long, and are mostly the same. */
function isSameValue(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/**
 * The instructions in force, a request's own or its thread's, by position: in front of everything, within the history
 * that the request shows, which is then its `callerVersion`, and the notes after that or among what is new.
 */
export function readInstructions(inForce: readonly Item[], { items, end }: Shown) {
  const first = findFirstSaid(items);
  if (first === -1) return { front: inForce, callerVersion: undefined, notes: new Set<Item>() };
  const lead = new Set(items.slice(0, first));
  const notes = new Set(items.slice(Math.max(first, end)).filter(isSteering));
  // A history may be long, and most have none within.
  const isElsewhere = inForce.some((item) => !lead.has(item) && !notes.has(item));
  const inner = new Set(isElsewhere ? items.slice(first, end).filter(isSteering) : []);
  return {
    front: inForce.filter((item) => !notes.has(item) && !inner.has(item)),
    callerVersion: inner.size > 0 ? items.slice(0, end) : undefined,
    notes,
  };
}

/** Instructions before it go in front; it may be blank, and then belongs to no segment. */
function findFirstSaid(items: readonly Item[]): number {
  return items.findIndex((item) => sideOf(item) !== undefined);
}

/**
 * Puts instructions from within a caller's version at the same place in the talk. What is remembered says the same, so the
 * segments in which one side speaks are the same too, counted from the end: a caller's version may begin late.
 */
export function withInnerInstructions(talk: readonly Item[], callerVersion: readonly Item[]): readonly Item[] {
  const remembered = toSegments(talk);
  const shown = toSegments(callerVersion);
  const late = remembered.length - shown.length;
  const first = findFirstSaid(callerVersion);
  const seen: Item[] = [];
  let next = 0;
  let inside = 0;
  let told = 0;
  for (const [place, item] of callerVersion.entries()) {
    if (place < first || !isSteering(item)) continue;
    for (; (shown[next]?.places.at(-1) ?? Infinity) < place; next += 1) inside = 0;
    const places = shown[next]?.places ?? [];
    while ((places[inside] ?? Infinity) < place) inside += 1;
    const at = placeIn(remembered, next + late, inside, places.length);
    for (const each of talk.slice(told, at)) seen.push(each);
    seen.push(item);
    told = at;
  }
  return seen.concat(talk.slice(told));
}

/**
 * Between two segments, or after this many messages within one that is split alike; tool outputs stay after their
 * calls.
 */
function placeIn(remembered: readonly Segment[], index: number, inside: number, length: number): number {
  const segment = remembered[index];
  if (segment?.side === "tools") return (segment.places.at(-1) ?? 0) + 1;
  const within = inside > 0 && segment?.places.length === length ? segment.places[inside] : undefined;
  return within ?? (remembered[index - 1]?.places.at(-1) ?? -1) + 1;
}
