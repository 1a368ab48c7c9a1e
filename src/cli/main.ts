/** The command line: finds a command, reads its arguments, runs it, and reports errors. */
import { ConfigError } from "../config/problem.ts";
import { GatewayError } from "../core/errors.ts";
import { readVersion } from "../version.ts";
import { type Command, CommandError, type Group, readArguments, unknownWord, UsageError } from "./command.ts";
import { describeCommand, describeCommands, describeGroup } from "./help.ts";
import { type Runtime, runtime as defaultRuntime } from "./runtime.ts";
import { describeProblems } from "./settings.ts";
import { createTerminal, type Terminal } from "./terminal.ts";

/** Each is loaded on demand: a starting gateway has no use for the others. */
const commands: Readonly<Record<string, () => Promise<Command | Group>>> = {
  start: async () => (await import("./start.ts")).start,
  init: async () => (await import("./init.ts")).init,
  check: async () => (await import("./check.ts")).check,
  schema: async () => (await import("./schema.ts")).schema,
  chat: async () => (await import("./chat.ts")).chat,
  sessions: async () => (await import("./sessions.ts")).sessions,
  token: async () => (await import("./token.ts")).token,
  doctor: async () => (await import("./doctor.ts")).doctor,
};

/** Runs a command line; returns the exit code: 0 done, 1 failed, 2 not understood. */
export async function run(
  args: readonly string[],
  terminal: Terminal,
  runtime: Runtime = defaultRuntime,
): Promise<number> {
  try {
    return await dispatch(args, terminal, runtime);
  } catch (thrown) {
    if (thrown instanceof ConfigError) terminal.complain(describeProblems(thrown));
    else if (thrown instanceof CommandError || thrown instanceof GatewayError) terminal.complain(thrown.message);
    else throw thrown;
    return thrown instanceof UsageError ? 2 : 1;
  }
}

/** Runs the command line of this process. */
export async function main(): Promise<void> {
  const terminal = createTerminal();
  const code = await run(process.argv.slice(2), terminal);
  // Whether the last line could be written is known a moment later.
  process.stdout.write("", () => setImmediate(() => terminal.exit(code)));
}

async function dispatch(args: readonly string[], terminal: Terminal, runtime: Runtime): Promise<number> {
  let [name, words] = takeWord(args);
  if (name === undefined) return printText(terminal, describeCommands(await loadAll()));
  if (name === "--version" || name === "-v") return printText(terminal, readVersion());
  let command = await pick(commands, name, "portico help", ["help", "--help", "--version"])();
  if ("commands" in command) {
    const [inner, rest] = takeWord(words);
    if (inner === undefined) return printText(terminal, describeGroup(name, command));
    command = pick(command.commands, inner, `portico ${name} --help`, ["--help"]);
    name = `${name} ${inner}`;
    words = rest;
  }
  const given = readArguments(name, command, words);
  if (given === undefined) return printText(terminal, describeCommand(name, command));
  return command.run(given, terminal, runtime);
}

/** The first word that does not ask for help, and what follows it; what asks for help before it goes behind it. */
function takeWord(words: readonly string[]): [word: string | undefined, rest: readonly string[]] {
  const at = words.findIndex((word) => !helpWords.has(word));
  const rest = words.slice(at + 1);
  return [words[at], at > 0 ? ["--help", ...rest] : rest];
}

const helpWords: ReadonlySet<string> = new Set(["help", "--help", "-h"]);

async function loadAll(): Promise<Readonly<Record<string, Command | Group>>> {
  const loaded = Object.entries(commands).map(async ([name, load]) => [name, await load()] as const);
  return Object.fromEntries(await Promise.all(loaded));
}

/** `others` are words that are known beside those of the table. */
function pick<T>(table: Readonly<Record<string, T>>, name: string, help: string, others: readonly string[]): T {
  const entry = Object.hasOwn(table, name) ? table[name] : undefined;
  if (entry !== undefined) return entry;
  const isOption = name.startsWith("-");
  const known = [...Object.keys(table), ...others].filter((word) => word.startsWith("-") === isOption);
  throw unknownWord(isOption ? "option" : "command", name, known, help);
}

function printText(terminal: Terminal, text: string): number {
  terminal.print(text);
  return 0;
}
