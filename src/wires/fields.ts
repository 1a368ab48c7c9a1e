/** Reads JSON: a caller's strictly, where null means absent and errors name path and remedy; a server's without trust in its shape. */
import { GatewayError } from "../core/errors.ts";
import { type Content, type Part, place } from "../core/item.ts";
import type { Dialect, Extra } from "../core/settings.ts";

/** An object in the body, and where it stands. */
export interface Fields {
  readonly values: Readonly<Record<string, unknown>>;
  /** The object that has it, by this key, and its place there in a list; none for the body itself, whose key is "". */
  readonly within?: Fields | undefined;
  readonly key: string;
  readonly index?: number | undefined;
}

export function readBody(body: unknown): Fields {
  if (isObject(body)) return { values: body, key: "" };
  throw new GatewayError("invalid_type", `The request body must be a JSON object, but it is ${describe(body)}.`);
}

/** The path of an object, e.g. `messages[2].content[0]`, or of a field of it. Only errors name it, so it is not kept. */
export function pathOf({ within, key, index }: Omit<Fields, "values">, field?: string): string {
  const path = within === undefined ? key : pathOf(within, key);
  const own = index === undefined ? path : `${path}[${index}]`;
  return field === undefined ? own : own === "" ? field : `${own}.${field}`;
}

/** Whether the field has a value. */
export function isPresent({ values }: Fields, key: string): boolean {
  return (values[key] ?? null) !== null;
}

function read<T>(fields: Fields, key: string, expected: string, is: (value: unknown) => value is T): T | undefined {
  const value = fields.values[key];
  if (value === undefined || value === null) return undefined;
  if (is(value)) return value;
  throw wrongType(pathOf(fields, key), expected, value);
}

export function readString(fields: Fields, key: string): string | undefined {
  return read(fields, key, "a string", (value) => typeof value === "string");
}

export function requireString(fields: Fields, key: string): string {
  return readString(fields, key) ?? missing(pathOf(fields, key));
}

/** A required, non-empty string. */
export function requireName(fields: Fields, key: string): string {
  const value = requireString(fields, key);
  if (value !== "") return value;
  const path = pathOf(fields, key);
  invalid(path, `Invalid '${path}': empty string. Expected a string with at least one character.`, "empty_string");
}

export function readBoolean(fields: Fields, key: string): boolean | undefined {
  return read(fields, key, "a boolean", (value) => typeof value === "boolean");
}

export function readNumber(fields: Fields, key: string, min: number, max: number): number | undefined {
  const value = read(fields, key, "a decimal", (value) => typeof value === "number");
  return value === undefined ? undefined : checkRange(pathOf(fields, key), "decimal", value, min, max);
}

export function readInteger(
  fields: Fields,
  key: string,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
): number | undefined {
  const value = read(fields, key, "an integer", (value): value is number => Number.isInteger(value));
  return value === undefined ? undefined : checkRange(pathOf(fields, key), "integer", value, min, max);
}

export function readChoice<T extends string>(fields: Fields, key: string, allowed: readonly T[]): T | undefined {
  const value = readString(fields, key);
  if (value === undefined) return undefined;
  return allowed.find((choice) => choice === value) ?? notAllowed(pathOf(fields, key), value, allowed);
}

export function readObject(fields: Fields, key: string): Fields | undefined {
  const values = read(fields, key, "an object", isObject);
  return values && { values, within: fields, key };
}

export function requireObject(fields: Fields, key: string): Fields {
  return readObject(fields, key) ?? missing(pathOf(fields, key));
}

export function readArray(fields: Fields, key: string): readonly unknown[] | undefined {
  return read(fields, key, "an array", Array.isArray);
}

/** The strings of a list. */
export function readStrings(fields: Fields, key: string): readonly string[] | undefined {
  return readArray(fields, key)?.map((value, index) => {
    if (typeof value === "string") return value;
    throw wrongType(`${pathOf(fields, key)}[${index}]`, "a string", value);
  });
}

/** The objects of a list. */
export function readObjects(fields: Fields, key: string): readonly Fields[] | undefined {
  return readArray(fields, key)?.map((value, index) => toFields(value, key, fields, index));
}

/** A string, a list of parts, or nothing. */
export function readContent(fields: Fields, key: string, readPart: (part: Fields) => Part): Content | undefined {
  const value = fields.values[key];
  if (typeof value === "string") return value;
  if (isPresent(fields, key) && !Array.isArray(value))
    throw wrongType(pathOf(fields, key), "a string or an array of parts", value);
  return readObjects(fields, key)?.map((each) => withPlace(readPart(each), each));
}

/** Any but a text may be refused later, by an adapter that cannot send it. */
function withPlace(part: Part, fields: Fields): Part {
  return part.type === "text" ? part : { ...part, [place]: pathOf(fields) };
}

/** The fields that we do not know, without nulls. */
export function readOthers(fields: Fields, known: ReadonlySet<string>): Fields["values"] | undefined {
  const { values } = fields;
  let keys: string[] | undefined;
  // Nearly all are known, so no list is made of them.
  for (const key in values) if (!known.has(key) && values[key] !== null) (keys ??= []).push(key);
  // As entries, because a key may be called `__proto__`.
  return keys && Object.fromEntries(keys.map((key) => [key, values[key]]));
}

/** The same as what a dialect adds to something. */
export function readExtra(fields: Fields, known: ReadonlySet<string>, dialect: Dialect): Extra | undefined {
  const others = readOthers(fields, known);
  return others && { dialect, fields: others };
}

/** Requires an object. */
export function toFields(value: unknown, key: string, within?: Fields, index?: number): Fields {
  if (isObject(value)) return { values: value, within, key, index };
  throw wrongType(pathOf({ within, key, index }), "an object", value);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object that a text is as JSON; undefined if it is anything else. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function wrongType(path: string, expected: string, value: unknown): GatewayError {
  return new GatewayError(
    "invalid_type",
    `Invalid type for '${path}': expected ${expected}, but got ${describe(value)} instead.`,
    { param: path },
  );
}

export function notAllowed(path: string, value: string, allowed: readonly string[]): never {
  const choices = allowed.map((choice) => `'${choice}'`).join(", ");
  return invalid(path, `Invalid value: '${value}'. Supported values are: ${choices}.`);
}

/** A value that has the right type and still cannot be used. */
export function invalid(param: string, message: string, wireCode?: string): never {
  throw new GatewayError("invalid_value", message, { param, wireCode });
}

export function missing(path: string, hint = ""): never {
  throw new GatewayError("missing_required_parameter", `Missing required parameter: '${path}'.${hint}`, {
    param: path,
  });
}

/** A field that would change the answer and that no adapter here can honour. */
export function unsupported(path: string, why: string): never {
  throw new GatewayError("unsupported_parameter", `Unsupported parameter: '${path}'. ${why}`, { param: path });
}

function checkRange(path: string, kind: "decimal" | "integer", value: number, min: number, max: number): number {
  if (value >= min && value <= max) return value;
  const isBelow = value < min;
  const side = isBelow ? "below minimum" : "above maximum";
  const expected = isBelow ? `>= ${min}` : `<= ${max}`;
  throw new GatewayError(
    "out_of_range",
    `Invalid '${path}': ${kind} ${side} value. Expected a value ${expected}, but got ${value} instead.`,
    { param: path, wireCode: `${kind}_${isBelow ? "below_min" : "above_max"}_value` },
  );
}

export function tooLong(path: string, what: string, expected: string, length: number): GatewayError {
  return new GatewayError("out_of_range", `Invalid '${path}': ${what}. Expected ${expected}, but got ${length}.`, {
    param: path,
    wireCode: what.replaceAll(" ", "_"),
  });
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal";
  return `a ${typeof value}`;
}

export type Said = Readonly<Record<string, unknown>>;

/** An answer, or an event of one. */
export function parseSaid(text: string): Said {
  const said = parseObject(text);
  if (said !== undefined) return said;
  throw new GatewayError("adapter_protocol", "The upstream answered with something that is not a JSON object.");
}

export function objectAt(from: Said, key: string): Said | undefined {
  const value = from[key];
  return isObject(value) ? value : undefined;
}

/** A string that is not empty. */
export function textAt(from: Said, key: string): string | undefined {
  const value = from[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function listAt(from: Said, key: string): readonly unknown[] | undefined {
  const value = from[key];
  return Array.isArray(value) ? value : undefined;
}

/** A count; anything else is 0. */
export function countAt(from: Said | undefined, key: string): number {
  const value = from?.[key];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
