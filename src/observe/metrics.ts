/** What Prometheus reads. Labels are the operator's names and the gateway's own words, never what a caller chooses. */
import { readdir, readFile } from "node:fs/promises";
import { askedOf, type Attempt, failureOf, type RequestRecord } from "./record.ts";
import { createRegistry } from "./series.ts";

/** What is measured only when somebody reads. */
interface Gauges {
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
/** `cached` is included in `input`, `reasoning` in `output`. */
const tokenKinds = ["input", "cached", "output", "reasoning"] as const;

/** From one word of a local model to an agent's long run. */
const turnBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
/** From a page in a disk's cache to a server that hardly responds. */
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export function createMetrics(version: string) {
  const registry = createRegistry();
  const counters = (name: string, labels: string, help: string) => registry.numbers(`portico_${name}`, labels, help);
  const histograms = (name: string, labels: string, help: string, bounds = turnBounds) =>
    registry.histograms(`portico_${name}`, labels, help, bounds);

  const requests = counters("requests_total", "path status", "Requests answered.");
  const requestSeconds = histograms("request_seconds", "path outcome", "From its arrival to the end of its answer.");
  const firstSeconds = histograms("first_byte_seconds", "path stream", "For turns: to the answer's first byte.");
  const turns = counters("history_total", "history", "Turns by history outcome.");
  const commits = histograms("commit_seconds", "", "How long the store took to commit a turn.", commitBounds)();
  const attempts = counters("adapter_turns_total", "adapter outcome code", "Attempts at the adapter, by result.");
  const attemptSeconds = histograms("adapter_seconds", "adapter", "From the start of an attempt to its last word.");
  const adapterTokens = counters("tokens_total", "adapter kind", "Tokens as reported by the adapter.");
  const ownerTokens = counters("owner_tokens_total", "owner adapter kind", "The same, by the name of a token.");
  const retries = counters("adapter_retries_total", "adapter", "Retries of the adapter.");
  const fallbacks = counters("adapter_fallbacks_total", "adapter", "Turns passed on from it to a fallback.");

  /** Prometheus sees no increase in a series that is new. */
  function addAdapter(adapter: string): void {
    for (const outcome of ["completed", "incomplete", "cancelled"]) attempts(adapter, outcome);
    for (const kind of tokenKinds) adapterTokens(adapter, kind);
    for (const family of [retries, fallbacks]) family(adapter);
  }

  return {
    committed: commits.observe,
    /** An attempt at an adapter is over. */
    attempted(adapter: string, { outcome, code, usage, ms }: Attempt): void {
      (code === undefined ? attempts(adapter, outcome) : attempts(adapter, outcome, code)).value += 1;
      attemptSeconds(adapter).observe(ms);
      if (usage === undefined) return;
      for (const kind of tokenKinds) adapterTokens(adapter, kind).value += usage[`${kind}Tokens`];
    },
    /** It has failed, and the next is asked: itself once more, or a fallback. */
    askedAgain(adapter: string, next: string): void {
      (next === adapter ? retries : fallbacks)(adapter).value += 1;
    },
    ended(record: RequestRecord): void {
      const { kind, status, route = "unknown", heading, answer, owner, firstMs } = record;
      if (status !== undefined) {
        requests(route, status).value += 1;
        // An upgraded request lasts as long as its connection, whose turns are counted one by one.
        if (status >= 200) requestSeconds(route, toOutcome(record, status)).observe(record.ms);
        if (firstMs !== undefined) firstSeconds(route, record.isStreamed === true).observe(firstMs);
      }
      if (answer === undefined || heading === undefined) return;
      turns(heading.told).value += 1;
      const { usage } = answer;
      // A program may have any number of owners.
      if (usage === undefined || owner === undefined || kind === "talk") return;
      const adapter = askedOf(heading)?.adapter ?? "";
      for (const tokens of tokenKinds) ownerTokens(owner, adapter, tokens).value += usage[`${tokens}Tokens`];
    },
    async read(gauges: Gauges) {
      for (const { name } of gauges.adapters) addAdapter(name);
      const text = registry.toText() + toGauges(gauges, version) + (await readProcess());
      return { contentType: "text/plain; version=0.0.4; charset=utf-8", text };
    },
  };
}

/** A flood of instant refusals must not make answers look quick; and a stream that failed began with a good status. */
function toOutcome(record: RequestRecord, status: number): "answered" | "refused" | "failed" | "left" {
  const told = status < 400 ? (failureOf(record)?.status ?? status) : status;
  if (told === 499) return "left";
  if (told >= 500) return "failed";
  return told >= 400 ? "refused" : "answered";
}

function toGauges(now: Gauges, version: string): string {
  const { numbers, toText } = createRegistry();
  const gauges = (name: string, labels: string, help: string) => numbers(`portico_${name}`, labels, help);
  gauges("turns_running", "", "Turns that callers are waiting for.")().value = now.running;
  gauges("turns_waiting", "", "Turns that wait for another turn of their session.")().value = now.waiting;
  gauges("background_turns_running", "", "Those in the background or with a key.")().value = now.background;
  gauges("websocket_connections", "", "Open WebSockets.")().value = now.connections;
  gauges("held_bytes", "", "Memory used by requests, unread answers and WebSockets.")().value = now.heldBytes;
  gauges("store_ready", "", "1: turns can be stored; 0: they cannot.")().value = now.isReady ? 1 : 0;
  gauges("build_info", "version node", "Which versions run.")(version, process.versions.node).value = 1;
  const states = gauges("adapter_breaker_state", "adapter state", "1 for the state of its circuit breaker.");
  for (const { name, state } of now.adapters)
    for (const each of breakerStates) states(name, each).value = each === state ? 1 : 0;
  return toText();
}

/** Measured while it is read, so that nothing is measured while nobody reads. */
async function readProcess(): Promise<string> {
  const { numbers, toText } = createRegistry();
  const { user, system } = process.cpuUsage();
  const { rss } = process.memoryUsage();
  const { active: busyMs } = performance.eventLoopUtilization();
  numbers("process_start_time_seconds", "", "Since 1970.")().value = performance.timeOrigin / 1000;
  numbers("process_cpu_seconds_total", "", "CPU time of all threads.")().value = (user + system) / 1_000_000;
  numbers("process_resident_memory_bytes", "", "Resident memory of the process.")().value = rss;
  numbers("nodejs_eventloop_busy_seconds_total", "", "How long it was busy.")().value = busyMs / 1000;
  // Only Linux tells, and not where no further file can be opened: the rest must be readable even then.
  const open = await readdir("/proc/self/fd").catch(() => undefined);
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, most] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  if (open !== undefined && most !== undefined) {
    numbers("process_open_fds", "", "Open files and connections.")().value = open.length;
    numbers("process_max_fds", "", "How many may be open.")().value = Number(most);
  }
  return toText();
}
