/** What the model sees, and what is kept of a request: the path where the gateway remembers, what no client can carry where it does not. */
import type { History } from "./history.ts";
import { isInstruction, type Item, type ToolCall, type ToolOutput } from "./item.ts";
import { pair } from "./pair.ts";
import type { Found, Maker, Place } from "./place.ts";

/** A stored turn on the path to a request: what was new in it, and what was answered. */
export interface Step {
  readonly input: readonly Item[];
  readonly answer: readonly Item[];
}

export interface Shown {
  readonly items: readonly Item[];
  readonly itemsParam: string;
  /** The request names what it continues: then a call that nobody answered is an error. */
  readonly isNamed: boolean;
}

export function toContext(
  asked: Shown,
  history: History,
  place: Place,
  found: Found,
  path: readonly Step[],
): readonly Item[] {
  const { items, isNamed } = asked;
  if (!place.remembers) return pair(withReasoning(withCalls(items, history, found, []), history, found), asked);
  const rules = { ...asked, path };
  const told = toTalk(path);
  const fresh = withCalls(place.from === 0 ? items : items.slice(place.from), history, found, told);
  if (isNamed) return pair(withoutOldReasoning([...told, ...fresh]), rules);
  const own = items.filter(isInstruction);
  const inherited = own.length > 0 ? own : latestInstructions(path);
  const talk = [...told, ...fresh].filter((item) => !isInstruction(item));
  return pair(withoutOldReasoning([...inherited, ...talk]), rules);
}

/** What was said on a path. A summary that a model made stands for all before it, but for what steers the model. */
function toTalk(path: readonly Step[]): readonly Item[] {
  const said = ({ input, answer }: Step): readonly Item[] => [...input, ...answer];
  const at = path.findLastIndex(({ answer }) => answer.some(isCompaction));
  const summed = path[at];
  if (summed === undefined) return path.flatMap(said);
  const steering = path.slice(0, at + 1).flatMap(({ input }) => input.filter(isInstruction));
  const summary = summed.answer.slice(summed.answer.findLastIndex(isCompaction));
  return [...steering, ...summary, ...path.slice(at + 1).flatMap(said)];
}

const isCompaction = ({ type }: Item): boolean => type === "compaction";

/** What is kept of a request: what is new in it, the instructions it came with, and the calls that a window cut off. */
export function toKept(items: readonly Item[], history: History, place: Place, found: Found): readonly Item[] {
  const { from } = place;
  const kept = from === 0 ? items : [...items.slice(0, from).filter(isInstruction), ...items.slice(from)];
  return place.remembers ? kept : withCalls(kept, history, found, []);
}

function latestInstructions(path: readonly Step[]): readonly Item[] {
  return path.findLast(({ input }) => input.some(isInstruction))?.input.filter(isInstruction) ?? [];
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
    const call = callOf(makers, item);
    return call === undefined ? [item] : [call, item];
  });
}

function callOf(makers: Found["makers"], { callId }: ToolOutput): ToolCall | undefined {
  return makers
    .get(callId)
    ?.answer.find((item): item is ToolCall => item.type === "tool-call" && item.callId === callId);
}

/** Inside a tool loop the model needs its own reasoning again, which no chat client can carry: it stands before its call. */
function withReasoning(items: readonly Item[], history: History, { makers }: Found): readonly Item[] {
  if (makers.size === 0) return items;
  const running = new Set(history.running.map(({ callId }) => callId));
  const shown: Item[] = [];
  for (const [index, item] of items.entries()) {
    const maker = item.type === "tool-call" && running.has(item.callId) ? makers.get(item.callId) : undefined;
    const isThere = items[index - 1]?.type === "reasoning";
    if (item.type !== "tool-call" || maker === undefined || isThere) {
      shown.push(item);
      continue;
    }
    // The words of the same answer stand behind the reasoning that led to them.
    const words = shown.splice(shown.findLastIndex((before) => !isWord(before)) + 1);
    shown.push(...reasoningBefore(item.callId, maker), ...words, signed(item, maker));
  }
  return shown;
}

const isWord = (item: Item): boolean => item.type === "message" && item.role === "assistant";

/** Directly before the call: what stands before another call belongs to that. */
function reasoningBefore(callId: string, { answer }: Maker): readonly Item[] {
  const at = answer.findIndex((item) => item.type === "tool-call" && item.callId === callId);
  const reasons: Item[] = [];
  for (let index = at - 1; index >= 0; index--) {
    const item = answer[index];
    if (item?.type === "tool-call") break;
    if (item?.type === "reasoning") reasons.unshift(item);
  }
  // A signature may have come late.
  const next = answer[at + 1];
  return next?.type === "reasoning" && next.text === "" ? [...reasons, next] : reasons;
}

/** The call with the fields in which its dialect signed it, as far as the client did not carry them. */
function signed(call: ToolCall, { answer }: Maker): ToolCall {
  if (call.extra !== undefined) return call;
  const made = answer.find((item) => item.type === "tool-call" && item.callId === call.callId);
  return made?.type === "tool-call" && made.extra !== undefined ? { ...call, extra: made.extra } : call;
}

/** Reasoning is for the tool loop in which it was said: behind the last words of a person. */
function withoutOldReasoning(items: readonly Item[]): readonly Item[] {
  const lastWords = items.findLastIndex((item) => item.type === "message" && item.role === "user");
  return items.filter((item, index) => item.type !== "reasoning" || index > lastWords);
}
