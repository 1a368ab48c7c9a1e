/** The thread that writes: what comes together is one transaction, synced once; if it fails, each of it alone. What may take long is read here too. */
import { parentPort, workerData } from "node:worker_threads";
import { createCache, createTables } from "./cold.ts";
import { createCommit } from "./commit.ts";
import { emptyLog, findMove, type OpenedFile, openToWrite } from "./file.ts";
import { createReads } from "./reads.ts";
import { isSyncFailure, moved, toFailure } from "./trouble.ts";
import { createUpkeep, nextNumber } from "./upkeep.ts";
import { createWrites } from "./writes.ts";
import type { Call, Outcome, Request } from "./writing.ts";

type Functions = Readonly<Record<string, (given: never) => Promise<unknown>>>;

const opened = workerData as OpenedFile;
const database = openToWrite(opened.path);
const prepare = createCache(database);
const tables = createTables(prepare);
const reads = createReads(tables) as Functions;
const writes = {
  ...createWrites(tables, nextNumber),
  ...createUpkeep(prepare),
  commit: createCommit(tables, nextNumber),
} as Functions;
const begin = database.prepare("BEGIN IMMEDIATE");
const commit = database.prepare("COMMIT");
const readVersion = database.prepare("PRAGMA data_version");
let version: unknown;

let last = Promise.resolve();
parentPort?.on("message", (request: Request) => {
  // In their order, and never two at a time: they share the connection and its transaction.
  last = last.then(() => serve(request));
});

async function serve(request: Request): Promise<void> {
  if (request === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  const outcomes = await answer(request);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort?.postMessage(outcomes);
}

async function answer(request: Exclude<Request, "close">): Promise<readonly Outcome[]> {
  if (request === "empty-log") return [await attempt(async () => emptyLog(database))];
  if (request === "look") return unlessMoved([await attempt(async () => hasChanged())]);
  if ("read" in request) return [await attempt(() => run(reads, request.read))];
  return unlessMoved(await runTogether(request));
}

/** Fails what was written into a file that is no longer in its place. */
async function unlessMoved(outcomes: readonly Outcome[]): Promise<readonly Outcome[]> {
  const failure = findMove(opened);
  // After a failed sync the gateway stops anyway, and must not sync again.
  if (failure === undefined || outcomes.some((each) => "failure" in each && isSyncFailure(each.failure)))
    return outcomes;
  // With its log emptied the file is complete wherever it is now, and SQLite cannot apply the log to another file here.
  if (failure.number === moved) await attempt(async () => emptyLog(database));
  return outcomes.map(() => ({ failure }));
}

/** Whether another process has written since the last look. True at the first look: a process that has ended may have. */
function hasChanged(): boolean {
  const before = version;
  version = readVersion.get()?.["data_version"];
  return version !== before;
}

const run = async (functions: Functions, [name, given]: Call): Promise<unknown> => functions[name]?.(given as never);

async function attempt(action: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { result: await action() };
  } catch (thrown) {
    return { failure: toFailure(thrown) };
  }
}

async function runTogether(group: readonly Call[]): Promise<readonly Outcome[]> {
  try {
    begin.run();
    const outcomes: Outcome[] = [];
    for (const call of group) outcomes.push({ result: await run(writes, call) });
    commit.run();
    return outcomes;
  } catch (thrown) {
    const failure = toFailure(thrown);
    if (database.isTransaction) database.exec("ROLLBACK");
    // A second sync would claim that all is well.
    if (group.length === 1 || isSyncFailure(failure)) return group.map(() => ({ failure }));
    const outcomes: Outcome[] = [];
    for (const call of group) outcomes.push(...(await runTogether([call])));
    return outcomes;
  }
}
