/** The calls of a path's newest answer, told from older ones: some models use the same ids in every answer. */
import { exchangeIds, exchangeOf, type Item } from "../item.ts";
import type { Path } from "./path.ts";
import { canonOfExchange, type Run, sideOf } from "./runs.ts";
import { answerOf, findAnswer, type Shown } from "./shown.ts";

export interface NewestCalls {
  /** The ids of those that still need an output. */
  readonly open: ReadonlySet<string>;
  /** Whether the newest call of its id is written like the shown one. */
  isLike(shown: Item): boolean;
  /** Of a turn's calls with one id, that which is written like the shown one is meant, else the newest. */
  has(shown: Item): boolean;
  /** It is an output with the id of one that still needs it. */
  needs(item: Item): boolean;
  /** Whether the items have an output of theirs. Its own call, if that is shown before it, says which one is meant. */
  areAnswered(items: readonly Item[]): boolean;
}

export function newestCalls(path: Path): NewestCalls {
  const answer = answerOf(path.tip);
  const open = openCalls(answer);
  const byId = callsById(answer);
  let newer: ReadonlySet<string> | undefined;
  let older: ReadonlySet<string> | undefined;

  function isLike(shown: Item): boolean {
    const call = isCall(shown) ? byId.get(idOf(shown))?.at(-1) : undefined;
    if (call === undefined || isSameWriting(call, shown)) return call !== undefined;
    // Many may be compared with a long one, so it is read once.
    newer ??= toCanons(answer);
    return newer.has(toCanon(shown));
  }

  function has(shown: Item): boolean {
    if (isLike(shown)) return true;
    if (!isCall(shown) || !byId.has(idOf(shown))) return false;
    // Few are not written alike, and a turn may have many steps.
    older ??= toCanons(stepsOf(path).slice(0, -answer.length));
    return !older.has(toCanon(shown));
  }

  function needs(item: Item): boolean {
    const exchange = exchangeOf(item);
    return exchange?.side === "tools" && open.has(exchange.id);
  }

  return {
    open,
    isLike,
    has,
    needs,
    areAnswered(items) {
      if (open.size === 0) return false;
      const given = new Set<string>();
      for (const item of items.toReversed()) {
        const { side, id = "" } = exchangeOf(item) ?? {};
        if (needs(item)) given.add(id);
        if (side === "model" && given.delete(id) && has(item)) return true;
      }
      return given.size > 0;
    },
  };
}

/** The ids of what an answer calls for, except what the model's server ran itself: the answer has its output. */
export function openCalls(answer: readonly Item[]): ReadonlySet<string> {
  return exchangeIds(answer, "model").difference(exchangeIds(answer, "tools"));
}

export function callsById(answer: readonly Item[]): Map<string | undefined, Item[]> {
  return Map.groupBy(answer.filter(isCall), (call) => exchangeOf(call)?.id);
}

/** The model's last shown words include calls that are still open, and all of their calls are of the newest answer. */
export function namesCall(shown: Shown, path: Path): boolean {
  const { open, has } = newestCalls(path);
  const calls = lastCalls(shown);
  return calls.some((call) => open.has(idOf(call))) && calls.every(has);
}

/** The same calls are written like those of the newest answer. */
export function repeatsCalls(shown: Shown, path: Path): boolean {
  return lastCalls(shown).every(newestCalls(path).isLike);
}

function lastCalls({ items, end }: Shown): readonly Item[] {
  return items.slice(findAnswer(items, end), end).filter(isCall);
}

function isSameWriting(one: Item, other: Item): boolean {
  if (one.type !== "tool-call" || other.type !== "tool-call") return false;
  return one.name === other.name && one.arguments === other.arguments;
}

function isCall(item: Item): boolean {
  return exchangeOf(item)?.side === "model";
}

function idOf(item: Item): string {
  return exchangeOf(item)?.id ?? "";
}

function toCanons(items: readonly Item[]): ReadonlySet<string> {
  return new Set(items.filter(isCall).map(toCanon));
}

function toCanon(call: Item): string {
  return JSON.stringify(canonOfExchange(call));
}

/** What was said since the last question; what is said after a tool's output still belongs to its turn. */
export function stepsOf({ talkLength, track: { talk } }: Path): readonly Item[] {
  let start = talkLength;
  let next: Run["side"] | undefined;
  for (let item = talk[start - 1]; item !== undefined; item = talk[start - 1]) {
    const side = sideOf(item);
    if (side === "model" && next === "caller") break;
    next = side ?? next;
    start -= 1;
  }
  return talk.slice(start, talkLength);
}
