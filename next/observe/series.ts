/** Samples under their names and labels: plain numbers, which become the text that Prometheus reads only when somebody asks. */

export type Labels = Readonly<Record<string, string | number | boolean>>;

/** Whoever counts keeps it, so that no labels are compared while requests are served. */
export interface Sample {
  readonly name: string;
  value: number;
}

export function createRegistry() {
  const families: { readonly head: string; readonly samples: Sample[] }[] = [];

  function add(type: string, name: string, help: string): (labels: Labels, suffix?: string) => Sample {
    const samples: Sample[] = [];
    families.push({ head: `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`, samples });
    return (labels, suffix = "") => {
      const sample = { name: name + suffix + toText(labels), value: 0 };
      samples.push(sample);
      return sample;
    };
  }

  return {
    counters: (name: string, help: string) => add("counter", name, help),
    gauges: (name: string, help: string) => add("gauge", name, help),
    /** Takes milliseconds; the bounds are in seconds. */
    histograms(name: string, help: string, bounds: readonly number[]) {
      const sampleOf = add("histogram", name, help);
      return (labels: Labels) => {
        const buckets = [...bounds, "+Inf"].map((le) => sampleOf({ ...labels, le }, "_bucket"));
        const [sum, count] = [sampleOf(labels, "_sum"), sampleOf(labels, "_count")];
        return (ms: number): void => {
          // The clock may be set back.
          const seconds = Math.max(0, ms / 1000);
          sum.value += seconds;
          count.value += 1;
          for (let index = bounds.length; seconds <= (bounds[index] ?? Infinity); index--) {
            const bucket = buckets[index];
            if (bucket === undefined) break;
            bucket.value += 1;
          }
        };
      };
    },
    toText(): string {
      return families.map(({ head, samples }) => head + samples.map(toLine).join("")).join("");
    },
  };
}

export type Registry = ReturnType<typeof createRegistry>;

function toLine({ name, value }: Sample): string {
  return `${name} ${value}\n`;
}

function toText(labels: Labels): string {
  const written = Object.entries(labels).map(([name, value]) => {
    const text = String(value).replaceAll(/["\\]/g, "\\$&").replaceAll("\n", "\\n");
    return `${name}="${text}"`;
  });
  return written.length === 0 ? "" : `{${written.join(",")}}`;
}
