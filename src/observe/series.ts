/** Numbers and histograms by their labels, which become the text that Prometheus reads only when somebody asks. */

type Label = string | number | boolean;

/** One step for each label: joining them on every count would cost ten times as much. */
interface Branch<Series> {
  readonly below: Map<Label, Branch<Series>>;
  series: Series | undefined;
}

export function createRegistry() {
  const families: (() => string)[] = [];

  /** A series for each combination of labels, made when it is first asked for; a label that is left out is absent. */
  function createFamily<Series extends { write(): string }>(
    head: string,
    names: string,
    make: (labels: string) => Series,
  ): (...labels: readonly Label[]) => Series {
    const all: Series[] = [];
    const root: Branch<Series> = { below: new Map(), series: undefined };
    families.push(() => head + all.map((series) => series.write()).join(""));
    return (...labels) => {
      let branch = root;
      for (const label of labels) {
        let next = branch.below.get(label);
        if (next === undefined) branch.below.set(label, (next = { below: new Map(), series: undefined }));
        branch = next;
      }
      if (branch.series === undefined) all.push((branch.series = make(toLabels(names.split(" "), labels))));
      return branch.series;
    };
  }

  return {
    /** A total is counted; anything else is a gauge. */
    numbers(name: string, names: string, help: string) {
      const head = toHead(name, help, name.endsWith("_total") ? "counter" : "gauge");
      return createFamily(head, names, (labels) => {
        const number = { value: 0, write: () => toLine(name, labels, number.value) };
        return number;
      });
    },
    /** The bounds are in seconds. */
    histograms: (name: string, names: string, help: string, bounds: readonly number[]) =>
      createFamily(toHead(name, help, "histogram"), names, (labels) => createHistogram(name, labels, bounds)),
    toText: () => families.map((write) => write()).join(""),
  };
}

function createHistogram(name: string, labels: string, bounds: readonly number[]) {
  const counts = [...bounds.map(() => 0), 0];
  let sum = 0;
  return {
    observe(ms: number): void {
      // The clock may be set back.
      const seconds = Math.max(0, ms / 1000);
      sum += seconds;
      let index = 0;
      while (index < bounds.length && seconds > (bounds[index] ?? 0)) index += 1;
      counts[index] = (counts[index] ?? 0) + 1;
    },
    /** To be read, a bucket contains those before it. */
    write(): string {
      let total = 0;
      const buckets = counts.map((count, index) => {
        total += count;
        const bound = `le="${bounds[index] ?? "+Inf"}"`;
        return toLine(`${name}_bucket`, labels === "" ? bound : `${labels},${bound}`, total);
      });
      return buckets.join("") + toLine(`${name}_count`, labels, total) + toLine(`${name}_sum`, labels, sum);
    },
  };
}

function toHead(name: string, help: string, type: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function toLabels(names: readonly string[], labels: readonly Label[]): string {
  const escape = (label: Label) => String(label).replaceAll(/["\\]/g, "\\$&").replaceAll("\n", "\\n");
  return labels.map((label, index) => `${names[index]}="${escape(label)}"`).join(",");
}

function toLine(name: string, labels: string, value: number): string {
  return labels === "" ? `${name} ${value}\n` : `${name}{${labels}} ${value}\n`;
}
