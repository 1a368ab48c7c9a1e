/** Holds a value against a schema and tells everything that does not fit, each with its path. */
import type { TSchema } from "typebox";
import { Value } from "typebox/value";
import { nearest } from "./nearest.ts";
import { formatPath, isObject, type Path } from "./path.ts";
import { misfit, problem, type Problem } from "./problem.ts";
import { type Shown, unresolved } from "./references.ts";

/**
 * Objects and lists are walked here and only single values are left to the library, because it stops after a few errors
 * and does not say which key was meant.
 */
export function validate(schema: TSchema, value: unknown, path: Path, shown: Shown): readonly Problem[] {
  const form = schema as Form;
  if (value === unresolved) return [];
  if (Array.isArray(value) && form.items !== undefined) {
    const { items } = form;
    return value.flatMap((entry, index) => validate(items, entry, [...path, index], shown));
  }
  if (isObject(value) && form.properties !== undefined) {
    return walkProperties(form.properties, form.required ?? [], value, path, shown);
  }
  const each = Object.values(form.patternProperties ?? {})[0];
  if (isObject(value) && each !== undefined) {
    return Object.entries(value).flatMap(([key, entry]) => validate(each, entry, [...path, key], shown));
  }
  return Value.Check(schema, value) ? [] : [misfit(path, shown(path, value), describeSchema(form))];
}

/** The part of JSON Schema that the walk and the descriptions read. */
interface Form {
  readonly type?: string;
  readonly title?: string;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly patternProperties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly items?: TSchema;
  readonly anyOf?: readonly TSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
}

function walkProperties(
  properties: Readonly<Record<string, TSchema>>,
  required: readonly string[],
  value: Readonly<Record<string, unknown>>,
  path: Path,
  shown: Shown,
): Problem[] {
  const problems: Problem[] = [];
  for (const key of Object.keys(value)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known === undefined) problems.push(unknownKey([...path, key], key, Object.keys(properties)));
    else problems.push(...validate(known, value[key], [...path, key], shown));
  }
  for (const key of required) {
    if (Object.hasOwn(value, key)) continue;
    problems.push(problem([...path, key], `missing; required: ${describeSchema((properties[key] ?? {}) as Form)}`));
  }
  return problems;
}

function unknownKey(path: Path, key: string, known: readonly string[]): Problem {
  const meant = nearest(key, known);
  const question = meant === undefined ? "" : ` did you mean '${meant}'?`;
  const place = path.length === 1 ? "here" : `in ${formatPath(path.slice(0, -1))}`;
  return problem(path, `unknown key;${question} Known ${place}: ${known.join(", ")}`.replace("; Known", "; known"));
}

function describeSchema(form: Form): string {
  if (form.title !== undefined) return form.title;
  if (form.anyOf !== undefined) return form.anyOf.map((choice) => describeSchema(choice as Form)).join(" or ");
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
      return "a list";
    case "object":
      return "an object";
    default:
      return "something else";
  }
}

function describeRange({ minimum, maximum }: Form): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? "" : ` of at most ${maximum}`;
}
