/** Keeps the fields that we have no word for, so that a model of the same dialect hears them. */
import type { Extra } from "../../core/item.ts";
import { type Fields, readOthers } from "../fields.ts";

/** Everything but the known fields and nulls; nothing when there is nothing. */
export function toExtra(fields: Fields, known: ReadonlySet<string>): Extra | undefined {
  const others = readOthers(fields, known);
  return others && { dialect: "chat", fields: others };
}
