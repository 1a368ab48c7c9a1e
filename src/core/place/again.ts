/** What a caller sends again, beside what is new, of a path that it goes on with: it is left out. */
import { type Item, isSteering } from "../item.ts";
import { type Path, talkFrom, turnsOf } from "./path.ts";
import { canonOf, isWord, sideOf, toRuns } from "./runs.ts";
import { callIdsOf } from "./shown.ts";

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
  let left = asked.map((item) => askedWords(item) ?? "").join("");
  if (left === "") return items;
  const own = items.filter((item) => sideOf(item) !== undefined);
  const known = new Set<Item>();
  // It may cut its messages otherwise than before.
  for (const item of own) {
    if (left === "") break;
    const words = askedWords(item);
    if (words === undefined || !left.startsWith(words)) return items;
    left = left.slice(words.length);
    known.add(item);
  }
  if (left !== "" || known.size === own.length) return items;
  // Its thoughts may stand between what was asked and what is new.
  return items.filter((item) => !known.has(item) && item.type !== "reasoning");
}

/** What a user says, without any blanks. */
function askedWords(item: Item): string | undefined {
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
