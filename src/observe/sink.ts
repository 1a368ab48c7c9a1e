/** Lines for a reader who may be slow or gone: written in batches, never waited for, and dropped whole beyond a limit. */
import { write, writeSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

export interface Sink {
  write(line: string): void;
  /** Writes what is left, as far as the reader takes it. */
  close(): Promise<void>;
}

/** How long a line may wait for others, in a batch of how many characters. */
const gatherMs = 100;
const gatheredLength = 64 * 1024;
/** How many characters may wait for a slow reader; lines beyond are dropped, and counted. */
const maxWaitingLength = 1024 * 1024;
/** When a pipe that is full is tried again. */
const fullMs = 10;
/** How long the last lines may wait. */
const lastMs = 500;

export function createSink(file: number): Sink {
  let gathered = "";
  let lost = 0;
  /** What is being written, or has to be once more: no line is torn. */
  let batch: Buffer = nothing;
  let isWriting = false;
  let timer: NodeJS.Timeout | undefined;

  function take(): Buffer {
    if (batch.length > 0) return batch;
    batch = Buffer.from(lost > 0 ? gathered + toLostLine(lost) : gathered);
    gathered = "";
    lost = 0;
    return batch;
  }

  function schedule(waitMs: number): void {
    timer ??= setTimeout(flush, waitMs).unref();
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (isWriting || take().length === 0) return;
    isWriting = true;
    // A pipe that does not block takes a part, or nothing, rather than make its writer wait.
    write(file, batch, (failure, written) => {
      isWriting = false;
      batch = batch.subarray(written);
      if (failure !== null) schedule(failure.code === "EAGAIN" ? fullMs : gatherMs);
      else if (batch.length > 0 || gathered.length >= gatheredLength) schedule(0);
      else if (gathered !== "" || lost > 0) schedule(gatherMs);
    });
  }

  /** For a process that exits without closing, and can wait for nothing but this. */
  function flushLast(): void {
    // A write under way ends without us.
    if (isWriting) batch = nothing;
    const until = performance.now() + lastMs;
    while (take().length > 0 && performance.now() < until) {
      try {
        batch = batch.subarray(writeSync(file, batch));
      } catch (thrown) {
        if ((thrown as NodeJS.ErrnoException).code !== "EAGAIN") return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, fullMs);
      }
    }
  }

  process.on("exit", flushLast);
  return {
    write(line) {
      if (gathered.length >= maxWaitingLength) lost += 1;
      else gathered += line;
      // Otherwise the end of the batch under way, or its next try, looks for more.
      if (batch.length > 0) return;
      if (gathered.length >= gatheredLength) flush();
      else schedule(gatherMs);
    },
    async close() {
      const until = performance.now() + lastMs;
      for (flush(); batch.length > 0 && performance.now() < until; flush()) await wait(fullMs);
      clearTimeout(timer);
      process.off("exit", flushLast);
    },
  };
}

const nothing: Buffer = Buffer.alloc(0);

function toLostLine(lost: number): string {
  const fields = { level: 50, time: Date.now(), lost, msg: "Log lines were lost: their reader did not keep up." };
  return `${JSON.stringify(fields)}\n`;
}
