/** The thread that writes: what comes together is one transaction, synced once; if it fails, each of it alone. What may take long is read here too. */
import { parentPort, workerData } from "node:worker_threads";
import { createCache } from "./cold.ts";
import { openToWrite } from "./file.ts";
import { createReads } from "./reads.ts";
import { isSyncFailure, toFailure } from "./trouble.ts";
import { createWrites } from "./writes.ts";
import type { Call, Outcome, Request } from "./writing.ts";

type Functions = Readonly<Record<string, (given: never) => unknown>>;

const database = openToWrite((workerData as { readonly file: string }).file);
const prepare = createCache(database);
const reads = createReads(prepare) as Functions;
const writes = createWrites(prepare) as Functions;
const begin = database.prepare("BEGIN IMMEDIATE");
const commit = database.prepare("COMMIT");

parentPort?.on("message", (request: Request) => {
  if (request === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort?.postMessage(answer(request));
});

function answer(request: Exclude<Request, "close">): readonly Outcome[] {
  if (request === "empty-log") return [attempt(() => database.exec("PRAGMA wal_checkpoint(TRUNCATE)"))];
  if ("read" in request) return [attempt(() => run(reads, request.read))];
  return runTogether(request);
}

const run = (functions: Functions, [name, given]: Call): unknown => functions[name]?.(given as never);

function attempt(action: () => unknown): Outcome {
  try {
    return { result: action() };
  } catch (thrown) {
    return { failure: toFailure(thrown) };
  }
}

function runTogether(group: readonly Call[]): readonly Outcome[] {
  try {
    begin.run();
    const outcomes = group.map((call) => ({ result: run(writes, call) }));
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
