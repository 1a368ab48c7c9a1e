/** Prepares statements when they are first used: a store has a hundred, and a turn needs a dozen of them. */
import type {
  DatabaseSync,
  SQLInputValue,
  SQLOutputValue,
  StatementResultingChanges,
  StatementSync,
} from "node:sqlite";

/** Values by position, or by name. */
type Values = SQLInputValue[] | [Record<string, SQLInputValue>];

type Row = Record<string, SQLOutputValue>;

export interface Statement {
  get(...values: Values): Row | undefined;
  all(...values: Values): Row[];
  run(...values: Values): StatementResultingChanges;
}

/** `rows`: arrays are read faster; their columns go by position. */
export type Prepare = (sql: string, rows?: "objects" | "arrays") => Statement;

export function createPrepare(database: DatabaseSync): Prepare {
  return (sql, rows = "objects") => {
    let prepared: StatementSync | undefined;
    function prepare(): StatementSync {
      const statement = database.prepare(sql);
      statement.setReturnArrays(rows === "arrays");
      return statement;
    }
    const statement = () => (prepared ??= prepare());
    return {
      get: (...values) => statement().get(...(values as SQLInputValue[])),
      all: (...values) => statement().all(...(values as SQLInputValue[])),
      run: (...values) => statement().run(...(values as SQLInputValue[])),
    };
  };
}
