/** Keeps the fields that we have no word for, so that a model of the same dialect hears them. */
import type { Extra } from "../../core/item.ts";
import type { Fields } from "../fields.ts";

/** Everything but the known fields and nulls; nothing when there is nothing. */
export function toExtra(fields: Fields, known: ReadonlySet<string>): Extra | undefined {
  const { values } = fields;
  const extra = Object.keys(values).filter((key) => !known.has(key) && values[key] !== null);
  if (extra.length === 0) return undefined;
  // As entries, because a key may be called `__proto__`.
  return { dialect: "chat", fields: Object.fromEntries(extra.map((key) => [key, values[key]])) };
}
