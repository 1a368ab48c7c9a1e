/** Validates a value against a schema and reports every problem with its path. */
import type { Schema } from "../core/schema.ts";
import { nearest } from "./nearest.ts";
import { formatPath, isObject, type Path } from "./path.ts";
import { misfit, problem, type Problem, type Problems } from "./problem.ts";
import { type Shown, unresolved } from "./references.ts";
import { fileSchema } from "./schema.ts";

/** If a schema has choices, all are named: nobody knows which was meant. */
export function* validate(schema: Schema, value: unknown, path: Path, shown: Shown): Problems {
  const { anyOf, items, properties, patternProperties = {} } = schema;
  const [each] = Object.values(patternProperties);
  if (value === unresolved) return;
  // A choice fits if it finds no problem in the value.
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
  const meant = findMeant(path, key, known);
  const next = meant === "" ? "known" : `did you mean ${meant}? Known`;
  const place = path.length === 1 ? "here" : `in ${formatPath(path.slice(0, -1))}`;
  return problem(path, `unknown key; ${next} ${place}: ${known.join(", ")}`);
}

/** A key that is right elsewhere was probably put in the wrong place; an adapter's keys are its own. */
function findMeant(path: Path, key: string, known: readonly string[]): string {
  const places = path[1] === "adapters" ? [] : [...findPlaces(key, fileSchema)];
  const near = nearest(key, known);
  if (places.length === 0 && near !== undefined) return `'${near}'`;
  return places.join(" or ");
}

/** Every place of a file that may have the key. */
function* findPlaces(key: string, { properties = {}, items }: Schema, path = ""): Generator<string> {
  for (const [name, inner] of Object.entries(properties)) {
    const place = path === "" ? name : `${path}.${name}`;
    if (name === key) yield place;
    yield* findPlaces(key, inner, place);
  }
  if (items !== undefined) yield* findPlaces(key, items, `${path}[]`);
}

function describeSchema(schema: Schema): string {
  const { title, anyOf, enum: choices, type } = schema;
  if (title !== undefined) return title;
  if (anyOf !== undefined) return anyOf.map(describeSchema).join(" or ");
  if (choices !== undefined) return choices.map((choice) => JSON.stringify(choice)).join(", ");
  return type === undefined ? "anything" : kinds[type].describe(schema);
}

function isFitting(schema: Schema, value: unknown): boolean {
  if (schema.enum !== undefined && !schema.enum.includes(value)) return false;
  return schema.type === undefined || kinds[schema.type].fits(value, schema);
}

interface Kind {
  fits(value: unknown, schema: Schema): boolean;
  describe(schema: Schema): string;
}

const kinds: Readonly<Record<NonNullable<Schema["type"]>, Kind>> = {
  string: {
    fits: (value, { minLength = 0, pattern = "" }) =>
      typeof value === "string" && value.length >= minLength && new RegExp(pattern, "u").test(value),
    describe: ({ minLength = 0 }) => (minLength > 0 ? "a string that is not empty" : "a string"),
  },
  integer: {
    fits: (value, { minimum = -Infinity, maximum = Infinity }) =>
      Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum,
    describe: ({ minimum, maximum }) =>
      maximum === undefined ? `an integer of at least ${minimum}` : `an integer from ${minimum} to ${maximum}`,
  },
  boolean: { fits: (value) => typeof value === "boolean", describe: () => "true or false" },
  array: {
    fits: (value, { minItems = 0 }) => Array.isArray(value) && value.length >= minItems,
    describe: ({ minItems = 0 }) => (minItems > 0 ? "a list that is not empty" : "a list"),
  },
  object: { fits: isObject, describe: () => "an object" },
};
