/** What a kind of adapter brings: the schema of its own options, and how to make one. */
import type { Static, TObject } from "typebox";
import type { Adapter } from "../core/ports.ts";

export interface AdapterType {
  /** Keys beside `type`, `model` and `models`, which every adapter has. */
  readonly options: TObject;
  /** `options` have passed the schema. */
  create(options: unknown): Adapter;
}

/** Binds the schema of the options to the function that takes them. */
export function defineAdapter<Options extends TObject>(
  options: Options,
  create: (options: Static<Options>) => Adapter,
): AdapterType {
  return { options, create: (validated) => create(validated as Static<Options>) };
}
