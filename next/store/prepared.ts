/** Statements by their text, each prepared once. */
import type { DatabaseSync, StatementSync } from "node:sqlite";

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
