/** Calls of tools and their outputs, as models expect to see them: each output right behind its call. */
import type { Exchange, Item, OtherItem } from "../item.ts";

/** What is called and what is answered among the items, by the ids of the calls. */
export interface Calls {
  readonly called: ReadonlySet<string>;
  readonly answered: ReadonlySet<string>;
  /** An output whose call does not stand before it. */
  readonly stray: string | undefined;
}

export function findCalls(items: readonly Item[]): Calls {
  const called = new Set<string>();
  const answered = new Set<string>();
  for (const item of items) {
    if (item.type === "tool-call") called.add(item.callId);
    if (item.type !== "tool-output") continue;
    if (!called.has(item.callId)) return { called, answered, stray: item.callId };
    answered.add(item.callId);
  }
  return { called, answered, stray: undefined };
}

/** How many of the items stand as they should, when so many of them do. What is open or odd ends it, and all behind it. */
export function settledLength(items: readonly Item[], settled: number): number {
  const open = new Set<string>();
  let length = settled;
  let isAnswered = false;
  for (let index = settled; index < items.length; index += 1) {
    const item = items[index];
    if (item?.type === "other" && item.exchange !== undefined) return length;
    if (item?.type === "tool-output" && !open.delete(item.callId)) return length;
    if (item?.type === "tool-call" || item?.type === "message") {
      if (open.size > 0 && (isAnswered || (item.type === "message" && item.role !== "assistant"))) return length;
      isAnswered = false;
    }
    if (item?.type === "tool-call") open.add(item.callId);
    if (item?.type === "tool-output") isAnswered = true;
    if (open.size === 0) length = index + 1;
  }
  return length;
}

/** Leaves out calls that nobody answered. */
export function withoutOpen(items: readonly Item[], answered: ReadonlySet<string>): readonly Item[] {
  const given = new Set<string | undefined>();
  for (const item of items) if (item.type === "other") given.add(exchangedBy(item, "tools"));
  const isOpen = (item: Item): boolean => {
    if (item.type === "tool-call") return !answered.has(item.callId);
    const id = item.type === "other" ? exchangedBy(item, "model") : undefined;
    return id !== undefined && !given.has(id);
  };
  return items.some(isOpen) ? items.filter((item) => !isOpen(item)) : items;
}

/** Puts an output that came late behind its call, where models expect it, and leaves out what stands there already. */
export function pairTools(items: readonly Item[]): readonly Item[] {
  const { late, again, answerOf } = findLateOutputs(items);
  if (late.size === 0) return again.size === 0 ? items : items.filter((item) => !again.has(item));
  const paired: Item[] = [];
  let due: Item[] = [];
  let answer: number | undefined;
  for (const item of items) {
    if (again.has(item) || (item.type === "tool-output" && late.get(item.callId)?.includes(item))) continue;
    const next = item.type === "tool-call" ? answerOf.get(item.callId) : undefined;
    // The outputs of one answer's calls stand behind the last of them.
    if (next === undefined || next !== answer) {
      for (const output of due) paired.push(output);
      due = [];
    }
    answer = next;
    paired.push(item);
    if (item.type === "tool-call") for (const output of late.get(item.callId) ?? []) due.push(output);
  }
  return paired.concat(due);
}

function exchangedBy({ exchange }: OtherItem, side: Exchange["side"]): string | undefined {
  return exchange?.side === side ? exchange.id : undefined;
}

interface Lateness {
  /** Outputs that came after the talk had gone on without them, by the ids of their calls. */
  readonly late: ReadonlyMap<string, readonly Item[]>;
  /** Outputs that say once more what was given for the same call, and calls that are sent along with their output. */
  readonly again: ReadonlySet<Item>;
  /** Which answer each call is part of. */
  readonly answerOf: ReadonlyMap<string, number>;
}

function findLateOutputs(items: readonly Item[]): Lateness {
  const talkAtCall = new Map<string, number>();
  const late = new Map<string, Item[]>();
  const again = new Set<Item>();
  const given = new Map<string, string>();
  /** Calls without an output yet; some clients use the id of one that has its output again. */
  const open = new Map<string, string>();
  let talk = 0;
  let isAnswered = false;
  for (const item of items) {
    if (item.type === "tool-call") {
      const called = JSON.stringify([item.name, item.group, item.arguments]);
      if (open.get(item.callId) === called) {
        again.add(item);
        continue;
      }
      open.set(item.callId, called);
    }
    // A question, or the next answer of the model: words beside the calls of one answer do not count.
    const isQuestion = item.type === "message" && item.role === "user";
    const isAnswer = item.type === "tool-call" || (item.type === "message" && item.role === "assistant");
    if (isQuestion || (isAnswer && isAnswered)) talk++;
    isAnswered = item.type === "tool-output" || (isAnswered && !isQuestion && !isAnswer);
    if (item.type === "tool-call") talkAtCall.set(item.callId, talk);
    if (item.type !== "tool-output") continue;
    open.delete(item.callId);
    const said = JSON.stringify(item.output);
    if (given.get(item.callId) === said) {
      again.add(item);
      continue;
    }
    given.set(item.callId, said);
    if (talkAtCall.get(item.callId) === talk) continue;
    late.set(item.callId, [...(late.get(item.callId) ?? []), item]);
  }
  return { late, again, answerOf: talkAtCall };
}
