/** A store as a gateway has it, and as the command line has it. */
import { GatewayError } from "../core/errors.ts";
import type { Conversations, Operator, Records, Store } from "../core/store.ts";

export interface GatewayStore extends Store, Records, Conversations, Operator {
  /** Of what callers carry for the gateway; the first one seals. The same list until an archive brought others. */
  sealKeys(): readonly Buffer[];
  /** The layout from which it was migrated when it was opened. */
  readonly migratedFrom?: number | undefined;
}

export interface ColdStore extends Operator {
  close(): Promise<void>;
}

/** What is said of a store's server, and whether it is well. */
export type Trait = readonly [isWell: boolean, text: string];

export function sessionErased(): GatewayError {
  return new GatewayError(
    "not_found",
    "The conversation was deleted while this was answered, so the answer was not kept.",
  );
}
