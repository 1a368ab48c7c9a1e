/** Keeps the fields that we have no word for, so that a model of the same dialect hears them. */
import type { Extra } from "../../core/item.ts";
import type { Fields } from "../fields.ts";

/** Everything but the known fields and nulls; nothing when there is nothing. */
export function toExtra(fields: Fields, known: ReadonlySet<string>): Extra | undefined {
  // As entries, because a key may be called `__proto__`.
  const extra = Object.entries(fields.values).filter(([key, value]) => !known.has(key) && value !== null);
  return extra.length === 0 ? undefined : { dialect: "chat", fields: Object.fromEntries(extra) };
}
