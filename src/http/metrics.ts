/** The metrics of the gateway, in the format that Prometheus reads. */
import type { Load } from "../core/gateway.ts";
import type { History } from "../core/ports.ts";
import type { BreakerState } from "../core/route/breaker.ts";
import type { Observer } from "../core/observer.ts";
import { type AdapterCounts, createAdapterCounts } from "./metrics/adapters.ts";
import { type Family, toCounter, toGauge, toHistogram, writeFamilies } from "./metrics/family.ts";
import { commitBounds, createHistogram } from "./metrics/histogram.ts";
import { createOwnerCounts, type OwnerCounts } from "./metrics/owners.ts";
import { readProcess } from "./metrics/process.ts";
import { createRequestCounts, type RequestCounts } from "./metrics/requests.ts";

/** What is measured only when read. */
export interface MetricSources {
  readonly adapters: () => readonly { readonly name: string; readonly state: BreakerState["state"] }[];
  /** Turns that callers wait for now. */
  readonly turns: () => number;
  /** Of requests in progress, unread answers and WebSocket memories. */
  readonly heldBytes: () => number;
  readonly load: () => Load;
  /** WebSockets that are open now. */
  readonly connections: () => number;
  /** Throws if turns cannot be stored. */
  readonly ready: () => Promise<void>;
}

export interface Metrics
  extends
    Pick<Observer, "placed">,
    Omit<AdapterCounts, "read">,
    Pick<RequestCounts, "count">,
    Pick<OwnerCounts, "used"> {
  /** Counts how long storing a turn took, successful or not. */
  committed(ms: number): void;
  read(sources: MetricSources): Promise<{ readonly contentType: string; readonly text: string }>;
}

/**
 * Counting costs 0.6 µs a turn and writes no text: only a reader pays for that. The library's own counters would cost
 * 7 µs, and loading them 50 ms of every start.
 */
export function createMetrics(nowMs = () => performance.now()): Metrics {
  const requests = createRequestCounts();
  const adapters = createAdapterCounts(nowMs);
  const owners = createOwnerCounts();
  const histories: Record<History, number> = { new: 0, continued: 0, matched: 0, forked: 0, foreign: 0, stateless: 0 };
  const commits = createHistogram(commitBounds);
  return {
    count: requests.count,
    asked: adapters.asked,
    retried: adapters.retried,
    fellBack: adapters.fellBack,
    used: owners.used,
    placed: (history) => void histories[history]++,
    committed: commits.observe,
    async read(sources) {
      const states = sources.adapters();
      return writeFamilies([
        ...requests.read(),
        ...readTurns(sources),
        toCounter(
          "portico_history_total",
          "Turns by history outcome.",
          Object.entries(histories).map(([history, count]) => [{ history }, count]),
        ),
        toHistogram("portico_commit_seconds", "How long the store took to commit a turn.", [[{}, commits]]),
        toGauge("portico_store_ready", "1: turns can be stored; 0: they cannot.", await readReady(sources)),
        ...adapters.read(states.map(({ name }) => name)),
        ...owners.read(),
        toGauge(
          "portico_adapter_breaker_state",
          "1 for the current state of the adapter's circuit breaker.",
          states.flatMap(({ name: adapter, state }) =>
            breakerStates.map((each) => [{ adapter, state: each }, each === state ? 1 : 0] as const),
          ),
        ),
        ...(await readProcess()),
      ]);
    },
  };
}

function readTurns({ turns, heldBytes, load, connections }: MetricSources): readonly Family[] {
  const { waiting, live } = load();
  return [
    toGauge("portico_turns_running", "Turns that callers are waiting for.", turns()),
    toGauge("portico_turns_waiting", "Turns that wait for another turn of their session.", waiting),
    toGauge("portico_background_turns_running", "Turns running in the background or with an Idempotency-Key.", live),
    toGauge("portico_websocket_connections", "Open WebSockets.", connections()),
    toGauge("portico_held_bytes", "Memory used by requests, unread answers and WebSockets.", heldBytes()),
  ];
}

function readReady({ ready }: MetricSources): Promise<number> {
  return ready().then(
    () => 1,
    () => 0,
  );
}

const breakerStates: readonly BreakerState["state"][] = ["closed", "open", "half-open"];
