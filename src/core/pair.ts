/** The hygiene of calls and outputs, in linear time: every output stands behind its call, and no model sees half a pair. */
import { GatewayError } from "./errors.ts";
import type { Item } from "./item.ts";

/** What was said in a turn. */
type Said = Readonly<Record<"input" | "answer", readonly Item[]>>;

interface Rules {
  readonly itemsParam: string;
  /** The request names what it continues: then a call that nobody answered is an error, elsewhere it is left out. */
  readonly isNamed: boolean;
  /** What is remembered: halves of it that a deletion left over are left out. */
  readonly path?: readonly Said[] | undefined;
}

interface Half {
  readonly side: "model" | "tools";
  readonly id: string;
}

/** A call and its output are such a pair, and so is whatever else a dialect has of the kind. */
export function halfOf(item: Item): Half | undefined {
  if (item.type === "tool-call") return { side: "model", id: item.callId };
  if (item.type === "tool-output") return { side: "tools", id: item.callId };
  return item.type === "other" ? item.exchange : undefined;
}

const isHalf = ({ type }: Item): boolean => type === "tool-call" || type === "tool-output" || type === "other";

export function pair(items: readonly Item[], rules: Rules): readonly Item[] {
  if (!items.some(isHalf)) return items;
  const found = findOutputs(items, rules);
  const { outputs, isRetried } = found;
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
      if (half.side === "model" ? !outputs.has(item) && !rules.isNamed : !found.last.has(item)) continue;
      endStep();
      paired.push(item);
    } else if (half?.side === "tools") {
      isAnswered = true;
    } else if (half !== undefined) {
      const output = outputs.get(item);
      if (output === undefined && rules.isNamed && !isRetried && !found.isOld(item)) throw unanswered(half.id, rules);
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

interface Outputs {
  /** Of each call; ids that a model repeats belong each to the nearest call before. */
  readonly outputs: ReadonlyMap<Item, Item>;
  /** Those that count, if a call is answered twice. */
  readonly last: ReadonlySet<Item>;
  /** A step is sent again, because its answer was lost: that answer's calls need no outputs. */
  readonly isRetried: boolean;
  /** It was said before the newest turn. */
  isOld(item: Item): boolean;
}

function findOutputs(items: readonly Item[], rules: Rules): Outputs {
  const { path = [] } = rules;
  const isOld = createIsIn(path.slice(0, -1));
  const isRemembered = createIsIn(path);
  let isRetried = false;
  const made = new Map<string, Item>();
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
    if (call === undefined) throw orphan(half.id, rules);
    isRetried ||= outputs.has(call);
    outputs.set(call, item);
  }
  return { outputs, last: new Set(outputs.values()), isRetried, isOld };
}

/** Hardly ever asked, so the items are gathered only then. */
function createIsIn(path: readonly Said[]): (item: Item) => boolean {
  let items: Set<Item> | undefined;
  return (item) => (items ??= new Set(path.flatMap(({ input, answer }) => input.concat(answer)))).has(item);
}

function orphan(id: string, { itemsParam }: Rules): GatewayError {
  return new GatewayError("tool_call_mismatch", `No tool call found for function call output with call_id ${id}.`, {
    param: itemsParam,
  });
}

function unanswered(id: string, { itemsParam }: Rules): GatewayError {
  return new GatewayError("tool_call_mismatch", `No tool output found for function call ${id}.`, { param: itemsParam });
}
