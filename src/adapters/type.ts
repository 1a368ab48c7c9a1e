/** What a kind of adapter brings: the schema of its own options, and how to make one. */
import { dirname } from "node:path";
import { type Static, type TObject, Type } from "typebox";
import type { Adapter } from "../core/ports.ts";

export interface AdapterType {
  /** Keys beside `type`, `model` and `models`, which every adapter has. */
  readonly options: TObject;
  /** `options` have passed the schema. */
  create(options: unknown, place?: Place): Adapter;
}

/** Where an adapter is at home. */
export interface Place {
  /** The config file's folder; the current one when there is none. */
  readonly folder: string;
}

/** The home of the adapters of a config file, or of none. */
export function toPlace(configFile: string | undefined): Place {
  return { folder: configFile === undefined ? process.cwd() : dirname(configFile) };
}

/** Binds the schema of the options to the function that takes them. */
export function defineAdapter<Options extends TObject>(
  options: Options,
  create: (options: Static<Options>, place: Place) => Adapter,
): AdapterType {
  return {
    options,
    create: (validated, place = toPlace(undefined)) => create(validated as Static<Options>, place),
  };
}

/** An option that is a time, with what it is when absent; no timer can be set for longer. */
export function milliseconds(description: string, value: number) {
  return Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647, default: value, description }));
}
