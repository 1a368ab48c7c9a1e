/** Forwards opaque fields only in the dialect they came in, and never those that the gateway itself handles. */
import { type Dialect, type Extra, fieldsOf } from "../../core/item.ts";
import type { Settings } from "../../core/turn.ts";
import type { JsonObject } from "../json.ts";

/** The caller's own settings, if the upstream speaks the caller's dialect. */
export function nativeSettings({ native }: Settings, dialect: Dialect): JsonObject | undefined {
  const fields = fieldsOf(native, dialect);
  return fields && { ...fields, ...ours };
}

/** The gateway is the memory, so the upstream must not be; and the caller's `user` never leaves the gateway. */
const ours = {
  store: undefined,
  user: undefined,
  background: undefined,
  conversation: undefined,
  previous_response_id: undefined,
} as const;

/** What the upstream said that we do not know; undefined if nothing. */
export function extraOf(said: JsonObject, known: ReadonlySet<string>, dialect: Dialect): Extra | undefined {
  let unknown: [string, unknown][] | undefined;
  // Nearly all are known, so no list is made of them.
  for (const key in said) if (!known.has(key) && said[key] !== null) (unknown ??= []).push([key, said[key]]);
  return unknown && { dialect, fields: Object.fromEntries(unknown) };
}
