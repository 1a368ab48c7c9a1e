/** Counters and histograms as plain numbers, which become the text that Prometheus reads only when somebody asks. */

export type Labels = Readonly<Record<string, string | number | boolean>>;

/** Makes one series, which counts from 0. Whoever counts keeps it: no labels are compared while requests are served. */
export type Family<Series> = (labels: Labels) => Series;

export interface Counter {
  readonly labels: string;
  count: number;
}

export interface Histogram {
  readonly labels: string;
  readonly bounds: readonly number[];
  /** How many fell below each bound and below none before it; the last one counts what exceeds them all. */
  readonly counts: number[];
  sum: number;
}

/** What is measured only when it is read. */
export type Reading = readonly [
  name: string,
  type: "counter" | "gauge",
  help: string,
  value: number | readonly (readonly [Labels, number])[],
];

export interface Registry {
  counter(name: string, help: string): Family<Counter>;
  histogram(name: string, help: string, bounds: readonly number[]): Family<Histogram>;
  toText(readings: readonly Reading[]): string;
}

export function createRegistry(): Registry {
  const texts: (() => string)[] = [];

  function add<Series>(head: string, make: (labels: string) => Series, toLines: (series: Series) => string) {
    const all: Series[] = [];
    texts.push(() => head + all.map(toLines).join(""));
    return (labels: Labels) => {
      const series = make(toLabels(labels));
      all.push(series);
      return series;
    };
  }

  return {
    counter(name, help) {
      const make = (labels: string): Counter => ({ labels, count: 0 });
      return add(toHead(name, "counter", help), make, ({ labels, count }) => toLine(name, labels, count));
    },
    histogram(name, help, bounds) {
      const make = (labels: string): Histogram => ({ labels, bounds, counts: [...bounds.map(() => 0), 0], sum: 0 });
      return add(toHead(name, "histogram", help), make, (histogram) => toBuckets(name, histogram));
    },
    toText: (readings) => texts.map((text) => text()).join("") + readings.map(toReading).join(""),
  };
}

export function observe(histogram: Histogram, milliseconds: number): void {
  const { bounds, counts } = histogram;
  // A clock may be set back.
  const seconds = Math.max(0, milliseconds) / 1000;
  let index = 0;
  while (seconds > (bounds[index] ?? Infinity)) index += 1;
  counts[index] = (counts[index] ?? 0) + 1;
  histogram.sum += seconds;
}

/** On the wire buckets contain those before them. */
function toBuckets(name: string, { labels, bounds, counts, sum }: Histogram): string {
  const before = labels === "" ? "" : `${labels},`;
  let total = 0;
  const lines = counts.map((count, index) => {
    total += count;
    return toLine(`${name}_bucket`, `${before}le="${bounds[index] ?? "+Inf"}"`, total);
  });
  return lines.join("") + toLine(`${name}_sum`, labels, sum) + toLine(`${name}_count`, labels, total);
}

function toReading([name, type, help, value]: Reading): string {
  const samples = typeof value === "number" ? ([[{}, value]] as const) : value;
  return toHead(name, type, help) + samples.map(([labels, value]) => toLine(name, toLabels(labels), value)).join("");
}

function toHead(name: string, type: string, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function toLine(name: string, labels: string, value: number): string {
  return labels === "" ? `${name} ${value}\n` : `${name}{${labels}} ${value}\n`;
}

function toLabels(labels: Labels): string {
  const escape = (value: string) => value.replaceAll(/["\\]/g, "\\$&").replaceAll("\n", "\\n");
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escape(String(value))}"`)
    .join(",");
}
