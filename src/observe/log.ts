/** The log: lines of JSON on standard error, or a program's own. No request waits for its reader. */
import { write } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { inspect } from "node:util";

export interface Log {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

interface OpenLog extends Log {
  /** From now on lines of this level and above are written. A program's own log decides for itself. */
  setLevel(level: keyof typeof levels): void;
  close(): Promise<void>;
}

const levels = { info: 30, error: 50, silent: Infinity };
const standardError = 2;

export function createLog(first: keyof typeof levels): OpenLog {
  const sink = createSink(standardError);
  let level = first;
  return {
    info(fields, message) {
      if (levels[level] <= levels.info) sink.write(toLine(levels.info, fields, message));
    },
    error(fields, message) {
      if (levels[level] <= levels.error) sink.write(toLine(levels.error, toPlain(fields), message));
    },
    setLevel: (next) => void (level = next),
    close: sink.close,
  };
}

/** A line that a program's own log fails to write stops nothing. */
export function guardLog(log: Log): OpenLog {
  const toSafe = (level: keyof Log) => (fields: object, message: string) => {
    // There is nowhere else to tell a failure.
    Promise.try(() => log[level](fields, message)).catch(() => {});
  };
  return { info: toSafe("info"), error: toSafe("error"), setLevel() {}, async close() {} };
}

function toLine(level: number, fields: object, message: string): string {
  const own = JSON.stringify(fields).slice(1, -1);
  return `{"level":${level},"time":${Date.now()},${own}${own === "" ? "" : ","}"msg":${JSON.stringify(message)}}\n`;
}

/** Anything may have been thrown. */
function toPlain(fields: { readonly err?: unknown }): object {
  const { err } = fields;
  if (err === undefined) return fields;
  const { name: type, message } = err instanceof Error ? err : new Error(inspect(err));
  return { ...fields, err: { type, message, stack: inspect(err) } };
}

/** How long a line may wait for others. */
const gatherMs = 100;
/** How many characters may wait for a slow reader; lines beyond are dropped, and counted. */
const maxWaitingLength = 1024 * 1024;
/** When a pipe that is full is tried again. */
const fullMs = 10;
/** How long the last lines may wait. */
const lastMs = 500;

/** Writes batches of lines to a file whose reader may be slow or gone. */
function createSink(file: number) {
  let waiting = "";
  let lost = 0;
  /** What is being written, or has to be once more. */
  let batch = Buffer.alloc(0);
  let isWriting = false;
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    timer = undefined;
    if (isWriting) return;
    if (batch.length === 0) {
      if (lost > 0) waiting += toLine(levels.error, { lost }, "Log lines were lost: their reader did not keep up.");
      batch = Buffer.from(waiting);
      waiting = "";
      lost = 0;
    }
    if (batch.length === 0) return;
    isWriting = true;
    // A pipe that does not block takes a part, or nothing, rather than make its writer wait.
    write(file, batch, (failure, written) => {
      isWriting = false;
      batch = batch.subarray(written);
      const isFull = failure === null ? batch.length > 0 : failure.code === "EAGAIN";
      timer ??= setTimeout(flush, isFull ? fullMs : gatherMs).unref();
    });
  }

  return {
    write(line: string): void {
      if (waiting.length >= maxWaitingLength) lost += 1;
      else waiting += line;
      if (!isWriting) timer ??= setTimeout(flush, gatherMs).unref();
    },
    /** Writes what is left, as far as the reader takes it. */
    async close(): Promise<void> {
      const until = performance.now() + lastMs;
      for (flush(); batch.length > 0 && performance.now() < until; flush()) await wait(fullMs);
      clearTimeout(timer);
    },
  };
}
