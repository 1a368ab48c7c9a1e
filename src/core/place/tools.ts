/** Tool calls and their outputs as models expect them: each output directly after its call. */
import { GatewayError } from "../errors.ts";
import { exchangeOf, type Item, isSteering, type ToolCall } from "../item.ts";
import { canonicalJson } from "./runs.ts";

export interface Pairs {
  /** Each output after its call. */
  readonly items: readonly Item[];
  /** Unanswered calls, also those that only their dialect knows. */
  readonly open: ReadonlySet<Item>;
  /** Outputs whose call does not precede them. */
  readonly strays: ReadonlySet<Item>;
}

/** Moves a late output after its call, where models expect it, and leaves out what is already there. */
export function pairTools(items: readonly Item[]): Pairs {
  const { calls, open, strays, aside } = readCalls(items);
  if (!calls.values().some(({ late }) => late.length > 0))
    return { items: aside.size === 0 ? items : items.filter((item) => !aside.has(item)), open, strays };
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
  return { items: paired.concat(due), open, strays };
}

/** Throws if there are any; `param` is the caller's name for the items. */
export function checkOutputs(strays: Pairs["strays"], param: string): void {
  const [stray] = strays;
  if (stray === undefined) return;
  const message = `No tool call found for function call output with call_id ${exchangeOf(stray)?.id}.`;
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
    if (item?.type === "tool-call" && open.has(item.callId)) return length;
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

/** Calls with one id. */
interface Namesakes {
  readonly calls: Call[];
  /** The first of those in the newest answer that has no output yet: there may be thousands. */
  next: number;
}

function readCalls(items: readonly Item[]) {
  const calls = new Map<Item, Call>();
  const open = new Set<Item>();
  const strays = new Set<Item>();
  /** Adapters of other dialects leave these out, and a function's output would stand alone. */
  const hosted = new Map<string, Item>();
  /** What does not stay in place: late outputs, repeated outputs, calls resent with their output. */
  const aside = new Set<Item>();
  const byId = new Map<string, Namesakes>();
  /** If an id recurs, the newest of the identical calls: comparing each with all of its id would take minutes. */
  const newest = new Map<string, Call>();
  let [answer, question] = [0, 0];
  let isAnswered = false;

  function findSame(call: ToolCall, { calls: [first, second] }: Namesakes): Call | undefined {
    if (first !== undefined && second === undefined) newest.set(canonOfCall(first.called), first);
    return newest.get(canonOfCall(call));
  }

  for (const item of items) {
    const known = item.type === "tool-call" || item.type === "tool-output" ? byId.get(item.callId) : undefined;
    // A client resends the call with its output; after another question it is another call.
    const same = item.type === "tool-call" && known !== undefined ? findSame(item, known) : undefined;
    if (same !== undefined && open.has(same.called) && same.question === question) {
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
    const exchange = item.type === "other" ? item.exchange : undefined;
    if (exchange?.side === "model") {
      hosted.set(exchange.id, item);
      open.add(item);
    } else if (exchange !== undefined) {
      const call = hosted.get(exchange.id);
      if (call === undefined) strays.add(item);
      else open.delete(call);
    }
    if (item.type === "tool-call") {
      open.add(item);
      const call: Call = { called: item, answer, question, given: new Set(), late: [] };
      calls.set(item, call);
      if (known === undefined) byId.set(item.callId, { calls: [call], next: 0 });
      else {
        if (known.calls.at(-1)?.answer !== answer) known.next = known.calls.length;
        known.calls.push(call);
        newest.set(canonOfCall(item), call);
      }
    }
    if (item.type !== "tool-output") continue;
    const call = known && nextCall(known, answer);
    if (call === undefined) {
      strays.add(item);
      continue;
    }
    open.delete(call.called);
    const said = JSON.stringify(item.output);
    if (call.given.has(said)) aside.add(item);
    else {
      call.given.add(said);
      if (call.answer === answer) continue;
      call.late.push(item);
      aside.add(item);
    }
  }
  return { calls, open, strays, aside };
}

/** What is called, however its arguments are written. */
function canonOfCall({ callId, name, group, arguments: written }: ToolCall): string {
  return JSON.stringify([callId, name, group, canonicalJson(written)]);
}

/** Among calls with one id, an output answers the first still open in this answer, else the newest. */
function nextCall(known: Namesakes, answer: number): Call | undefined {
  const { calls, next } = known;
  const newest = calls.at(-1);
  if (newest?.answer !== answer) return newest;
  known.next += 1;
  return calls[next] ?? newest;
}
