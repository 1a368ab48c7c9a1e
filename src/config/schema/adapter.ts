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
      type: { enum: [type], description: "The kind of adapter." },
      ...adapterKeys,
      ...options.properties,
    },
  };
}

/** The keys common to all adapters. */
export const adapterKeys = {
  model: { type: "string", minLength: 1, description: "The model to ask, whatever name a caller sends." },
  models: byName(
    { type: "string", minLength: 1 },
    "Names that callers may send, each with the adapter's own name for it; other names are accepted too.",
  ),
  context_window: optionalInteger(
    "Tokens the model takes, question and answer together; longer conversations lose their middle.",
  ),
  max_answer_characters: integer(64 * 1024 * 1024, "The longest answer, in characters, approximately."),
  fallback: list(
    { type: "string" },
    "Adapters to ask when this one cannot answer, in this order; only before its first word.",
  ),
  retry: section("Retries, where they are safe.", {
    times: integer(2, "How often this adapter is retried when it fails before its first word.", 0),
    base_ms: integer(200, "Approximate wait before the first retry; it doubles each time."),
    max_wait_ms: integer(
      1_000,
      "How long after the first attempt a retry may start; if it would be later, the error is returned at once.",
      0,
    ),
  }),
  breaker: section("The circuit breaker: keeps turns away from an adapter that is down.", {
    failures: integer(5, "Consecutive failed turns after which the circuit breaker opens; 0 disables it.", 0),
    open_ms: integer(10_000, "How long it stays open."),
  }),
} as const;

/** The keys common to all adapters, as written. */
export type AdapterKeys = Given<{ readonly properties: typeof adapterKeys }>;

/** A validated adapter with its defaults filled in; beside these keys it has the options of its type. */
export type AdapterShape = { readonly type: string } & Complete<{ readonly properties: typeof adapterKeys }>;
