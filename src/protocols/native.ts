/** Reads what of a request is for an adapter of its own dialect, and tells what others cannot honour of it. */
import type { Dialect } from "../core/item.ts";
import type { Demand, Native } from "../core/turn.ts";
import { type Fields, readOthers } from "./fields.ts";

/** The fields of a dialect's request that the gateway has no word of its own for. */
export interface OwnWords {
  readonly dialect: Dialect;
  /** What the gateway says itself, and an adapter must not hear twice; everything else belongs to the model. */
  readonly ours: ReadonlySet<string>;
  /** Without these the answer would be another one. */
  readonly demands: readonly Demanding[];
  /** These are merely offered to the model, or make it faster. */
  readonly offers: readonly string[];
}

interface Demanding extends Demand {
  /** A value that demands nothing. */
  readonly isIdle?: (value: unknown) => boolean;
}

export function readNative(fields: Fields, { dialect, ours, demands, offers }: OwnWords): Native {
  const { values } = fields;
  const isSent = (param: string): boolean => (values[param] ?? undefined) !== undefined;
  return {
    dialect,
    fields: readOthers(fields, ours) ?? {},
    demands: demands.filter(({ param, isIdle }) => isSent(param) && isIdle?.(values[param]) !== true),
    offers: offers.filter(isSent),
  };
}
