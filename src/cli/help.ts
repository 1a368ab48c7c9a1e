/** The texts of `--help`. */
import { readFileSync } from "node:fs";
import type { Command, Group } from "./command.ts";

type Listed = Readonly<Record<string, Pick<Command | Group, "summary">>>;

export function describeCommands(commands: Listed): string {
  const options: readonly Row[] = [
    ["--help", "Show this, or with a command its help."],
    ["--version", "Show the version."],
  ];
  const what = "Portico, the front door of an AI gateway: chat completions and responses over\nHTTP, with memory.";
  return [...listCommands(what, "portico", commands), "", "Options:", ...table(options)].join("\n");
}

export function describeGroup(name: string, { summary, commands }: Group): string {
  const lines = listCommands(`portico ${name}: ${summary}`, `portico ${name}`, commands);
  return [...lines, "", `See 'portico ${name} <command> --help'.`].join("\n");
}

function listCommands(what: string, name: string, commands: Listed): readonly string[] {
  const rows = Object.entries(commands).map(([command, { summary }]): Row => [command, summary]);
  return [what, "", `Usage: ${name} <command> [options]`, "", "Commands:", ...table(rows)];
}

export function describeCommand(name: string, command: Command): string {
  const options = Object.entries(command.options).map(([option, { value, summary }]): Row => {
    return [value === undefined ? `--${option}` : `--${option} ${value}`, summary];
  });
  return [
    `portico ${name}: ${command.summary}`,
    "",
    ...fold(`Usage: portico ${command.usage}`, "       "),
    "",
    ...table([...options, ["--help", "Show this."]]),
    ...(command.notes.length === 0 ? [] : ["", ...command.notes.flatMap((note) => fold(note))]),
  ].join("\n");
}

/** How to type a command: in a checkout, npm runs it. */
export function nameOf(command: string): string {
  if (process.env["npm_package_name"] !== "portico") return `portico ${command}`;
  return command === "start" ? "npm start" : `npm run portico ${command}`;
}

/** The package's. */
export function readVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly version: string }).version;
}

type Row = readonly [left: string, right: string];

function table(rows: readonly Row[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.flatMap(([left, right]) => fold(`  ${left.padEnd(width)}  ${right}`, " ".repeat(width + 4)));
}

/** The usual width of a terminal. */
const maxWidth = 80;

/** Wraps a line between words, but not within brackets; `indent` precedes all lines but the first. */
function fold(text: string, indent = ""): string[] {
  if (text.length <= maxWidth) return [text];
  const blanks = [...text.matchAll(/ (?! |[^[]*\])/g)].map(({ index }) => index);
  const last = blanks.findLast((index) => index > indent.length && index <= maxWidth);
  return last === undefined ? [text] : [text.slice(0, last), ...fold(indent + text.slice(last + 1), indent)];
}
