/** Checks what code of others says, so that the core can rely on its form. */
import { inspect } from "node:util";
import { GatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import { isObject } from "../wires/fields.ts";

type Fields = Readonly<Record<string, unknown>>;
type Test = (value: unknown) => boolean;
type Tests = Readonly<Record<string, Test>>;

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
  return { type: "usage", usage: { ...counted, cacheWriteTokens: cacheWriteTokens ?? undefined } } as Delta;
}

function withoutNull(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function isDelta(value: unknown): value is Fields {
  const tests = isObject(value) ? deltas.get(value["type"]) : undefined;
  return tests !== undefined && fits(tests, value as Fields);
}

function fits(tests: Tests, fields: Fields): boolean {
  for (const key in tests) if (tests[key]?.(fields[key]) !== true) return false;
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
const shaped =
  (tests: Tests): Test =>
  (value) =>
    isObject(value) && fits(tests, value);

/** Whether JSON, in which it is stored and sent, can hold it: no cycle, no BigInt. */
const isWritable: Test = (value) => {
  try {
    return typeof value === "object" && value !== null && typeof JSON.stringify(value) === "string";
  } catch {
    return false;
  }
};

const extra = shaped({ dialect: oneOf("chat", "responses"), fields: isWritable });
const usage = shaped({
  inputTokens: isCount,
  outputTokens: isCount,
  cachedTokens: maybe(isCount),
  cacheWriteTokens: maybe(isCount),
  reasoningTokens: maybe(isCount),
});
const call = {
  index: isNumber,
  name: (value: unknown) => isText(value) && value !== "",
  callId: maybe(isText),
  group: maybe(isText),
  kind: maybe(oneOf("function", "custom", "search")),
  extra: maybe(extra),
};

/** What the core relies on in each. */
const deltas: ReadonlyMap<unknown, Tests> = new Map<Delta["type"], Tests>([
  [
    "text",
    { text: isText, logprobs: maybe((value) => Array.isArray(value) && isWritable(value)), extra: maybe(extra) },
  ],
  ["refusal", { text: isText, extra: maybe(extra) }],
  ["reasoning", { text: isText, summary: maybe(isCount) }],
  ["annotation", { annotation: shaped({ type: isText, fields: isWritable }) }],
  ["message-end", { extra: maybe(extra) }],
  ["reasoning-seal", { encrypted: isText }],
  ["reasoning-extra", { extra }],
  ["message-extra", { extra }],
  ["tool-call", call],
  ["tool-extra", { index: isNumber, extra }],
  ["tool-arguments", { index: isNumber, text: isText }],
  ["compaction", { summary: isText }],
  ["other", { extra, exchange: maybe(shaped({ side: oneOf("model", "tools"), id: isText })) }],
  ["usage", { usage }],
  ["notes", { notes: shaped({ fingerprint: maybe(isText), serviceTier: maybe(isText), extra: maybe(extra) }) }],
  ["finish", { reason: oneOf("stop", "length", "content-filter", "tool-calls") }],
]);
