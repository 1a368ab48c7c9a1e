/** Reads which extras the caller wants to see in its answer. */
import { type Fields, readArray, wrongType } from "../fields.ts";

/** Extras that we do not know are tolerated: they are for an adapter of the same dialect. */
export function readInclude(fields: Fields): readonly string[] {
  return (readArray(fields, "include") ?? []).map((value, index) => {
    if (typeof value === "string") return value;
    throw wrongType(`include[${index}]`, "a string", value);
  });
}
