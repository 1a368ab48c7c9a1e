/** Asks the lanes of a path one after the other, and the first again where that may help, until one says a word. */
import type { Adapter, Remark, Reply, Tell } from "../adapter.ts";
import { type ErrorCode, GatewayError, toGatewayError } from "../errors.ts";
import type { Item } from "../item.ts";
import type { Turn } from "../turn.ts";
import type { Breaker } from "./breaker.ts";
import { type Lane, toOwnName } from "./lane.ts";

/** A lane, and where turns go from it. */
export interface Step {
  readonly lane: Lane;
  /** Its adapter, which takes any turn. */
  readonly adapter: Adapter;
  /** Absent: it is asked whatever happened before. */
  readonly breaker: Breaker | undefined;
  /** Itself, then its fallbacks, each once. */
  readonly path: readonly Step[];
}

/** With the model's name as the caller wrote it. */
export interface RoutedTurn extends Turn {
  /** What a model that takes so many tokens sees instead of all items; throws if that cannot be. */
  fit?(contextWindow: number): readonly Item[];
}

export interface Clock {
  readonly now: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Ends early when the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

export async function askLanes(
  { path }: Step,
  turn: RoutedTurn,
  signal: AbortSignal,
  tell: Tell,
  clock: Clock,
): Promise<Reply> {
  let failure: GatewayError | undefined;
  for (const step of path) {
    const { lane, adapter, breaker } = step;
    const isFirst = step === path[0];
    const restMs = breaker?.enter() ?? 0;
    if (restMs > 0) {
      tell({ type: "tried", adapter: lane.name, code: "overloaded" });
      failure ??= resting(lane.name, restMs);
      continue;
    }
    const began = clock.now();
    for (let times = 0; ; times++) {
      // What an adapter cannot accept is only worth telling if it answers.
      const remarks: Remark[] = [];
      try {
        signal.throwIfAborted();
        const asked = toAsked(lane, turn);
        tell({ type: "asked", adapter: lane.name, model: asked.model });
        const reply = await adapter.open(asked, signal, (remark) => void remarks.push(remark));
        for (const remark of remarks) tell(remark);
        breaker?.learn();
        return reply;
      } catch (thrown) {
        const reason = toGatewayError(thrown);
        const isMendable = !signal.aborted && isLanesFault(reason.code, lane, turn.model, isFirst);
        if (isMendable) tell({ type: "tried", adapter: lane.name, code: reason.code });
        const mayRetry = isMendable && isFirst && times < lane.retries && (breaker?.state() ?? "closed") === "closed";
        const waitMs = mayRetry ? toWaitMs(reason, times, clock.random) : Infinity;
        if (clock.now() - began + waitMs > maxWaitMs) {
          // Only the last attempt counts: the breaker counts turns.
          breaker?.learn(signal.aborted ? "client_closed" : reason.code);
          if (!isMendable) throw thrown;
          // The caller wanted the first, and reads why that one could not answer.
          failure ??= reason;
          break;
        }
        // If the caller leaves meanwhile, the next attempt tells.
        await clock.wait(waitMs, signal).catch(() => {});
      }
    }
  }
  throw failure;
}

function toAsked(lane: Lane, { id, trace, model, items, settings, stream, fit }: RoutedTurn): Turn {
  const window = lane.contextWindow;
  const fitting = window === undefined ? items : (fit?.(window) ?? items);
  return { id, trace, model: toOwnName(lane, model), items: fitting, settings, stream };
}

const backOffMs = 200;
/** No attempt begins later than this after the first: then the caller, told how long to wait, decides. */
const maxWaitMs = 1_000;

function toWaitMs({ code, isLasting, retryAfterSeconds = 0 }: GatewayError, times: number, random: () => number) {
  if (isLasting || !passingFaults.has(code)) return Infinity;
  // Half random, so that turns that failed together do not come back together.
  return Math.max(backOffMs * 2 ** times * (0.5 + random() / 2), retryAfterSeconds * 1_000);
}

/** They may pass in a moment. After a timeout the caller has waited long enough. */
const passingFaults: ReadonlySet<ErrorCode> = new Set(["adapter_error", "adapter_rate_limit", "overloaded"]);

/** Another lane need not share them: also a wrong key, garbage instead of an answer, a bug. */
const lanesFaults: ReadonlySet<ErrorCode> = new Set([
  ...passingFaults,
  "adapter_timeout",
  "adapter_protocol",
  "adapter_refused",
  "internal_error",
]);

function isLanesFault(code: ErrorCode, lane: Lane, model: string, isFirst: boolean): boolean {
  // The request was meant for the first; a fallback may well be too small for it.
  if (code === "unsupported_parameter" || code === "context_length_exceeded") return !isFirst;
  // A missing model is the caller's mistake, unless the operator chose the name.
  if (code === "adapter_not_found") return !isFirst || toOwnName(lane, model) !== model;
  return lanesFaults.has(code);
}

function resting(adapter: string, restMs: number): GatewayError {
  const message = `The adapter '${adapter}' has failed too often, so it is left alone for a moment. Try again then.`;
  return new GatewayError("overloaded", message, { retryAfterSeconds: Math.ceil(restMs / 1_000) });
}
