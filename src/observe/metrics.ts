/** What Prometheus reads. Labels are the operator's names and the gateway's own words, never what a caller chooses. */
import type { ErrorCode } from "../core/errors.ts";
import type { Told } from "../core/place.ts";
import type { Usage } from "../core/turn.ts";
import { readProcess } from "./process.ts";
import { askedOf, failureOf, type RequestRecord } from "./record.ts";
import { createRegistry, type Labels, type Registry, type Sample } from "./series.ts";

/** How one attempt at an adapter went. */
export interface Attempt {
  readonly outcome: "completed" | "incomplete" | "failed" | "cancelled";
  /** Of a failure. */
  readonly code?: ErrorCode | undefined;
  /** As far as the adapter reported it. */
  readonly usage?: Usage | undefined;
  readonly ms: number;
}

/** What is measured only when somebody reads. */
export interface Gauges {
  /** Turns that callers wait for. */
  readonly running: number;
  /** Of these, turns that wait for another turn of their session. */
  readonly waiting: number;
  readonly background: number;
  readonly connections: number;
  readonly heldBytes: number;
  readonly isReady: boolean;
  readonly adapters: readonly { readonly name: string; readonly state: (typeof breakerStates)[number] }[];
}

const breakerStates = ["closed", "open", "half-open"] as const;
const histories: readonly Told[] = ["new", "continued", "matched", "forked", "foreign", "stateless"];

/** From one word of a local model to an agent's long run. */
const turnBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
/** From a page in a disk's cache to a server that hardly responds. */
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(version: string) {
  const registry = createRegistry();
  const counters = (name: string, help: string) => registry.counters(`portico_${name}`, help);
  const histograms = (name: string, help: string, bounds = turnBounds) =>
    registry.histograms(`portico_${name}`, help, bounds);

  const requests = counters("requests_total", "Requests answered.");
  const requestSeconds = histograms("request_seconds", "From a request's arrival to the end of its answer.");
  const firstSeconds = histograms("first_byte_seconds", "For turns: from arrival to the first byte of the answer.");
  const turns = counters("history_total", "Turns by history outcome.");
  const committed = histograms("commit_seconds", "How long the store took to commit a turn.", commitBounds)({});
  const attempts = counters("adapter_turns_total", "Attempts at the adapter, by result.");
  const attemptSeconds = histograms("adapter_seconds", "From the start of an attempt to its last word.");
  const adapterTokens = counters("tokens_total", "Tokens as reported by the adapter.");
  const ownerTokens = counters("owner_tokens_total", "The same, for the turns of a token's name.");
  const retries = counters("adapter_retries_total", "Retries of the adapter.");
  const fallbacks = counters("adapter_fallbacks_total", "Turns passed on from the adapter to a fallback.");

  // Prometheus sees no increase in a series that is new, so what is worth an alert counts from 0.
  const onPath = once((path: string) => {
    const observe = once((outcome: Outcome) => requestSeconds({ path, outcome }));
    observe("failed");
    const answered = once((status: number) => requests({ path, status }));
    return { answered, observe, observeFirst: once((stream: boolean) => firstSeconds({ path, stream })) };
  });
  const ofAdapter = once((adapter: string) => {
    const ended = once((outcome: string) => attempts({ adapter, outcome }));
    const failed = once((code: string) => attempts({ adapter, outcome: "failed", code }));
    for (const outcome of ["completed", "incomplete", "cancelled"]) ended(outcome);
    const observe = attemptSeconds({ adapter });
    const countTokens = createTokenCount(adapterTokens, { adapter });
    return {
      retries: retries({ adapter }),
      fallbacks: fallbacks({ adapter }),
      ended({ outcome, code = "internal_error", usage, ms }: Attempt): void {
        (outcome === "failed" ? failed(code) : ended(outcome)).value += 1;
        observe(ms);
        if (usage !== undefined) countTokens(usage);
      },
    };
  });
  const ofOwner = once((owner: string) => once((adapter: string) => createTokenCount(ownerTokens, { owner, adapter })));
  const withHistory = once((history: Told) => turns({ history }));
  for (const history of histories) withHistory(history);

  return {
    ofAdapter,
    committed,
    ended(record: RequestRecord): void {
      const { kind, status, route = "unknown", heading, answer, owner, firstMs } = record;
      if (status !== undefined) {
        const path = onPath(route);
        path.answered(status).value += 1;
        // An upgraded request lasts as long as its connection, whose turns are counted one by one.
        if (status >= 200) path.observe(toOutcome(record, status))(record.ms);
        if (firstMs !== undefined) path.observeFirst(record.isStreamed === true)(firstMs);
      }
      if (answer === undefined || heading === undefined) return;
      withHistory(heading.told).value += 1;
      // A program may have any number of owners.
      if (answer.usage === undefined || owner === undefined || kind === "talk") return;
      ofOwner(owner)(askedOf(heading)?.adapter ?? "")(answer.usage);
    },
    async read(gauges: Gauges) {
      for (const { name } of gauges.adapters) ofAdapter(name);
      const measured = createRegistry();
      setGauges(measured, gauges);
      measured.gauges("portico_build_info", "Which versions run.")({ version, node: process.versions.node }).value = 1;
      await readProcess(measured);
      const text = registry.toText() + measured.toText();
      return { contentType: "text/plain; version=0.0.4; charset=utf-8", text };
    },
  };
}

/** The same value for the same key, made when it is first asked for. */
function once<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new Map<Key, Value>();
  return (key) => {
    let value = made.get(key);
    if (value === undefined) made.set(key, (value = make(key)));
    return value;
  };
}

type Outcome = "answered" | "refused" | "failed" | "left";

/** A flood of instant refusals must not make answers look quick; and a stream that failed began with a good status. */
function toOutcome(record: RequestRecord, status: number): Outcome {
  const told = status < 400 ? (failureOf(record)?.status ?? status) : status;
  if (told === 499) return "left";
  if (told >= 500) return "failed";
  return told >= 400 ? "refused" : "answered";
}

/** `cached` is included in `input`, `reasoning` in `output`. */
const tokenKinds = [
  ["input", "inputTokens"],
  ["cached", "cachedTokens"],
  ["output", "outputTokens"],
  ["reasoning", "reasoningTokens"],
] as const;

function createTokenCount(tokens: (labels: Labels) => Sample, labels: Labels): (usage: Usage) => void {
  const samples = tokenKinds.map(([kind, field]) => ({ field, sample: tokens({ ...labels, kind }) }));
  return (usage) => {
    for (const { field, sample } of samples) sample.value += usage[field];
  };
}

function setGauges({ gauges }: Registry, now: Gauges): void {
  const gauge = (name: string, help: string) => gauges(`portico_${name}`, help);
  gauge("turns_running", "Turns that callers are waiting for.")({}).value = now.running;
  gauge("turns_waiting", "Turns that wait for another turn of their session.")({}).value = now.waiting;
  gauge("background_turns_running", "Turns in the background or with an Idempotency-Key.")({}).value = now.background;
  gauge("websocket_connections", "Open WebSockets.")({}).value = now.connections;
  gauge("held_bytes", "Memory used by requests, unread answers and WebSockets.")({}).value = now.heldBytes;
  gauge("store_ready", "1: turns can be stored; 0: they cannot.")({}).value = now.isReady ? 1 : 0;
  const states = gauge("adapter_breaker_state", "1 for the current state of the adapter's circuit breaker.");
  for (const { name: adapter, state: current } of now.adapters) {
    for (const state of breakerStates) states({ adapter, state }).value = state === current ? 1 : 0;
  }
}
