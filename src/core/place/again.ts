/** Leaves out what a caller resends, beside what is new, of a path that it continues. */
import { exchangeIds, exchangeOf, type Item, isSteering } from "../item.ts";
import { openCalls } from "./calls.ts";
import { type Path, talkFrom, turnsOf } from "./path.ts";
import { isWord, sideOf, toRuns, toSegments, wordsOf } from "./runs.ts";
import { skipReasoning } from "./shown.ts";

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
export function withoutRepeat(items: readonly Item[], path: Path): readonly Item[] {
  const open = openCalls(path.tip?.output ?? []);
  if (open.isDisjointFrom(exchangeIds(items, "tools"))) return items;
  const first = items.findIndex((item) => sideOf(item) === "tools");
  const asked = items.slice(0, first).filter((item) => sideOf(item) === "caller");
  const isOld = (item: Item) => {
    const exchange = exchangeOf(item);
    return exchange?.side === "model" || (exchange !== undefined && !open.has(exchange.id));
  };
  // Most send only what is new, and a turn may be long.
  if (asked.length === 0 && !items.some(isOld)) return items;
  const turn = stepsOf(path);
  // Only the question of a turn is read: its outputs may be long.
  const [question] = toSegments(turn);
  const isAskedAgain = asked.length > 0 && toRuns(asked)[0]?.canon === toRuns(question?.items ?? [])[0]?.canon;
  const repeated = new Set(isAskedAgain ? [...asked, ...instructionsAgain(items.slice(0, first), path)] : []);
  for (const item of stepsAgain(items, turn, open)) repeated.add(item);
  const said = items.findLastIndex((item) => repeated.has(item) && sideOf(item) === "model") + 1;
  if (said > 0) for (const item of items.slice(said, skipReasoning(items, said, path))) repeated.add(item);
  // A call that stays needs its output.
  const called = exchangeIds(
    items.filter((item) => !repeated.has(item)),
    "model",
  );
  const given = exchangeIds(turn, "tools").difference(open).difference(called);
  const isKept = (item: Item) => {
    const exchange = exchangeOf(item);
    return !repeated.has(item) && !(exchange?.side === "tools" && given.has(exchange.id));
  };
  // Other reasoning goes with its result, and so does a compaction before it.
  const toResult = (item: Item, index: number) =>
    standsBefore(item) ? (items.slice(index).find((next) => !standsBefore(next)) ?? item) : item;
  return items.filter((item, index) => !repeated.has(item) && isKept(toResult(item, index)));
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
 * What the model said and was given in the turn, resent with its newest calls; whatever follows something new is new, as
 * is what these calls are given: the model may have used their ids before.
 */
function stepsAgain(items: readonly Item[], turn: readonly Item[], open: ReadonlySet<string>): readonly Item[] {
  const last = items.findLastIndex((item) => {
    const exchange = exchangeOf(item);
    return exchange?.side === "model" && open.has(exchange.id);
  });
  if (last === -1) return [];
  const given = items.findIndex((item, index) => index > last && sideOf(item) === "tools");
  const known = turn.map(toKnown);
  // No two hosted calls have the same id, so they are known wherever they are shown.
  const hosted = new Set(
    turn.flatMap((item) => (item.type === "other" && sideOf(item) === "model" ? toKnown(item) : [])),
  );
  const called = new Set(items.filter((item) => hosted.has(toKnown(item))));
  const again = [...called];
  let at = 0;
  for (const item of items.slice(0, given === -1 ? items.length : given)) {
    if (called.has(item) || !["model", "tools"].includes(sideOf(item) ?? "")) continue;
    const found = known.indexOf(toKnown(item), at);
    if (found === -1) break;
    again.push(item);
    at = found + 1;
  }
  return again;
}

/** What identifies a repeated item; an output only by its call, since a client may show less of it by then. */
function toKnown(item: Item): string {
  const exchange = exchangeOf(item);
  if (exchange !== undefined) return JSON.stringify([exchange.id, exchange.side]);
  return item.type === "message" ? JSON.stringify([item.role, wordsOf(item.content).trim(), "said"]) : "";
}

/** What was said from the last question on. */
function stepsOf(path: Path): readonly Item[] {
  const talk = talkFrom(path, 0);
  const last = talk.findLastIndex((item) => sideOf(item) === "caller");
  const before = talk.findLastIndex((item, index) => index < last && !["caller", undefined].includes(sideOf(item)));
  return talk.slice(before + 1);
}
