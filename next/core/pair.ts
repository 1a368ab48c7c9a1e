/** The hygiene of calls and outputs, in linear time: every output stands behind its call, and no model sees half a pair. */
import { GatewayError } from "./errors.ts";
import type { Item } from "./item.ts";

interface Rules {
  readonly itemsParam: string;
  /** The request names what it continues: then a call that nobody answered is an error, elsewhere it is left out. */
  readonly isNamed: boolean;
}

interface Half {
  readonly side: "model" | "tools";
  readonly id: string;
}

/** What else a dialect has of the kind stays where it is. */
function halfOf(item: Item): Half | undefined {
  if (item.type === "tool-call") return { side: "model", id: item.callId };
  if (item.type === "tool-output") return { side: "tools", id: item.callId };
  return undefined;
}

export function pair(items: readonly Item[], rules: Rules): Item[] {
  const outputs = findOutputs(items, rules);
  if (outputs === undefined) return [...items];
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
    if (half?.side === "tools") {
      isAnswered = true;
    } else if (half !== undefined) {
      const output = outputs.get(item);
      if (output === undefined && rules.isNamed) throw unanswered(half.id, rules);
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

/** The output of each call; ids that a model repeats belong each to the nearest call before. Undefined: there are none. */
function findOutputs(items: readonly Item[], rules: Rules): ReadonlyMap<Item, Item> | undefined {
  const made = new Map<string, Item>();
  const outputs = new Map<Item, Item>();
  let isAny = false;
  for (const item of items) {
    const half = halfOf(item);
    if (half === undefined) continue;
    isAny = true;
    if (half.side === "model") {
      made.set(half.id, item);
      continue;
    }
    const call = made.get(half.id);
    if (call === undefined) throw orphan(half.id, rules);
    outputs.set(call, item);
  }
  return isAny ? outputs : undefined;
}

function orphan(id: string, { itemsParam }: Rules): GatewayError {
  return new GatewayError("tool_call_mismatch", `No tool call found for function call output with call_id ${id}.`, {
    param: itemsParam,
  });
}

function unanswered(id: string, { itemsParam }: Rules): GatewayError {
  return new GatewayError("tool_call_mismatch", `No tool output found for function call ${id}.`, { param: itemsParam });
}
