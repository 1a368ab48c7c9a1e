/** Checks a value against part of a JSON Schema, without ever running a caller's regular expression. */
import { CheckContext, CheckSchema, Stack } from "typebox/schema";
import { isObject } from "../json.ts";
import type { JsonSchema } from "../../core/turn.ts";

/** Undefined if the schema is so entangled that checking could take for ever. */
export type Check = ((part: unknown, value: unknown) => boolean) | undefined;

/** `root` resolves the references of its parts. */
export function createCheck(root: JsonSchema): Check {
  if (!isModest(root)) return undefined;
  const stack = Stack({}, root);
  return (part, value) => {
    if (typeof part === "boolean") return part;
    if (!isObject(part)) return true;
    try {
      return CheckSchema(stack, new CheckContext(), part, value);
    } catch {
      return false; // the schema itself is malformed here, so nothing is known to satisfy it
    }
  };
}

/** Where the patterns of a quiet schema are kept. */
export const hiddenPattern = "x-pattern";

/** Hides patterns from validators, as a caller's may take exponential time; drops `patternProperties`. */
export function hidePatterns(schema: JsonSchema): JsonSchema {
  const entries: [string, unknown][] = [];
  for (const [key, value] of Object.entries(schema)) {
    if (key === "pattern" && typeof value === "string") entries.push([hiddenPattern, value]);
    else if (key !== "patternProperties") entries.push([key, hidePatternsIn(value)]);
  }
  return Object.fromEntries(entries);
}

function hidePatternsIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hidePatternsIn);
  return isObject(value) ? hidePatterns(value) : value;
}

/** The part that a reference within the schema points to; a reference elsewhere allows anything. */
export function resolveReference(root: JsonSchema, reference: string): unknown {
  if (!reference.startsWith("#")) return true;
  let part: unknown = root;
  for (const step of reference.split("/").slice(1)) {
    const key = decodeStep(step);
    if (Array.isArray(part)) part = part[Number(key)];
    else if (isObject(part) && Object.hasOwn(part, key)) part = part[key];
    else return true;
  }
  return part ?? true;
}

function decodeStep(step: string): string {
  const plain = step.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

const maxParts = 20_000;
/** The validator compares each property with the names of all. */
const checkedPropertiesPerPart = 100;
/** The longest chain of references. */
export const maxReferences = 100;

const maxValues = 50_000;

/** Whether the schema as written is small enough to read at once. Plain values in lists cost almost nothing. */
export function isReadable(schema: JsonSchema): boolean {
  let values = 0;
  function walk(value: unknown): boolean {
    values += 1;
    if (values > maxValues) return false;
    if (Array.isArray(value)) return value.every((entry) => typeof entry !== "object" || walk(entry));
    return !isObject(value) || Object.values(value).every(walk);
  }
  return walk(schema);
}

/** A small schema can refer to itself in so many ways that it practically never ends. */
function isModest(root: JsonSchema): boolean {
  let parts = 0;
  function walk(part: unknown, references: readonly string[]): boolean {
    parts += 1;
    if (parts > maxParts) return false;
    if (Array.isArray(part)) return part.every((inner) => walk(inner, references));
    if (!isObject(part)) return true;
    return Object.entries(part).every(([key, inner]) => {
      if (key === "properties" && isObject(inner)) parts += Object.keys(inner).length ** 2 / checkedPropertiesPerPart;
      if (key !== "$ref" || typeof inner !== "string") return walk(inner, references);
      if (references.length >= maxReferences) return false;
      return references.includes(inner) || walk(resolveReference(root, inner), [...references, inner]);
    });
  }
  return walk(root, []);
}
