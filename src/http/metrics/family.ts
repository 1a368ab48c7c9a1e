/** Samples under one name, and the text in which Prometheus reads them. */

/** A metric with all of its samples. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: readonly Sample[];
}

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
  /** If it differs from the family's name. */
  readonly metricName?: string;
}

export type Labels = Readonly<Record<string, Label>>;
export type Label = string | number;

/** One value, measured when it is read. */
export function toFamily(type: "counter" | "gauge", name: string, help: string, value: number): Family {
  return { name, help, type, values: [{ labels: {}, value }] };
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
