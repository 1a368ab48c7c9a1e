/** The command line: finds the command, reads its arguments, runs it, and tells how it ended. */
import { ConfigError } from "../config/problem.ts";
import { GatewayError } from "../core/errors.ts";
import { type Command, type Group, readArguments, unknownWord, UsageError } from "./command.ts";
import { describeCommand, describeCommands, describeGroup } from "./help.ts";
import { type House, house as wholeHouse } from "./house.ts";
import { describeProblems } from "./settings.ts";
import { createTerminal, type Terminal } from "./terminal.ts";
import { readVersion } from "./version.ts";

/** Each is loaded when it is asked for: a gateway that starts has no use for the others. */
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

/** Runs a command line, and gives the exit code: 0 done, 1 failed, 2 not understood. */
export async function run(args: readonly string[], terminal: Terminal, house: House = wholeHouse): Promise<number> {
  try {
    return await dispatch(args, terminal, house);
  } catch (thrown) {
    if (thrown instanceof UsageError) {
      terminal.complain(thrown.message);
      return 2;
    }
    if (thrown instanceof GatewayError) {
      terminal.complain(thrown.message);
      return 1;
    }
    if (!(thrown instanceof ConfigError)) throw thrown;
    terminal.complain(describeProblems(thrown));
    return 1;
  }
}

/** Runs the command line of this process. */
export async function main(): Promise<void> {
  const terminal = createTerminal();
  const code = await run(process.argv.slice(2), terminal);
  // Whether the last line could be written is known a moment later.
  process.stdout.write("", () => setImmediate(() => terminal.exit(code)));
}

async function dispatch(args: readonly string[], terminal: Terminal, house: House): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v") return tell(terminal, readVersion());
  const wantsAll = name === "help" ? rest.length === 0 : name === undefined || name === "--help" || name === "-h";
  if (wantsAll) return tell(terminal, describeCommands(await loadAll()));
  if (name === "help") return tell(terminal, describe(await find(rest)));
  const found = await find(args);
  if (found.type === "group") return tell(terminal, describe(found));
  const given = readArguments(found.name, found.command, found.rest);
  return given.wantsHelp ? tell(terminal, describe(found)) : found.command.run(given, terminal, house);
}

type Found =
  | { readonly type: "group"; readonly name: string; readonly group: Group }
  | { readonly type: "command"; readonly name: string; readonly command: Command; readonly rest: readonly string[] };

/** A group is found when none of its commands is named. */
async function find([name = "", ...rest]: readonly string[]): Promise<Found> {
  const entry = await pick(commands, name, "portico help", ["--help", "--version"], ["help"])();
  if (!("commands" in entry)) return { type: "command", name, command: entry, rest };
  const [inner, ...innerRest] = rest;
  if (inner === undefined || ["--help", "-h", "help"].includes(inner)) return { type: "group", name, group: entry };
  const command = pick(entry.commands, inner, `portico ${name} --help`, ["--help"], []);
  return { type: "command", name: `${name} ${inner}`, command, rest: innerRest };
}

async function loadAll(): Promise<Readonly<Record<string, Command | Group>>> {
  const loaded = Object.entries(commands).map(async ([name, load]) => [name, await load()] as const);
  return Object.fromEntries(await Promise.all(loaded));
}

function pick<T>(
  table: Readonly<Record<string, T>>,
  name: string,
  help: string,
  options: readonly string[],
  more: readonly string[],
): T {
  const entry = Object.hasOwn(table, name) ? table[name] : undefined;
  if (entry !== undefined) return entry;
  const isOption = name.startsWith("-");
  throw unknownWord(isOption ? "option" : "command", name, isOption ? options : [...Object.keys(table), ...more], help);
}

function describe(found: Found): string {
  return found.type === "group" ? describeGroup(found.name, found.group) : describeCommand(found.name, found.command);
}

function tell(terminal: Terminal, text: string): number {
  terminal.print(text);
  return 0;
}
