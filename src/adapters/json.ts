/** Reads what callers, upstreams and programs wrote, without trusting its shape. */
import { isExcessive } from "../core/json-shape.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value of a JSON text; undefined if it is none, or has more in it than any answer. */
export function parseJson(text: string): unknown {
  if (isExcessive(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function objectAt(from: JsonObject, key: string): JsonObject | undefined {
  const value = from[key];
  return isObject(value) ? value : undefined;
}

/** A non-empty string. */
export function textAt(from: JsonObject, key: string): string | undefined {
  const value = from[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function listAt(from: JsonObject, key: string): readonly unknown[] | undefined {
  const value = from[key];
  return Array.isArray(value) ? value : undefined;
}

/** A count; anything else is 0. */
export function countAt(from: JsonObject | undefined, key: string): number {
  const value = from?.[key];
  return isCount(value) ? value : 0;
}

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
