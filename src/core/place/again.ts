/** Leaves out what a caller resends, beside what is new, of a path that it continues. */
import { exchangeIds, exchangeOf, type Item, isSteering } from "../item.ts";
import { type NewestCalls, newestCalls, stepsOf } from "./calls.ts";
import { joinCalls } from "./joined-calls.ts";
import { type Path, talkFrom, turnsOf } from "./path.ts";
import { isWord, questionsOf, sideOf, toSegments, wordsOf } from "./runs.ts";
import { readShown, skipReasoning } from "./shown.ts";

/**
 * The new items of a caller that shows no history: it may repeat a question that was answered without a word, since it
 * has no answer to show, or resend what belongs to its newest turn.
 */
export function withoutKnown(items: readonly Item[], path: Path): readonly Item[] {
  return withoutUnanswered(withoutRepeat(items, path), path);
}

/** A question repeated alone is meant. */
function withoutUnanswered(items: readonly Item[], path: Path): readonly Item[] {
  // Most questions were answered, and the talk may be long.
  if (path.tip === undefined || path.tip.output.some(isWord)) return items;
  const talk = talkFrom(path, 0);
  const asked = talk.slice(talk.findLastIndex((item) => sideOf(item) !== "caller" && isWord(item)) + 1);
  let left = asked.map(askedWords).join("");
  if (left === "") return items;
  const own = items.filter((item) => sideOf(item) !== undefined);
  const known = new Set<Item>();
  // It may split its messages differently now.
  for (const item of own) {
    if (left === "") break;
    const words = askedWords(item);
    if (words === undefined || !left.startsWith(words)) return items;
    left = left.slice(words.length);
    known.add(item);
  }
  if (known.size === own.length) return items;
  // Reasoning may stand between the question and what is new.
  return items.filter((item) => !known.has(item) && item.type !== "reasoning");
}

/** A message's words without whitespace. */
function askedWords(item: Item): string | undefined {
  return item.type === "message" ? wordsOf(item.content).replaceAll(/\s+/g, "") : undefined;
}

/**
 * The new items of a request that answers the newest calls: some clients resend, with every step of a turn, its
 * question and instructions, what the model said since, and the outputs already given.
 */
export function withoutRepeat(sent: readonly Item[], path: Path): readonly Item[] {
  const newest = newestCalls(path);
  if (!newest.areAnswered(sent) || isAllNew(sent, newest)) return sent;
  const { items } = joinCalls(readShown(sent), path);
  const turn = stepsOf(path);
  const called = items.findLastIndex(newest.has);
  const fresh = items.findIndex((item, index) => index > called && newest.needs(item));
  const before = fresh === -1 ? items : items.slice(0, fresh);
  const repeated = stepsAgain(before, items, turn);
  if (repeated.values().some((item) => sideOf(item) === "caller"))
    for (const item of instructionsAgain(before, path)) repeated.add(item);
  const said = items.findLastIndex((item) => repeated.has(item) && sideOf(item) === "model") + 1;
  if (said > 0) for (const item of items.slice(said, skipReasoning(items, said, path))) repeated.add(item);
  const rest = items.filter((item) => !repeated.has(item));
  // A call that stays needs its output.
  const given = exchangeIds(turn, "tools").difference(newest.open).difference(exchangeIds(rest, "model"));
  return withoutResults(items, (item) => {
    const exchange = exchangeOf(item);
    return repeated.has(item) || (exchange?.side === "tools" && given.has(exchange.id));
  });
}

/** Most send only outputs, and what is said after them; and a turn may be long. */
function isAllNew(sent: readonly Item[], { needs }: NewestCalls): boolean {
  const first = sent.find((item) => sideOf(item) !== undefined);
  if (first === undefined || !needs(first)) return false;
  return sent.every((item) => needs(item) || ["caller", undefined].includes(sideOf(item)));
}

/** Reasoning goes with its result, and so does a compaction before it. */
function withoutResults(items: readonly Item[], isOld: (item: Item) => boolean): readonly Item[] {
  let goes = false;
  const kept = items.toReversed().filter((item) => {
    if (!standsBefore(item)) goes = isOld(item);
    return !goes && !isOld(item);
  });
  return kept.toReversed();
}

/** It belongs to what follows it. */
function standsBefore({ type }: Item): boolean {
  return type === "reasoning" || type === "compaction";
}

/** System messages already in the path. */
function instructionsAgain(items: readonly Item[], path: Path): readonly Item[] {
  const again = items.filter(isSteering);
  if (again.length === 0) return again;
  const known = new Set(turnsOf(path).flatMap(({ input }) => input.filter(isSteering).map(toKnown)));
  return again.filter((item) => known.has(toKnown(item)));
}

/**
 * What was said and given in the turn, resent before its newest calls. A caller may insert words; whatever follows
 * something else that is new is new.
 */
function stepsAgain(before: readonly Item[], items: readonly Item[], turn: readonly Item[]): Set<Item> {
  const asked = new Set(questionsOf(turn));
  const known = turn.map(toKnown);
  const given = exchangeIds(turn, "tools");
  // No two hosted calls have the same id, so they are known wherever they are shown.
  const hosted = new Set(
    turn.flatMap((item) => (item.type === "other" && sideOf(item) === "model" ? toKnown(item) : [])),
  );
  const again = new Set(items.filter((item) => hosted.has(toKnown(item))));
  let at = 0;
  for (const { side, items: said } of toSegments(before)) {
    if (side === "caller" && !questionsOf(said).every((question) => asked.has(question))) continue;
    for (const item of said) {
      if (again.has(item)) continue;
      // Parallel outputs have no order.
      if (side === "tools" && !given.has(exchangeOf(item)?.id ?? "")) return again;
      if (side === "model") {
        at = known.indexOf(toKnown(item), at) + 1;
        if (at === 0) return again;
      }
      again.add(item);
    }
  }
  return again;
}

/** What identifies a repeated item; an output only by its call, since a client may show less of it by then. */
function toKnown(item: Item): string {
  const exchange = exchangeOf(item);
  if (exchange !== undefined) return JSON.stringify([exchange.id, exchange.side]);
  return item.type === "message" ? JSON.stringify([item.role, wordsOf(item.content).trim(), "said"]) : "";
}
