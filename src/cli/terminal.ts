/** What a command meets outside: the streams, the environment, the clock, the signals. */
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
  /** The folder that relative paths of arguments start from. It may have been deleted, and is only looked at where it counts. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  now(): Date;
  /** A line on the standard output. */
  print(line: string): void;
  /** A line on the standard error. */
  complain(line: string): void;
  /** What is typed, or piped. */
  readonly input: Readable;
  /** For what is no line, or more than fits into memory. */
  readonly output: Writable & { readonly isTTY?: boolean };
  /** The JSON that is answered there within a second; nothing when none is. */
  probe(url: string): Promise<unknown>;
  /** Whether someone sits at it. */
  readonly isInteractive: boolean;
  onSignal(listener: (signal: Signal) => void): void;
  /** From now on the process lives on where nothing can be printed, e.g. to a file on a full disk. */
  outlastOutput(): void;
  /** Ends the process at once. */
  exit(code: number): void;
}

const standardInput = 0;

/** Where nobody is, that is known at once; a machine that is busy may take its time to answer. */
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
    process.stderr.write(`The standard output cannot be written: ${message}\n`);
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
        // To load the platform's fetch would take a tenth of a start, and an import of node:http loads it.
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
    // A window that was closed would no longer say.
    isInteractive: isatty(standardInput),
    onSignal(listener) {
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => listener(signal));
    },
    outlastOutput: () => void (needsOutput = false),
    exit: (code) => process.exit(code),
  };
}

/** An argument that names a file. */
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
