/** Sends signatures of a model's reasoning back with the assistant message that it led to. */
import { type GatheredFields, gatherFields } from "../../../core/fields.ts";
import type { Extra } from "../../../core/item.ts";

export interface Signatures {
  add(extra: Extra): void;
  /** Adds those that wait to a message, which may have some of them already. */
  sign(message: object): void;
}

export function createSignatures(): Signatures {
  let waiting: Extra[] = [];
  let last: { readonly message: object; readonly fields: GatheredFields; readonly written: Set<string> } | undefined;
  return {
    add: (extra) => void waiting.push(extra),
    sign(message) {
      if (last?.message !== message) last = { message, fields: gatherFields(true), written: new Set() };
      const { fields, written } = last;
      for (const extra of waiting) fields.add(extra);
      waiting = [];
      // Fields that the message has from its caller count more.
      const free = Object.entries(fields.toExtra()?.fields ?? {}).filter(
        ([key]) => written.has(key) || !(key in message),
      );
      for (const [key] of free) written.add(key);
      Object.assign(message, Object.fromEntries(free));
    },
  };
}
