/** Reads the fields meant for an adapter of the request's dialect, and which of them others cannot honour. */
import type { Dialect } from "../core/item.ts";
import type { Demand, Native } from "../core/turn.ts";
import { type Fields, isPresent, readOthers } from "./fields.ts";

/** The fields of a dialect's request that the gateway itself does not model. */
export interface OwnWords {
  readonly dialect: Dialect;
  /** What the gateway itself sends, so it must not be sent twice; everything else is for the model. */
  readonly ours: ReadonlySet<string>;
  /** Without these the answer would differ. */
  readonly demands: readonly Demanding[];
  /** These are only offers to the model, or make it faster. */
  readonly offers: readonly string[];
}

interface Demanding extends Demand {
  /** A value that demands nothing. */
  readonly isIdle?: (value: unknown) => boolean;
}

/** Both dialects have it. */
export const moderation: Demanding = {
  param: "moderation",
  why: "The adapter behind this model cannot moderate input and output. Leave it out, or moderate them yourself.",
};

export function readNative(fields: Fields, { dialect, ours, demands, offers }: OwnWords): Native {
  const { values } = fields;
  const isSent = (param: string) => isPresent(fields, param);
  return {
    dialect,
    fields: readOthers(fields, ours) ?? {},
    demands: demands.filter(({ param, isIdle }) => isSent(param) && isIdle?.(values[param]) !== true),
    offers: offers.filter((param) => isSent(param) && !isEmptyList(values[param])),
  };
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
