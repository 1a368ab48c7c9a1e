/** What a kind of adapter provides: the schema of its options, which every start reads, and how to create one. */
import type { Adapter } from "../core/ports.ts";
import type { ObjectSchema } from "../core/schema.ts";
import type { Turn } from "../core/turn.ts";

/** A kind in the table: its options are there at once, its code is loaded only when needed. */
export interface AdapterType {
  /** Keys besides `type`, `model` and `models`, which all have. */
  readonly options: ObjectSchema;
  load(): Promise<AdapterMaker>;
}

interface AdapterMaker {
  /** `options` have been validated by the schema, and have their defaults. `folder` is where packages are looked for. */
  create(options: unknown, environment: Environment, folder: string): Adapter;
}

/** The environment's variables, read once. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A duration option and its default; no timer can be set for longer than `maximum`. */
export function milliseconds(description: string, value: number) {
  return { type: "integer", minimum: 1, maximum: 2_147_483_647, default: value, description } as const;
}

/** How long an answer may take, for kinds that ask someone else: a server, a program, the operator's module. */
export const answerTimeouts = {
  first_byte_timeout_ms: milliseconds("The longest wait for the first byte of a streamed answer.", 120_000),
  idle_timeout_ms: milliseconds("The longest silence within a streamed answer.", 120_000),
  total_timeout_ms: milliseconds(
    "The longest that a non-streamed answer may take, silent or not. Streams and background turns have no such limit.",
    600_000,
  ),
} as const;

/** The same in our words, for one turn. */
export interface AnswerLimits {
  readonly firstByteMs: number;
  readonly idleMs: number;
  /** Absent: the answer is streamed, and takes as long as it takes. */
  readonly totalMs?: number | undefined;
}

export type LimitsOf = (turn: Turn) => AnswerLimits;

export function toLimits(chosen: Readonly<Record<keyof typeof answerTimeouts, number>>): LimitsOf {
  const { first_byte_timeout_ms: firstByteMs, idle_timeout_ms: idleMs, total_timeout_ms: totalMs } = chosen;
  return ({ stream }) => ({ firstByteMs, idleMs, totalMs: stream ? undefined : totalMs });
}
