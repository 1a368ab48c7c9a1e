/** Makes up a value that fits a JSON Schema of the usual kind, always the same: of objects what is required, of alternatives the first. */
import { GatewayError } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/settings.ts";

/** Values in the whole, and characters in each. */
const maxSize = 1_000;

export function makeSample(root: JsonSchema): unknown {
  let size = 0;

  /** What is not written as it should be throws where it is used. */
  function make(part: unknown): unknown {
    const schema = Object(part);
    const { $ref, anyOf, type = schema.properties ? "object" : "string", minLength = 0 } = schema;
    size += 1;
    if (size > maxSize || minLength > maxSize) throw new RangeError("It asks for too much.");
    if ($ref !== undefined) return make(find(root, $ref));
    if (anyOf !== undefined) return make(anyOf[0]);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return schema.enum[0];
    switch ([type].flat().find((one) => one !== "null")) {
      case "object":
        return Object.fromEntries(
          (schema.required ?? []).map((name: string) => [name, make(schema.properties?.[name])]),
        );
      case "array":
        return Array.from({ length: schema.minItems ?? 0 }, () => make(schema.items));
      case "integer":
      case "number":
        return Math.min(Math.max(schema.minimum ?? 0, 0), schema.maximum ?? Infinity);
      case "boolean":
        return true;
      case "string":
        return (formats.get(schema.format) ?? "text").slice(0, schema.maxLength).padEnd(minLength, "x");
      default:
        return null;
    }
  }

  try {
    return make(root);
  } catch (cause) {
    const message = "The echo adapter cannot answer in this JSON Schema: it is wrong, too large, or endless.";
    throw new GatewayError("adapter_bad_request", message, { cause });
  }
}

function find(root: JsonSchema, reference: string): unknown {
  return reference.split("/").reduce((found, step) => (step === "#" ? root : Object(found)[step]), root);
}

const formats: ReadonlyMap<unknown, string> = new Map([
  ["date-time", "2024-01-01T00:00:00Z"],
  ["date", "2024-01-01"],
  ["email", "user@example.com"],
  ["uri", "https://example.com/"],
  ["uuid", "00000000-0000-4000-8000-000000000000"],
]);
