/** Counters and histograms: plain numbers, found by their labels, that become samples only when they are read. */
import type { Usage } from "../../core/turn.ts";
import type { Family, Label, Labels, Sample } from "./family.ts";

export interface Metric<Series> {
  /** The series with these labels, in the order of their names. It is made, and counts from 0, when first wanted. */
  at(...labels: readonly Label[]): Series;
  read(): Family;
}

interface Counter {
  count: number;
}

export function createCounter(name: string, help: string, labelNames: readonly string[]): Metric<Counter> {
  const toSamples = (labels: Labels, { count: value }: Counter) => [{ labels, value }];
  return createMetric({ name, help, type: "counter" }, labelNames, () => ({ count: 0 }), toSamples);
}

interface TokenCounter {
  add(usage: Usage): void;
}

/** Tokens, with their `kind` as the last label: `cached` is included in `input`, `reasoning` in `output`. */
export function createTokenCounter(name: string, help: string, labelNames: readonly string[]): Metric<TokenCounter> {
  const described = { name, help, type: "counter" } as const;
  return createMetric(described, labelNames, createTokenCount, (labels, { counts }) =>
    Object.entries(counts).map(([kind, value]) => ({ labels: { ...labels, kind }, value })),
  );
}

function createTokenCount() {
  const counts = { input: 0, cached: 0, output: 0, reasoning: 0 };
  return {
    counts,
    add({ inputTokens, cachedTokens, outputTokens, reasoningTokens }: Usage): void {
      counts.input += inputTokens;
      counts.cached += cachedTokens;
      counts.output += outputTokens;
      counts.reasoning += reasoningTokens;
    },
  };
}

/** Durations, sorted into buckets with these upper bounds, in seconds: counting one takes a few comparisons. */
export function createHistogram(
  name: string,
  help: string,
  labelNames: readonly string[],
  bounds: readonly number[],
): Metric<Histogram> {
  const toSamples = (labels: Labels, durations: Histogram) => toBuckets(name, labels, bounds, durations);
  return createMetric({ name, help, type: "histogram" }, labelNames, () => createDurations(bounds), toSamples);
}

interface Histogram {
  /** How many fell into each bucket and into no smaller one; the last entry counts what exceeds every bound. */
  readonly counts: readonly number[];
  /** The total, in seconds. */
  readonly sum: number;
  observe(milliseconds: number): void;
}

function createDurations(bounds: readonly number[]): Histogram {
  const counts = Array.from({ length: bounds.length + 1 }, () => 0);
  let sum = 0;
  return {
    counts,
    get sum() {
      return sum;
    },
    observe(milliseconds) {
      const seconds = milliseconds / 1000;
      sum += seconds;
      const found = bounds.findIndex((bound) => seconds <= bound);
      const index = found === -1 ? bounds.length : found;
      counts[index] = (counts[index] ?? 0) + 1;
    },
  };
}

/** On the wire, buckets are cumulative. */
function toBuckets(name: string, labels: Labels, bounds: readonly number[], { counts, sum }: Histogram) {
  let total = 0;
  const buckets = counts.map((count, index) => {
    total += count;
    return { metricName: `${name}_bucket`, labels: { ...labels, le: bounds[index] ?? "+Inf" }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

/** A label's value, and the values that the next label has beside it. */
interface Node<Series> {
  readonly next: Map<Label, Node<Series>>;
  series?: Series;
}

function createMetric<Series>(
  described: Omit<Family, "values">,
  labelNames: readonly string[],
  create: () => Series,
  toSamples: (labels: Labels, series: Series) => readonly Sample[],
): Metric<Series> {
  const root: Node<Series> = { next: new Map() };

  function read({ series, next }: Node<Series>, labels: Labels, depth: number): readonly Sample[] {
    const own = series === undefined ? [] : toSamples(labels, series);
    const name = labelNames[depth];
    if (name === undefined) return own;
    const deeper = Array.from(next, ([label, node]) => read(node, { ...labels, [name]: label }, depth + 1));
    return [...own, ...deeper.flat()];
  }

  return {
    at(...labels) {
      let node = root;
      for (const label of labels) {
        let found = node.next.get(label);
        if (found === undefined) node.next.set(label, (found = { next: new Map() }));
        node = found;
      }
      return (node.series ??= create());
    },
    read: () => ({ ...described, values: read(root, {}, 0) }),
  };
}
