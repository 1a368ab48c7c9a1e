/** The way of a turn to an adapter: the lane that its model names, again where that is safe, then the lanes behind it. */
import {
  type Breaker,
  type BreakerSettings,
  type BreakerState,
  createBreaker,
  outcomeOf,
  type Pass,
} from "./breaker.ts";
import type { Delta } from "../delta.ts";
import { type ErrorCode, GatewayError, toGatewayError } from "../errors.ts";
import { createModelTable, type ModelNames } from "./models.ts";
import type { Adapter, Remark, Tell } from "../ports.ts";
import { suit } from "./suit.ts";
import type { Turn } from "../turn.ts";

/** An adapter made of adapters. Turns come with the model's name as the caller asked for it. */
export interface Route extends Adapter {
  contextWindow(model: string): number | undefined;
  countTokens(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  models(): Promise<readonly string[]>;
  close(): Promise<void>;
  states(): readonly LaneState[];
}

interface LaneState extends BreakerState {
  readonly name: string;
}

/** An adapter as the operator has set it up. */
export interface Lane {
  readonly name: string;
  readonly adapter: Adapter;
  readonly models: ModelNames;
  /** In tokens; the operator's word stands above the adapter's. */
  readonly contextWindow?: number | undefined;
  /** Lanes to try when this one cannot answer, in this order. */
  readonly fallback?: readonly string[] | undefined;
  /** Absent: off. */
  readonly breaker?: BreakerSettings | undefined;
  /** Absent: off. */
  readonly retry?: RetrySettings | undefined;
}

interface RetrySettings {
  /** How often a lane is asked again; 2 unless told. */
  readonly times?: number | undefined;
  /** About how long to wait for the first time, then twice as long each time; 200 unless told. */
  readonly baseMs?: number | undefined;
  /** How long after its first attempt a turn may be asked again; 1,000 unless told. */
  readonly maxWaitMs?: number | undefined;
}

export interface RouteParts extends Chance {
  readonly lanes: readonly Lane[];
  readonly defaultLane: string;
  /** A model's name, or the beginning of names (`gpt-*`), to the name of a lane. */
  readonly byModel?: Readonly<Record<string, string>> | undefined;
}

interface Chance {
  readonly now: () => Date;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Ends early when the signal aborts. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

export function createRoute(parts: RouteParts): Route {
  const { lanes, now, random, wait } = parts;
  const stations = createStations(parts);
  const pick = createPicker(parts, stations);
  return {
    stream(turn, signal, tell = ignore) {
      const { path } = pick(turn.model);
      return { [Symbol.asyncIterator]: () => travel({ path, turn, signal, tell, now, random, wait }) };
    },
    contextWindow(model) {
      const { lane } = pick(model);
      return lane.contextWindow ?? lane.adapter.contextWindow?.(lane.models.resolve(model));
    },
    countTokens: (turn, signal) => countTokens(pick(turn.model).lane, turn, signal),
    models: () => listModels(lanes, (model) => pick(model).lane),
    async close() {
      await Promise.all(Array.from(new Set(lanes.map(({ adapter }) => adapter)), (adapter) => adapter.close?.()));
    },
    states: () =>
      Array.from(stations.values(), ({ lane, breaker }) => ({
        name: lane.name,
        ...(breaker?.state() ?? alwaysClosed),
      })),
  };
}

const ignore: Tell = () => {};
const alwaysClosed: BreakerState = { state: "closed", failures: 0, opensUntil: undefined };

interface Journey extends Chance {
  readonly path: readonly Station[];
  readonly turn: Turn;
  readonly signal: AbortSignal;
  readonly tell: Tell;
}

type Deltas = AsyncIterator<readonly Delta[]>;
type First = IteratorResult<readonly Delta[]>;
const over: First = { done: true, value: undefined };

/** Until a lane says its first word others may be asked; from then on the caller pulls from that lane itself. */
function travel({ path, turn, signal, tell, now, random, wait }: Journey): Deltas {
  /** The one that is asked now. */
  let deltas: Deltas | undefined;
  let pass: Pass | undefined;
  let opening: Promise<First> | undefined;
  let isOpen = false;
  let isLeft = false;

  async function open(): Promise<First> {
    const failures: GatewayError[] = [];
    for (const station of path) {
      const first = await tryLane(station);
      if (!(first instanceof GatewayError)) {
        isOpen = true;
        return first;
      }
      failures.push(first);
    }
    throw failureToTell(failures);
  }

  /** The first word, or why there is none; throws what no other lane could mend. */
  async function tryLane(station: Station): Promise<First | GatewayError> {
    const { lane, breaker } = station;
    const isFirst = station === path[0];
    const began = now().getTime();
    for (let times = 0; ; times++) {
      try {
        return await ask(station);
      } catch (thrown) {
        if (signal.aborted || isLeft) throw thrown;
        const failure = toGatewayError(thrown);
        if (!isLanesFault(failure.code, lane, turn.model, isFirst)) throw failure;
        tell({ type: "tried", adapter: lane.name, code: failure.code });
        const isDown = breaker !== undefined && breaker.state().state !== "closed";
        const retry = isFirst && !isDown ? lane.retry : undefined;
        const waitMs = retryMs(retry, failure, times, now().getTime() - began, random);
        if (waitMs === undefined) return failure;
        await wait(waitMs, signal);
      }
    }
  }

  async function ask({ lane, breaker }: Station): Promise<First> {
    signal.throwIfAborted();
    if (isLeft) return over;
    // What an adapter cannot take is only worth telling when that adapter answers.
    const remarks: Remark[] = [];
    const hear: Tell = (remark) => (isOpen ? tell(remark) : remarks.push(remark));
    const suited = suit({ ...turn, model: lane.models.resolve(turn.model) }, lane.adapter, hear);
    pass = breaker?.enter();
    if (breaker !== undefined && pass === undefined) throw keptAway(lane, breaker.state(), now());
    try {
      deltas = lane.adapter.stream(suited, signal, hear)[Symbol.asyncIterator]();
      let first = await deltas.next();
      // A batch without a delta says nothing yet.
      while (first.done !== true && first.value.length === 0) first = await deltas.next();
      pass?.(signal.aborted ? "unknown" : "answered");
      for (const remark of remarks) tell(remark);
      return first;
    } catch (thrown) {
      deltas = undefined;
      pass?.(signal.aborted ? "unknown" : outcomeOf(toGatewayError(thrown).code));
      throw thrown;
    }
  }

  const iterator: Deltas = {
    next() {
      if (isOpen) return deltas?.next() ?? Promise.resolve(over);
      if (opening !== undefined) return opening.then(() => iterator.next());
      return (opening = open());
    },
    async return() {
      isLeft = true;
      pass?.("unknown");
      await deltas?.return?.();
      return over;
    },
  };
  return iterator;
}

function keptAway({ name }: Lane, { opensUntil = 0 }: BreakerState, now: Date): GatewayError {
  return new GatewayError("overloaded", `The adapter '${name}' has failed too often and rests for a moment.`, {
    retryAfterSeconds: Math.max(1, Math.ceil((opensUntil - now.getTime()) / 1000)),
  });
}

/** How long to wait before the lane is asked again, if it should be. */
function retryMs(
  retry: RetrySettings | undefined,
  failure: GatewayError,
  times: number,
  spentMs: number,
  random: () => number,
): number | undefined {
  if (retry === undefined || !passingFaults.has(failure.code)) return undefined;
  const { times: maxTimes = 2, baseMs = 200, maxWaitMs = 1_000 } = retry;
  if (times >= maxTimes) return undefined;
  // Half by chance, so that turns that failed together do not come again together.
  const backOffMs = baseMs * 2 ** times * (0.5 + random() / 2);
  const waitMs = Math.max(backOffMs, (failure.retryAfterSeconds ?? 0) * 1000);
  return spentMs + waitMs <= maxWaitMs ? waitMs : undefined;
}

/** Faults that may be gone in a moment. Who ran out of time has tried the caller's patience already. */
const passingFaults: ReadonlySet<ErrorCode> = new Set(["adapter_error", "adapter_rate_limit", "overloaded"]);

/** Faults of one lane that another need not have: also a wrong key, garbage instead of an answer, a bug. */
const lanesFaults: ReadonlySet<ErrorCode> = new Set([
  ...passingFaults,
  "adapter_timeout",
  "adapter_protocol",
  "adapter_refused",
  "internal_error",
]);

function isLanesFault(code: ErrorCode, lane: Lane, model: string, isFirst: boolean): boolean {
  // What the caller asked for it asked of the first lane; a lane behind it may well be unable.
  if (code === "unsupported_parameter") return !isFirst;
  // A model that is not there is the caller's mistake, unless the operator has put the name.
  if (code === "adapter_not_found") return !isFirst || lane.models.resolve(model) !== model;
  return lanesFaults.has(code);
}

/** The caller asked for the first lane and reads what happened there; if that is to come back later, when anyone may answer. */
function failureToTell(failures: readonly GatewayError[]): GatewayError {
  return failures.reduce((told, other) =>
    asksToWait(told) && asksToWait(other) && waitOf(other) < waitOf(told) ? other : told,
  );
}

function asksToWait({ code }: GatewayError): boolean {
  return code === "adapter_rate_limit" || code === "overloaded";
}

function waitOf({ retryAfterSeconds }: GatewayError): number {
  return retryAfterSeconds ?? Number.POSITIVE_INFINITY;
}

/** A lane, and where turns go from it. */
interface Station {
  readonly lane: Lane;
  readonly breaker: Breaker | undefined;
  /** Itself, then the lanes behind it, each once. */
  readonly path: readonly Station[];
}

function createStations({ lanes, now }: RouteParts): ReadonlyMap<string, Station> {
  const stations = new Map<string, Station & { path: readonly Station[] }>();
  for (const lane of lanes) {
    if (stations.has(lane.name)) throw new Error(`There are two lanes of the name '${lane.name}'.`);
    const breaker = lane.breaker && createBreaker(lane.breaker, now);
    stations.set(lane.name, { lane, breaker, path: [] });
  }
  for (const station of stations.values()) {
    const names = new Set([station.lane.name, ...(station.lane.fallback ?? [])]);
    station.path = Array.from(names, (name) => stationOf(stations, name, `the fallback of '${station.lane.name}'`));
  }
  return stations;
}

function stationOf(stations: ReadonlyMap<string, Station>, name: string, namedBy: string): Station {
  const station = stations.get(name);
  if (station === undefined) throw new Error(`There is no lane '${name}', which ${namedBy} names.`);
  return station;
}

/** What the operator's table says, else the lane that is known for the name, else the default. */
function createPicker(
  { lanes, defaultLane, byModel = {} }: RouteParts,
  stations: ReadonlyMap<string, Station>,
): (asked: string) => Station {
  const usual = stationOf(stations, defaultLane, "the default");
  for (const [model, name] of Object.entries(byModel)) stationOf(stations, name, `the model '${model}'`);
  const chosen = createModelTable(byModel);
  const knownFor = new Map<string, string>();
  for (const { name, models } of [usual.lane, ...lanes]) {
    for (const model of models.known) if (!knownFor.has(model)) knownFor.set(model, name);
  }
  return (asked) => stations.get(chosen(asked) ?? knownFor.get(asked) ?? defaultLane) ?? usual;
}

async function countTokens({ adapter, models }: Lane, turn: Turn, signal: AbortSignal): Promise<number | undefined> {
  if (adapter.countTokens === undefined) return undefined;
  const named = { ...turn, model: models.resolve(turn.model) };
  return adapter.countTokens(suit(named, adapter, ignore), signal);
}

/** A name is listed where asking for it leads to a lane that offers it. One upstream that is down hides only its own. */
async function listModels(lanes: readonly Lane[], laneOf: (model: string) => Lane): Promise<readonly string[]> {
  const offers = await Promise.allSettled(
    lanes.map(async (lane) => {
      if (lane.models.known.length > 0) return lane.models.known;
      return ((await lane.adapter.models?.()) ?? []).filter((model) => laneOf(model) === lane);
    }),
  );
  const names = new Set(offers.flatMap((offer) => (offer.status === "fulfilled" ? offer.value : [])));
  const failed = offers.find((offer) => offer.status === "rejected");
  if (names.size === 0 && failed !== undefined) throw failed.reason;
  return [...names];
}
