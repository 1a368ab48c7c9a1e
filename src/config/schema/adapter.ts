/** The keys of an adapter: those common to all, and those of its type. */
import type { Complete, Given, ObjectSchema, Schema } from "../../core/schema.ts";
import { byName, integer, list, optionalInteger, section } from "./kinds.ts";

/** The schema of an adapter: `type`, the keys common to all, and its own. */
export function adapterSchema(type: string, options: ObjectSchema): Schema {
  return {
    type: "object",
    additionalProperties: false,
    required: ["type", ...(options.required ?? [])],
    properties: {
      type: { type: "string", const: type, description: "The kind of adapter." },
      ...adapterKeys,
      ...options.properties,
    },
  };
}

/** The keys common to all adapters. */
export const adapterKeys = {
  model: { type: "string", minLength: 1, description: "The model that is asked whatever name a caller sends." },
  models: byName(
    { type: "string", minLength: 1 },
    "Names that callers may send, each with the adapter's own name for it.",
  ),
  context_window: optionalInteger(
    "Tokens that the model takes, question and answer together; longer conversations lose their middle.",
  ),
  max_answer_characters: integer(64 * 1024 * 1024, "The most that it may say in one answer, in characters, about."),
  fallback: list(
    { type: "string" },
    "Adapters to ask when this one cannot answer, in this order; only before its first word.",
  ),
  retry: section("Asking again where that is safe.", {
    times: integer(2, "How often this adapter is asked again when it fails before its first word.", 0),
    base_ms: integer(200, "About how long to wait before the first time; then twice as long each time."),
    max_wait_ms: integer(1_000, "How long a turn may wait in all; what would take longer is told at once.", 0),
  }),
  breaker: section("Keeps turns away from an adapter that is down.", {
    failures: integer(
      5,
      "Turns in a row that failed, after which nobody is let through for a while; 0 switches it off.",
      0,
    ),
    open_ms: integer(10_000, "For how long."),
  }),
} as const;

/** The keys common to all adapters, as written. */
export type AdapterKeys = Given<{ readonly properties: typeof adapterKeys }>;

/** A validated adapter with its defaults filled in; beside these keys it has the options of its type. */
export type AdapterShape = { readonly type: string } & Complete<{ readonly properties: typeof adapterKeys }>;
