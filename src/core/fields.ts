/** Puts together the fields that a dialect adds to something, if they come one after the other. */
import type { Extra } from "./item.ts";

export interface GatheredFields {
  add(extra: Extra): void;
  /** Undefined if nothing was added. */
  toExtra(): Extra | undefined;
}

/** Lists grow, and of anything else the last value counts. */
export function gatherFields(): GatheredFields {
  const values = new Map<string, unknown>();
  let origin: Omit<Extra, "fields"> | undefined;

  return {
    add({ fields, ...from }) {
      origin = from;
      for (const [key, value] of Object.entries(fields)) {
        const list = values.get(key);
        if (!Array.isArray(value)) values.set(key, value);
        else if (!Array.isArray(list)) values.set(key, [...value]);
        else for (const entry of value) list.push(entry);
      }
    },
    toExtra: () => origin && { ...origin, fields: Object.fromEntries(values) },
  };
}
