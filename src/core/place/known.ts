/**
 * How much of a shown history the session's current thread has already, found by comparing words with words: that costs a
 * tenth of hashing them, and most callers show exactly what they have just heard.
 */
import type { Item } from "../item.ts";
import { canonicalJson, canonOf, canonOfOther, type Run, sideOf, squeeze } from "./runs.ts";
import type { StoredTurn } from "../store.ts";

/** A beginning of the shown items. */
export interface Beginning {
  /** It has so many of them. */
  readonly length: number;
  /** The chain's digest after them. */
  readonly digest: string;
}

/** The longest beginning that is known, up to the end of a turn on the path; nothing: they differ from the start. */
export function findKnown(items: readonly Item[], path: readonly StoredTurn[]): Beginning | undefined {
  const walk = createWalk(items);
  let known: Beginning | undefined;
  let last: Run["side"] | undefined;
  for (const turn of path) {
    // Its digest tells of more than it still has.
    if (turn.digest === undefined || isAbridged(turn)) return known;
    const before = last;
    let isBegun = false;
    for (const said of [turn.input, turn.output]) {
      for (const item of said) {
        const side = sideOf(item);
        if (side === undefined) continue;
        // A run that goes on over the end of a turn has another digest in the chain.
        if (!isBegun && side === before) return known;
        if (!walk.meets(item)) return known;
        isBegun = true;
        last = side;
      }
    }
    if (walk.nextSide() !== last) known = { length: walk.length, digest: turn.digest };
  }
  return known;
}

/** The path is no longer all that was said: something was deleted, or made short. */
export function isAbridged({ gap, output }: StoredTurn): boolean {
  return gap === true || output.some((item) => item.type === "compaction");
}

/** Goes along the shown items for as long as they are met. */
function createWalk(items: readonly Item[]) {
  let length = 0;
  /** The caller's names of our calls. */
  const names = new Map<string, string>();

  /** The place of the next item that counts. */
  function findNext(): number {
    let index = length;
    for (let item = items[index]; item !== undefined && sideOf(item) === undefined; item = items[index]) index += 1;
    return index;
  }

  return {
    get length() {
      return length;
    },
    nextSide(): Run["side"] | undefined {
      const next = items[findNext()];
      return next && sideOf(next);
    },
    meets(ours: Item): boolean {
      const index = findNext();
      const theirs = items[index];
      if (theirs === undefined || !isSame(ours, theirs, names)) return false;
      length = index + 1;
      return true;
    },
  };
}

function isSame(ours: Item, theirs: Item, names: Map<string, string>): boolean {
  if (ours.type === "message") {
    return theirs.type === "message" && sideOf(ours) === sideOf(theirs) && isSameText(ours.content, theirs.content);
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

type Text = Parameters<typeof canonOf>[0];

function isSameText(ours: Text, theirs: Text): boolean {
  if (ours === theirs) return true;
  const [one, other] = [canonOf(ours), canonOf(theirs)];
  return one === other || squeeze(one) === squeeze(other);
}
