/** Samples under one name, and the text in which Prometheus reads them. */
import type { Histogram } from "./histogram.ts";

/** A metric with all of its samples. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: readonly Sample[];
}

interface Sample {
  readonly labels: Labels;
  readonly value: number;
  /** If it differs from the family's name. */
  readonly metricName?: string;
}

export type Labels = Readonly<Record<string, string | number>>;

/** Values with their labels. */
export type Labelled<Value> = readonly (readonly [labels: Labels, value: Value])[];

export function toCounter(name: string, help: string, values: Labelled<number>): Family {
  return { name, help, type: "counter", values: values.map(([labels, value]) => ({ labels, value })) };
}

/** One value needs no labels. */
export function toGauge(name: string, help: string, values: Labelled<number> | number): Family {
  const labelled: Labelled<number> = typeof values === "number" ? [[{}, values]] : values;
  return { name, help, type: "gauge", values: labelled.map(([labels, value]) => ({ labels, value })) };
}

export function toHistogram(name: string, help: string, values: Labelled<Histogram>): Family {
  return { name, help, type: "histogram", values: values.flatMap(([labels, value]) => toSamples(name, labels, value)) };
}

/** On the wire, buckets are cumulative. */
function toSamples(name: string, labels: Labels, { bounds, counts, sum }: Histogram): readonly Sample[] {
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

/** Loads the library for the first reader. Its aggregator can write what was counted elsewhere. */
export async function writeFamilies(families: readonly Family[]): Promise<{
  readonly contentType: string;
  readonly text: string;
}> {
  const { AggregatorRegistry } = (await import("prom-client")).default;
  const counted = families.map((family) => ({ ...family, aggregator: "first" }));
  const registry = AggregatorRegistry.aggregate([counted]);
  return { contentType: registry.contentType, text: await registry.metrics() };
}
