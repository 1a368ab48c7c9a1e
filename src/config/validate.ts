/** Holds a value against a schema and tells everything that does not fit, each with its path. */
import type { Schema } from "../core/schema.ts";
import { nearest } from "./nearest.ts";
import { formatPath, isObject, type Path } from "./path.ts";
import { misfit, problem, type Problem, type Problems } from "./problem.ts";
import { type Shown, unresolved } from "./references.ts";

/** Of a schema with choices all of them are told: nobody knows which was meant. */
export function* validate(schema: Schema, value: unknown, path: Path, shown: Shown): Problems {
  const { anyOf, items, properties, patternProperties = {} } = schema;
  const [each] = Object.values(patternProperties);
  if (value === unresolved) return;
  // A choice fits when it has no problem with the value.
  const isRight = anyOf?.some((choice) => validate(choice, value, path, shown).next().done) ?? isFitting(schema, value);
  if (!isRight) yield misfit(path, shown(path, value), describeSchema(schema));
  else if (Array.isArray(value) && items !== undefined) {
    for (const [index, entry] of value.entries()) yield* validate(items, entry, [...path, index], shown);
  } else if (isObject(value) && properties !== undefined) {
    yield* validateKeys(properties, schema.required ?? [], value, path, shown);
  } else if (isObject(value) && each !== undefined) {
    for (const [key, entry] of Object.entries(value)) yield* validate(each, entry, [...path, key], shown);
  }
}

function* validateKeys(
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[],
  value: Readonly<Record<string, unknown>>,
  path: Path,
  shown: Shown,
): Problems {
  for (const key of Object.keys(value)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known === undefined) yield unknownKey([...path, key], key, Object.keys(properties));
    else yield* validate(known, value[key], [...path, key], shown);
  }
  for (const key of required) {
    if (Object.hasOwn(value, key)) continue;
    yield problem([...path, key], `missing; required: ${describeSchema(properties[key] ?? {})}`);
  }
}

function unknownKey(path: Path, key: string, known: readonly string[]): Problem {
  const meant = nearest(key, known);
  const next = meant === undefined ? "known" : `did you mean '${meant}'? Known`;
  const place = path.length === 1 ? "here" : `in ${formatPath(path.slice(0, -1))}`;
  return problem(path, `unknown key; ${next} ${place}: ${known.join(", ")}`);
}

function describeSchema(form: Schema): string {
  if (form.title !== undefined) return form.title;
  if (form.anyOf !== undefined) return form.anyOf.map((choice) => describeSchema(choice)).join(" or ");
  if (form.enum !== undefined) return form.enum.map((choice) => JSON.stringify(choice)).join(", ");
  if (form.const !== undefined) return JSON.stringify(form.const);
  switch (form.type) {
    case "integer":
    case "number":
      return `${form.type === "integer" ? "an integer" : "a number"}${describeRange(form)}`;
    case "string":
      if (form.pattern !== undefined) return `a string that matches ${form.pattern}`;
      return (form.minLength ?? 0) > 0 ? "a string that is not empty" : "a string";
    case "boolean":
      return "true or false";
    case "array":
      return (form.minItems ?? 0) > 0 ? "a list that is not empty" : "a list";
    case "object":
      return "an object";
    default:
      return "something else";
  }
}

function describeRange({ minimum, maximum }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? "" : ` of at most ${maximum}`;
}

function isFitting(schema: Schema, value: unknown): boolean {
  if (schema.const !== undefined && value !== schema.const) return false;
  if (schema.enum !== undefined && !schema.enum.includes(value)) return false;
  switch (schema.type) {
    case "string":
      return typeof value === "string" && isFittingText(schema, value);
    case "integer":
    case "number":
      return typeof value === "number" && isFittingNumber(schema, value);
    case "boolean":
      return typeof value === "boolean";
    case "array":
      return Array.isArray(value) && value.length >= (schema.minItems ?? 0);
    case "object":
      return isObject(value);
    default:
      return true;
  }
}

function isFittingText({ minLength = 0, pattern }: Schema, text: string): boolean {
  return text.length >= minLength && (pattern === undefined || new RegExp(pattern, "u").test(text));
}

function isFittingNumber({ type, minimum = -Infinity, maximum = Infinity }: Schema, number: number): boolean {
  return (type === "number" || Number.isInteger(number)) && number >= minimum && number <= maximum;
}
