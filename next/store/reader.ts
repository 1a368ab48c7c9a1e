/** The thread that reads what may take long: lists, exports, what is old. */
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { createReads, type Reads } from "./reads.ts";
import type { Outcome, Request } from "./threads.ts";
import { toFailure } from "./trouble.ts";

const database = new DatabaseSync((workerData as { readonly file: string }).file);
database.exec("PRAGMA query_only = ON");
const reads = createReads(database) as Record<keyof Reads, (given: never) => unknown>;

parentPort?.on("message", (request: Request<Reads>) => {
  if (typeof request === "string") {
    database.close();
    parentPort?.close();
    return;
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort?.postMessage(request.map(([name, given]) => run(name, given)));
});

function run(name: keyof Reads, given: unknown): Outcome {
  try {
    return { result: reads[name](given as never) };
  } catch (thrown) {
    return { failure: toFailure(thrown) };
  }
}
