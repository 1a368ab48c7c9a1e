/** Writes the log: JSON lines on standard error, in batches, because a request must not wait for a terminal. */
import { write, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as wait } from "node:timers/promises";
import type * as pino from "pino";
import { codeOf } from "./core/errors.ts";
import type { DoorLog } from "./http/lines.ts";

const standardError = 2;
/** How long a line may wait for others. */
const gatherMs = 100;
const maxGathered = 64 * 1024;
/** How many characters may wait for a slow reader. */
const maxWaiting = 1024 * 1024;
/** The pause after a write that was only partly taken. */
const soonMs = 1;
/** The pause after a refused one. */
const retryMs = 10;
/** How long the last lines may wait for a slow reader. */
const flushMs = 500;

export interface Log {
  readonly log: DoorLog;
  /** From now on, writes lines of this level and above. */
  setLevel(level: string): void;
  /** Writes what is left, as far as the reader takes it. */
  close(): Promise<void>;
}

export function createLog(level: string): Log {
  const sink = createSink();
  let chosen = level;
  let logger: pino.Logger | undefined;
  /** The library is loaded with the first line, so that no start waits for it. */
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

/** Wraps a program's own log: a line that it fails to write must not crash the gateway and the program. */
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
    // There is nowhere else to report it.
  }
}

/**
 * One write for many lines. Bytes that the reader has no room for are written first the next time, so no line is torn.
 * The reader must keep up in the long run: lines beyond a limit are dropped and counted, because the log must neither
 * delay requests nor fill the memory.
 */
function createSink() {
  let gathered = "";
  /** A batch not completely written yet. */
  let unwritten = nothing;
  let lost = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> | undefined;

  function takeNext(): Buffer {
    if (unwritten.length > 0) return unwritten;
    unwritten = Buffer.from(lost === 0 ? gathered : gathered + logLost(lost));
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
      // A non-blocking pipe takes a part, or nothing, rather than make its writer wait.
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

  /** For an exiting process, which cannot await anything. */
  function flushLast(): void {
    // A pending write finishes without us.
    if (writing !== undefined) unwritten = nothing;
    const until = performance.now() + flushMs;
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
    await Promise.race([writing, wait(flushMs, undefined, { ref: false })]);
    // A reader that has not taken the last write yet might block us forever.
    if (writing === undefined) flushLast();
  }

  if (unflushed.size === 0) process.on("exit", flushAll);
  unflushed.add(flushLast);
  return {
    close,
    write(line: string): void {
      if (gathered.length >= maxWaiting) lost++;
      else gathered += line;
      // While a batch is unwritten, its write or retry looks for more when it is done.
      if (unwritten.length > 0) return;
      if (gathered.length >= maxGathered) flush();
      else schedule(gatherMs);
    },
  };
}

/** What open logs do when the process exits; one listener for all, however many a program opens. */
const unflushed = new Set<() => void>();

function flushAll(): void {
  for (const flush of unflushed) flush();
}

const nothing: Buffer = Buffer.alloc(0);

/** How many bytes are taken now. */
function writeNow(bytes: Buffer): number {
  try {
    return writeSync(standardError, bytes);
  } catch (thrown) {
    if (codeOf(thrown) === "EAGAIN") return 0;
    throw thrown;
  }
}

function toPauseMs(failure: Error | null): number {
  if (failure === null) return soonMs;
  return codeOf(failure) === "EAGAIN" ? retryMs : gatherMs;
}

/** Our own line, in the library's format. */
function logLost(lost: number): string {
  const fields = { level: 50, time: Date.now(), lost, msg: "Log lines were lost: the reader did not keep up." };
  return `${JSON.stringify(fields)}\n`;
}
