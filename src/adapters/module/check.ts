/** Checks the deltas of an operator's adapter, so that the core can rely on their form. */
import { inspect } from "node:util";
import type { Delta } from "../../core/delta.ts";
import { GatewayError } from "../../core/errors.ts";
import { finishes, type Usage } from "../../core/turn.ts";
import { isCount, isObject, type JsonObject as Fields } from "../json.ts";

/** The batch as deltas; `choices`: how many were requested. */
export function checkBatch(batch: unknown, choices = 1): readonly Delta[] {
  if (!Array.isArray(batch)) throw unfit("stream must yield lists of deltas", batch);
  for (const delta of batch) {
    if (!isDelta(delta)) throw unfit(`stream yielded ${nameOf(delta)}`, delta);
    if (!isChoice(delta["choice"], choices))
      throw unfit("stream yielded a delta for a choice that was not requested", delta);
  }
  return batch.some(isLoose) ? batch.map((delta) => (isLoose(delta) ? tighten(delta) : delta)) : batch;
}

function isDelta(value: unknown): value is Fields {
  return hasKnownType(value) && whole[value.type](value);
}

function hasKnownType(value: unknown): value is Fields & Pick<Delta, "type"> {
  return isObject(value) && typeof value["type"] === "string" && Object.hasOwn(whole, value["type"]);
}

function nameOf(unfitting: unknown): string {
  if (!hasKnownType(unfitting)) return "something that is not a delta";
  return `a delta of type '${unfitting.type}' with a field that is missing or wrong`;
}

/** The first choice has no number. */
function isChoice(choice: unknown, choices: number): boolean {
  return isAbsent(choice) || (isCount(choice) && choice > 0 && choice < choices);
}

/** Whether fields of it may be null; those of notes and usage are a level deeper. */
function isLoose(delta: Fields): boolean {
  for (const key in delta) if (delta[key] === null) return true;
  return delta["type"] === "notes" || delta["type"] === "usage";
}

/** A null field means an absent one. */
function tighten(delta: Fields): Fields {
  const { type, notes, usage } = delta;
  const said = withoutAbsent(delta);
  if (type === "notes" && isObject(notes)) return { ...said, notes: withoutAbsent(notes) };
  return type === "usage" && isObject(usage) ? { ...said, usage: toUsage(usage) } : said;
}

/** An absent detail means none. Each is read by its name: the object may be a library's, which inherits them. */
function toUsage({ inputTokens, cachedTokens, cacheWriteTokens, outputTokens, reasoningTokens }: Fields): Fields {
  return {
    inputTokens,
    cachedTokens: cachedTokens ?? 0,
    ...withoutAbsent({ cacheWriteTokens }),
    outputTokens,
    reasoningTokens: reasoningTokens ?? 0,
  };
}

function withoutAbsent(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isAbsent(value)));
}

/** Whether JSON, in which it is stored and sent, can hold it: no cycle, no BigInt. */
function isWritable(value: object): boolean {
  try {
    return typeof JSON.stringify(value) === "string";
  } catch {
    return false;
  }
}

const isText = ({ text }: Fields) => typeof text === "string";
const isList = (value: unknown) => Array.isArray(value) && isWritable(value);
const isWord = (value: unknown) => isAbsent(value) || typeof value === "string";
const isFields = (value: unknown) => isObject(value) && isWritable(value);
const isExtra = (value: unknown) => isObject(value) && isWord(value["dialect"]) && isFields(value["fields"]);
const mayBeExtra = (value: unknown) => isAbsent(value) || isExtra(value);
const isSaid = (delta: Fields) => isText(delta) && mayBeExtra(delta["extra"]);

/** What the core relies on in each delta. */
const whole: Readonly<Record<Delta["type"], (delta: Fields) => boolean>> = {
  text: (delta) => isSaid(delta) && (isAbsent(delta["logprobs"]) || isList(delta["logprobs"])),
  refusal: isSaid,
  reasoning: (delta) => isText(delta) && (isAbsent(delta["summary"]) || isCount(delta["summary"])),
  annotation: ({ annotation }) =>
    isObject(annotation) && typeof annotation["type"] === "string" && isFields(annotation["fields"]),
  "message-end": ({ extra }) => mayBeExtra(extra),
  "reasoning-seal": ({ encrypted }) => typeof encrypted === "string",
  "reasoning-extra": ({ extra }) => isExtra(extra),
  "message-extra": ({ extra }) => isExtra(extra),
  "tool-call": ({ index, callId, name, group, kind, extra }) =>
    Number.isInteger(index) &&
    typeof name === "string" &&
    name !== "" &&
    isWord(callId) &&
    isWord(group) &&
    kinds.has(kind) &&
    mayBeExtra(extra),
  "tool-extra": ({ index, extra }) => Number.isInteger(index) && isExtra(extra),
  "tool-arguments": (delta) => Number.isInteger(delta["index"]) && isText(delta),
  compaction: ({ summary, kept }) => typeof summary === "string" && isAbsent(kept),
  other: ({ extra, exchange }) =>
    isExtra(extra) &&
    (isAbsent(exchange) || (isObject(exchange) && typeof exchange["id"] === "string" && sides.has(exchange["side"]))),
  usage: ({ usage }) =>
    isObject(usage) &&
    counts.every((count) => isCount(usage[count])) &&
    details.every((detail) => isAbsent(usage[detail]) || isCount(usage[detail])),
  notes: ({ notes }) =>
    isObject(notes) && isWord(notes["fingerprint"]) && isWord(notes["serviceTier"]) && mayBeExtra(notes["extra"]),
  finish: ({ reason }) => finishes.some((known) => known === reason),
};

const kinds: ReadonlySet<unknown> = new Set([undefined, null, "function", "custom", "search"]);
const sides: ReadonlySet<unknown> = new Set(["model", "tools"]);
const counts: readonly (keyof Usage)[] = ["inputTokens", "outputTokens"];
const details: readonly (keyof Usage)[] = ["cachedTokens", "cacheWriteTokens", "reasoningTokens"];

/** What was found may be anything, so it goes only to the log. */
export function unfit(what: string, found: unknown): GatewayError {
  return new GatewayError("adapter_protocol", "The adapter's module produced something that is not an answer.", {
    cause: new Error(`${what}; found: ${inspect(found).slice(0, 200)}`),
  });
}

/** A null means that there is none. */
export function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
