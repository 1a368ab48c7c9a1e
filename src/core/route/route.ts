/** A turn's way to an adapter: the lane that its model names, retried where that is safe, then its fallbacks. */
import type { BreakerState } from "./breaker.ts";
import { closeAll } from "../closing.ts";
import { dispatchTurn } from "./dispatch.ts";
import { createLaneSteps, type Lane, type LaneStep, laneStepOf, windowOf } from "./lane.ts";
import { createModelTable, isWholeName } from "./models.ts";
import type { Adapter, Tell } from "../ports.ts";
import { adaptTurn } from "./adapt.ts";
import type { RoutedTurn, Turn } from "../turn.ts";
import type { Observer } from "../observer.ts";

export type { Lane };

/** An adapter made of adapters. Turns arrive with the model's name as the caller wrote it. */
export interface Route extends Adapter {
  stream(turn: RoutedTurn, signal: AbortSignal, tell?: Tell): ReturnType<Adapter["stream"]>;
  contextWindow(model: string): number | undefined;
  /** What the adapter that is asked first for a model speaks. */
  speaksFor(model: string): Adapter["speaks"];
  countTokens(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  models(): Promise<readonly string[]>;
  close(): Promise<void>;
  states(): readonly (BreakerState & { readonly name: string })[];
}

export interface RouteParts {
  readonly lanes: readonly Lane[];
  readonly defaultLane: string;
  /** From a model's name, or a prefix of names (`gpt-*`), to a lane's name. */
  readonly byModel?: Readonly<Record<string, string>> | undefined;
  /** Absent: nobody counts. */
  readonly observer?: Observer | undefined;
  readonly now: () => Date;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Ends early when the signal aborts. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

export function createRoute(parts: RouteParts): Route {
  const { lanes, byModel = {}, now, observer } = parts;
  const steps = createLaneSteps(lanes, now, observer);
  const pick = createPicker(parts, steps);
  return {
    stream: (turn, signal, tell = ignore) => dispatchTurn(pick(turn.model).path, turn, signal, tell, parts),
    contextWindow: (model) => windowOf(pick(model).lane, model),
    speaksFor: (model) => pick(model).lane.adapter.speaks,
    countTokens: (turn, signal) => countTokens(pick(turn.model).lane, turn, signal),
    models: () => listModels(parts, Object.keys(byModel).filter(isWholeName), (model) => pick(model).lane),
    close: () => closeAll(new Set(lanes.map(({ adapter }) => adapter))),
    states: () =>
      Array.from(steps.values(), ({ lane, breaker }) => ({
        name: lane.name,
        ...(breaker?.state() ?? alwaysClosed),
      })),
  };
}

const ignore: Tell = () => {};
const alwaysClosed: BreakerState = { state: "closed", failures: 0, opensUntil: undefined };

/** The operator's table decides, else the lane known for the name, else the default. */
function createPicker(
  { defaultLane, byModel = {} }: RouteParts,
  steps: ReadonlyMap<string, LaneStep>,
): (asked: string) => LaneStep {
  const usual = laneStepOf(steps, defaultLane, "the default");
  const chosen = createModelTable(
    Object.entries(byModel).map(([model, name]) => [model, laneStepOf(steps, name, `the model '${model}'`)]),
  );
  const knownFor = new Map<string, LaneStep>();
  for (const step of [usual, ...steps.values()]) {
    for (const model of step.lane.models.known) if (!knownFor.has(model)) knownFor.set(model, step);
  }
  return (asked) => chosen(asked) ?? knownFor.get(asked) ?? usual;
}

async function countTokens({ adapter, models }: Lane, turn: Turn, signal: AbortSignal): Promise<number | undefined> {
  if (adapter.countTokens === undefined) return undefined;
  const named = { ...turn, model: models.resolve(turn.model) };
  return adapter.countTokens(adaptTurn(named, adapter, ignore).turn, signal);
}

/**
 * A name is listed if asking for it leads to a lane that offers it, or if the operator has assigned it. The default
 * lane is listed by its own name if it has no other. An upstream that is down hides only its own names.
 */
async function listModels(
  { lanes, defaultLane }: RouteParts,
  named: readonly string[],
  laneOf: (model: string) => Lane,
): Promise<readonly string[]> {
  const offers = await Promise.allSettled(
    lanes.map(async (lane) => {
      if (lane.models.known.length > 0) return lane.models.known;
      const offered = (await lane.adapter.models?.()) ?? (lane.name === defaultLane ? ownName(lane) : []);
      return offered.filter((model) => laneOf(model) === lane);
    }),
  );

  /** It answers to any name, even its own. */
  function ownName(lane: Lane): readonly string[] {
    return named.some((model) => laneOf(model) === lane) ? [] : [lane.name];
  }

  const names = new Set([...offers.flatMap((offer) => (offer.status === "fulfilled" ? offer.value : [])), ...named]);
  const failed = offers.find((offer) => offer.status === "rejected");
  if (names.size === 0 && failed !== undefined) throw failed.reason;
  return [...names];
}
