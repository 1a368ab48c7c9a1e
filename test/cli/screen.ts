/** The command line within this process, on a terminal that remembers what was said. */
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

/** What a command line meets, where it is not what every other meets. */
export interface Scene {
  /** What is piped into it. */
  readonly input?: string;
  readonly env?: Terminal["env"];
  readonly runtime?: Runtime;
}

/** A command that runs. */
export interface Begun {
  readonly ended: Promise<Ended>;
  /** What it has printed by the time the text appears. */
  said(text: string): Promise<string>;
  /** Where it listens, once it does. */
  address(): Promise<string>;
  /** What a shell would send it. */
  signal(signal: Signal): void;
}

/** A terminal that nobody sits at, in a folder. */
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
    outlastOutput: () => {},
    exit: () => assert.fail("nothing ends the process"),
  };
}

/** Runs `portico ARGS` in a folder. */
export function portico(folder: string, ...args: readonly string[]): Promise<Ended> {
  return runIn(folder, args);
}

/** The same, in a scene of the test's own. */
export function runIn(folder: string, args: readonly string[], scene?: Scene): Promise<Ended> {
  return begin(folder, args, scene).ended;
}

/** The same, told as that of a process is. */
export async function runHere(folder: string, args: readonly string[], scene?: Scene): Promise<Program> {
  const { code, printed, complained } = await runIn(folder, args, scene);
  return { code, stdout: toLines(printed), stderr: toLines(complained) };
}

function toLines(text: string): string {
  return text === "" ? "" : `${text}\n`;
}

/** Begins `portico ARGS` in a folder. */
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
