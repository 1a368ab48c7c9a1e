/** What the model sees, and what is kept of a request: the path where the gateway remembers, what no client can carry where it does not. */
import type { History } from "./history.ts";
import { isInstruction, type Item } from "./item.ts";
import { pair, type Rules, type Step } from "./pair.ts";
import type { Found, Place } from "./place.ts";

export function toContext(
  asked: Rules & { readonly items: readonly Item[]; readonly isInstructed: boolean },
  history: History,
  place: Place,
  found: Found,
  path: readonly Step[],
): readonly Item[] {
  const { items, isNamed, isInstructed } = asked;
  if (!place.remembers || place.parent === undefined)
    return pair(withReasoning(withCalls(items, history, found, []), history, found), asked);
  const rules = { ...asked, path };
  const told = toTalk(path);
  const fresh = withCalls(place.from === 0 ? items : items.slice(place.from), history, found, told);
  if (isNamed) return pair(withoutOldReasoning([...told, ...fresh]), rules);
  const instructing = path.findLast(({ input }) => input.some(isInstruction))?.input ?? [];
  const instructed = isInstructed || items.some(isInstruction) ? items : instructing;
  const talk = [...told, ...fresh].filter((item) => !isInstruction(item));
  return pair(withoutOldReasoning([...instructed.filter(isInstruction), ...talk]), rules);
}

/** What was said on a path. A summary that a model made stands for all before it, but for what steers the model. */
function toTalk(path: readonly Step[]): readonly Item[] {
  const at = path.findLastIndex(({ answer }) => answer.some(isCompaction));
  const summed = path[at];
  if (summed === undefined) return path.flatMap(said);
  const steering = path.slice(0, at + 1).flatMap(({ input }) => input.filter(isInstruction));
  const summary = summed.answer.slice(summed.answer.findLastIndex(isCompaction));
  return [...steering, ...summary, ...path.slice(at + 1).flatMap(said)];
}

const said = ({ input, answer }: Step): readonly Item[] => [...input, ...answer];
const isCompaction = ({ type }: Item): boolean => type === "compaction";

/** What is kept of a request: what is new in it, the instructions it came with, and the calls that a window cut off. */
export function toKept(items: readonly Item[], history: History, place: Place, found: Found): readonly Item[] {
  const { from } = place;
  const kept = from === 0 ? items : [...items.slice(0, from).filter(isInstruction), ...items.slice(from)];
  return place.remembers ? kept : withCalls(kept, history, found, []);
}

/**
 * A window may cut between a call and its output: the call comes back from its maker, for no model takes an output alone.
 * `told` is what stands in front: a call that is there needs no second one.
 */
function withCalls(
  items: readonly Item[],
  { orphans }: History,
  { makers }: Found,
  told: readonly Item[],
): readonly Item[] {
  if (orphans.size === 0 || makers.size === 0) return items;
  const there = new Set(told.flatMap((item) => (item.type === "tool-call" ? [item.callId] : [])));
  return items.flatMap((item) => {
    if (item.type !== "tool-output" || !orphans.has(item) || there.has(item.callId)) return [item];
    const made = madeBy(makers, item.callId);
    return made === undefined ? [item] : [made.call, item];
  });
}

/** Inside a tool loop the model needs its own reasoning again, which no chat client can carry: it stands before its call. */
function withReasoning(items: readonly Item[], history: History, { makers }: Found): readonly Item[] {
  if (makers.size === 0) return items;
  const running = new Set(history.running.map(({ callId }) => callId));
  const shown: Item[] = [];
  for (const [index, item] of items.entries()) {
    const isThere = items[index - 1]?.type === "reasoning";
    const isRunning = item.type === "tool-call" && running.has(item.callId);
    const made = isRunning && !isThere ? madeBy(makers, item.callId) : undefined;
    if (item.type !== "tool-call" || made === undefined) {
      shown.push(item);
      continue;
    }
    // The words of the same answer stand behind the reasoning that led to them.
    const words = shown.splice(shown.findLastIndex((before) => !isWord(before)) + 1);
    // The fields in which its dialect signed the call, as far as the client did not carry them.
    shown.push(...made.reasons, ...words, { ...item, extra: item.extra ?? made.call.extra });
  }
  return shown;
}

const isWord = (item: Item): boolean => item.type === "message" && item.role === "assistant";

/** A call as it was made, with the reasoning directly before it: what stands before another call belongs to that. */
function madeBy(makers: Found["makers"], callId: string) {
  const { answer = [] } = makers.get(callId) ?? {};
  const at = answer.findIndex((item) => item.type === "tool-call" && item.callId === callId);
  const call = answer[at];
  if (call?.type !== "tool-call") return undefined;
  const from = answer.slice(0, at).findLastIndex(({ type }) => type === "tool-call") + 1;
  const reasons = answer.slice(from, at).filter(({ type }) => type === "reasoning");
  // A signature may have come late.
  const next = answer[at + 1];
  return { call, reasons: next?.type === "reasoning" && next.text === "" ? [...reasons, next] : reasons };
}

/** Reasoning is for the tool loop in which it was said: behind the last words of a person. */
function withoutOldReasoning(items: readonly Item[]): readonly Item[] {
  const lastWords = items.findLastIndex((item) => item.type === "message" && item.role === "user");
  return items.filter((item, index) => item.type !== "reasoning" || index > lastWords);
}
