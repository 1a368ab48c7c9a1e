/** Adapters as modules and embedding programs write them, `async *stream(turn, signal, tell)`, as the gateway asks them. */
import type { Remark, Tell } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Dialect } from "../../core/settings.ts";
import type { Counting } from "../../core/route/lane.ts";
import type { Turn } from "../../core/turn.ts";
import { isObject } from "../../wires/fields.ts";
import { toFailure } from "../reported.ts";
import { checkBatch, isCount, unfit } from "../said.ts";
import { openSource, type Source, type Timeouts } from "../waiting.ts";

/** What a module exports, and a program passes in. */
export interface GivenAdapter {
  stream(turn: Turn, signal: AbortSignal, tell?: Tell): AsyncIterable<readonly Delta[]>;
  /** The wire dialects whose own tools and fields it passes on. */
  readonly speaks?: readonly Dialect[] | undefined;
  countTokens?(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  models?(): Promise<readonly string[]>;
  close?(): Promise<void>;
}

/** What it gets is its own, what it says is checked, what it throws is explained, and nobody depends on it to stop. */
export function toAdapter(given: GivenAdapter, timeouts: Timeouts = {}): Counting {
  const who = "the adapter's own code";
  return {
    speaks: given.speaks ?? [],
    open: (turn, caller, tell) =>
      openSource(who, (signal) => toSource(given, turn, signal, tell), turn, timeouts, caller),
    countTokens: async (turn, signal) => checkCount(await inTime(given.countTokens?.(copyOf(turn), signal))),
    ...(given.models && { models: async () => checkNames((await inTime(given.models?.())) ?? []) }),
    close: () => inTime(given.close?.()),
  };
}

function toSource(given: GivenAdapter, turn: Turn, signal: AbortSignal, tell: Tell): Source {
  let batches: AsyncIterator<unknown> | undefined;
  return {
    async next() {
      try {
        batches ??= iterate(given.stream(copyOf(turn), signal, (remark) => tell(checkRemark(remark))));
        const step = await batches.next();
        return step.done === true ? undefined : checkBatch(step.value);
      } catch (thrown) {
        throw toFailure(thrown);
      }
    },
    drop: () => void batches?.return?.().catch(() => {}),
  };
}

function iterate(stream: AsyncIterable<unknown>): AsyncIterator<unknown> {
  if (typeof stream?.[Symbol.asyncIterator] === "function") return stream[Symbol.asyncIterator]();
  throw unfit("is no async generator, as of async *stream(turn, signal)", stream);
}

function checkRemark(remark: Remark): Remark {
  if (remark.type === "left-out" && typeof remark.what === "string") return remark;
  throw unfit("is not what it leaves out", remark);
}

function checkCount(found: number | null | undefined): number | undefined {
  if (found === undefined || found === null || isCount(found)) return found ?? undefined;
  throw unfit("is no number of tokens", found);
}

function checkNames(found: readonly string[]): readonly string[] {
  if (Array.isArray(found) && found.every((name) => typeof name === "string")) return found;
  throw unfit("is no list of models", found);
}

/** The original is the gateway's memory of the conversation. */
function copyOf<Value>(value: Value): Value;
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isObject(value)) return value;
  const copy: Record<string, unknown> = { ...value };
  for (const name in copy) copy[name] = copyOf(copy[name]);
  return copy;
}

/** Reloads, shutdowns and lists of models wait for it. */
const patienceMs = 5_000;

async function inTime<Value>(pending: Promise<Value> | undefined): Promise<Value | undefined> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const message = `Timed out: the adapter's own code took more than ${patienceMs / 1_000} s.`;
  const timer = setTimeout(() => reject(new GatewayError("adapter_timeout", message)), patienceMs);
  try {
    return await Promise.race([pending, late]);
  } catch (thrown) {
    throw toFailure(thrown);
  } finally {
    clearTimeout(timer);
  }
}
