/** Reads the fields of a JSON body: null means absent; errors of type or range name the path and the remedy. */
import { GatewayError } from "../core/errors.ts";
import type { Content, Dialect, Extra, Part } from "../core/item.ts";
import type { FunctionTool, Settings } from "../core/turn.ts";

/** An object in the body with its path, e.g. `messages[2].content[0]`; the body's own path is "". */
export interface Fields {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

export function readBody(body: unknown): Fields {
  if (isObject(body)) return { path: "", values: body };
  throw new GatewayError("invalid_type", `The request body must be a JSON object, but it is ${describe(body)}.`);
}

/** The path of a field, as errors name it. */
export function pathOf(fields: Fields, key: string): string {
  return fields.path === "" ? key : `${fields.path}.${key}`;
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
  return requireString(fields, key) || refuseEmpty(pathOf(fields, key));
}

function refuseEmpty(path: string): never {
  const message = `Invalid '${path}': empty string. Expected a string with at least one character.`;
  invalid(path, message, "empty_string");
}

const maxShortName = 1_000;

/**
 * A name that is repeated (a model's in every piece of an answer, a namespace's for each tool), so it must be short.
 */
export function requireShortName(fields: Fields, key: string): string {
  const name = requireName(fields, key);
  if (name.length <= maxShortName) return name;
  throw tooLong(pathOf(fields, key), "string too long", `at most ${maxShortName} characters`, name.length);
}

export function readBoolean(fields: Fields, key: string): boolean | undefined {
  return read(fields, key, "a boolean", (value) => typeof value === "boolean");
}

function readNumber(fields: Fields, key: string, min: number, max: number): number | undefined {
  const value = read(fields, key, "a decimal", (found) => typeof found === "number");
  return value === undefined ? undefined : checkRange(pathOf(fields, key), "decimal", value, min, max);
}

export function readInteger(
  fields: Fields,
  key: string,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
): number | undefined {
  const value = read(fields, key, "an integer", (found): found is number => Number.isInteger(found));
  return value === undefined ? undefined : checkRange(pathOf(fields, key), "integer", value, min, max);
}

export function readChoice<T extends string>(fields: Fields, key: string, allowed: readonly T[]): T | undefined {
  const value = readString(fields, key);
  if (value === undefined) return undefined;
  return allowed.find((choice) => choice === value) ?? notAllowed(pathOf(fields, key), value, allowed);
}

export function readObject(fields: Fields, key: string): Fields | undefined {
  const values = read(fields, key, "an object", isObject);
  return values && { path: pathOf(fields, key), values };
}

export function requireObject(fields: Fields, key: string): Fields {
  return readObject(fields, key) ?? missing(pathOf(fields, key));
}

export function readArray(fields: Fields, key: string): readonly unknown[] | undefined {
  return read(fields, key, "an array", (value): value is unknown[] => Array.isArray(value));
}

/** The objects of a list, each with its path. */
export function readObjects(fields: Fields, key: string): readonly Fields[] | undefined {
  const path = pathOf(fields, key);
  return readArray(fields, key)?.map((value, index) => toFields(value, `${path}[${index}]`));
}

/** A string, a list of parts, or nothing; `expected` are the dialect's words for it. */
export function readContent(
  fields: Fields,
  key: string,
  expected: string,
  readPart: (part: Fields) => Part,
): Content | undefined {
  const value = fields.values[key];
  if (typeof value === "string") return value;
  if (isPresent(fields, key) && !Array.isArray(value)) throw wrongType(pathOf(fields, key), expected, value);
  return readObjects(fields, key)?.map(readPart);
}

const maxOthers = 1_000;

/**
 * The fields that we do not know, without nulls, for a model of the same dialect. They are copied more than once on the
 * way, so their number is limited.
 */
export function readOthers({ path, values }: Fields, known: ReadonlySet<string>): Fields["values"] | undefined {
  const keys = Object.keys(values).filter((key) => !known.has(key) && values[key] !== null);
  if (keys.length === 0) return undefined;
  if (keys.length > maxOthers) {
    throw tooLong(path || "body", "too many properties", `at most ${maxOthers} unknown properties`, keys.length);
  }
  // As entries, because a key may be called `__proto__`.
  return Object.fromEntries(keys.map((key) => [key, values[key]]));
}

/** The same as a dialect's addition to something; undefined if there is none. */
export function readExtra(fields: Fields, known: ReadonlySet<string>, dialect: Dialect): Extra | undefined {
  const others = readOthers(fields, known);
  return others && { dialect, fields: others };
}

/** The settings that both dialects have, with the same names and bounds. */
export function readCommonSettings(fields: Fields): Partial<Settings> {
  return {
    parallelToolCalls: readBoolean(fields, "parallel_tool_calls"),
    temperature: readNumber(fields, "temperature", 0, 2),
    topP: readNumber(fields, "top_p", 0, 1),
    presencePenalty: readNumber(fields, "presence_penalty", -2, 2),
    frequencyPenalty: readNumber(fields, "frequency_penalty", -2, 2),
    serviceTier: readString(fields, "service_tier"),
  };
}

/** A function as both dialects describe it. */
export function readFunction(described: Fields): FunctionTool {
  return {
    type: "function",
    name: requireShortName(described, "name"),
    description: readString(described, "description"),
    parameters: readObject(described, "parameters")?.values,
    strict: readBoolean(described, "strict"),
  };
}

/** Labels: at most 16 pairs of strings, keys up to 64 and values up to 512 characters. */
export function readMetadata(fields: Fields, key: string): Readonly<Record<string, string>> | undefined {
  const metadata = readObject(fields, key);
  if (metadata === undefined) return undefined;
  const entries = Object.entries(metadata.values);
  if (entries.length > 16) throw tooLong(metadata.path, "too many properties", "at most 16 properties", entries.length);
  for (const [name, value] of entries) {
    const keyLength = countCharacters(name);
    if (keyLength > 64)
      throw tooLong(pathOf(metadata, name), "key too long", "a key of at most 64 characters", keyLength);
    if (typeof value !== "string") throw wrongType(pathOf(metadata, name), "a string", value);
    const length = countCharacters(value);
    if (length > 512) throw tooLong(pathOf(metadata, name), "string too long", "at most 512 characters", length);
  }
  return metadata.values as Readonly<Record<string, string>>;
}

/** Counts code points: a surrogate pair is one character. */
function countCharacters(text: string): number {
  let count = text.length;
  for (let at = 1; at < text.length; at++) {
    // A list of all pairs would take a second for a body full of them.
    if (isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1))) count--;
  }
  return count;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

/** Requires an object, and adds its path. */
export function toFields(value: unknown, path: string): Fields {
  if (isObject(value)) return { path, values: value };
  throw wrongType(path, "an object", value);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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

function tooLong(path: string, what: string, expected: string, length: number): GatewayError {
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
