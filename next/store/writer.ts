/** The thread that writes: what comes together is one transaction, synced once; if it fails, each of it alone. */
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { createWrites, type Writes } from "./writes.ts";

/** One write: its name and what it is given. */
export type Write = { [Name in keyof Writes]: readonly [Name, Parameters<Writes[Name]>[0]] }[keyof Writes];

/** What became of one: its result, or why it failed. */
export type Outcome = { readonly result: unknown } | { readonly failure: Failure };

export interface Failure {
  readonly message: string;
  /** SQLite's number for it. */
  readonly number: number | undefined;
}

const { file, pragmas } = workerData as { readonly file: string; readonly pragmas: readonly string[] };
const database = new DatabaseSync(file);
for (const pragma of pragmas) database.exec(`PRAGMA ${pragma}`);
const writes = createWrites(database) as Record<string, (given: unknown) => unknown>;
const begin = database.prepare("BEGIN IMMEDIATE");
const commit = database.prepare("COMMIT");

parentPort?.on("message", (group: readonly Write[] | "close") => {
  if (group === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(runTogether(group));
});

function runTogether(group: readonly Write[]): readonly Outcome[] {
  try {
    begin.run();
    const outcomes = group.map(([name, given]) => ({ result: writes[name]?.(given) }));
    commit.run();
    return outcomes;
  } catch (thrown) {
    if (database.isTransaction) database.exec("ROLLBACK");
    if (group.length > 1) return group.flatMap((write) => runTogether([write]));
    const { message, errcode } = thrown as Error & { readonly errcode?: number };
    return [{ failure: { message, number: errcode } }];
  }
}
