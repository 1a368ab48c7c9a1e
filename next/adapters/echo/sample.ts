/** Makes a value that fits a JSON Schema of the usual kind: always the same, with what the caller said about its properties. */
import { GatewayError } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/turn.ts";
import { isObject } from "../../wires/fields.ts";

/** `isGenerous`: properties that are not required are made too. */
export function makeSample(root: JsonSchema, told: ReadonlyMap<string, string>, isGenerous: boolean): unknown {
  let parts = 0;

  function make(part: unknown, depth: number, said?: string): unknown {
    parts += 1;
    if (parts > maxParts || depth > maxDepth) throw unfit("is too large, or refers to itself without an end");
    const { $ref, allOf, anyOf, oneOf, ...own } = isObject(part) ? part : {};
    const others = typeof $ref === "string" ? [resolve(root, $ref)] : (allOf ?? listOf(anyOf ?? oneOf).slice(0, 1));
    const [other, ...more] = listOf(others).filter(isObject);
    if (other !== undefined) return make([other, ...more].reduce(merge, own), depth + 1, said);
    if ("const" in own) return own["const"];
    if (Array.isArray(own["enum"])) return own["enum"].includes(said) ? said : own["enum"][0];
    switch (typeOf(own)) {
      case "object":
        return makeObject(own, depth);
      case "array": {
        const length = Math.min(numberOf(own, "minItems", 0), maxParts);
        return Array.from({ length }, () => make(own["items"], depth + 1));
      }
      case "integer":
      case "number":
        return makeNumber(own, said);
      case "boolean":
        return said !== "false";
      case "null":
        return null;
      default:
        return makeString(own, said);
    }
  }

  function makeObject(schema: JsonSchema, depth: number): object {
    const properties = isObject(schema["properties"]) ? schema["properties"] : {};
    const required = new Set(listOf(schema["required"]).map(String));
    const wanted = Object.keys(properties).filter((name) => isGenerous || told.has(name));
    const names = new Set([...Object.keys(properties).filter((name) => required.has(name)), ...required, ...wanted]);
    return Object.fromEntries(Array.from(names, (name) => [name, make(properties[name], depth + 1, told.get(name))]));
  }

  return make(root, 0);
}

const maxParts = 10_000;
const maxDepth = 100;

function resolve(root: JsonSchema, reference: string): unknown {
  let found: unknown = root;
  for (const step of reference.split("/").slice(1)) found = isObject(found) ? found[step] : undefined;
  return isObject(found) ? found : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function merge(one: JsonSchema, other: JsonSchema): JsonSchema {
  const properties = { ...Object(one["properties"]), ...Object(other["properties"]) };
  const required = [...listOf(one["required"]), ...listOf(other["required"])];
  return { ...one, ...other, ...(Object.keys(properties).length > 0 && { properties, required }) };
}

function typeOf(schema: JsonSchema): unknown {
  const { type } = schema;
  if (Array.isArray(type)) return type.find((one) => one !== "null") ?? "null";
  return type ?? ("properties" in schema ? "object" : "items" in schema ? "array" : "string");
}

function numberOf(schema: JsonSchema, key: string, otherwise: number): number {
  const value = schema[key];
  return typeof value === "number" ? value : otherwise;
}

/** What was said, or the number nearest to 0. */
function makeNumber(schema: JsonSchema, said = "none"): number {
  const step = numberOf(schema, "multipleOf", 1);
  const [minimum, above] = [numberOf(schema, "minimum", -Infinity), numberOf(schema, "exclusiveMinimum", -Infinity)];
  const [maximum, below] = [numberOf(schema, "maximum", Infinity), numberOf(schema, "exclusiveMaximum", Infinity)];
  const [least, most] = [Math.max(minimum, above), Math.min(maximum, below)];
  const nearest = least > 0 ? Math.ceil(least / step) : most < 0 ? Math.floor(most / step) : 0;
  const isWhole = schema["type"] === "integer";
  const candidates = [
    Number(said),
    ...[nearest, nearest + 1, nearest - 1].map((times) => times * step),
    (least + most) / 2,
  ];
  const found = candidates.find(
    (value) => value >= minimum && value > above && value <= maximum && value < below && !(isWhole && value % 1 !== 0),
  );
  if (found === undefined) throw unfit("has a number that nothing fits");
  return found;
}

function makeString(schema: JsonSchema, said = "text"): string {
  const format = formats.get(schema["format"]);
  if (format !== undefined) return format;
  const least = numberOf(schema, "minLength", 0);
  if (least > maxParts) throw unfit("wants a string that is too long");
  return said.slice(0, numberOf(schema, "maxLength", Infinity)).padEnd(least, "x");
}

const formats: ReadonlyMap<unknown, string> = new Map([
  ["date-time", "2024-01-01T00:00:00Z"],
  ["date", "2024-01-01"],
  ["email", "user@example.com"],
  ["uri", "https://example.com/"],
  ["uuid", "00000000-0000-4000-8000-000000000000"],
]);

function unfit(why: string): GatewayError {
  return new GatewayError("adapter_bad_request", `The echo adapter cannot answer in this JSON Schema: it ${why}.`);
}
