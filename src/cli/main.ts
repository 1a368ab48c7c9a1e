/** The command line: finds a command, reads its arguments, runs it, and says what went wrong. */
import { ConfigError } from "../config/problem.ts";
import { GatewayError } from "../core/errors.ts";
import { type Command, CommandError, type Group, UsageError } from "./command.ts";
import { describeCommand, describeGroup, pick, readArguments, readVersion } from "./command.ts";
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
  doctor: async () => (await import("./check.ts")).doctor,
};

/** Runs the command line of this process; its exit code is 0: done, 1: failed, 2: not understood. */
export async function main(): Promise<void> {
  watchOutput();
  const code = await run(process.argv.slice(2)).catch(explain);
  // Whether the last line could be written is known a moment later.
  process.stdout.write("", () => setImmediate(() => process.exit(code)));
}

async function run(args: readonly string[]): Promise<number> {
  const words = args.filter((word) => word !== "--help" && word !== "-h");
  const [name, inner, ...rest] = words;
  if (name === "--version" || name === "-v") return tell(readVersion());
  // The parent of several processes starts it: it stands in no help.
  if (name === "worker") return (await import("./worker.ts")).work();
  if (name === undefined) return tell(describeGroup("portico", await describeAll()));
  const command = await pick(commands, name, "portico --help")();
  const wantsHelp = words.length < args.length;
  if (!("commands" in command)) return runCommand(name, command, words.slice(1), wantsHelp);
  if (inner === undefined) return tell(describeGroup(`portico ${name}`, command));
  return runCommand(`${name} ${inner}`, pick(command.commands, inner, `portico ${name} --help`), rest, wantsHelp);
}

async function runCommand(name: string, command: Command, words: readonly string[], wantsHelp: boolean) {
  return wantsHelp ? tell(describeCommand(name, command)) : command.run(readArguments(name, command, words));
}

async function describeAll() {
  const loaded = Object.entries(commands).map(async ([name, load]) => [name, await load()] as const);
  const summary = "the front door of an AI gateway: chat completions and responses over HTTP, with memory.";
  return { summary, commands: Object.fromEntries(await Promise.all(loaded)) };
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
