/** The log: JSON lines on standard error, gathered and written together, because a request must not wait for a terminal. */
import { write, writeSync } from "node:fs";
import { createRequire } from "node:module";
import type * as pino from "pino";
import type { DoorLog } from "./http/journal.ts";

const standardError = 2;
/** How long a line may wait for others. */
const gatherMs = 100;
const maxGathered = 64 * 1024;

export interface Log {
  readonly log: DoorLog;
  /** Writes what is of this level or above it from now on. */
  setLevel(level: string): void;
  close(): void;
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

/**
 * One write for many lines. What is left when the process ends is written before it does. Whoever reads the log must keep up:
 * lines that it does not take are lost, because it must not hold up requests or take the gateway with it.
 */
function createSink() {
  let gathered = "";
  let timer: NodeJS.Timeout | undefined;
  let isWriting = false;

  function flush(): void {
    timer = undefined;
    if (isWriting || gathered === "") return;
    const text = gathered;
    gathered = "";
    isWriting = true;
    write(standardError, text, () => {
      isWriting = false;
      if (gathered !== "") schedule();
    });
  }

  function schedule(): void {
    timer ??= setTimeout(flush, gatherMs).unref();
  }

  function close(): void {
    process.off("exit", close);
    clearTimeout(timer);
    try {
      if (gathered !== "") writeSync(standardError, gathered);
    } catch {
      // The reader is gone, and there is nobody left to tell.
    }
    gathered = "";
  }

  process.on("exit", close);
  return {
    close,
    write(line: string): void {
      gathered += line;
      if (gathered.length >= maxGathered) flush();
      else schedule();
    },
  };
}
