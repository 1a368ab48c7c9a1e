/** Reads what an upstream wrote, without trusting its shape. */
import { GatewayError } from "../../core/errors.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectAt(from: JsonObject, key: string): JsonObject | undefined {
  const value = from[key];
  return isObject(value) ? value : undefined;
}

/** A string that is not empty. */
export function textAt(from: JsonObject, key: string): string | undefined {
  const value = from[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function listAt(from: JsonObject, key: string): readonly unknown[] | undefined {
  const value = from[key];
  return Array.isArray(value) ? value : undefined;
}

/** A whole number of things; what cannot be one counts as none. */
export function countAt(from: JsonObject | undefined, key: string): number {
  const value = from?.[key];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

export function parseJson(text: string, scrub: (text: string) => string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the text, and so belongs with it: into the log, not onto the wire.
    throw new GatewayError("adapter_protocol", "The upstream answered with something that is not JSON.", {
      cause: new Error(`It begins: ${scrub(text.slice(0, 200))}`),
    });
  }
}
