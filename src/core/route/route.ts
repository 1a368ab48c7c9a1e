/** An adapter made of adapters: the model's name decides which of them is asked, and its fallbacks who is next. */
import { fitTo } from "../adapt.ts";
import type { Adapter, Reply, Tell } from "../adapter.ts";
import type { Turn } from "../turn.ts";
import { askLanes, type Clock, type RoutedTurn, type Step } from "./attempts.ts";
import { type BreakerState, createBreaker } from "./breaker.ts";
import { type Lane, namesOf, toOwnName } from "./lane.ts";

export interface Route extends Adapter {
  open(turn: RoutedTurn, signal: AbortSignal, tell: Tell): Promise<Reply>;
  countTokens(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  models(): Promise<readonly string[]>;
  states(): readonly { readonly name: string; readonly state: BreakerState }[];
  close(): Promise<void>;
}

interface RouteParts extends Clock {
  readonly lanes: readonly Lane[];
  readonly defaultLane: string;
  /** From a model's name, or a prefix of names (`gpt-*`), to a lane's. */
  readonly byModel: Readonly<Record<string, string>>;
}

export function createRoute(parts: RouteParts): Route {
  const { lanes, now } = parts;
  const steps = createSteps(lanes, now);
  const pick = createPicker(parts, steps);
  return {
    speaks: ["chat", "responses"],
    open: (turn, signal, tell) => askLanes(pick(turn.model), turn, signal, tell, parts),
    async countTokens(turn, signal) {
      const { lane } = pick(turn.model);
      return lane.adapter.countTokens?.({ ...turn, model: toOwnName(lane, turn.model) }, signal);
    },
    models: () => listModels(parts, (model) => pick(model).lane),
    states: () => Array.from(steps, ([name, { breaker }]) => ({ name, state: breaker?.state() ?? "closed" })),
    async close() {
      await Promise.all(lanes.map(async ({ adapter }) => adapter.close?.()));
    },
  };
}

type Steps = ReadonlyMap<string, Step>;

function createSteps(lanes: readonly Lane[], now: () => number): Steps {
  const steps = new Map<string, Step & { readonly path: Step[] }>();
  for (const lane of lanes) {
    const breaker = lane.hasBreaker ? createBreaker(now) : undefined;
    steps.set(lane.name, { lane, adapter: fitTo(lane.adapter), breaker, path: [] });
  }
  for (const { lane, path } of steps.values())
    for (const name of new Set([lane.name, ...lane.fallback])) path.push(stepOf(steps, name));
  return steps;
}

function stepOf(steps: Steps, name: string): Step {
  const step = steps.get(name);
  if (step === undefined) throw new Error(`There is no adapter '${name}'.`);
  return step;
}

/** The operator's table decides, then the lane that has the name, then the default. */
function createPicker({ defaultLane, byModel }: RouteParts, steps: Steps): (model: string) => Step {
  const usual = stepOf(steps, defaultLane);
  const chosen = new Map(Object.entries(byModel).map(([model, name]) => [model, stepOf(steps, name)]));
  const prefixes = [...chosen]
    .flatMap(([model, step]) => (isWholeName(model) ? [] : { prefix: model.slice(0, -1), step }))
    .toSorted((one, other) => other.prefix.length - one.prefix.length);
  const offered = new Map<string, Step>();
  for (const step of [usual, ...steps.values()])
    for (const model of namesOf(step.lane)) if (!offered.has(model)) offered.set(model, step);
  return (model) =>
    chosen.get(model) ?? prefixes.find(({ prefix }) => model.startsWith(prefix))?.step ?? offered.get(model) ?? usual;
}

const isWholeName = (model: string): boolean => !model.endsWith("*");

/**
 * A name is listed if asking for it leads to the lane that offers it, or if the operator has assigned it; the default
 * lane by its own name if it has no other. A server that is down hides only its own.
 */
async function listModels(
  { lanes, defaultLane, byModel }: RouteParts,
  laneOf: (model: string) => Lane,
): Promise<readonly string[]> {
  const assigned = Object.keys(byModel).filter(isWholeName);
  const offers = await Promise.allSettled(
    lanes.map(async (lane) => {
      const configured = namesOf(lane);
      if (configured.length > 0) return configured;
      const reported = await lane.adapter.models?.();
      if (reported !== undefined) return reported.filter((model) => laneOf(model) === lane);
      return lane.name === defaultLane && !assigned.some((model) => laneOf(model) === lane) ? [lane.name] : [];
    }),
  );
  const names = new Set([...offers.flatMap((offer) => (offer.status === "fulfilled" ? offer.value : [])), ...assigned]);
  const failed = offers.find((offer) => offer.status === "rejected");
  if (names.size === 0 && failed !== undefined) throw failed.reason;
  return [...names];
}
