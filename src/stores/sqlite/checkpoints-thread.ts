/** The program of the thread that checkpoints the write-ahead log into the file. */
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";

/** How many pages the log has, and how many of them are in the file. */
export interface LogLength {
  readonly log: number;
  readonly checkpointed: number;
}

// The path of the file.
const place = pathToFileURL(workerData as string);
// A file that was moved away must not be recreated.
place.searchParams.set("mode", "rw");
const database = new DatabaseSync(place, { timeout: 0 });
database.exec("PRAGMA synchronous = FULL");
// An SQLite without NOOP checkpoints whenever it is asked, which is more work but just as good.
const look = database.prepare("PRAGMA wal_checkpoint(NOOP)");
// PASSIVE waits for nobody and nobody waits for it.
const takeOver = database.prepare("PRAGMA wal_checkpoint(PASSIVE)");

parentPort?.on("message", (minPages: number) => {
  const { log, checkpointed } = look.get() as unknown as LogLength;
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort?.postMessage(log - checkpointed < minPages ? { log, checkpointed } : takeOver.get());
});
