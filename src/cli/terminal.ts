/** The world outside a command: streams, environment, clock and signals. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { isAbsolute, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { json } from "node:stream/consumers";
import { isatty } from "node:tty";
import { ConfigError } from "../config/problem.ts";
import { codeOf } from "../core/errors.ts";

export type Signal = "SIGINT" | "SIGTERM" | "SIGHUP";

export interface Terminal {
  /** The folder that paths in arguments are relative to. It may have been deleted, so it is read only when needed. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  now(): Date;
  /** A line on the standard output. */
  print(line: string): void;
  /** A line on the standard error. */
  complain(line: string): void;
  /** What is typed, or piped. */
  readonly input: Readable;
  /** For what is not a line, or does not fit in memory. */
  readonly output: Writable & { readonly isTTY?: boolean };
  /** The JSON that a URL returns within a second, if any. */
  probe(url: string): Promise<unknown>;
  /** Whether a person uses it. */
  readonly isInteractive: boolean;
  onSignal(listener: (signal: Signal) => void): void;
  /** Calls it when the process ends, even because of an error. */
  onExit(listener: () => void): void;
  /** From now on the process survives if nothing can be printed, e.g. to a file on a full disk. */
  outlastOutput(): void;
  /** Ends the process at once. */
  exit(code: number): void;
}

const standardInput = 0;

/** An absent server is noticed at once; a busy machine may take its time to answer. */
const probeMs = 1_000;

/** The terminal of this process. */
export function createTerminal(): Terminal {
  let needsOutput = true;
  // There is nobody left to tell.
  process.stderr.on("error", () => {});
  process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    if (!needsOutput) return;
    // A reader that has seen enough, like `head`, is no failure.
    if (code === "EPIPE") process.exit(0);
    process.stderr.write(`Standard output cannot be written: ${message}\n`);
    process.exit(1);
  });
  return {
    get folder() {
      return findFolder();
    },
    env: process.env,
    now: () => new Date(),
    print: (line) => void process.stdout.write(`${line}\n`),
    complain: (line) => void process.stderr.write(`${line}\n`),
    get input() {
      return process.stdin;
    },
    output: process.stdout,
    async probe(url) {
      try {
        // Loading the platform's fetch takes a tenth of a start, and importing node:http loads it.
        const { get } = process.getBuiltinModule(url.startsWith("https:") ? "node:https" : "node:http");
        const signal = AbortSignal.timeout(probeMs);
        const [response] = (await once(get(url, { agent: false, signal }), "response", { signal })) as [
          IncomingMessage,
        ];
        if (response.statusCode === 200) return await json(response);
        response.destroy();
      } catch {
        // Nobody is there, or somebody else.
      }
      return undefined;
    },
    // Asked now: a closed window could not tell.
    isInteractive: isatty(standardInput),
    onSignal(listener) {
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => listener(signal));
    },
    onExit: (listener) => void process.on("exit", listener),
    outlastOutput: () => void (needsOutput = false),
    exit: (code) => process.exit(code),
  };
}

/** The path of a file argument. */
export function toPath(name: string, terminal: Pick<Terminal, "folder">): string {
  return isAbsolute(name) ? resolve(name) : resolve(terminal.folder, name);
}

function findFolder(): string {
  try {
    return process.cwd();
  } catch (thrown) {
    const message = `was deleted, or may not be entered (${codeOf(thrown)}); change to another one, or name files by absolute paths`;
    throw new ConfigError([{ path: "the current folder", message }]);
  }
}
