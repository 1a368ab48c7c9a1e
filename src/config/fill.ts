/** Fills in the defaults of a schema where a value is absent. */
import type { Schema } from "../core/schema.ts";
import { isObject } from "./path.ts";

/** Does not change the value itself. What does not fit the schema stays, for validation to report. */
export function fillDefaults(schema: Schema, value: unknown): unknown {
  const given = value === undefined ? structuredClone(schema.default) : value;
  const { properties, items } = schema;
  if (Array.isArray(given) && items !== undefined) return given.map((entry) => fillDefaults(items, entry));
  if (!isObject(given) || properties === undefined) return given;
  const complete = { ...given };
  for (const [key, inner] of Object.entries(properties)) {
    const filled = fillDefaults(inner, given[key]);
    if (filled !== undefined) complete[key] = filled;
  }
  return complete;
}
