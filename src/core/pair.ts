/** The hygiene of calls and outputs, in linear time: every output stands behind its call, and no model sees half a pair. */
import { GatewayError } from "./errors.ts";
import type { Item, OtherItem } from "./item.ts";

/** A stored turn on the path to a request: what was new in it, and what was answered. */
export interface Step {
  readonly input: readonly Item[];
  readonly answer: readonly Item[];
}

export interface Rules {
  readonly itemsParam: string;
  /** The request names what it continues: then a call that nobody answered is an error, elsewhere it is left out. */
  readonly isNamed: boolean;
  /** What is remembered: halves of it that a deletion left over are left out. */
  readonly path?: readonly Step[] | undefined;
}

/** A call and its output are such a pair, and so is whatever else a dialect has of the kind. */
export function halfOf(item: Item): OtherItem["exchange"] {
  if (item.type === "tool-call") return { side: "model", id: item.callId };
  if (item.type === "tool-output") return { side: "tools", id: item.callId };
  return item.type === "other" ? item.exchange : undefined;
}

const isHalf = ({ type }: Item): boolean => type === "tool-call" || type === "tool-output" || type === "other";

export function pair(items: readonly Item[], rules: Rules): readonly Item[] {
  if (!items.some(isHalf)) return items;
  const { outputs, last, isRetried, isOld } = findOutputs(items, rules);
  const paired: Item[] = [];
  // One step: calls, then their outputs in the same order. Text between a call and its output belongs in front of both.
  let [words, calls, answers]: [Item[], Item[], Item[]] = [[], [], []];
  let isAnswered = false;

  function endStep(): void {
    paired.push(...words, ...calls, ...answers);
    [words, calls, answers] = [[], [], []];
    isAnswered = false;
  }

  for (const item of items) {
    const half = halfOf(item);
    if (half !== undefined && item.type === "other") {
      // Only its own dialect knows it, so it stays where its maker put it, who judges what need not be answered.
      if (half.side === "model" ? !outputs.has(item) && !rules.isNamed : !last.has(item)) continue;
      endStep();
      paired.push(item);
    } else if (half?.side === "tools") {
      isAnswered = true;
    } else if (half !== undefined) {
      const output = outputs.get(item);
      if (output === undefined && rules.isNamed && !isRetried && !isOld(item))
        throw mismatch(`No tool output found for function call ${half.id}.`, rules.itemsParam);
      if (output === undefined) continue;
      if (isAnswered) endStep();
      calls.push(item);
      answers.push(output);
    } else if (calls.length > 0 && !isAnswered && belongsInFront(item)) {
      words.push(item);
    } else {
      endStep();
      paired.push(item);
    }
  }
  endStep();
  return paired;
}

/** Words between a call and its output; and a signature that came late. */
function belongsInFront(item: Item): boolean {
  if (item.type === "reasoning") return item.text === "" && item.summary.length === 0 && item.encrypted === undefined;
  return item.type === "message" && item.role === "assistant";
}

function findOutputs(items: readonly Item[], { path = [], itemsParam }: Rules) {
  const isRemembered = createIsIn(path);
  let isRetried = false;
  const made = new Map<string, Item>();
  /** Of each call; ids that a model repeats belong each to the nearest call before. */
  const outputs = new Map<Item, Item>();
  for (const item of items) {
    const half = halfOf(item);
    if (half === undefined) continue;
    if (half.side === "model") {
      made.set(half.id, item);
      continue;
    }
    const call = made.get(half.id);
    if (call === undefined && isRemembered(item)) continue;
    if (call === undefined)
      throw mismatch(`No tool call found for function call output with call_id ${half.id}.`, itemsParam);
    isRetried ||= outputs.has(call);
    outputs.set(call, item);
  }
  return {
    outputs,
    /** Those that count, if a call is answered twice. */
    last: new Set(outputs.values()),
    /** A step is sent again, because its answer was lost: that answer's calls need no outputs. */
    isRetried,
    /** It was said before the newest turn. */
    isOld: createIsIn(path.slice(0, -1)),
  };
}

/** Hardly ever asked, so the items are gathered only then. */
function createIsIn(path: readonly Step[]): (item: Item) => boolean {
  let items: Set<Item> | undefined;
  return (item) => (items ??= new Set(path.flatMap(({ input, answer }) => input.concat(answer)))).has(item);
}

function mismatch(message: string, param: string): GatewayError {
  return new GatewayError("tool_call_mismatch", message, { param });
}
