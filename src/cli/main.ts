/** The command line: finds the command, reads its arguments, runs it, and tells how it ended. */
import { ConfigError } from "../config/problem.ts";
import { GatewayError } from "../core/errors.ts";
import { chat } from "./chat.ts";
import { check } from "./check.ts";
import { type Command, type Group, readArguments, unknownWord, UsageError } from "./command.ts";
import { doctor } from "./doctor.ts";
import { describeCommand, describeCommands, describeGroup } from "./help.ts";
import { type House, house as wholeHouse } from "./house.ts";
import { init } from "./init.ts";
import { schema } from "./schema.ts";
import { sessions } from "./sessions.ts";
import { describeProblems } from "./settings.ts";
import { start } from "./start.ts";
import { createTerminal, type Terminal } from "./terminal.ts";
import { token } from "./token.ts";
import { readVersion } from "./version.ts";

const commands: Readonly<Record<string, Command | Group>> = {
  start,
  init,
  check,
  schema,
  chat,
  sessions,
  token,
  doctor,
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
  if (name === undefined || name === "--help" || name === "-h") return tell(terminal, describeCommands(commands));
  if (name === "help") return tell(terminal, rest.length === 0 ? describeCommands(commands) : describe(find(rest)));
  const found = find(args);
  if (found.type === "group") return tell(terminal, describe(found));
  const given = readArguments(found.name, found.command, found.rest);
  return given.wantsHelp ? tell(terminal, describe(found)) : found.command.run(given, terminal, house);
}

type Found =
  | { readonly type: "group"; readonly name: string; readonly group: Group }
  | { readonly type: "command"; readonly name: string; readonly command: Command; readonly rest: readonly string[] };

/** A group is found when none of its commands is named. */
function find([name = "", ...rest]: readonly string[]): Found {
  const entry = pick(commands, name, "portico help", ["--help", "--version"], ["help"]);
  if (!("commands" in entry)) return { type: "command", name, command: entry, rest };
  const [inner, ...innerRest] = rest;
  if (inner === undefined || ["--help", "-h", "help"].includes(inner)) return { type: "group", name, group: entry };
  const command = pick(entry.commands, inner, `portico ${name} --help`, ["--help"], []);
  return { type: "command", name: `${name} ${inner}`, command, rest: innerRest };
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
