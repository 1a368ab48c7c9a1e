/** The log: lines of JSON on standard error, or a program's own. */
import { createSink } from "./sink.ts";

export interface Log {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface OpenLog extends Log {
  /** From now on lines of this level and above are written. A program's own log decides for itself. */
  setLevel(level: LogLevel): void;
  close(): Promise<void>;
}

export type LogLevel = "silent" | "error" | "info";

const standardError = 2;

export async function createLog(level: LogLevel): Promise<OpenLog> {
  // A program with a log of its own does not pay for the library.
  const { pino } = await import("pino");
  const sink = createSink(standardError);
  const logger = pino({ level, base: null }, sink);
  return {
    info: (fields, message) => logger.info(fields, message),
    error: (fields, message) => logger.error(fields, message),
    setLevel: (next) => void (logger.level = next),
    close: sink.close,
  };
}

/** A line that a program's own log fails to write stops nothing. */
export function guardLog(log: Log): OpenLog {
  function attempt(level: keyof Log, fields: object, message: string): void {
    // There is nowhere else to tell a failure.
    Promise.try(() => log[level](fields, message)).catch(() => {});
  }
  return {
    info: (fields, message) => attempt("info", fields, message),
    error: (fields, message) => attempt("error", fields, message),
    setLevel() {},
    async close() {},
  };
}
