/** Figures of one name in the form in which Prometheus is told of them. */
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
  /** Where it is not the family's own name. */
  readonly metricName?: string;
}

export type Labels = Readonly<Record<string, string | number>>;

/** Samples under their labels. */
export type Labelled<Value> = readonly (readonly [labels: Labels, value: Value])[];

export function toCounter(name: string, help: string, values: Labelled<number>): Family {
  return { name, help, type: "counter", values: values.map(([labels, value]) => ({ labels, value })) };
}

/** One figure needs no labels. */
export function toGauge(name: string, help: string, values: Labelled<number> | number): Family {
  const labelled: Labelled<number> = typeof values === "number" ? [[{}, values]] : values;
  return { name, help, type: "gauge", values: labelled.map(([labels, value]) => ({ labels, value })) };
}

export function toHistogram(name: string, help: string, values: Labelled<Histogram>): Family {
  return { name, help, type: "histogram", values: values.flatMap(([labels, value]) => toSamples(name, labels, value)) };
}

/** On the wire a bucket holds the smaller ones too. */
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

/** The library is loaded for the first reader. It is made to write down what others have counted. */
export async function writeFamilies(families: readonly Family[]): Promise<{
  readonly contentType: string;
  readonly text: string;
}> {
  const { AggregatorRegistry } = (await import("prom-client")).default;
  const counted = families.map((family) => ({ ...family, aggregator: "first" }));
  const registry = AggregatorRegistry.aggregate([counted]);
  return { contentType: registry.contentType, text: await registry.metrics() };
}
