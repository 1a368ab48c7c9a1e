/**
 * Instructions (system and developer messages): a request's own beside a thread's, and their place in what was said.
 */
import { type Item, isSteering } from "../item.ts";
import { sideOf, type Stretch, toStretches } from "./runs.ts";
import { readShown } from "./shown.ts";

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

/** A request's instructions, by position. */
export interface Standing {
  /** Before everything. */
  readonly front: readonly Item[];
  /** The history that the request shows, if some stand within it. */
  readonly account: readonly Item[] | undefined;
  /** After that history, or among what is new. */
  readonly notes: ReadonlySet<Item>;
}

/** Of those in force: a request's own or, if it has none, its thread's. */
export function readStanding(inForce: readonly Item[], items: readonly Item[]): Standing {
  const first = items.findIndex((item) => sideOf(item) !== undefined);
  if (first === -1) return { front: inForce, account: undefined, notes: new Set() };
  const { end } = readShown(items);
  const lead = new Set(items.slice(0, first));
  const notes = new Set(items.slice(Math.max(first, end)).filter(isSteering));
  // A history may be long, and most have none within.
  const isElsewhere = inForce.some((item) => !lead.has(item) && !notes.has(item));
  const amid = new Set(isElsewhere ? items.slice(first, end).filter(isSteering) : []);
  return {
    front: inForce.filter((item) => !notes.has(item) && !amid.has(item)),
    account: amid.size > 0 ? items.slice(0, end) : undefined,
    notes,
  };
}

/**
 * Puts instructions from within an account at the same place in the talk. What is remembered says the same, so the
 * stretches in which one side speaks are the same too, counted from the end: an account may begin late.
 */
export function withAmid(talk: readonly Item[], account: readonly Item[]): readonly Item[] {
  const remembered = toStretches(talk);
  const shown = toStretches(account);
  const late = remembered.length - shown.length;
  const first = shown[0]?.places[0] ?? 0;
  const seen: Item[] = [];
  let next = 0;
  let inside = 0;
  let told = 0;
  for (const [place, item] of account.entries()) {
    if (place < first || !isSteering(item)) continue;
    for (; (shown[next]?.places.at(-1) ?? Infinity) < place; next += 1) inside = 0;
    const places = shown[next]?.places ?? [];
    while ((places[inside] ?? Infinity) < place) inside += 1;
    const at = next === shown.length ? talk.length : placeIn(remembered, next + late, inside, places.length);
    for (const each of talk.slice(told, at)) seen.push(each);
    seen.push(item);
    told = at;
  }
  return seen.concat(talk.slice(told));
}

/**
 * Between two stretches, or after this many messages within one that is split alike; tool outputs stay after their
 * calls.
 */
function placeIn(remembered: readonly Stretch[], index: number, inside: number, length: number): number {
  const stretch = remembered[index];
  if (stretch?.side === "tools") return (stretch.places.at(-1) ?? 0) + 1;
  const within = inside > 0 && stretch?.places.length === length ? stretch.places[inside] : undefined;
  return within ?? (remembered[index - 1]?.places.at(-1) ?? -1) + 1;
}
