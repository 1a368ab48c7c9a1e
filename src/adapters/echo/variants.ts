/** Unfolds a JSON Schema into plain ones: follows references, merges `allOf`, splits `anyOf` and `oneOf`. */
import type { JsonSchema } from "../../core/turn.ts";
import { maxReferences, refuseSize, resolveReference } from "./check.ts";
import { isObject } from "../json.ts";

export interface Variant {
  /** Without `$ref`, `allOf`, `anyOf` and `oneOf`. */
  readonly schema: JsonSchema;
  /** The references that led here. None is followed again below, so every recursion ends. */
  readonly references: readonly string[];
}

/** The schema that the parts belong to. */
export interface Whole {
  readonly root: JsonSchema;
  /** Called for each unfolded part and each merge; throws when they never seem to end. */
  countStep(cost?: number): void;
}

export function* unfold(part: unknown, whole: Whole, references: readonly string[]): Generator<Variant, void, void> {
  whole.countStep();
  if (part === false) return;
  if (!isObject(part)) return yield { schema: {}, references };
  whole.countStep(Math.floor(Object.keys(part).length / keywordsPerStep));
  if (typeof part.$ref === "string") {
    const { $ref, ...others } = part;
    if (references.includes($ref)) return;
    if (references.length >= maxReferences) refuseSize();
    return yield* unfoldAll([resolveReference(whole.root, $ref), others], whole, [...references, $ref]);
  }
  for (const keyword of ["allOf", "anyOf", "oneOf"]) {
    const parts = part[keyword];
    if (!Array.isArray(parts)) continue;
    const { [keyword]: _, ...rest } = part;
    if (keyword === "allOf") yield* unfoldAll([rest, ...parts], whole, references);
    // One by one: often the first will do, and there may be very many.
    else for (const choice of parts) yield* unfoldAll([rest, choice], whole, references);
    return;
  }
  yield { schema: part, references };
}

/** A part of a schema that was made for use has fewer; all of them are copied and checked. */
const keywordsPerStep = 20;

/** How many parts can be combined: each is a call within the one before. */
const maxTogether = 100;

/** Every way in which all the parts can hold together. */
function* unfoldAll(
  parts: readonly unknown[],
  whole: Whole,
  references: readonly string[],
): Generator<Variant, void, void> {
  if (parts.length > maxTogether) refuseSize();
  const [first, ...others] = parts;
  for (const one of unfold(first, whole, references)) {
    if (others.length === 0) {
      yield one;
      continue;
    }
    for (const other of unfoldAll(others, whole, references)) {
      const schema = merge(one.schema, other.schema);
      if (schema === undefined) continue;
      whole.countStep(costOf(schema));
      yield { schema, references: [...new Set([...one.references, ...other.references])] };
    }
  }
}

/** One schema that demands what both do; undefined if they contradict each other. */
function merge(one: JsonSchema, other: JsonSchema): JsonSchema | undefined {
  const merged: Record<string, unknown> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const joined = key in one ? (mergers.get(key)?.(one[key], value) ?? value) : value;
    if (joined === contradiction) return undefined;
    merged[key] = joined;
  }
  return merged;
}

/** Steps, by what a merge copies. */
function costOf({ properties, required }: JsonSchema): number {
  const copied = (isObject(properties) ? Object.keys(properties).length : 0) + toList(required).length;
  return copied / copiedPerStep;
}

const copiedPerStep = 4;

const contradiction = Symbol("contradiction");

/** How two values of a keyword become one; for other keywords the second wins. */
const mergers: ReadonlyMap<string, (one: unknown, other: unknown) => unknown> = new Map([
  ["type", mergeTypes],
  ["enum", mergeEnums],
  ["const", (one: unknown, other: unknown) => (JSON.stringify(one) === JSON.stringify(other) ? one : contradiction)],
  ["properties", mergeProperties],
  ["required", (one: unknown, other: unknown) => [...new Set([...toList(one), ...toList(other)])]],
  ["items", both],
  ["contains", both],
  ["additionalProperties", both],
  ["prefixItems", mergePrefixes],
  ["uniqueItems", (one: unknown, other: unknown) => one === true || other === true],
  ["multipleOf", mergeSteps],
  ...["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"].map((key) => [key, higher] as const),
  ...["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"].map((key) => [key, lower] as const),
]);

function mergeTypes(one: unknown, other: unknown): unknown {
  const others = new Set(toList(other));
  const shared = new Set<unknown>();
  for (const type of toList(one)) {
    if (others.has(type)) shared.add(type);
    else if (type === "number" && others.has("integer")) shared.add("integer");
    else if (type === "integer" && others.has("number")) shared.add("integer");
  }
  return shared.size === 0 ? contradiction : [...shared];
}

function mergeEnums(one: unknown, other: unknown): unknown {
  // Comparing each with each would take minutes for long lists.
  const others = new Set(toList(other).map((value) => JSON.stringify(value)));
  const shared = toList(one).filter((value) => others.has(JSON.stringify(value)));
  return shared.length === 0 ? contradiction : shared;
}

function mergeProperties(one: unknown, other: unknown): unknown {
  if (!isObject(one) || !isObject(other)) return other;
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return Object.fromEntries(
    names.map((name) => {
      if (!Object.hasOwn(one, name)) return [name, other[name]];
      return [name, Object.hasOwn(other, name) ? both(one[name], other[name]) : one[name]];
    }),
  );
}

function mergePrefixes(one: unknown, other: unknown): unknown {
  const [left, right] = [toList(one), toList(other)];
  const longer = left.length > right.length ? left : right;
  return longer.map((part, index) =>
    index < left.length && index < right.length ? both(left[index], right[index]) : part,
  );
}

function both(one: unknown, other: unknown): unknown {
  return one === false || other === false ? false : { allOf: [one, other] };
}

function mergeSteps(one: unknown, other: unknown): unknown {
  if (!isWhole(one) || !isWhole(other)) return other;
  let [divisor, rest] = [one, other];
  while (rest !== 0) [divisor, rest] = [rest, divisor % rest];
  return (one / divisor) * other;
}

function isWhole(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0;
}

function higher(one: unknown, other: unknown): unknown {
  return typeof one === "number" && typeof other === "number" ? Math.max(one, other) : other;
}

function lower(one: unknown, other: unknown): unknown {
  return typeof one === "number" && typeof other === "number" ? Math.min(one, other) : other;
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}
