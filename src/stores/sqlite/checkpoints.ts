/** Keeps the write-ahead log short: a separate thread checkpoints it into the file, away from the requests. */
import { statSync } from "node:fs";
import { extname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { unavailable } from "../refusals.ts";
import type { LogLength } from "./checkpoints-thread.ts";
import type { Sync } from "./sync.ts";

export interface Checkpoints {
  /** Call it after a write: the log is checked in a moment. */
  noteWrite(): void;
  /** Writers await this first: some milliseconds, now and then, while the end of the log is checkpointed. */
  pause(): Promise<void> | undefined;
  /**
   * Pages of the log still contain what was deleted, and the file only shrinks when they are checkpointed. A current
   * reader keeps the log from being emptied; nobody waits for that, the next time will do.
   */
  emptyLog(): Promise<void>;
  /** Call it before closing the database, so that closing checkpoints what is left. */
  close(): Promise<void>;
}

interface LogLimits {
  /** How long after a write the log is checked. */
  readonly lookMs: number;
  /** How many pages are worth a checkpoint; a page rewritten in the meantime is copied only once. */
  readonly minPages: number;
  /** At how many pages the log restarts: rarely, because writing pauses for it, but soon enough for quick recovery. */
  readonly maxPages: number;
  /** How long after a failure the thread is retried. */
  readonly restMs: number;
}

/** A page has 4 KB: 4 MB and 32 MB. */
const defaultLimits: LogLimits = { lookMs: 50, minPages: 1_000, maxPages: 8_000, restMs: 10_000 };
const pageBytes = 4_096;

/**
 * A log restarts only when a write finds all of it checkpointed, and under load there is always one more page. So when
 * it is long, writing pauses for the last few. While the thread cannot work, as on a full disk, SQLite checkpoints by
 * itself, between two requests.
 */
export function createCheckpoints(
  database: DatabaseSync,
  file: string,
  warn: (message: string) => void,
  wanted: Partial<LogLimits & Pick<Sync, "requireSynced">> = {},
): Checkpoints {
  const { lookMs, minPages, maxPages, restMs, requireSynced } = { ...defaultLimits, requireSynced() {}, ...wanted };
  let mode: "threaded" | "alone" | "closed" = file === ":memory:" ? "closed" : "threaded";
  let restsUntil = 0;
  let timer: NodeJS.Timeout | undefined;
  let thread: Worker | undefined;
  let answer: ((length: LogLength | undefined) => void) | undefined;
  let pause: Promise<void> | undefined;
  let last: Promise<unknown> = Promise.resolve();

  /** One after the other; a failure does not affect the next. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  }

  function isThreaded(): boolean {
    return mode === "threaded" || (mode === "alone" && performance.now() >= restsUntil);
  }

  function look(): void {
    timer = undefined;
    // A restarted log keeps its file size, so this only tells, without the thread, that there is nothing to do yet.
    if (sizeOf(`${file}-wal`) >= minPages * pageBytes) void inTurn(shorten);
  }

  /** What may not be on disk must not go into the file: after a crash, the log would not match it. */
  function isTrusted(): boolean {
    try {
      requireSynced();
      return true;
    } catch {
      return false;
    }
  }

  async function shorten(): Promise<void> {
    if (!isTrusted()) return;
    if (isThreaded()) thread ??= start();
    const length = await ask(minPages);
    if (length !== undefined && length.log >= maxPages) await takeAll(() => {});
  }

  /** Checkpoints all of the log while nobody writes. */
  async function takeAll(andThen: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    pause = promise;
    try {
      await ask(0);
      andThen();
    } finally {
      pause = undefined;
      resolve();
    }
  }

  /** Checkpoints the log if at least `pages` are due. Undefined if there is no thread, or no longer. */
  async function ask(pages: number): Promise<LogLength | undefined> {
    const asked = thread;
    if (asked === undefined) return undefined;
    // The thread keeps the process alive only while someone waits for it.
    asked.ref();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
    asked.postMessage(pages);
    const length = await new Promise<LogLength | undefined>((resolve) => (answer = resolve));
    // One being terminated keeps it alive until its end.
    if (asked === thread) asked.unref();
    return length;
  }

  function start(): Worker | undefined {
    try {
      // The same extension as this file, in the sources and in the package.
      const program = new URL(`./checkpoints-thread${extname(import.meta.filename)}`, import.meta.url);
      // None of the process's own flags: a thread refuses some of them.
      const started = new Worker(program, { workerData: file, execArgv: [] });
      started.on("message", (length: LogLength) => {
        if (thread === started) enableThread();
        answer?.(length);
      });
      started.on("error", disableThread);
      started.on("exit", () => {
        if (thread === started) disableThread(new Error("its thread has ended"));
        answer?.(undefined);
      });
      started.unref();
      return started;
    } catch (thrown) {
      disableThread(thrown);
      return undefined;
    }
  }

  function disableThread(thrown: unknown): void {
    thread = undefined;
    restsUntil = performance.now() + restMs;
    if (mode !== "threaded") return;
    mode = "alone";
    database.exec(`PRAGMA wal_autocheckpoint = ${minPages}`);
    warn(
      `The session store ${file} checkpoints its log between requests for now, which slows some of them down: ${String(thrown)}. The thread that usually does this is retried every ${restMs / 1_000} seconds.`,
    );
  }

  function enableThread(): void {
    if (mode !== "alone") return;
    mode = "threaded";
    database.exec("PRAGMA wal_autocheckpoint = 0");
  }

  function truncate(): void {
    if (!database.isOpen) return;
    const timeout = database.prepare("PRAGMA busy_timeout").get() as { timeout: number };
    try {
      database.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (thrown) {
      throw unavailable("The session store could not free the space of deleted data.", thrown);
    } finally {
      database.exec(`PRAGMA busy_timeout = ${timeout.timeout}`);
    }
  }

  return {
    noteWrite() {
      if (isThreaded()) timer ??= setTimeout(look, lookMs).unref();
    },
    pause: () => pause,
    emptyLog: () => inTurn(async () => (isTrusted() ? takeAll(truncate) : undefined)),
    async close() {
      const leaving = thread;
      clearTimeout(timer);
      mode = "closed";
      thread = undefined;
      await leaving?.terminate();
    },
  };
}

/** An unreadable folder must fail no request: the log is checked again after the next write. */
function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}
