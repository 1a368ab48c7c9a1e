/** Keeps the fields that we have no word for, so that a model of the same dialect hears them. */
import type { Extra } from "../../core/item.ts";
import type { Fields } from "../fields.ts";

/** Everything but the known fields and nulls; nothing when there is nothing. */
export function toExtra(fields: Fields, known: ReadonlySet<string>): Extra | undefined {
  let extra: Record<string, unknown> | undefined;
  for (const key in fields.values) {
    const value = fields.values[key];
    if (!known.has(key) && value !== null) (extra ??= {})[key] = value;
  }
  return extra === undefined ? undefined : { dialect: "chat", fields: extra };
}
