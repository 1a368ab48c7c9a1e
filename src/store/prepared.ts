/** Statements by their text, each prepared once. */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

export type Prepare = (text: string) => StatementSync;

export function createCache(database: DatabaseSync): Prepare {
  const prepared = new Map<string, StatementSync>();
  return (text) => {
    const known = prepared.get(text);
    if (known !== undefined) return known;
    const statement = database.prepare(text);
    prepared.set(text, statement);
    return statement;
  };
}

/** What a statement gives is known where it is written. */
export interface Tables {
  one<Row>(text: string, ...values: readonly SQLInputValue[]): Row | undefined;
  all<Row>(text: string, ...values: readonly SQLInputValue[]): readonly Row[];
  /** How many rows it changed. */
  run(text: string, ...values: readonly SQLInputValue[]): number;
}

export function createTables(prepare: Prepare): Tables {
  return {
    one: <Row>(text: string, ...values: readonly SQLInputValue[]) => prepare(text).get(...values) as Row | undefined,
    all: <Row>(text: string, ...values: readonly SQLInputValue[]) => prepare(text).all(...values) as Row[],
    run: (text, ...values) => Number(prepare(text).run(...values).changes),
  };
}
