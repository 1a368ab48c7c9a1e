/** The command line: finds the command, reads its arguments, runs it, and tells how it ended. */
import { ConfigError } from "../config/problem.ts";
import { check } from "./check.ts";
import { type Command, readArguments, unknownWord, UsageError } from "./command.ts";
import { describeCommand, describeCommands } from "./help.ts";
import { type House, house as wholeHouse } from "./house.ts";
import { init } from "./init.ts";
import { schema } from "./schema.ts";
import { listProblems } from "./settings.ts";
import { start } from "./start.ts";
import { createTerminal, type Terminal } from "./terminal.ts";
import { readVersion } from "./version.ts";

const commands: Readonly<Record<string, Command>> = { start, init, check, schema };

/** Runs a command line, and gives the exit code: 0 done, 1 failed, 2 not understood. */
export async function run(args: readonly string[], terminal: Terminal, house: House = wholeHouse): Promise<number> {
  try {
    return await dispatch(args, terminal, house);
  } catch (thrown) {
    if (thrown instanceof UsageError) {
      terminal.complain(thrown.message);
      return 2;
    }
    if (!(thrown instanceof ConfigError)) throw thrown;
    const count = thrown.problems.length === 1 ? "a problem" : `${thrown.problems.length} problems`;
    terminal.complain(`The configuration has ${count}:\n${listProblems(thrown.problems, "  ")}`);
    return 1;
  }
}

/** Runs the command line of this process. */
export async function main(): Promise<void> {
  const terminal = createTerminal();
  terminal.exit(await run(process.argv.slice(2), terminal));
}

async function dispatch(args: readonly string[], terminal: Terminal, house: House): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v") return tell(terminal, readVersion());
  if (name === undefined || name === "--help" || name === "-h") return tell(terminal, describeCommands(commands));
  if (name === "help") {
    const [about] = rest;
    return tell(
      terminal,
      about === undefined ? describeCommands(commands) : describeCommand(about, findCommand(about)),
    );
  }
  const command = findCommand(name);
  const given = readArguments(name, command, rest);
  return given.wantsHelp ? tell(terminal, describeCommand(name, command)) : command.run(given, terminal, house);
}

function findCommand(name: string): Command {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command !== undefined) return command;
  const known = name.startsWith("-") ? ["--help", "--version"] : [...Object.keys(commands), "help"];
  throw unknownWord(name.startsWith("-") ? "option" : "command", name, known, "portico help");
}

function tell(terminal: Terminal, text: string): number {
  terminal.print(text);
  return 0;
}
