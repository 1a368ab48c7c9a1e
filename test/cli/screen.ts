/** The command line within this process, on a terminal that records its output. */
import assert from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import type { Runtime } from "../../src/cli/runtime.ts";
import { run } from "../../src/cli/main.ts";
import type { Signal, Terminal } from "../../src/cli/terminal.ts";
import { type Ended as Program, findAddress } from "../whole/program.ts";

export interface Ended {
  readonly code: number;
  readonly printed: string;
  readonly complained: string;
}

/** The surroundings of a command, where they differ from the default. */
export interface Scene {
  /** The standard input. */
  readonly input?: string;
  readonly env?: Terminal["env"];
  readonly runtime?: Runtime;
}

/** A running command. */
export interface Begun {
  readonly ended: Promise<Ended>;
  /** Resolves with what it has printed when the text appears. */
  said(text: string): Promise<string>;
  /** Its address, once it listens. */
  address(): Promise<string>;
  /** Sends a signal as a shell would. */
  signal(signal: Signal): void;
}

/** A terminal without input, in a folder. */
export function createTerminalIn(folder: string): Terminal {
  return {
    folder,
    env: {},
    now: () => new Date(),
    print: () => {},
    complain: () => {},
    input: Readable.from([]),
    output: new PassThrough(),
    probe: async () => undefined,
    isInteractive: false,
    onSignal: () => {},
    onExit: () => {},
    outlastOutput: () => {},
    exit: () => assert.fail("the process may not exit"),
  };
}

/** Runs `portico ARGS` in a folder. */
export function portico(folder: string, ...args: readonly string[]): Promise<Ended> {
  return runIn(folder, args);
}

/** The same, in surroundings of the test's own. */
export function runIn(folder: string, args: readonly string[], scene?: Scene): Promise<Ended> {
  return begin(folder, args, scene).ended;
}

/** The same, with the result in the form of a process. */
export async function runHere(folder: string, args: readonly string[], scene?: Scene): Promise<Program> {
  const { code, printed, complained } = await runIn(folder, args, scene);
  return { code, stdout: toLines(printed), stderr: toLines(complained) };
}

function toLines(text: string): string {
  return text === "" ? "" : `${text}\n`;
}

/** Starts `portico ARGS` in a folder. */
export function begin(folder: string, args: readonly string[], { input = "", env = {}, runtime }: Scene = {}): Begun {
  const complained: string[] = [];
  const output = new PassThrough();
  const listeners: ((signal: Signal) => void)[] = [];
  let printed = "";
  output.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const terminal: Terminal = {
    ...createTerminalIn(folder),
    env,
    print: (line) => void output.write(`${line}\n`),
    complain: (line) => void complained.push(line),
    input: Readable.from([input]),
    output,
    onSignal: (listener) => void listeners.push(listener),
  };
  async function finish(): Promise<Ended> {
    const code = await run(args, terminal, runtime);
    output.end();
    if (!output.readableEnded) await new Promise((resolve) => output.once("end", resolve));
    return { code, printed: printed.replace(/\n$/, ""), complained: complained.join("\n") };
  }
  function said(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = () => (printed.includes(text) ? resolve(printed) : undefined);
      output.on("data", look);
      output.once("end", () => reject(new Error(`It ended before it said '${text}': ${printed}${complained}`)));
      look();
    });
  }
  return {
    ended: finish(),
    said,
    address: async () => findAddress(await said("  config ")),
    signal(signal) {
      for (const listener of listeners) listener(signal);
    },
  };
}
