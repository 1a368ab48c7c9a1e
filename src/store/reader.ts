/** The thread that reads what may take long: lists, exports, what is old. */
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { createReads } from "./reads.ts";
import type { Call, Outcome, Request } from "./threads.ts";
import { toFailure } from "./trouble.ts";

const database = new DatabaseSync((workerData as { readonly file: string }).file);
database.exec("PRAGMA query_only = ON");
const reads = createReads(database) as Record<string, (given: never) => unknown>;

parentPort?.on("message", (request: Request) => {
  if (typeof request === "string") {
    database.close();
    parentPort?.close();
    return;
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort?.postMessage(request.map(run));
});

function run([name, given]: Call): Outcome {
  try {
    return { result: reads[name]?.(given as never) };
  } catch (thrown) {
    return { failure: toFailure(thrown) };
  }
}
