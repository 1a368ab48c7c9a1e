/** The texts of `--help`. */
import type { Command, Group } from "./command.ts";

export function describeCommands(commands: Readonly<Record<string, Command | Group>>): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => [name, summary] as const);
  return [
    "Portico, the front door of an AI gateway: chat completions and responses over",
    "HTTP, with memory.",
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
    ...fold(`Usage: portico ${command.usage}`, "       "),
    "",
    ...table([...options, ["--help", "Show this."]]),
    ...(command.notes.length === 0 ? [] : ["", ...command.notes.flatMap((note) => fold(note))]),
  ].join("\n");
}

/** How to type a command, given how this one was run: with npm in a checkout, with npx in another project. */
export function nameOf(command: string, env: Readonly<Record<string, string | undefined>>, options = ""): string {
  const runner = env["npm_command"] === "exec" ? "npx " : "";
  if (env["npm_package_name"] !== "portico") return `${runner}portico ${command}${options}`;
  const script = command === "start" ? "npm start" : `npm run portico ${command}`;
  return options === "" ? script : `${script} --${options}`;
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.flatMap(([left, right]) => fold(`  ${left.padEnd(width)}  ${right}`, " ".repeat(width + 4)));
}

/** The default width of a terminal. */
const maxWidth = 80;

/** Wraps a line between words, but not within brackets; `indent` precedes all lines but the first. */
function fold(text: string, indent = ""): string[] {
  if (text.length <= maxWidth) return [text];
  const spaces = [...text.matchAll(/ (?! |[^[]*\])/g)].map(({ index }) => index);
  const last = spaces.findLast((index) => index > indent.length && index <= maxWidth);
  return last === undefined ? [text] : [text.slice(0, last), ...fold(indent + text.slice(last + 1), indent)];
}
