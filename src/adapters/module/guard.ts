/**
 * Wraps an operator's adapter: what it is given is its own, what it returns is checked, what it throws is explained, and
 * nobody depends on it to stop.
 */
import { inspect, isDeepStrictEqual } from "node:util";
import { GatewayError } from "../../core/errors.ts";
import type { Part } from "../../core/item.ts";
import type { Adapter } from "../../core/ports.ts";
import type { Turn } from "../../core/turn.ts";
import type { LimitsOf } from "../type.ts";
import { pullSteps } from "../waiting.ts";
import type { Limit } from "../watch.ts";
import { reportableCodes, toLateFailure, toWholeSeconds } from "../failures.ts";
import { isCount, isObject } from "../json.ts";
import { checkBatch, isAbsent, unfit } from "./check.ts";

/** Without limits, an answer may take any time. */
export function guardAdapter(adapter: Adapter, limitsOf: LimitsOf = () => unlimited): Adapter {
  return {
    /** A cancelled or late turn ends at once, even if the adapter ignores the signal. */
    async *stream(turn, signal, tell) {
      const start = (inner: AbortSignal) => iterate(adapter.stream(copyOf(turn), inner, tell));
      try {
        for await (const batch of pullSteps(start, limitsOf(turn), signal, toLateness)) {
          yield checkBatch(batch, turn.settings.choices);
        }
      } catch (thrown) {
        const failure = toFailure(thrown);
        throw failure.part === undefined ? failure : Object.assign(failure, { part: findOriginal(turn, failure.part) });
      }
    },
    speaks: adapter.speaks,
    contextWindow: adapter.contextWindow && ((model) => readWindow(adapter, model)),
    countTokens: guardCall(
      adapter.countTokens && (async (turn, signal) => adapter.countTokens?.(copyOf(turn), signal)),
      isCount,
      "countTokens must return a number of tokens",
    ),
    models: guardCall(adapter.models?.bind(adapter), isNames, "models must return a list of names"),
    close: adapter.close && (async () => inTime(adapter.close?.(), "close")),
  };
}

/** The original belongs to the gateway's memory of the conversation. Texts, which nobody can change, are shared. */
function copyOf<Value>(value: Value): Value;
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isObject(value)) return value;
  const copy: Record<string, unknown> = { ...value };
  for (const name in copy) copy[name] = copyOf(copy[name]);
  return copy;
}

/** The part of which the module names its copy; another with the same content is as wrong. */
function findOriginal({ items }: Turn, copy: Part): Part {
  for (const item of items) {
    const content = item.type === "message" ? item.content : item.type === "tool-output" ? item.output : "";
    const part = typeof content === "string" ? undefined : content.find((each) => isDeepStrictEqual(each, copy));
    if (part !== undefined) return part;
  }
  return copy;
}

const unlimited = { firstByteMs: Infinity, idleMs: Infinity } as const;

/** Reloads, shutdowns and lists of models wait for it, so the wait must be bounded. */
const timeoutMs = 5_000;

async function inTime<Value>(pending: PromiseLike<Value> | undefined, what: string): Promise<Value | undefined> {
  const late = Promise.withResolvers<never>();
  const why = new GatewayError("adapter_timeout", `The adapter's module did not ${what} within ${timeoutMs / 1000} s.`);
  const timer = setTimeout(late.reject, timeoutMs, why);
  try {
    return await Promise.race([pending, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function readWindow(adapter: Adapter, model: string): number | undefined {
  try {
    const found: unknown = adapter.contextWindow?.(model);
    if (isAbsent(found)) return undefined;
    if (isCount(found)) return found;
    throw unfit("contextWindow must return a number of tokens, or nothing", found);
  } catch (thrown) {
    throw toFailure(thrown);
  }
}

function toLateness(limit: Limit, limitMs: number): GatewayError {
  const what = limit === "total" ? "did not finish its answer" : "produced nothing";
  return toLateFailure(`Timed out: the adapter's module ${what}`, limit, limitMs);
}

function iterate(stream: AsyncIterable<unknown>): AsyncIterator<unknown> {
  if (typeof stream?.[Symbol.asyncIterator] === "function") return stream[Symbol.asyncIterator]();
  throw unfit("stream must be an async generator: async *stream(turn, signal)", stream);
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

/** Returning nothing is the same as not having the method. */
function guardCall<Arguments extends unknown[], Result>(
  call: ((...given: Arguments) => Promise<Result>) | undefined,
  fits: (found: unknown) => boolean,
  what: string,
): ((...given: Arguments) => Promise<Result>) | undefined {
  if (call === undefined) return undefined;
  return async (...given) => {
    try {
      const found = (await inTime(call(...given), "answer")) ?? (undefined as Result);
      if (isAbsent(found) || fits(found)) return found;
      throw unfit(what, found);
    } catch (thrown) {
      throw toFailure(thrown);
    }
  };
}

/**
 * What the module throws with one of these codes is meant for the caller. Anything else may say anything, so all of it
 * goes to the log; the caller is told that it is there.
 */
function toFailure(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (thrown instanceof Error && "code" in thrown) {
    const code = reportableCodes.find((known) => known === thrown.code);
    const seconds = "retryAfterSeconds" in thrown ? thrown.retryAfterSeconds : undefined;
    const retryAfterSeconds = toWholeSeconds(seconds);
    // A GatewayError from another copy of the package has a class of its own.
    if (code !== undefined) return new GatewayError(code, thrown.message, { retryAfterSeconds, cause: thrown });
  }
  return new GatewayError(
    "adapter_error",
    "The adapter's module failed. The gateway's log has the cause, under this answer's x-request-id, or under the turn's id.",
    { cause: thrown instanceof Error ? thrown : new Error(`The module threw ${inspect(thrown).slice(0, 200)}`) },
  );
}
