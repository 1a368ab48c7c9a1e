/** Counters, gauges and histograms: plain numbers, which become the text that Prometheus reads only when somebody asks. */

export type Labels = Readonly<Record<string, string | number | boolean>>;

/** Whoever counts keeps it, so that no labels are compared while requests are served. */
export interface Sample {
  value: number;
}

export type Registry = ReturnType<typeof createRegistry>;

export function createRegistry() {
  const families: { readonly head: string; readonly series: (() => string)[] }[] = [];

  function add(type: string, name: string, help: string): (() => string)[] {
    const series: (() => string)[] = [];
    families.push({ head: `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`, series });
    return series;
  }

  function createSamples(type: string, name: string, help: string): (labels: Labels) => Sample {
    const series = add(type, name, help);
    return (labels) => {
      const sample = { value: 0 };
      series.push(() => toLine(name, labels, sample.value));
      return sample;
    };
  }

  return {
    counters: (name: string, help: string) => createSamples("counter", name, help),
    gauges: (name: string, help: string) => createSamples("gauge", name, help),
    /** The bounds are in seconds; what is observed, in milliseconds. */
    histograms(name: string, help: string, bounds: readonly number[]): (labels: Labels) => (ms: number) => void {
      const series = add("histogram", name, help);
      return (labels) => {
        const counts = [...bounds.map(() => 0), 0];
        let sum = 0;
        series.push(() => toBuckets(name, labels, bounds, counts) + toLine(`${name}_sum`, labels, sum));
        return (ms) => {
          // The clock may be set back.
          const seconds = Math.max(0, ms / 1000);
          sum += seconds;
          let index = 0;
          while (index < bounds.length && seconds > (bounds[index] ?? 0)) index += 1;
          counts[index] = (counts[index] ?? 0) + 1;
        };
      };
    },
    toText: () => families.map(({ head, series }) => head + series.map((write) => write()).join("")).join(""),
  };
}

/** To be read, a bucket contains those before it. */
function toBuckets(name: string, labels: Labels, bounds: readonly number[], counts: readonly number[]): string {
  let total = 0;
  const lines = counts.map((count, index) => {
    total += count;
    return toLine(`${name}_bucket`, { ...labels, le: bounds[index] ?? "+Inf" }, total);
  });
  return lines.join("") + toLine(`${name}_count`, labels, total);
}

function toLine(name: string, labels: Labels, value: number): string {
  const written = Object.entries(labels).map(([label, text]) => {
    const escaped = String(text).replaceAll(/["\\]/g, "\\$&").replaceAll("\n", "\\n");
    return `${label}="${escaped}"`;
  });
  return written.length === 0 ? `${name} ${value}\n` : `${name}{${written.join(",")}} ${value}\n`;
}
