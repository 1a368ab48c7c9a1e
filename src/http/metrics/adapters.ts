/** Metrics of adapters: turns by outcome, time, tokens, retries and fallbacks. */
import type { AttemptObserver, Attempt, Observer } from "../../core/observer.ts";
import { type Family, type Labelled, toCounter, toHistogram } from "./family.ts";
import { createHistogram, type Histogram, turnBounds } from "./histogram.ts";
import { addUsage, createTokenCount, type TokenCount } from "./tokens.ts";

export interface AdapterCounts extends Pick<Observer, "retried"> {
  asked(adapter: string): AttemptObserver;
  fellBack(adapter: string): void;
  /** Includes named adapters that were never asked. */
  read(names: readonly string[]): readonly Family[];
}

/** Labels are the operator's adapter names, never model names, which callers choose. */
export function createAdapterCounts(nowMs: () => number): AdapterCounts {
  const byName = new Map<string, Count>();

  function find(adapter: string): Count {
    let found = byName.get(adapter);
    if (found === undefined) byName.set(adapter, (found = createCount()));
    return found;
  }

  return {
    asked(adapter) {
      const count = find(adapter);
      const since = nowMs();
      return { ended: (attempt) => add(count, attempt, nowMs() - since) };
    },
    retried: (adapter) => void find(adapter).retries++,
    fellBack: (adapter) => void find(adapter).fallbacks++,
    read(names) {
      for (const name of names) find(name);
      return toFamilies([...byName]);
    },
  };
}

interface Count {
  readonly ended: Record<Exclude<Attempt["outcome"], "failed">, number>;
  /** By error code. */
  readonly failed: Map<string, number>;
  readonly seconds: Histogram;
  readonly tokens: TokenCount;
  retries: number;
  fallbacks: number;
}

function createCount(): Count {
  return {
    ended: { completed: 0, incomplete: 0, cancelled: 0 },
    failed: new Map(),
    seconds: createHistogram(turnBounds),
    tokens: createTokenCount(),
    retries: 0,
    fallbacks: 0,
  };
}

function add(
  { ended, failed, seconds, tokens }: Count,
  { outcome, code = "internal_error", usage }: Attempt,
  ms: number,
) {
  if (outcome === "failed") failed.set(code, (failed.get(code) ?? 0) + 1);
  else ended[outcome]++;
  seconds.observe(ms);
  if (usage !== undefined) addUsage(tokens, usage);
}

function toFamilies(counts: readonly (readonly [adapter: string, count: Count])[]): readonly Family[] {
  const toEach = <Value>(pick: (count: Count) => Value): Labelled<Value> =>
    counts.map(([adapter, count]) => [{ adapter }, pick(count)]);
  return [
    toCounter(
      "portico_adapter_turns_total",
      "Attempts at the adapter, by result.",
      counts.flatMap(([adapter, { ended, failed }]) => [
        ...Object.entries(ended).map(([outcome, count]) => [{ adapter, outcome }, count] as const),
        ...Array.from(failed, ([code, count]) => [{ adapter, outcome: "failed", code }, count] as const),
      ]),
    ),
    toHistogram(
      "portico_adapter_seconds",
      "From the start of an attempt to its last word.",
      toEach(({ seconds }) => seconds),
    ),
    toCounter(
      "portico_tokens_total",
      "Tokens as reported by the adapter.",
      counts.flatMap(([adapter, { tokens }]) =>
        Object.entries(tokens).map(([kind, count]) => [{ adapter, kind }, count] as const),
      ),
    ),
    toCounter(
      "portico_adapter_retries_total",
      "Retries of the adapter.",
      toEach(({ retries }) => retries),
    ),
    toCounter(
      "portico_adapter_fallbacks_total",
      "Turns passed on from the adapter to a fallback.",
      toEach(({ fallbacks }) => fallbacks),
    ),
  ];
}
