/** Makes a value that fits a JSON Schema of the usual kind: always the same, with what the caller said about its properties. */
import { GatewayError } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/settings.ts";
import { isObject } from "../../wires/fields.ts";

const maxParts = 10_000;
const maxDepth = 100;

/** `isGenerous`: properties that are not required are made too. */
export function makeSample(root: JsonSchema, told: ReadonlyMap<string, string>, isGenerous: boolean): unknown {
  let parts = 0;

  function make(part: unknown, depth: number, said?: string): unknown {
    parts += 1;
    if (parts > maxParts || depth > maxDepth) throw unfit("is too large, or refers to itself without an end");
    const { $ref, allOf, anyOf, oneOf, ...own } = isObject(part) ? part : {};
    const other = typeof $ref === "string" ? resolve(root, $ref) : listOf(allOf ?? anyOf ?? oneOf)[0];
    if (isObject(other)) return make({ ...own, ...other }, depth + 1, said);
    if ("const" in own) return own["const"];
    if (Array.isArray(own["enum"])) return own["enum"].includes(said) ? said : own["enum"][0];
    const { type = "properties" in own ? "object" : "string" } = own;
    switch (Array.isArray(type) ? type.find((one) => one !== "null") : type) {
      case "object": {
        const { properties, required } = own;
        const names = new Set(listOf(required).map(String));
        for (const name of Object.keys(Object(properties))) if (isGenerous || told.has(name)) names.add(name);
        const makeOne = (name: string) => [name, make(Object(properties)[name], depth + 1, told.get(name))] as const;
        return Object.fromEntries(Array.from(names, makeOne));
      }
      case "array":
        return Array.from({ length: Math.min(limitOf(own, "minItems", 0), maxParts) }, () =>
          make(own["items"], depth + 1),
        );
      case "integer":
      case "number":
        return makeNumber(own, said);
      case "boolean":
        return said !== "false";
      case "string":
        return makeString(own, said);
      default:
        return null;
    }
  }

  return make(root, 0);
}

function resolve(root: JsonSchema, reference: string): unknown {
  let found: unknown = root;
  for (const step of reference.split("/").slice(1)) found = isObject(found) ? found[step] : undefined;
  return found ?? {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function limitOf(schema: JsonSchema, key: string, otherwise: number): number {
  const value = schema[key];
  return typeof value === "number" ? value : otherwise;
}

/** What was said, or another that is within its bounds. */
function makeNumber(schema: JsonSchema, said = "none"): number {
  const [minimum, above] = [limitOf(schema, "minimum", -Infinity), limitOf(schema, "exclusiveMinimum", -Infinity)];
  const [maximum, below] = [limitOf(schema, "maximum", Infinity), limitOf(schema, "exclusiveMaximum", Infinity)];
  const middle = (Math.max(minimum, above) + Math.min(maximum, below)) / 2;
  const found = [Number(said), 0, minimum, maximum, above + 1, below - 1, middle].find((value) => {
    const isWithin = value >= minimum && value > above && value <= maximum && value < below;
    return isWithin && (schema["type"] === "integer" ? Number.isInteger(value) : Number.isFinite(value));
  });
  if (found === undefined) throw unfit("has a number that nothing fits");
  return found;
}

function makeString(schema: JsonSchema, said = "text"): string {
  const length = limitOf(schema, "minLength", 0);
  if (length > maxParts) throw unfit("wants a string that is too long");
  return formats.get(schema["format"]) ?? said.slice(0, limitOf(schema, "maxLength", Infinity)).padEnd(length, "x");
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
