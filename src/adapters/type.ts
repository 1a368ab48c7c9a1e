/** What a kind of adapter brings: the schema of its own options, and how to make one. Schemas are read at every start. */
import type { Adapter } from "../core/ports.ts";
import type { Complete, ObjectSchema } from "../core/schema.ts";

/** A kind in the table: its options are known at once, its code is loaded only where it is needed. */
export interface AdapterType {
  /** Keys beside `type`, `model` and `models`, which every adapter has. */
  readonly options: ObjectSchema;
  load(): Promise<AdapterMaker>;
}

export interface AdapterMaker {
  /** `options` have passed the schema, and its defaults are filled in. `folder` is the config file's; absent: the current one. */
  create(options: unknown, folder?: string): Adapter;
}

/** Gives the function that takes validated options their type, by their schema. */
export function defineAdapter<Options extends ObjectSchema>(
  create: (options: Complete<Options>, folder: string) => Adapter,
): AdapterMaker {
  return { create: (validated, folder = process.cwd()) => create(validated as Complete<Options>, folder) };
}

/** An option that is a time, with what it is when absent; no timer can be set for longer. */
export function milliseconds(description: string, value: number) {
  return { type: "integer", minimum: 1, maximum: 2_147_483_647, default: value, description } as const;
}

/** How long an answer may take, for kinds that others speak through: a server, a program, a file of the operator's. */
export const answerTimeouts = {
  first_byte_timeout_ms: milliseconds("The longest wait for the first byte of a streamed answer.", 120_000),
  idle_timeout_ms: milliseconds("The longest silence within a streamed answer.", 120_000),
  total_timeout_ms: milliseconds(
    "The longest that a whole answer may take, silent or not. Streams have no such limit.",
    600_000,
  ),
} as const;
