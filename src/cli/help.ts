/** The texts of `--help`. */
import type { Command, Group } from "./command.ts";

export function describeCommands(commands: Readonly<Record<string, Command | Group>>): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => [name, summary] as const);
  return [
    "Portico, the front door of an AI gateway: chat completions and responses over HTTP, with memory.",
    "",
    "Usage: portico <command> [options]",
    "",
    "Commands:",
    ...table([...rows, ["help", "Show this, or the help of a command."]]),
    "",
    "Options:",
    ...table([
      ["--help", "Show this, or with a command its help."],
      ["--version", "Show the version."],
    ]),
  ].join("\n");
}

export function describeGroup(name: string, { summary, commands }: Group): string {
  return [
    `portico ${name}: ${summary}`,
    "",
    `Usage: portico ${name} <command> [options]`,
    "",
    "Commands:",
    ...table(Object.entries(commands).map(([command, { summary }]) => [command, summary] as const)),
    "",
    `See 'portico ${name} <command> --help'.`,
  ].join("\n");
}

export function describeCommand(name: string, command: Command): string {
  const options = Object.entries(command.options).map(
    ([option, { value, summary }]) => [value === undefined ? `--${option}` : `--${option} ${value}`, summary] as const,
  );
  return [
    `portico ${name}: ${command.summary}`,
    "",
    `Usage: portico ${command.usage}`,
    "",
    ...table([...options, ["--help", "Show this."]]),
    ...(command.notes.length === 0 ? [] : ["", ...command.notes]),
  ].join("\n");
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
