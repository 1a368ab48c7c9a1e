/** Kinds of values that many keys share, each with a default and a description. */
import type { Schema } from "../../core/schema.ts";

/** Keys that belong together; no others are allowed. */
export function section<const Properties extends Readonly<Record<string, Schema>>>(
  description: string,
  properties: Properties,
) {
  return { type: "object", additionalProperties: false, default: {}, description, properties } as const;
}

/** Values of one kind under names the operator chooses. */
export function byName<const Each extends Schema>(each: Each, description: string) {
  return { type: "object", patternProperties: { "^.*$": each }, default: {}, description } as const;
}

/** Values of one kind, in order. */
export function list<const Each extends Schema>(items: Each, description: string, fallback: readonly string[] = []) {
  return { type: "array", items, default: fallback, description } as const;
}

/** On or off. */
export function flag(fallback: boolean, description: string) {
  return { type: "boolean", default: fallback, description } as const;
}

/** The upper limit of a timer. */
const largest = 2_147_483_647;

/** A number of things, or of milliseconds. */
export function integer(fallback: number, description: string, minimum = 1, maximum = largest) {
  return { type: "integer", minimum, maximum, default: fallback, description } as const;
}

/** The same without a default. */
export function optionalInteger(description: string, maximum = largest) {
  return { type: "integer", minimum: 1, maximum, description } as const;
}

/** Whether the history that callers send is learned, or assumed. */
export const histories = ["auto", "resent"] as const;

/** A time in words, e.g. `30d`. */
export function duration(fallback: string, description: string) {
  return {
    type: "string",
    pattern: "^(never|[1-9][0-9]{0,5}(s|m|h|d))$",
    title: 'a time like "90s", "15m", "24h" or "30d", or "never"',
    default: fallback,
    description,
  } as const;
}
