/** The thread that writes: what comes together is one transaction, synced once; if it fails, each of it alone. */
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { patienceMs, pragmas } from "./schema.ts";
import type { Call, Outcome, Request } from "./threads.ts";
import { isSyncFailure, toFailure } from "./trouble.ts";
import { createWrites } from "./writes.ts";

const { file } = workerData as { readonly file: string };
const database = new DatabaseSync(file, { timeout: patienceMs });
for (const pragma of pragmas) database.exec(`PRAGMA ${pragma}`);
const writes = createWrites(database) as Record<string, (given: never) => unknown>;
const begin = database.prepare("BEGIN IMMEDIATE");
const commit = database.prepare("COMMIT");

parentPort?.on("message", (request: Request) => {
  if (request === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort?.postMessage(request === "empty-log" ? [emptyLog()] : runTogether(request));
});

function runTogether(group: readonly Call[]): readonly Outcome[] {
  try {
    begin.run();
    const outcomes = group.map(([name, given]) => ({ result: writes[name]?.(given as never) }));
    commit.run();
    return outcomes;
  } catch (thrown) {
    const failure = toFailure(thrown);
    if (database.isTransaction) database.exec("ROLLBACK");
    // A second sync would claim that all is well.
    if (group.length === 1 || isSyncFailure(failure)) return group.map(() => ({ failure }));
    return group.flatMap((call) => runTogether([call]));
  }
}

function emptyLog(): Outcome {
  try {
    return { result: database.exec("PRAGMA wal_checkpoint(TRUNCATE)") };
  } catch (thrown) {
    return { failure: toFailure(thrown) };
  }
}
