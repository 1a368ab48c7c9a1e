/** One text of metrics out of those of several processes. */
import { addLabel, toLine } from "./series.ts";

export interface Measured {
  /** Which process says it; undefined: some that have ended, of which only what they had counted still holds. */
  readonly worker: number | undefined;
  readonly text: string;
}

/** What is not added up: the least is told, or what `each` process says, with its number as a label. */
const exceptions: readonly (readonly [family: RegExp, way: "least" | "each"])[] = [
  [/^portico_(store_ready|build_info)$/, "least"],
  [/^(portico_adapter_breaker_state$|process_|nodejs_)/, "each"],
];

const familyForm = /^(# HELP (\S+) .*\n# TYPE \S+ (\w+)\n)((?:[^#\n].*\n)*)/gm;
const sampleForm = /^([^{ ]+)(?:\{(.*)\})? (\S+)$/gm;

interface Sample {
  readonly name: string;
  readonly labels: string;
  value: number;
}

export function sumUp(all: readonly Measured[]): string {
  const families = new Map<string, Map<string, Sample>>();
  for (const { worker, text } of all) {
    for (const [, head = "", family = "", type, lines = ""] of text.matchAll(familyForm)) {
      const way = exceptions.find(([form]) => form.test(family))?.[1];
      if (worker === undefined && (way !== undefined || type === "gauge")) continue;
      const samples = families.get(head) ?? new Map<string, Sample>();
      families.set(head, samples);
      for (const [, name = "", written = "", number] of lines.matchAll(sampleForm)) {
        const value = Number(number);
        const labels = way === "each" ? addLabel(written, "worker", worker ?? 0) : written;
        const known = samples.get(name + labels);
        if (known === undefined) samples.set(name + labels, { name, labels, value });
        else known.value = way === "least" ? Math.min(known.value, value) : known.value + value;
      }
    }
  }
  return Array.from(families, ([head, samples]) => head + [...samples.values()].map(toText).join("")).join("");
}

const toText = ({ name, labels, value }: Sample): string => toLine(name, labels, value);
