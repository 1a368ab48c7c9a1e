/** What a command is, how its arguments are read, and its help. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { nearest } from "../config/problem.ts";

export interface Command {
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows `portico` in the usage line. */
  readonly usage: string;
  readonly options: Readonly<Record<string, Option>>;
  /** None when absent. */
  readonly maxPositionals?: number;
  /** What else its help says. */
  readonly notes: readonly string[];
  /** Returns the exit code. */
  run(given: Arguments): Promise<number>;
}

/** Commands that belong together, under one name: `portico sessions list`. */
export interface Group {
  readonly summary: string;
  readonly commands: Readonly<Record<string, Command>>;
}

interface Option {
  /** The name of its value; absent: it has none. */
  readonly value?: string;
  readonly summary: string;
}

export interface Arguments {
  /** Those that were given; "" is one without a value. */
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly positionals: readonly string[];
}

/** A command cannot do what it was asked for: why, and what to do. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
}

/** A command line is not understood: what was probably meant. */
export class UsageError extends CommandError {
  override readonly name = "UsageError";
}

export function readArguments(name: string, command: Command, words: readonly string[]): Arguments {
  const types = Object.entries(command.options).map(([option, { value }]) => {
    return [option, { type: value === undefined ? "boolean" : "string" }] as const;
  });
  try {
    const options = Object.fromEntries(types);
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true });
    const extra = positionals[command.maxPositionals ?? 0];
    if (extra !== undefined) throw new UsageError(`Unexpected argument '${extra}'. See 'portico ${name} --help'.`);
    const given = Object.entries(values).map(([option, value]) => [option, value === true ? "" : String(value)]);
    return { options: Object.fromEntries(given), positionals };
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    const [fault] = thrown.message.split(/[.\n]/);
    const known = types.map(([option]) => `--${option}`).join(", ") || "no option";
    throw new UsageError(`${fault}. 'portico ${name}' has ${known}.`);
  }
}

/** The entry with this name. */
export function pick<Entry>(table: Readonly<Record<string, Entry>>, name: string, help: string): Entry {
  const entry = Object.hasOwn(table, name) ? table[name] : undefined;
  if (entry !== undefined) return entry;
  const meant = nearest(name, Object.keys(table));
  const question = meant === undefined ? "" : ` Did you mean '${meant}'?`;
  throw new UsageError(`Unknown command '${name}'.${question} See '${help}'.`);
}

/** A list of commands, or of groups. */
interface Listed {
  readonly summary: string;
  readonly commands: Readonly<Record<string, Pick<Command, "summary">>>;
}

export function describeGroup(name: string, { summary, commands }: Listed): string {
  const rows = Object.entries(commands).map(([command, { summary }]) => [command, summary] as const);
  const usage = `Usage: ${name} <command> [options]`;
  return [`${name}: ${summary}`, "", usage, "", ...table(rows), "", `See '${name} <command> --help'.`].join("\n");
}

export function describeCommand(name: string, { summary, usage, options, notes }: Command): string {
  const rows = Object.entries(options).map(([option, { value, summary }]) => {
    return [value === undefined ? `--${option}` : `--${option} ${value}`, summary] as const;
  });
  const lines = [`portico ${name}: ${summary}`, "", `Usage: portico ${usage}`, "", ...table(rows), "", ...notes];
  return lines.join("\n").trimEnd();
}

function table(rows: readonly (readonly [left: string, right: string])[]): readonly string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
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
