/**
 * The path from a root of the tree to one of its turns: what was said, and what every turn needs to know of it, so that
 * nobody has to search a long thread. A path grows with its thread and is not copied.
 */
import { type Content, type Dialect, type Item, isSteering, sizeOfItems } from "../item.ts";
import type { Agreement } from "./known.ts";
import { type Run, sideOf } from "./runs.ts";
import type { PathTurn, Session, SessionStore } from "../store.ts";
import { mergeSteering } from "./steering.ts";
import { settledLength } from "./tools.ts";

export interface Path {
  /** How many turns it has. */
  readonly length: number;
  /** The last of them. */
  readonly tip: PathTurn | undefined;
  /** How many items were said, system messages aside. */
  readonly talkLength: number;
  /** This many need no second look: every call among them has its output. */
  readonly settled: number;
  /**
   * How many turns, from the first on, can be compared with what a caller shows: their digests cover just what they
   * have.
   */
  readonly comparable: number;
  /** It is no longer all that was said: something was deleted or compacted. */
  readonly isAbridged: boolean;
  /** A compaction in it keeps something: what was said before that is no longer shown. */
  readonly isCompacted: boolean;
  /** It consists of words alone, in messages with nothing beside them: no tool was called in it. */
  readonly isPlain: boolean;
  /** A caller said something in it that has more than its words. */
  readonly hasExtras: boolean;
  /** The instructions and changed settings in force. */
  readonly steering: readonly Item[];
  /** Who spoke last. */
  readonly lastSide: Run["side"] | undefined;
  /** Shared with paths that grew from this one, so only its beginning belongs to this one. */
  readonly track: Track;
}

export interface Track {
  readonly turns: PathTurn[];
  readonly talk: Item[];
  /** Where each turn ends in the talk. */
  readonly ends: number[];
  /** How many characters all turns up to each one have together. */
  readonly sizes: number[];
  /** How much of it a caller last showed: one that shows the same objects again need not be compared. */
  agreed?: (Agreement & { readonly items: WeakRef<readonly Item[]> }) | undefined;
}

export const noPath: Path = {
  length: 0,
  tip: undefined,
  talkLength: 0,
  settled: 0,
  comparable: 0,
  isAbridged: false,
  isCompacted: false,
  isPlain: true,
  hasExtras: false,
  steering: [],
  lastSide: undefined,
  track: { turns: [], talk: [], ends: [], sizes: [] },
};

export function toPath(turns: readonly PathTurn[]): Path {
  return turns.reduce((path, turn) => extend(path, turn), noPath);
}

/** What was said in a session's current thread. */
export async function readThread(store: SessionStore, { tip }: Pick<Session, "tip">): Promise<Path> {
  return tip === undefined ? noPath : store.readPath(tip);
}

/** The path to a turn that follows the last one. A store knows its size: how many characters its items have. */
export function extend(path: Path, turn: PathTurn, size = sizeOfTurn(turn)): Path {
  const track = trackToExtend(path);
  let { lastSide, isPlain, isCompacted } = path;
  let isComparable = path.comparable === path.length && turn.digest !== undefined && !isAbridged(turn);
  let isBegun = false;
  for (const items of [turn.input, turn.output]) {
    for (const item of items) {
      if (isSteering(item)) continue;
      track.talk.push(item);
      if (item.type !== "message" || typeof item.content !== "string" || item.extra !== undefined) isPlain = false;
      if (keepsSome(item)) isCompacted = true;
      const side = sideOf(item);
      if (side === undefined) continue;
      // A run that continues past a turn's end has another digest in the chain.
      if (!isBegun && side === path.lastSide) isComparable = false;
      isBegun = true;
      lastSide = side;
    }
  }
  track.turns.push(turn);
  track.ends.push(track.talk.length);
  track.sizes.push(sizeOf(path) + size);
  return {
    length: path.length + 1,
    tip: turn,
    talkLength: track.talk.length,
    settled: settledLength(track.talk, path.settled),
    comparable: isComparable ? path.length + 1 : path.comparable,
    isAbridged: path.isAbridged || isAbridged(turn),
    isCompacted,
    isPlain,
    hasExtras: path.hasExtras || turn.input.some((item) => !isSteering(item) && hasExtras(item)),
    steering: mergeSteering(path.steering, turn.input.filter(isSteering)),
    lastSide,
    track,
  };
}

/** The first to continue a path extends its track; a branch needs one of its own. */
function trackToExtend({ length, talkLength, track }: Path): Track {
  const { turns, talk, ends, sizes } = track;
  if (length > 0 && turns.length === length) return track;
  return {
    turns: turns.slice(0, length),
    talk: talk.slice(0, talkLength),
    ends: ends.slice(0, length),
    sizes: sizes.slice(0, length),
  };
}

function sizeOf({ length, track }: Path): number {
  return track.sizes[length - 1] ?? 0;
}

function sizeOfTurn({ input, output }: PathTurn): number {
  return sizeOfItems(input) + sizeOfItems(output);
}

function isAbridged({ gap, output }: PathTurn): boolean {
  return gap === true || output.some((item) => item.type === "compaction");
}

/** A compaction that comes with what stays of the conversation. */
export function keepsSome(item: Item): boolean {
  return item.type === "compaction" && item.kept !== undefined;
}

/** It carries something beside its words: a name, or fields only its dialect knows. */
export function hasExtras(item: Item): boolean {
  switch (item.type) {
    case "message":
      return item.extra !== undefined || item.name !== undefined || hasPartExtras(item.content);
    case "tool-call":
      return item.extra !== undefined;
    case "tool-output":
      return item.extra !== undefined || hasPartExtras(item.output);
    case "reasoning":
    case "compaction":
    case "other":
      return false;
  }
}

/** A part of a content carries such fields, of this dialect if given; or says how an image or file is to be seen. */
export function hasPartExtras(content: Content, dialect?: Dialect): boolean {
  if (typeof content === "string") return false;
  return content.some((part) => {
    if (part.type === "image" && part.detail !== undefined) return true;
    if (part.type === "file" && part.name !== undefined) return true;
    if (part.type === "other" || part.extra === undefined) return false;
    return dialect === undefined || part.extra.dialect === dialect;
  });
}

export function turnsOf({ length, track }: Path): readonly PathTurn[] {
  return track.turns.slice(0, length);
}

export function rootOf({ length, track }: Path): PathTurn | undefined {
  return length === 0 ? undefined : track.turns[0];
}

/** Its oldest turns beyond its limit; never one of a path that grew from it. */
export function surplusOf({ length, track }: Path, surplus: number): readonly PathTurn[] {
  return surplus <= 0 ? [] : track.turns.slice(0, Math.min(surplus, length));
}

/** How many of its oldest turns there are beyond this size. */
export function countBeyond(path: Path, size: number): number {
  const excess = sizeOf(path) - size;
  if (excess <= 0) return 0;
  const last = path.track.sizes.findIndex((upTo) => upTo >= excess);
  return last === -1 ? path.length : Math.min(last + 1, path.length);
}

/** Something was deleted from it. */
export function hasGap(path: Path): boolean {
  return path.isAbridged && turnsOf(path).some(({ gap }) => gap === true);
}

/** All that was said on a path, in order, with system messages. */
export function itemsOf(turns: readonly PathTurn[]): readonly Item[] {
  const items: Item[] = [];
  for (const { input, output } of turns) {
    for (const item of input) items.push(item);
    for (const item of output) items.push(item);
  }
  return items;
}

/** The talk from one item on. */
export function talkFrom({ talkLength, track }: Path, start: number): readonly Item[] {
  return track.talk.slice(start, talkLength);
}

/** The settled talk, between others. */
export function amidTalk(before: readonly Item[], { settled, track }: Path, behind: readonly Item[]): readonly Item[] {
  const { talk } = track;
  return before.concat(talk.length === settled ? talk : talk.slice(0, settled), behind);
}
