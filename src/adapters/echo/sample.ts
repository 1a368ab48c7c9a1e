/** Makes a value that satisfies a JSON Schema: always the same, with what the caller said about its properties. */
import { GatewayError } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/turn.ts";
import { createCheck, hiddenPattern, hidePatterns, refuseSize } from "./check.ts";
import { isObject } from "../json.ts";
import { type PatternSampler, readPattern } from "./pattern.ts";
import { numberOf, numbers, strings } from "./scalars.ts";
import { type Variant, unfold } from "./variants.ts";

export interface SampleOptions {
  /** Also fill in properties that are not required. */
  readonly optional: boolean;
  /** Values for properties by name, used where the schema allows them. */
  readonly told: ReadonlyMap<string, string>;
}

/** If exotic keywords make the schema hard to satisfy, it is the best that was found. */
export function makeSample(schema: JsonSchema, options: SampleOptions): unknown {
  const root = hidePatterns(schema);
  for (const value of createMaker(root, options)(root, [], 0)) return value;
  throw new GatewayError("adapter_bad_request", "The echo adapter found no value that satisfies the JSON Schema.");
}

const maxSteps = 20_000;
/** Beyond these steps only what is required is made. */
const maxGenerousSteps = 5_000;
const maxCandidates = 64;

function createMaker(root: JsonSchema, options: SampleOptions) {
  const check = createCheck(root);
  const whole = { root, countStep };
  const samplers = new Map<string, PatternSampler | undefined>();
  let steps = 0;

  /** Values that satisfy part of the schema; `nth` asks for different ones, `told` is what the caller said of it. */
  function* make(part: unknown, references: readonly string[], nth: number, told?: string): Generator<unknown> {
    let spare: { readonly value: unknown } | undefined;
    let made = false;
    let tried = 0;
    const given = told === undefined ? [] : readTold(told);
    for (const variant of unfold(part, whole, references)) {
      for (const value of candidates(variant, nth, given)) {
        countStep();
        // The variant too: for the part, a choice with a pattern would accept what was made for another.
        if (check === undefined || (check(variant.schema, value) && check(part, value))) {
          made = true;
          yield value;
        } else if (!given.includes(value)) spare ??= { value };
        tried += 1;
        if (tried >= maxCandidates) break;
      }
      if (tried >= maxCandidates) break;
    }
    if (made) return;
    if (isObject(part) && part.nullable === true) yield null;
    else if (spare !== undefined) yield spare.value;
  }

  function* candidates(variant: Variant, nth: number, told: readonly unknown[]): Generator<unknown> {
    const { schema } = variant;
    // A told value cannot be checked against a pattern without running it.
    if (check !== undefined && schema[hiddenPattern] === undefined) yield* told;
    if ("const" in schema) return yield schema.const;
    if (Array.isArray(schema.enum)) {
      const { length } = schema.enum;
      for (let at = 0; at < length; at += 1) yield schema.enum[(nth + at) % length];
      return;
    }
    if (nth === 0 && "default" in schema) yield schema.default;
    if (nth === 0 && Array.isArray(schema.examples)) yield* schema.examples;
    for (const type of typesOf(schema)) yield* builders.get(type)?.(variant, nth) ?? [];
  }

  /** The values of a type that may fit; none if it cannot. */
  const builders = new Map<unknown, (variant: Variant, nth: number) => Iterable<unknown>>([
    ["null", () => [null]],
    ["boolean", (_, nth) => [nth % 2 === 0]],
    ["string", ({ schema }, nth) => strings(schema, nth, samplerOf)],
    ["integer", ({ schema }, nth) => numbers(schema, true, nth)],
    ["number", ({ schema }, nth) => numbers(schema, false, nth)],
    ["object", buildObject],
    ["array", buildArray],
  ]);

  function buildObject({ schema, references }: Variant, nth: number): readonly object[] {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const required = new Set<unknown>(Array.isArray(schema.required) ? schema.required : []);
    const entries: [string, unknown][] = [];
    for (const name of chooseNames(schema, Object.keys(properties), required)) {
      const part = Object.hasOwn(properties, name) ? properties[name] : (schema.additionalProperties ?? true);
      const [value] = make(part, references, nth, options.told.get(name));
      if (value !== undefined) entries.push([name, value]);
      else if (required.has(name)) return [];
    }
    return [Object.fromEntries(entries)];
  }

  function chooseNames(schema: JsonSchema, known: readonly string[], required: ReadonlySet<unknown>): Set<string> {
    const max = numberOf(schema, "maxProperties") ?? Infinity;
    const min = Math.min(numberOf(schema, "minProperties") ?? 0, max, maxSteps);
    const generous = options.optional && steps < maxGenerousSteps;
    const free = known.filter((name) => !required.has(name));
    const wanted = new Set(
      free.filter((name) => generous || options.told.has(name)).slice(0, Math.max(0, max - required.size)),
    );
    const names = new Set(known.filter((name) => required.has(name) || wanted.has(name)));
    for (const name of required) if (typeof name === "string") names.add(name);
    for (const name of free) if (names.size < min) names.add(name);
    for (let extra = 1; names.size < min; extra += 1) names.add(`property${extra}`);
    return names;
  }

  function buildArray({ schema, references }: Variant, nth: number): readonly unknown[] {
    const max = numberOf(schema, "maxItems") ?? Infinity;
    const min = numberOf(schema, "minItems") ?? 0;
    const { heads, rest } = readItems(schema);
    const list: unknown[] = [];
    for (const part of heads.slice(0, max)) {
      const [value] = schema.uniqueItems === true ? others(part, references, list, 1) : make(part, references, nth);
      if (value === undefined) break;
      list.push(value);
    }
    const wanted = Math.min(Math.max(min, isObject(rest) ? 1 : 0), max) - list.length;
    if (schema.uniqueItems === true) list.push(...others(rest, references, list, wanted, nth));
    else for (let added = 0; added < wanted; added += 1) list.push(...make(rest, references, nth).take(1));
    return list.length < min ? [] : [list];
  }

  /** Distinct values that are not in the list. */
  function others(part: unknown, references: readonly string[], list: readonly unknown[], wanted: number, from = 0) {
    const seen = new Set(list.map((value) => JSON.stringify(value)));
    const found: unknown[] = [];
    for (let nth = from; nth < from + 2 * (list.length + wanted) && found.length < wanted; nth += 1) {
      for (const value of make(part, references, nth)) {
        const text = JSON.stringify(value);
        if (!seen.has(text)) found.push(value);
        seen.add(text);
        if (found.length === wanted) break;
      }
    }
    return found;
  }

  function samplerOf(pattern: string): PatternSampler | undefined {
    if (!samplers.has(pattern)) samplers.set(pattern, readPattern(pattern));
    return samplers.get(pattern);
  }

  function countStep(cost = 1): void {
    steps += cost;
    if (steps > maxSteps) refuseSize();
  }

  return make;
}

/** The parts for the first items one by one, and the part for all others. */
function readItems(schema: JsonSchema): { readonly heads: readonly unknown[]; readonly rest: unknown } {
  const heads = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  if (Array.isArray(schema.items)) return { heads: schema.items, rest: schema.additionalItems ?? true };
  if (schema.contains === undefined) return { heads, rest: schema.items ?? true };
  return { heads: [...heads, { allOf: [schema.items ?? true, schema.contains] }], rest: schema.items ?? true };
}

/** As a number or the like, if it is one, and as a string. */
function readTold(told: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(told);
    return typeof value === "object" && value !== null ? [told] : [value, told];
  } catch {
    return [told];
  }
}

const keywordTypes = [
  ["object", ["properties", "required", "additionalProperties", "minProperties"]],
  ["array", ["items", "prefixItems", "minItems", "contains", "uniqueItems"]],
  ["number", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]],
] as const;

/** The types to try, most telling first; null is the least telling. */
function typesOf(schema: JsonSchema): readonly unknown[] {
  const { type } = schema;
  if (Array.isArray(type)) return type.toSorted((one, other) => Number(one === "null") - Number(other === "null"));
  if (type !== undefined) return [type];
  const hinted = keywordTypes.filter(([, keywords]) => keywords.some((keyword) => keyword in schema));
  return [...hinted.map(([hint]) => hint), "string", "number", "boolean", "object", "array", "null"];
}
