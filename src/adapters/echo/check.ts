/** Checks a value against part of a JSON Schema, without ever running a caller's regular expression. */
import { CheckContext, CheckSchema, Pointer, Stack } from "typebox/schema";
import { GatewayError } from "../../core/errors.ts";
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

const maxValues = 50_000;

/**
 * Hides patterns from validators, as a caller's may take exponential time; drops `patternProperties`. Refuses a schema
 * too large to be read at once; plain values in lists cost almost nothing.
 */
export function hidePatterns(schema: JsonSchema): JsonSchema {
  let values = 0;
  function hide(value: unknown): unknown {
    values += 1;
    if (values > maxValues) refuseSize();
    if (Array.isArray(value)) return value.map((entry) => (typeof entry === "object" ? hide(entry) : entry));
    return isObject(value) ? hideIn(value) : value;
  }
  function hideIn(part: JsonSchema): JsonSchema {
    const entries = Object.entries(part).map(([key, value]) => {
      const isPattern = key === "pattern" && typeof value === "string";
      return [isPattern ? hiddenPattern : key, hide(value)] as const;
    });
    return Object.fromEntries(entries.filter(([key]) => key !== "patternProperties"));
  }
  return hideIn(schema);
}

export function refuseSize(): never {
  throw new GatewayError("adapter_bad_request", "The JSON Schema is too large for the echo adapter.");
}

/** The part that a reference within the schema points to; a reference elsewhere allows anything. */
export function resolveReference(root: JsonSchema, reference: string): unknown {
  if (reference.length > maxReferenceLength) refuseSize();
  return reference.startsWith("#") ? (Pointer.Get(root, decode(reference.slice(1))) ?? true) : true;
}

/** In characters: the validator reads all of a reference each time that it follows it. */
const maxReferenceLength = 300;

function decode(pointer: string): string {
  try {
    return decodeURIComponent(pointer);
  } catch {
    return pointer;
  }
}

const maxParts = 20_000;
/** The validator compares each property with the names of all. */
const checkedPropertiesPerPart = 100;
/** The longest chain of references. */
export const maxReferences = 100;

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
