/** What the door counts, told in the form that Prometheus reads. */

/** What is asked at the moment of the reading. */
export interface MetricSources {
  readonly adapters: () => readonly { readonly name: string; readonly state: BreakerState }[];
  /** Turns that run now. */
  readonly turns: () => number;
  /** Throws when turns cannot be kept. */
  readonly ready: () => Promise<void>;
}

type BreakerState = "closed" | "open" | "half-open";

export interface Metrics {
  /** An answer is over. */
  count(path: string, status: number, ms: number): void;
  read(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Counting costs a look into a map; the library that writes the form down is loaded for the first reader. */
export function createMetrics({ adapters, turns, ready }: MetricSources): Metrics {
  const requests = new Map<string, Count>();
  return {
    count(path, status, ms) {
      const key = `${status} ${path}`;
      let found = requests.get(key);
      if (found === undefined) requests.set(key, (found = { path, status, requests: 0, seconds: 0 }));
      found.requests += 1;
      found.seconds += ms / 1000;
    },
    async read() {
      const { Counter, Gauge, Registry } = (await import("prom-client")).default;
      const registry = new Registry();
      const registers = [registry];
      const labelNames = ["path", "status"];
      const total = new Counter({ name: "portico_requests_total", help: "Requests answered.", labelNames, registers });
      const seconds = new Counter({
        name: "portico_request_seconds_total",
        help: "Seconds from the first byte of a request to the end of its answer, in all.",
        labelNames,
        registers,
      });
      for (const { path, status, requests: count, seconds: spent } of requests.values()) {
        total.inc({ path, status }, count);
        seconds.inc({ path, status }, spent);
      }
      new Gauge({ name: "portico_turns_running", help: "Turns that run now.", registers }).set(turns());
      const isReady = await ready().then(
        () => 1,
        () => 0,
      );
      new Gauge({ name: "portico_store_ready", help: "1: turns can be kept.", registers }).set(isReady);
      const breaker = new Gauge({
        name: "portico_adapter_breaker_state",
        help: "1 for the state that an adapter's breaker is in.",
        labelNames: ["adapter", "state"],
        registers,
      });
      for (const { name, state } of adapters()) {
        for (const each of states) breaker.set({ adapter: name, state: each }, each === state ? 1 : 0);
      }
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

interface Count {
  readonly path: string;
  readonly status: number;
  requests: number;
  seconds: number;
}

const states: readonly BreakerState[] = ["closed", "open", "half-open"];
