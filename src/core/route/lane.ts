/** A lane: an adapter as the operator configured it. */
import type { Adapter } from "../adapter.ts";

export interface Lane {
  readonly name: string;
  readonly adapter: Adapter;
  /** Its own name for every model. */
  readonly model?: string | undefined;
  /** From a caller's name for a model to its own. */
  readonly models: Readonly<Record<string, string>>;
  /** How many tokens it takes, question and answer together; absent: nobody knows. */
  readonly contextWindow?: number | undefined;
  /** Who is asked if it cannot answer, in this order. */
  readonly fallback: readonly string[];
  /** How often it is asked again when it fails before its first word. */
  readonly retries: number;
  /** It is left alone while it is down; one that a program passes in never is. */
  readonly hasBreaker: boolean;
}

/** A mapped name is forwarded as mapped, any other as the one configured model, or as it is if there is none. */
export function toOwnName({ model, models }: Lane, asked: string): string {
  return (Object.hasOwn(models, asked) ? models[asked] : model) ?? asked;
}

/** The names that a caller may choose from, as far as configured. */
export function namesOf({ model, models }: Lane): readonly string[] {
  return model === undefined ? Object.keys(models) : [...Object.keys(models), model];
}
