/** Lanes: adapters as the operator has set them up, and where turns go from each. */
import { type Breaker, type BreakerSettings, createBreaker } from "./breaker.ts";
import type { ModelNames } from "./models.ts";
import type { Adapter } from "../ports.ts";
import type { Witness } from "../witness.ts";

/** An adapter as the operator has set it up. */
export interface Lane {
  readonly name: string;
  readonly adapter: Adapter;
  readonly models: ModelNames;
  /** In tokens; the operator's word stands above the adapter's. */
  readonly contextWindow?: number | undefined;
  /** How much it may say in one answer, about. */
  readonly maxAnswerCharacters: number;
  /** Lanes to try when this one cannot answer, in this order. */
  readonly fallback?: readonly string[] | undefined;
  /** Absent: off. */
  readonly breaker?: BreakerSettings | undefined;
  /** Absent: off. */
  readonly retry?: RetrySettings | undefined;
}

export interface RetrySettings {
  /** How often a lane is asked again. */
  readonly times: number;
  /** About how long to wait for the first time, then twice as long each time. */
  readonly baseMs: number;
  /** How long after its first attempt a turn may be asked again. */
  readonly maxWaitMs: number;
}

/** A lane, and where turns go from it. */
export interface Station {
  readonly lane: Lane;
  readonly breaker: Breaker | undefined;
  /** Itself, then the lanes behind it, each once. */
  readonly path: readonly Station[];
}

export function createStations(
  lanes: readonly Lane[],
  now: () => Date,
  witness?: Pick<Witness, "rests" | "isBack">,
): ReadonlyMap<string, Station> {
  const stations = new Map<string, Station & { path: readonly Station[] }>();
  for (const lane of lanes) {
    if (stations.has(lane.name)) throw new Error(`There are two lanes of the name '${lane.name}'.`);
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
