/** Checks what code of others says, reports and throws, so that the core can rely on its form. */
import { inspect } from "node:util";
import { type ErrorCode, GatewayError, isErrorCode } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import { isObject } from "../wires/fields.ts";

/** Undefined: it is something else. */
type Read = (value: unknown) => unknown;
type Reads = Readonly<Record<string, Read>>;

/** Throws what is no list of deltas. A null field counts as absent, and an absent detail of usage as none. */
export function checkBatch(batch: unknown): readonly Delta[] {
  if (!Array.isArray(batch)) throw unfit("is no list of deltas", batch);
  return batch.map(toDelta);
}

function toDelta(found: unknown): Delta {
  const delta = isObject(found) ? deltas.get(found["type"])?.(found) : undefined;
  if (delta === undefined) throw unfit("is no delta, or has a field that is missing or wrong", found);
  return delta as Delta;
}

/** What was found may be anything, so it goes only to the log. */
export function unfit(what: string, found: unknown): GatewayError {
  const cause = new Error(`What the adapter's code said ${what}; found: ${inspect(found).slice(0, 200)}`);
  const message = "The adapter's own code said something that is not part of an answer. The gateway's log has it.";
  return new GatewayError("adapter_protocol", message, { cause });
}

const when =
  (fits: (value: unknown) => boolean): Read =>
  (value) =>
    fits(value) ? value : undefined;
const oneOf = (...values: readonly unknown[]): Read => when((value) => values.includes(value));
const text = when((value) => typeof value === "string");
const name = when((value) => typeof value === "string" && value !== "");
const integer = when(Number.isInteger);
const count = when((value) => Number.isSafeInteger(value) && Number(value) >= 0);
const object = when((value) => typeof value === "object");

/** Read by their names: the object may be a library's, which inherits them. A `?` marks what may be absent. */
function shaped(reads: Reads): Read {
  return (found) => {
    if (!isObject(found)) return undefined;
    const read: Record<string, unknown> = {};
    for (const key in reads) {
      const isOptional = key.endsWith("?");
      const own = isOptional ? key.slice(0, -1) : key;
      const value = found[own] ?? undefined;
      if (isOptional && value === undefined) continue;
      read[own] = reads[key]?.(value);
      if (read[own] === undefined) return undefined;
    }
    return read;
  };
}

const orNone: Read = (value) => count(value ?? 0);
const extra = shaped({ dialect: oneOf("chat", "responses"), fields: object });
const usage = shaped({
  inputTokens: count,
  outputTokens: count,
  cachedTokens: orNone,
  "cacheWriteTokens?": count,
  reasoningTokens: orNone,
});
const kind = oneOf("function", "custom", "search");
const exchange = shaped({ side: oneOf("model", "tools"), id: text });

/** What the core relies on in each. */
const fields: Readonly<Record<Delta["type"], Reads>> = {
  text: { text, "logprobs?": object, "extra?": extra },
  refusal: { text, "extra?": extra },
  reasoning: { text, "summary?": count },
  annotation: { annotation: shaped({ type: text, fields: object }) },
  "message-end": { "extra?": extra },
  "reasoning-seal": { encrypted: text },
  "reasoning-extra": { extra },
  "message-extra": { extra },
  "tool-call": { index: integer, name, "callId?": text, "group?": text, "kind?": kind, "extra?": extra },
  "tool-extra": { index: integer, extra },
  "tool-arguments": { index: integer, text },
  compaction: { summary: text },
  other: { extra, "exchange?": exchange },
  usage: { usage },
  notes: { notes: shaped({ "fingerprint?": text, "serviceTier?": text, "extra?": extra }) },
  finish: { reason: oneOf("stop", "length", "content-filter", "tool-calls") },
};
const deltas = new Map<unknown, Read>(
  Object.entries(fields).map(([type, reads]) => [type, shaped({ type: text, ...reads })]),
);

/** The codes that a program or a module may report; only the gateway itself reports others. */
export function isReportable(code: unknown): code is ErrorCode {
  return isErrorCode(code) && /^(adapter_.*|overloaded|unsupported_parameter|context_length_exceeded)$/.test(code);
}

/** An error with one of these codes is meant for the caller. Anything else may say anything: the log has it. */
export function toFailure(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const { code, message, retryAfterSeconds } = Object(thrown) as Readonly<Record<string, unknown>>;
  const cause = thrown instanceof Error ? thrown : new Error(`It threw ${inspect(thrown).slice(0, 200)}`);
  if (isReportable(code)) return toReported(code, String(message), retryAfterSeconds, cause);
  const words = "The adapter's own code failed. The gateway's log has the cause, under this answer's x-request-id.";
  return new GatewayError("adapter_error", words, { cause });
}

/** Seconds are rounded up: nobody may come back early. */
export function toReported(code: ErrorCode, message: string, seconds: unknown, cause?: unknown): GatewayError {
  const whole = typeof seconds === "number" && seconds >= 0 ? Math.ceil(seconds) : NaN;
  return new GatewayError(code, message, { retryAfterSeconds: Number.isSafeInteger(whole) ? whole : undefined, cause });
}
