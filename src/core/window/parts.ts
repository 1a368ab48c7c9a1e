/** A conversation that its model reads in parts, if it is too long to be read at once. */
import { GatewayError } from "../errors.ts";
import { isSteering, type Item } from "../item.ts";
import type { Turn } from "../turn.ts";
import { fixedTexts, type FitParts, reserveOf, tooLong } from "./fit.ts";
import { createSteadyCounter, isTooLong, roomTold } from "./shorten.ts";
import { countItems, surelyFits } from "./tokens.ts";
import { findCuts } from "./window.ts";

export interface Parts {
  /** The next part, with what is `known` of those before it in front; undefined: that was all. */
  next(known: readonly Item[]): Promise<readonly Item[] | undefined>;
  /** The last part was refused: the next one is less of it, or the refusal is thrown. */
  shorten(refusal: unknown): Promise<void>;
}

/** `question` is what is asked about each part; `itemsParam` is the caller's name for the conversation, in errors. */
export function createParts(
  { adapter, tokenCounter }: FitParts,
  { items, settings, model }: Turn,
  question: string,
  itemsParam: string,
): Parts {
  const fixed = [...fixedTexts(settings), question];
  const ends = [...findCuts(items), items.length];
  const readCount = createSteadyCounter(tokenCounter);
  const window = adapter.contextWindow?.(model) ?? Infinity;
  let room = window - reserveOf(settings, window, "auto");
  /** Of the last part; what is before it has been read. */
  let start = 0;
  let end = 0;
  let part: readonly Item[] = [];
  let count = 0;

  /** As much as there is room for, but at least one step. */
  async function findEnd(front: readonly Item[]): Promise<number> {
    const rest = items.slice(start);
    if (surelyFits(front.concat(rest), fixed, room)) return items.length;
    const countText = await readCount();
    const taken = countItems(front, fixed, countText);
    const left = room - taken;
    const steps = ends.filter((each) => each > start).length;
    const most = maxParts - count;
    // Before anyone pays for the first of too many parts.
    if (steps > most && countItems(rest, [], countText) > left * most) throw tooManyParts(itemsParam);
    let last = start;
    let tokens = 0;
    for (const next of ends) {
      tokens += countItems(items.slice(last, next), [], countText);
      if (tokens > left && last > start) break;
      // Some servers would drop its beginning without a word.
      if (tokens > window - taken)
        throw tooLong(window, { itemsParam }, "A single message of it is too long: send less.");
      last = Math.max(last, next);
    }
    return last;
  }

  return {
    async next(known) {
      start = end;
      if (start === items.length) return undefined;
      const front = items.slice(0, start).filter(isSteering).concat(known);
      end = await findEnd(front);
      part = front.concat(items.slice(start, end));
      count += 1;
      return part;
    },
    async shorten(refusal) {
      if (!isTooLong(refusal)) throw refusal;
      const told = roomTold(refusal, settings);
      if (told <= 0 || end === ends.find((each) => each > start)) throw refusal;
      const refused = countItems(part, fixed, await readCount());
      room = told < refused ? told : Math.floor(refused / 2);
      end = start;
      count -= 1;
    },
  };
}

const maxParts = 16;

function tooManyParts(param: string): GatewayError {
  return new GatewayError(
    "context_length_exceeded",
    `This conversation is too long to be compacted, even in ${maxParts} parts. Send less of it.`,
    { param },
  );
}
