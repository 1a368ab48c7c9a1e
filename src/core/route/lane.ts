/** Lanes: adapters as the operator configured them, and where turns go from each. */
import { type Breaker, type BreakerSettings, createBreaker } from "./breaker.ts";
import type { ModelNames } from "./models.ts";
import type { Adapter } from "../ports.ts";
import type { Witness } from "../witness.ts";

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

export interface RetrySettings {
  /** How often a lane is retried. */
  readonly times: number;
  /** Roughly how long to wait before the first retry; doubles each time. */
  readonly baseMs: number;
  /** How long after its first attempt a turn may be retried. */
  readonly maxWaitMs: number;
}

/** A lane, and where turns go from it. */
export interface Station {
  readonly lane: Lane;
  readonly breaker: Breaker | undefined;
  /** Itself, then its fallbacks, each once. */
  readonly path: readonly Station[];
}

export function createStations(
  lanes: readonly Lane[],
  now: () => Date,
  witness?: Pick<Witness, "rests" | "isBack">,
): ReadonlyMap<string, Station> {
  const stations = new Map<string, Station & { path: readonly Station[] }>();
  for (const lane of lanes) {
    if (stations.has(lane.name)) throw new Error(`There are two lanes named '${lane.name}'.`);
    const { name } = lane;
    const told = { rests: (why = "") => witness?.rests(name, why), isBack: () => witness?.isBack(name) };
    const breaker = lane.breaker && createBreaker(lane.breaker, now, told);
    stations.set(lane.name, { lane, breaker, path: [] });
  }
  for (const station of stations.values()) {
    const names = new Set([station.lane.name, ...(station.lane.fallback ?? [])]);
    station.path = Array.from(names, (name) => stationOf(stations, name, `the fallback of '${station.lane.name}'`));
  }
  return stations;
}

export function stationOf(stations: ReadonlyMap<string, Station>, name: string, namedBy: string): Station {
  const station = stations.get(name);
  if (station === undefined) throw new Error(`There is no lane '${name}', which ${namedBy} names.`);
  return station;
}
