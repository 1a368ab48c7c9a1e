/** Lanes: adapters as the operator configured them, and where turns go from each. */
import { type Breaker, type BreakerSettings, createBreaker } from "./breaker.ts";
import type { ModelNames } from "./models.ts";
import type { Adapter } from "../ports.ts";
import type { Observer } from "../observer.ts";

/** An adapter as the operator configured it. */
export interface Lane {
  readonly name: string;
  readonly adapter: Adapter;
  readonly models: ModelNames;
  /** In tokens; overrides the adapter's own. */
  readonly contextWindow?: number | undefined;
  /** Roughly how much one answer may have. */
  readonly maxAnswerCharacters: number;
  /** Lanes to try, in this order, if this one cannot answer. */
  readonly fallback?: readonly string[] | undefined;
  /** Absent: off. */
  readonly breaker?: BreakerSettings | undefined;
  /** Absent: off. */
  readonly retry?: RetrySettings | undefined;
}

/** How many tokens it takes for a model, by the caller's name for it; undefined: nobody knows. */
export function windowOf({ contextWindow, adapter, models }: Lane, model: string): number | undefined {
  return contextWindow ?? adapter.contextWindow?.(models.resolve(model));
}

export interface RetrySettings {
  /** How often a lane is retried. */
  readonly times: number;
  /** Roughly how long to wait before the first retry; doubles each time. */
  readonly baseMs: number;
  /** How long after its first attempt a turn may be retried. */
  readonly maxWaitMs: number;
}

/** A lane, and where turns go from it. */
export interface LaneStep {
  readonly lane: Lane;
  readonly breaker: Breaker | undefined;
  /** Itself, then its fallbacks, each once. */
  readonly path: readonly LaneStep[];
}

export function createLaneSteps(
  lanes: readonly Lane[],
  now: () => Date,
  observer?: Pick<Observer, "breakerOpened" | "breakerClosed">,
): ReadonlyMap<string, LaneStep> {
  const steps = new Map<string, LaneStep & { path: readonly LaneStep[] }>();
  for (const lane of lanes) {
    const { name } = lane;
    if (steps.has(name)) throw new Error(`There are two lanes named '${name}'.`);
    const breaker = lane.breaker && createBreaker(name, lane.breaker, now, observer);
    steps.set(name, { lane, breaker, path: [] });
  }
  for (const step of steps.values()) {
    const names = new Set([step.lane.name, ...(step.lane.fallback ?? [])]);
    step.path = Array.from(names, (name) => laneStepOf(steps, name, `the fallback of '${step.lane.name}'`));
  }
  return steps;
}

export function laneStepOf(steps: ReadonlyMap<string, LaneStep>, name: string, namedBy: string): LaneStep {
  const step = steps.get(name);
  if (step === undefined) throw new Error(`There is no lane '${name}', which ${namedBy} names.`);
  return step;
}
