/** Strings and numbers that a plain JSON Schema allows, likeliest first; `nth` asks for different ones. */
import type { JsonSchema } from "../../core/turn.ts";
import { hiddenPattern } from "./check.ts";
import type { PatternSampler } from "./pattern.ts";

const maxCharacters = 1_000_000;

/** `samplerOf` reads a pattern, once for all its strings. */
export function* strings(
  schema: JsonSchema,
  nth: number,
  samplerOf: (pattern: string) => PatternSampler | undefined,
): Generator<string, void, void> {
  const min = numberOf(schema, "minLength") ?? 0;
  const max = numberOf(schema, "maxLength") ?? Infinity;
  if (min > maxCharacters) return;
  const pattern = schema[hiddenPattern];
  const sampler = typeof pattern === "string" ? samplerOf(pattern) : undefined;
  const sample = sampler && shortest(sampler, nth, min);
  if (sample !== undefined && sample.length <= max) return yield sample;
  const formatted = typeof schema.format === "string" ? formats.get(schema.format)?.(nth) : undefined;
  if (formatted !== undefined) yield formatted;
  yield (nth === 0 ? "text" : `${nth} text`).slice(0, max).padEnd(min, "x");
}

const maxRepetitions = 256;

/** The shortest sample that is long enough. More repetitions never make a sample shorter, so half of them are skipped. */
function shortest(sampler: PatternSampler, nth: number, min: number): string | undefined {
  let found: string | undefined;
  let [least, most] = [0, Math.min(min, maxRepetitions)];
  while (least <= most) {
    const more = (least + most) >> 1;
    const sample = sampler(nth, more);
    if (sample === undefined || sample.length >= min) [found, most] = [sample ?? found, more - 1];
    else least = more + 1;
  }
  return found;
}

/** A value of each format, using names reserved for examples. */
const formats: ReadonlyMap<string, (nth: number) => string> = new Map([
  ["date-time", (nth: number) => `2024-01-01T00:00:${twoDigits(nth)}Z`],
  ["date", (nth: number) => `20${twoDigits(nth)}-01-01`],
  ["time", (nth: number) => `00:00:${twoDigits(nth)}Z`],
  ["duration", (nth: number) => `PT${nth + 1}S`],
  ["email", (nth: number) => `user${nth}@example.com`],
  ["idn-email", (nth: number) => `user${nth}@example.com`],
  ["hostname", (nth: number) => `host${nth}.example.com`],
  ["idn-hostname", (nth: number) => `host${nth}.example.com`],
  ["ipv4", (nth: number) => `192.0.2.${nth % 256}`],
  ["ipv6", (nth: number) => `2001:db8::${(nth % 65_536).toString(16)}`],
  ["uri", (nth: number) => `https://example.com/${nth}`],
  ["url", (nth: number) => `https://example.com/${nth}`],
  ["iri", (nth: number) => `https://example.com/${nth}`],
  ["uri-reference", (nth: number) => `/${nth}`],
  ["iri-reference", (nth: number) => `/${nth}`],
  ["uri-template", (nth: number) => `/${nth}/{name}`],
  ["uuid", (nth: number) => `00000000-0000-4000-8000-${String(nth).padStart(12, "0")}`],
  ["json-pointer", (nth: number) => `/${nth}`],
  ["relative-json-pointer", (nth: number) => `${nth}`],
  ["json-pointer-uri-fragment", (nth: number) => `#/${nth}`],
  ["regex", (nth: number) => `^${nth}$`],
]);

function twoDigits(nth: number): string {
  return String(nth % 60).padStart(2, "0");
}

/** Multiples of the step, starting nearest to 0; then, for narrow bounds, a value between them. */
export function* numbers(schema: JsonSchema, whole: boolean, nth: number): Generator<number, void, void> {
  const step = Math.abs(numberOf(schema, "multipleOf") ?? 1) || 1;
  const least = Math.max(numberOf(schema, "minimum") ?? -Infinity, numberOf(schema, "exclusiveMinimum") ?? -Infinity);
  const most = Math.min(numberOf(schema, "maximum") ?? Infinity, numberOf(schema, "exclusiveMaximum") ?? Infinity);
  const first = least > 0 ? Math.ceil(least / step) : most < 0 ? Math.floor(most / step) : 0;
  const direction = most < 0 ? -1 : 1;
  for (const way of [direction, -direction]) {
    for (let tried = nth; tried < nth + 12; tried += 1) {
      const value = toMultiple(first + way * tried, step);
      if (value >= least && value <= most) yield value;
    }
  }
  if (whole) return;
  const floor = Number.isFinite(least) ? least : Math.min(most - 1, 0);
  const ceiling = Number.isFinite(most) ? most : floor + 1;
  yield floor + (ceiling - floor) / (nth + 2);
}

/** Without rounding errors of binary fractions: 3 × 0.1 is 0.3. */
function toMultiple(count: number, step: number): number {
  return Number((count * step).toPrecision(15)) + 0;
}

export function numberOf(schema: JsonSchema, keyword: string): number | undefined {
  const value = schema[keyword];
  return typeof value === "number" ? value : undefined;
}
