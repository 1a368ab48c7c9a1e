/** Checks what code of others says, so that the core can rely on its form. */
import { inspect } from "node:util";
import { GatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import { isObject } from "../wires/fields.ts";

type Fields = Readonly<Record<string, unknown>>;
type Test = (value: unknown) => boolean;

/** A null field counts as absent, and an absent detail of usage as none. */
export function checkBatch(batch: unknown): readonly Delta[] {
  if (!Array.isArray(batch)) throw unfit("is no list of deltas", batch);
  return batch.every(isTight) ? batch : batch.map(toDelta);
}

/** What was found may be anything, so it goes only to the log. */
export function unfit(what: string, found: unknown): GatewayError {
  const cause = new Error(`What the adapter's code said ${what}; found: ${inspect(found).slice(0, 200)}`);
  const message = "The adapter's own code said something that is not part of an answer. The gateway's log has it.";
  return new GatewayError("adapter_protocol", message, { cause });
}

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isTight(delta: unknown): delta is Delta {
  if (!isDelta(delta) || delta["type"] === "usage" || delta["type"] === "notes") return false;
  for (const key in delta) if (delta[key] === null) return false;
  return true;
}

function toDelta(found: unknown): Delta {
  if (!isDelta(found)) throw unfit("is no delta, or has a field that is missing or wrong", found);
  const delta: Fields = withoutNull(found);
  if (isObject(delta["notes"])) return { type: "notes", notes: withoutNull(delta["notes"]) };
  if (!isObject(delta["usage"])) return delta as Delta;
  // Read by their names: the object may be a library's, which inherits them.
  const { inputTokens, cachedTokens, cacheWriteTokens, outputTokens, reasoningTokens } = delta["usage"];
  const counted = { inputTokens, cachedTokens: cachedTokens ?? 0, outputTokens, reasoningTokens: reasoningTokens ?? 0 };
  return { ...delta, usage: { ...counted, cacheWriteTokens: cacheWriteTokens ?? undefined } } as Delta;
}

function withoutNull(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function isDelta(value: unknown): value is Fields {
  if (!isObject(value) || typeof value["type"] !== "string" || !Object.hasOwn(fieldsOf, value["type"])) return false;
  const tests: Readonly<Record<string, Test>> = fieldsOf[value["type"] as Delta["type"]];
  for (const key in tests) if (tests[key]?.(value[key]) !== true) return false;
  return true;
}

const isText: Test = (value) => typeof value === "string";
const isNumber: Test = (value) => Number.isInteger(value);
const oneOf =
  (...values: readonly unknown[]): Test =>
  (value) =>
    values.includes(value);
const maybe =
  (test: Test): Test =>
  (value) =>
    value === undefined || value === null || test(value);

/** Whether JSON, in which it is stored and sent, can hold it: no cycle, no BigInt. */
const isWritable: Test = (value) => {
  try {
    return typeof JSON.stringify(value) === "string";
  } catch {
    return false;
  }
};

const isExtra: Test = (value) =>
  isObject(value) &&
  oneOf("chat", "responses")(value["dialect"]) &&
  isObject(value["fields"]) &&
  isWritable(value["fields"]);
const isAnnotation: Test = (value) =>
  isObject(value) && isText(value["type"]) && isObject(value["fields"]) && isWritable(value["fields"]);
const isExchange: Test = (value) => isObject(value) && oneOf("model", "tools")(value["side"]) && isText(value["id"]);
const isUsage: Test = (value) =>
  isObject(value) &&
  isCount(value["inputTokens"]) &&
  isCount(value["outputTokens"]) &&
  ["cachedTokens", "cacheWriteTokens", "reasoningTokens"].every((key) => maybe(isCount)(value[key]));
const isNotes: Test = (value) =>
  isObject(value) &&
  maybe(isText)(value["fingerprint"]) &&
  maybe(isText)(value["serviceTier"]) &&
  maybe(isExtra)(value["extra"]);

/** What the core relies on in each. */
const fieldsOf: Readonly<Record<Delta["type"], Readonly<Record<string, Test>>>> = {
  text: { text: isText, logprobs: maybe((value) => Array.isArray(value) && isWritable(value)), extra: maybe(isExtra) },
  refusal: { text: isText, extra: maybe(isExtra) },
  reasoning: { text: isText, summary: maybe(isCount) },
  annotation: { annotation: isAnnotation },
  "message-end": { extra: maybe(isExtra) },
  "reasoning-seal": { encrypted: isText },
  "reasoning-extra": { extra: isExtra },
  "message-extra": { extra: isExtra },
  "tool-call": {
    index: isNumber,
    name: (value) => isText(value) && value !== "",
    callId: maybe(isText),
    group: maybe(isText),
    kind: maybe(oneOf("function", "custom", "search")),
    extra: maybe(isExtra),
  },
  "tool-extra": { index: isNumber, extra: isExtra },
  "tool-arguments": { index: isNumber, text: isText },
  compaction: { summary: isText },
  other: { extra: isExtra, exchange: maybe(isExchange) },
  usage: { usage: isUsage },
  notes: { notes: isNotes },
  finish: { reason: oneOf("stop", "length", "content-filter", "tool-calls") },
};
