/** The log: JSON lines on standard error, gathered and written together, because a request must not wait for a terminal. */
import { write, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as wait } from "node:timers/promises";
import type * as pino from "pino";
import type { DoorLog } from "./http/lines.ts";

const standardError = 2;
/** How long a line may wait for others. */
const gatherMs = 100;
const maxGathered = 64 * 1024;
/** So many characters may wait for a reader that is behind. */
const maxWaiting = 1024 * 1024;
/** When a reader that has taken a part is tried again. */
const soonMs = 1;
/** When one that had no room is. */
const retryMs = 10;
/** How long the last lines may wait for a reader that is behind. */
const partingMs = 500;

export interface Log {
  readonly log: DoorLog;
  /** Writes what is of this level or above it from now on. */
  setLevel(level: string): void;
  /** Writes what is left, as far as its reader takes it. */
  close(): Promise<void>;
}

export function createLog(level: string): Log {
  const sink = createSink();
  let chosen = level;
  let logger: pino.Logger | undefined;
  /** The library is loaded for the first line, as no start should wait for it. */
  function open(): pino.Logger {
    return (logger ??= (require("pino") as typeof pino).pino({ level: chosen, base: null }, sink));
  }
  return {
    log: {
      info: (fields, message) => open().info(fields, message),
      error: (fields, message) => open().error(fields, message),
    },
    setLevel(next) {
      chosen = next;
      logger = undefined;
    },
    close: sink.close,
  };
}

const require = createRequire(import.meta.url);

/** What a program brings itself. A line that it fails to write must not take the gateway, and the program, with it. */
export function guardLog(log: DoorLog): Log {
  for (const level of ["info", "error"] as const) {
    if (typeof log[level] !== "function") throw new TypeError(`log.${level} must be a function (fields, message).`);
  }
  return {
    log: {
      info: (fields, message) => attempt(() => log.info(fields, message)),
      error: (fields, message) => attempt(() => log.error(fields, message)),
    },
    setLevel() {},
    async close() {},
  };
}

function attempt(write: () => unknown): void {
  try {
    const written = write();
    if (written instanceof Promise) written.catch(() => {});
  } catch {
    // There is no other place to tell it.
  }
}

/**
 * One write for many lines. What the reader has no room for stays in front, to the byte, so that no line is torn. Whoever reads
 * the log must keep up in the long run: lines beyond a bound are dropped and counted, because the log must neither hold up
 * requests nor take the gateway with it.
 */
function createSink() {
  let gathered = "";
  /** What was begun and is not all out yet. */
  let unwritten = nothing;
  let lost = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> | undefined;

  function takeNext(): Buffer {
    if (unwritten.length > 0) return unwritten;
    unwritten = Buffer.from(lost === 0 ? gathered : gathered + tellLost(lost));
    gathered = "";
    lost = 0;
    return unwritten;
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (writing !== undefined) return;
    const bytes = takeNext();
    if (bytes.length === 0) return;
    writing = new Promise((resolve) => {
      // A pipe may be of the kind that takes a part, or nothing, rather than let its writer wait.
      write(standardError, bytes, (failure, written) => {
        writing = undefined;
        if (failure === null) unwritten = bytes.subarray(written);
        if (unwritten.length > 0) schedule(toPauseMs(failure));
        else if (gathered !== "" || lost > 0) schedule(gatherMs);
        resolve();
      });
    });
  }

  function schedule(waitMs: number): void {
    timer ??= setTimeout(flush, waitMs).unref();
  }

  /** For a process that ends: nothing can be awaited any more. */
  function flushLast(): void {
    // What is on its way goes on without us.
    if (writing !== undefined) unwritten = nothing;
    const until = performance.now() + partingMs;
    try {
      for (let bytes = takeNext(); bytes.length > 0; bytes = takeNext()) {
        const written = writeNow(bytes);
        unwritten = bytes.subarray(written);
        if (written > 0) continue;
        if (performance.now() > until) break;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
      }
    } catch {
      // The reader is gone, and there is nobody left to tell.
    }
    unwritten = nothing;
  }

  async function close(): Promise<void> {
    unflushed.delete(flushLast);
    if (unflushed.size === 0) process.off("exit", flushAll);
    clearTimeout(timer);
    await Promise.race([writing, wait(partingMs, undefined, { ref: false })]);
    // Whoever has not taken the last write by now would hold us up for good.
    if (writing === undefined) flushLast();
  }

  if (unflushed.size === 0) process.on("exit", flushAll);
  unflushed.add(flushLast);
  return {
    close,
    write(line: string): void {
      if (gathered.length >= maxWaiting) lost++;
      else gathered += line;
      // While something is unwritten, whoever writes or tries again looks for more when it is done.
      if (unwritten.length > 0) return;
      if (gathered.length >= maxGathered) flush();
      else schedule(gatherMs);
    },
  };
}

/** What the open logs do when the process ends; one listener for all of them, however many a program opens. */
const unflushed = new Set<() => void>();

function flushAll(): void {
  for (const flush of unflushed) flush();
}

const nothing: Buffer = Buffer.alloc(0);

/** How much the reader takes now. */
function writeNow(bytes: Buffer): number {
  try {
    return writeSync(standardError, bytes);
  } catch (thrown) {
    if (isFull(thrown)) return 0;
    throw thrown;
  }
}

function toPauseMs(failure: Error | null): number {
  if (failure === null) return soonMs;
  return isFull(failure) ? retryMs : gatherMs;
}

function isFull(failure: unknown): boolean {
  return failure instanceof Error && "code" in failure && failure.code === "EAGAIN";
}

/** A line of our own, as the library would write it. */
function tellLost(lost: number): string {
  const fields = { level: 50, time: Date.now(), lost, msg: "Lines of the log were lost: its reader did not keep up." };
  return `${JSON.stringify(fields)}\n`;
}
