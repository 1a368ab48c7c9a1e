/** The command line: finds a command, reads its arguments, runs it, and says what went wrong. */
import { ConfigError } from "../config/problem.ts";
import { GatewayError } from "../core/errors.ts";
import { type Command, CommandError, type Group, readArguments, unknownWord, UsageError } from "./command.ts";
import { describeCommand, describeCommands, describeGroup, readVersion } from "./help.ts";
import { complain, print, watchOutput } from "./output.ts";
import { describeProblems } from "./settings.ts";

/** Each is loaded on demand: a starting gateway has no use for the others. */
const commands: Readonly<Record<string, () => Promise<Command | Group>>> = {
  start: async () => (await import("./start.ts")).start,
  init: async () => (await import("./init.ts")).init,
  check: async () => (await import("./check.ts")).check,
  schema: async () => (await import("./check.ts")).schema,
  chat: async () => (await import("./chat.ts")).chat,
  sessions: async () => (await import("./sessions.ts")).sessions,
  token: async () => (await import("./token.ts")).token,
  doctor: async () => (await import("./doctor.ts")).doctor,
};

/** Runs the command line of this process; its exit code is 0: done, 1: failed, 2: not understood. */
export async function main(): Promise<void> {
  watchOutput();
  const code = await run(process.argv.slice(2)).catch(explain);
  // Whether the last line could be written is known a moment later.
  process.stdout.write("", () => setImmediate(() => process.exit(code)));
}

async function run(args: readonly string[]): Promise<number> {
  const [name, words] = takeWord(args);
  if (name === undefined) return tell(describeCommands(await loadAll()));
  if (name === "--version" || name === "-v") return tell(readVersion());
  const command = await pick(commands, name, "portico --help")();
  if (!("commands" in command)) return runCommand(name, command, words);
  const [inner, rest] = takeWord(words);
  if (inner === undefined) return tell(describeGroup(name, command));
  return runCommand(`${name} ${inner}`, pick(command.commands, inner, `portico ${name} --help`), rest);
}

async function runCommand(name: string, command: Command, words: readonly string[]): Promise<number> {
  const given = readArguments(name, command, words);
  return given === undefined ? tell(describeCommand(name, command)) : command.run(given);
}

/** The first word that does not ask for help, and what follows it; what asks for help before it goes behind it. */
function takeWord(words: readonly string[]): readonly [word: string | undefined, rest: readonly string[]] {
  const at = words.findIndex((word) => !["help", "--help", "-h"].includes(word));
  const rest = words.slice(at + 1);
  return [words[at], at > 0 ? ["--help", ...rest] : rest];
}

function pick<Entry>(table: Readonly<Record<string, Entry>>, name: string, help: string): Entry {
  const entry = Object.hasOwn(table, name) ? table[name] : undefined;
  if (entry !== undefined) return entry;
  throw unknownWord(name.startsWith("-") ? "option" : "command", name, Object.keys(table), help);
}

async function loadAll(): Promise<Readonly<Record<string, Command | Group>>> {
  const loaded = Object.entries(commands).map(async ([name, load]) => [name, await load()] as const);
  return Object.fromEntries(await Promise.all(loaded));
}

function tell(text: string): number {
  print(text);
  return 0;
}

/** What the user can do something about is told in a sentence; a bug shows itself whole. */
function explain(thrown: unknown): number {
  if (thrown instanceof ConfigError) complain(describeProblems(thrown));
  else if (thrown instanceof CommandError || thrown instanceof GatewayError) complain(thrown.message);
  else if (thrown instanceof Error && "syscall" in thrown) complain(thrown.message);
  else throw thrown;
  return thrown instanceof UsageError ? 2 : 1;
}
