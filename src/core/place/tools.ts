/** Tool calls and their outputs as models expect them: each output directly after its call. */
import { GatewayError } from "../errors.ts";
import { exchangeIds, exchangeOf, type Item, isSteering, type OtherItem, type ToolCall } from "../item.ts";
import { canonicalJson } from "./runs.ts";

/**
 * Moves a late output after its call, where models expect it, and leaves out what is already there; `open` calls, also
 * those that only their dialect knows, are unanswered.
 */
export function pairTools(items: readonly Item[]) {
  const { calls, others, aside } = readCalls(items);
  const given = exchangeIds(others, "tools");
  const open = new Set<Item>(others.filter(({ exchange }) => exchange?.side === "model" && !given.has(exchange.id)));
  let isLate = false;
  for (const [item, call] of calls) {
    if (call.given.size === 0) open.add(item);
    if (call.late.length > 0) isLate = true;
  }
  if (!isLate) return { items: aside.size === 0 ? items : items.filter((item) => !aside.has(item)), open };
  const paired: Item[] = [];
  let due: Item[] = [];
  let answer: number | undefined;
  for (const item of items) {
    if (aside.has(item)) continue;
    const call = calls.get(item);
    // The outputs of one answer's calls follow the last of them.
    if (call === undefined || call.answer !== answer) {
      for (const output of due) paired.push(output);
      due = [];
    }
    answer = call?.answer;
    paired.push(item);
    for (const output of call?.late ?? []) due.push(output);
  }
  return { items: paired.concat(due), open };
}

/** The id of an output whose call does not precede it. */
export function findStray(items: readonly Item[]): string | undefined {
  const called = new Set<string>();
  const calledInDialect = new Set<string>();
  for (const item of items) {
    const exchange = exchangeOf(item);
    if (exchange === undefined) continue;
    // Adapters of other dialects leave out the call, and a function's output would stand alone.
    const calls = item.type === "other" ? calledInDialect : called;
    if (exchange.side === "model") calls.add(exchange.id);
    else if (!calls.has(exchange.id)) return exchange.id;
  }
  return undefined;
}

/** Throws if there is such an output; `param` is the caller's name for the items. */
export function checkOutputs(items: readonly Item[], param: string): void {
  const stray = findStray(items);
  if (stray === undefined) return;
  const message = `No tool call found for function call output with call_id ${stray}.`;
  throw new GatewayError("tool_call_mismatch", message, { param });
}

/** How many of the items are in order, given that the first `settled` are. Anything open or odd ends the count. */
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

/** A call at its place: some models reuse the same ids in every answer. */
interface Call {
  readonly called: ToolCall;
  /** Which answer it is part of, and after which question. */
  readonly answer: number;
  readonly question: number;
  /** Its outputs so far. */
  readonly given: Set<string>;
  /** Outputs that came after the talk had moved on. */
  readonly late: Item[];
}

function readCalls(items: readonly Item[]) {
  const calls = new Map<Item, Call>();
  const others: OtherItem[] = [];
  /** What does not stay in place: late outputs, repeated outputs, calls resent with their output. */
  const aside = new Set<Item>();
  const byId = new Map<string, Call[]>();
  /** If an id recurs, the newest of the identical calls: comparing each with all of its id would take minutes. */
  const newest = new Map<string, Call>();
  let [answer, question] = [0, 0];
  let isAnswered = false;

  function findSame(call: ToolCall, [first, second]: readonly Call[]): Call | undefined {
    if (first !== undefined && second === undefined) newest.set(canonOfCall(first.called), first);
    return newest.get(canonOfCall(call));
  }

  for (const item of items) {
    const known = item.type === "tool-call" || item.type === "tool-output" ? byId.get(item.callId) : undefined;
    // A client resends the call with its output; after another question it is another call.
    const same = item.type === "tool-call" && known !== undefined ? findSame(item, known) : undefined;
    if (same?.given.size === 0 && same.question === question) {
      aside.add(item);
      continue;
    }
    // A question, an instruction or the model's next answer; words beside the calls of one answer do not count.
    const isQuestion = item.type === "message" && item.role === "user";
    const isAnswer = item.type === "tool-call" || (item.type === "message" && item.role === "assistant");
    const isBetween = isQuestion || isSteering(item);
    if (isBetween || (isAnswer && isAnswered)) answer += 1;
    if (isQuestion) question += 1;
    isAnswered = item.type === "tool-output" || (isAnswered && !isBetween && !isAnswer);
    if (item.type === "other") others.push(item);
    if (item.type === "tool-call") {
      const call: Call = { called: item, answer, question, given: new Set(), late: [] };
      calls.set(item, call);
      if (known === undefined) byId.set(item.callId, [call]);
      else {
        known.push(call);
        newest.set(canonOfCall(item), call);
      }
    }
    if (item.type !== "tool-output") continue;
    const call = callOf(known, answer);
    if (call === undefined) continue;
    const said = JSON.stringify(item.output);
    if (call.given.has(said)) aside.add(item);
    else {
      call.given.add(said);
      if (call.answer === answer) continue;
      call.late.push(item);
      aside.add(item);
    }
  }
  return { calls, others, aside };
}

/** What is called, however its arguments are written. */
function canonOfCall({ callId, name, group, arguments: written }: ToolCall): string {
  return JSON.stringify([callId, name, group, canonicalJson(written)]);
}

/** Among calls with one id, an output answers the first still open in this answer, else the newest. */
function callOf(calls: readonly Call[] | undefined, answer: number): Call | undefined {
  return calls?.find((call) => call.answer === answer && call.given.size === 0) ?? calls?.at(-1);
}
