/** What Prometheus reads. Labels are the operator's names and the gateway's own words, never what a caller chooses. */
import { readdir } from "node:fs/promises";
import type { Answer, Usage } from "../core/turn.ts";
import { askedOf, failureOf, type RequestRecord } from "./record.ts";
import { addLabel, counter, createRegistry, gauge, histogram, toLine } from "./series.ts";

/** What is measured only when somebody reads. */
interface Gauges {
  readonly running: number;
  readonly waiting: number;
  readonly background: number;
  readonly connections: number;
  readonly heldBytes: number;
  readonly isReady: boolean;
  readonly adapters: readonly { readonly name: string; readonly state: (typeof breakerStates)[number] }[];
}

const breakerStates = ["closed", "open", "half-open"] as const;

type Outcome = Pick<Answer, "status" | "error" | "usage">;

export function createMetrics(version: string) {
  const { add, toText } = createRegistry();
  const requests = add(counter, "portico_requests_total", "path status", "Requests answered.");
  const requestSeconds = add(histogram, "portico_request_seconds", "path outcome", "To the end of the answer.");
  const firstSeconds = add(histogram, "portico_first_byte_seconds", "path stream", "Of turns: to the first byte.");
  const turns = add(counter, "portico_history_total", "history", "Turns by history outcome.");
  const commits = add(histogram, "portico_commit_seconds", "", "How long the store took to commit a turn.")();
  const attempts = add(counter, "portico_adapter_turns_total", "adapter outcome code", "Attempts at the adapter.");
  const attemptSeconds = add(histogram, "portico_adapter_seconds", "adapter", "From an attempt's start to its end.");
  const adapterTokens = add(tokens, "portico_tokens_total", "adapter", "Tokens as reported by the adapter.");
  const ownerTokens = add(tokens, "portico_owner_tokens_total", "owner adapter", "The same, by the name of a token.");

  return {
    committed: commits.observe,
    /** Counts attempts at an adapter when they are over. */
    watch(adapter: string) {
      // Prometheus sees no increase in a series that is new.
      for (const outcome of ["completed", "incomplete", "cancelled"]) attempts(adapter, outcome);
      const [seconds, used] = [attemptSeconds(adapter), adapterTokens(adapter)];
      return (since: number, { aborted }: AbortSignal, { status, error, usage }: Outcome): void => {
        // Whoever is cancelled may end in any way.
        const outcome = error !== undefined && aborted ? "cancelled" : status;
        attempts(adapter, outcome, outcome === "failed" ? error?.code : undefined).value += 1;
        seconds.observe(performance.now() - since);
        if (usage !== undefined) used.add(usage);
      };
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
      // A program may have any number of owners.
      if (answer.usage === undefined || owner === undefined || kind === "talk") return;
      ownerTokens(owner, askedOf(heading)?.adapter).add(answer.usage);
    },
    read: async (gauges: Gauges): Promise<string> => toText() + (await readGauges(gauges, version)),
  };
}

/** `cached` is included in `input`, `reasoning` in `output`. */
const tokens = { type: "counter", create: createTokens };

function createTokens(name: string, labels: string) {
  const sums = { input: 0, cached: 0, output: 0, reasoning: 0 };
  return {
    add({ inputTokens, cachedTokens, outputTokens, reasoningTokens }: Usage): void {
      sums.input += inputTokens;
      sums.cached += cachedTokens;
      sums.output += outputTokens;
      sums.reasoning += reasoningTokens;
    },
    write: () =>
      Object.entries(sums)
        .map(([kind, sum]) => toLine(name, addLabel(labels, "kind", kind), sum))
        .join(""),
  };
}

/** A flood of instant refusals must not make answers look quick; and a stream that failed began with a good status. */
function toOutcome(record: RequestRecord, status: number): "answered" | "refused" | "failed" | "left" {
  const told = status < 400 ? (failureOf(record)?.status ?? status) : status;
  if (told === 499) return "left";
  if (told >= 500) return "failed";
  return told >= 400 ? "refused" : "answered";
}

async function readGauges(now: Gauges, version: string): Promise<string> {
  const { add, toText } = createRegistry();
  const { user, system } = process.cpuUsage();
  const { active: busyMs } = performance.eventLoopUtilization();
  // Only Linux tells, and not where no further file can be opened: the rest must be readable even then.
  const files = await readdir("/proc/self/fd").catch(() => undefined);
  const tell = (name: string, value: number, help: string, kind = gauge): void => {
    add(kind, name, "", help)().value = value;
  };
  tell("portico_turns_running", now.running, "Turns that callers are waiting for.");
  tell("portico_turns_waiting", now.waiting, "Turns that wait for another turn of their session.");
  tell("portico_background_turns_running", now.background, "Those in the background or with a key.");
  tell("portico_websocket_connections", now.connections, "Open WebSockets.");
  tell("portico_held_bytes", now.heldBytes, "Memory used by requests, unread answers and WebSockets.");
  tell("portico_store_ready", now.isReady ? 1 : 0, "1: turns can be stored; 0: they cannot.");
  tell("process_start_time_seconds", performance.timeOrigin / 1000, "Since 1970.");
  tell("process_resident_memory_bytes", process.memoryUsage.rss(), "Resident memory of the process.");
  if (files !== undefined) tell("process_open_fds", files.length, "Open files and connections.");
  tell("process_cpu_seconds_total", (user + system) / 1_000_000, "CPU time of all threads.", counter);
  tell("nodejs_eventloop_busy_seconds_total", busyMs / 1000, "How long it was busy.", counter);
  add(gauge, "portico_build_info", "version node", "Which versions run.")(version, process.versions.node).value = 1;
  const states = add(
    gauge,
    "portico_adapter_breaker_state",
    "adapter state",
    "1 for the state of its circuit breaker.",
  );
  for (const { name, state } of now.adapters)
    for (const each of breakerStates) states(name, each).value = each === state ? 1 : 0;
  return toText();
}
