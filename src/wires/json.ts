/** Reads what servers wrote, without trusting its shape. */
import { GatewayError } from "../core/errors.ts";
import { isObject, parseObject } from "./fields.ts";

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
