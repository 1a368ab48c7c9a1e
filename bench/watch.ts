/**
 * Measures how long a running gateway works on the words of its requests: the functions that read, compare and write
 * them are wrapped when loaded. So load this before the gateway.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";

/** Microseconds. */
export interface OnWords {
  /** A request's text becomes values, and these become items. */
  readonly reading: number;
  /** What the caller shows is compared with what is remembered. */
  readonly comparing: number;
  /** The conversation becomes a request to the model. */
  readonly writing: number;
}

const watched: readonly (readonly [file: string, name: string, part: keyof OnWords])[] = [
  ["src/http/resent.ts", "readResent", "reading"],
  ["src/protocols/chat/request.ts", "readRequest", "reading"],
  ["src/core/place/known.ts", "findKnown", "comparing"],
  ["src/adapters/openai/chat/request.ts", "writeRequest", "writing"],
];

const spent: Record<keyof OnWords, number> = { reading: 0, comparing: 0, writing: 0 };

/** What was spent since the start. */
export function readSpent(): OnWords {
  return { ...spent };
}

/** Times a function, which must be synchronous, so that all the elapsed time is its own. */
function timed<Asked extends readonly unknown[], Found>(part: keyof OnWords, work: (...asked: Asked) => Found) {
  return (...asked: Asked): Found => {
    const before = performance.now();
    try {
      return work(...asked);
    } finally {
      spent[part] += (performance.now() - before) * 1_000;
    }
  };
}

const name = "portico-bench-timed";
Object.assign(globalThis, { [name]: timed });

registerHooks({
  load(url, context, loadNext) {
    const found = watched.find(([file]) => url.endsWith(file));
    if (found === undefined) return loadNext(url, context);
    const [file, work, part] = found;
    const text = readFileSync(fileURLToPath(url), "utf8");
    const head = `export function ${work}(`;
    if (!text.includes(head)) throw new Error(`${file} has no function ${work} any more.`);
    const wrapped = `export const ${work} = globalThis["${name}"]("${part}", ${work}Itself);\nfunction ${work}Itself(`;
    return { format: "module-typescript", shortCircuit: true, source: text.replace(head, wrapped) };
  },
});
