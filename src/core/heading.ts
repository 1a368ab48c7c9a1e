/** The head of an answer. */
import type { Remark } from "./adapter.ts";
import type { Told } from "./place.ts";

/** What is known of an answer before its first word. */
export interface Heading {
  /** In every id of the answer. */
  readonly key: string;
  readonly createdAt: number;
  readonly model: string;
  readonly session: string | undefined;
  readonly told: Told;
  readonly contextItems: number;
  /** How much of what the gateway remembers does not fit the model's window. */
  readonly leftOutItems: number;
  readonly remarks: readonly Remark[];
}
