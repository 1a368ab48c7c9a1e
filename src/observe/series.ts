/** Numbers and histograms by their labels, which become the text that Prometheus reads only when somebody asks. */

type Label = string | number | boolean;

/** What is counted under one combination of labels. */
interface Series {
  write(): string;
}

/** How a family counts. */
type Kind<Own> = { readonly type: string; readonly create: (name: string, labels: string) => Own };

/** One step for each label: joining them on every count would cost ten times as much. */
interface Branch<Own> {
  readonly labels: string;
  /** Of the labels to come. */
  readonly names: readonly string[];
  readonly below: Map<Label, Branch<Own>>;
  own: Own | undefined;
}

export function createRegistry() {
  const families: (() => string)[] = [];
  return {
    /** The series for each combination of labels, made when it is first asked for; a label that is left out is absent. */
    add<Own extends Series>({ type, create }: Kind<Own>, name: string, names: string, help: string) {
      const all: Own[] = [];
      const root: Branch<Own> = { labels: "", names: names.split(" "), below: new Map(), own: undefined };
      families.push(() => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${all.map((own) => own.write()).join("")}`);
      return (first?: Label, second?: Label, third?: Label): Own => {
        const branch = step(step(step(root, first), second), third);
        if (branch.own === undefined) all.push((branch.own = create(name, branch.labels)));
        return branch.own;
      };
    },
    toText: () => families.map((write) => write()).join(""),
  };
}

function step<Own>(branch: Branch<Own>, label: Label | undefined): Branch<Own> {
  if (label === undefined) return branch;
  const known = branch.below.get(label);
  if (known !== undefined) return known;
  const [name = "", ...names] = branch.names;
  const next = { labels: addLabel(branch.labels, name, label), names, below: new Map(), own: undefined };
  branch.below.set(label, next);
  return next;
}

export const counter = { type: "counter", create: createNumber };
export const gauge = { type: "gauge", create: createNumber };
export const histogram = { type: "histogram", create: createHistogram };

function createNumber(name: string, labels: string) {
  const number = { value: 0, write: () => toLine(name, labels, number.value) };
  return number;
}

/** In seconds: from a page in a disk's cache to an agent's long run. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

function createHistogram(name: string, labels: string) {
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
        return toLine(`${name}_bucket`, addLabel(labels, "le", bounds[index] ?? "+Inf"), total);
      });
      return buckets.join("") + toLine(`${name}_count`, labels, total) + toLine(`${name}_sum`, labels, sum);
    },
  };
}

export function addLabel(labels: string, name: string, label: Label): string {
  const escaped = String(label).replaceAll(/["\\]/g, "\\$&").replaceAll("\n", "\\n");
  return `${labels}${labels === "" ? "" : ","}${name}="${escaped}"`;
}

export function toLine(name: string, labels: string, value: number): string {
  return labels === "" ? `${name} ${value}\n` : `${name}{${labels}} ${value}\n`;
}
