/** The metrics of the gateway, in the format that Prometheus reads. */
import type { Load } from "../core/gateway.ts";
import type { About, History } from "../core/ports.ts";
import type { BreakerState } from "../core/route/breaker.ts";
import type { AttemptObserver, Observer } from "../core/observer.ts";
import type { Usage } from "../core/turn.ts";
import { type Family, toFamily, writeFamilies } from "./metrics/family.ts";
import { readProcess } from "./metrics/process.ts";
import { createCounter, createHistogram, createTokenCounter } from "./metrics/series.ts";

/** What is measured only when read. */
export interface MetricSources {
  readonly adapters: () => readonly AdapterState[];
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

interface AdapterState {
  readonly name: string;
  readonly state: BreakerState["state"];
}

export interface Metrics extends Pick<Observer, "placed" | "retried"> {
  /**
   * Counts an answer that has ended. `path` is a route's, so there are few. `failedAs` is the status of a failure
   * inside a stream, which began with a good status.
   */
  count(path: string, status: number, ms: number, first?: FirstByte, failedAs?: number): void;
  asked(adapter: string): AttemptObserver;
  fellBack(adapter: string): void;
  /** Counts a turn that has ended; `owner` is a token's name, so there are few. */
  used(owner: string, turn: UsedTurn): void;
  /** Counts how long storing a turn took, successful or not. */
  committed(ms: number): void;
  read(sources: MetricSources): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** When the first byte of an answer's content was sent. */
export interface FirstByte {
  readonly ms: number;
  /** In a whole answer, it is nearly the last one too. */
  readonly isStreamed: boolean;
}

interface UsedTurn {
  readonly about?: Pick<About, "adapter"> | undefined;
  readonly usage?: Usage | undefined;
}

/**
 * Counting costs 0.6 µs a turn and writes no text: only a reader pays for that. The library's own counters would cost
 * 7 µs, and loading them 50 ms of every start. Labels are the operator's names, never what callers choose.
 */
export function createMetrics(nowMs = () => performance.now(), version = "unknown"): Metrics {
  const requests = createCounter("portico_requests_total", "Requests answered.", ["path", "status"]);
  const requestSeconds = createHistogram(
    "portico_request_seconds",
    "From a request's arrival to the end of its answer.",
    ["path", "outcome"],
    turnBounds,
  );
  const firstByteSeconds = createHistogram(
    "portico_first_byte_seconds",
    "For turns: from the request's arrival to the first byte of its answer.",
    ["path", "stream"],
    turnBounds,
  );
  const placed = createCounter("portico_history_total", "Turns by history outcome.", ["history"]);
  const commitSeconds = createHistogram(
    "portico_commit_seconds",
    "How long the store took to commit a turn.",
    [],
    commitBounds,
  );
  const attempts = createCounter("portico_adapter_turns_total", "Attempts at the adapter, by result.", [
    "adapter",
    "outcome",
    "code",
  ]);
  const attemptSeconds = createHistogram(
    "portico_adapter_seconds",
    "From the start of an attempt to its last word.",
    ["adapter"],
    turnBounds,
  );
  const tokens = createTokenCounter("portico_tokens_total", "Tokens as reported by the adapter.", ["adapter"]);
  const retries = createCounter("portico_adapter_retries_total", "Retries of the adapter.", ["adapter"]);
  const fallbacks = createCounter(
    "portico_adapter_fallbacks_total",
    "Turns passed on from the adapter to a fallback.",
    ["adapter"],
  );
  const ownerTokens = createTokenCounter(
    "portico_owner_tokens_total",
    "Tokens as reported by the adapter, for the turns of a token's name.",
    ["owner", "adapter"],
  );
  const adapters = new Set<string>();

  for (const history of histories) placed.at(history);
  commitSeconds.at();

  /** Prometheus sees no increase in a series that is new, so all of an adapter's are counted from 0. */
  function know(adapter: string): void {
    if (adapters.has(adapter)) return;
    adapters.add(adapter);
    for (const outcome of ["completed", "incomplete", "cancelled"]) attempts.at(adapter, outcome);
    for (const metric of [attemptSeconds, tokens, retries, fallbacks]) metric.at(adapter);
  }

  return {
    count(path, status, ms, first, failedAs = status) {
      requests.at(path, status).count++;
      // Failures are counted from 0 once a path was asked for.
      requestSeconds.at(path, "failed");
      // An upgraded request lasts as long as its connection, whose turns are counted one by one.
      if (status < okStatus) return;
      requestSeconds.at(path, toOutcome(status < 400 ? failedAs : status)).observe(ms);
      if (first !== undefined) firstByteSeconds.at(path, String(first.isStreamed)).observe(first.ms);
    },
    asked(adapter) {
      know(adapter);
      const since = nowMs();
      return {
        ended({ outcome, code = "internal_error", usage }) {
          (outcome === "failed" ? attempts.at(adapter, outcome, code) : attempts.at(adapter, outcome)).count++;
          attemptSeconds.at(adapter).observe(nowMs() - since);
          if (usage !== undefined) tokens.at(adapter).add(usage);
        },
      };
    },
    retried(adapter) {
      know(adapter);
      retries.at(adapter).count++;
    },
    fellBack(adapter) {
      know(adapter);
      fallbacks.at(adapter).count++;
    },
    used(owner, { about, usage }) {
      if (usage !== undefined) ownerTokens.at(owner, about?.adapter ?? "").add(usage);
    },
    placed: (history) => void placed.at(history).count++,
    committed: commitSeconds.at().observe,
    async read(sources) {
      const states = sources.adapters();
      for (const { name } of states) know(name);
      return writeFamilies([
        ...[requests, requestSeconds, firstByteSeconds].map((metric) => metric.read()),
        ...readTurns(sources),
        placed.read(),
        commitSeconds.read(),
        toFamily("gauge", "portico_store_ready", "1: turns can be stored; 0: they cannot.", await readReady(sources)),
        ...[attempts, attemptSeconds, tokens, retries, fallbacks, ownerTokens].map((metric) => metric.read()),
        toBreakerStates(states),
        toBuild(version),
        ...(await readProcess()),
      ]);
    },
  };
}

const histories: readonly History[] = ["new", "continued", "matched", "forked", "foreign", "stateless"];

/** From one word of a local model to an agent's long run, in seconds. */
const turnBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
/** From a page in a disk's cache to a server that hardly responds. */
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

const okStatus = 200;
/** Status of a request whose caller left before the end. */
const callerLeft = 499;

/** A flood of instant refusals must not make answers look quick. */
function toOutcome(status: number): "answered" | "refused" | "failed" | "left" {
  if (status === callerLeft) return "left";
  if (status >= 500) return "failed";
  return status >= 400 ? "refused" : "answered";
}

function readTurns({ turns, heldBytes, load, connections }: MetricSources): readonly Family[] {
  const { waiting, live } = load();
  return [
    toFamily("gauge", "portico_turns_running", "Turns that callers are waiting for.", turns()),
    toFamily("gauge", "portico_turns_waiting", "Turns that wait for another turn of their session.", waiting),
    toFamily(
      "gauge",
      "portico_background_turns_running",
      "Turns running in the background or with an Idempotency-Key.",
      live,
    ),
    toFamily("gauge", "portico_websocket_connections", "Open WebSockets.", connections()),
    toFamily("gauge", "portico_held_bytes", "Memory used by requests, unread answers and WebSockets.", heldBytes()),
  ];
}

function readReady({ ready }: MetricSources): Promise<number> {
  return ready().then(
    () => 1,
    () => 0,
  );
}

/** Always 1, as is usual: its labels are joined to other series. */
function toBuild(version: string): Family {
  const values = [{ labels: { version, node: process.versions.node }, value: 1 }];
  return { name: "portico_build_info", help: "Which versions are running.", type: "gauge", values };
}

function toBreakerStates(adapters: readonly AdapterState[]): Family {
  const values = adapters.flatMap(({ name: adapter, state: current }) =>
    (["closed", "open", "half-open"] as const).map((state) => ({
      labels: { adapter, state },
      value: state === current ? 1 : 0,
    })),
  );
  const help = "1 for the current state of the adapter's circuit breaker.";
  return { name: "portico_adapter_breaker_state", help, type: "gauge", values };
}
