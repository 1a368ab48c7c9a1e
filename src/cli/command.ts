/** What a command is, and how its arguments are read. */
import { parseArgs } from "node:util";
import { nearest } from "../config/nearest.ts";

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
  /** The name of its value; absent: it is a flag. */
  readonly value?: string;
  readonly summary: string;
}

export interface Arguments {
  readonly options: Readonly<Record<string, string | undefined>>;
  /** The given options that have no value. */
  readonly flags: ReadonlySet<string>;
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

/** Undefined if they ask for help. */
export function readArguments(name: string, command: Command, args: readonly string[]): Arguments | undefined {
  const types = Object.entries(command.options).map(([option, { value }]) => {
    return [option, { type: value === undefined ? "boolean" : "string" }] as const;
  });
  const known = Object.fromEntries([...types, ["help", { type: "boolean", short: "h" }] as const]);
  const { tokens } = parseArgs({ args: [...args], strict: false, tokens: true, options: known });
  const options: Record<string, string> = {};
  const flags = new Set<string>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const { name: option, rawName, value, inlineValue } = token;
    if (option === "help") return undefined;
    const type = Object.hasOwn(known, option) ? known[option]?.type : undefined;
    const words = Object.keys(known).map((each) => `--${each}`);
    if (type === undefined) throw unknownWord("option", rawName, words, `portico ${name} --help`);
    if (type === "string") options[option] = requireValue(rawName, value, inlineValue);
    else if (value === undefined) flags.add(option);
    else throw new UsageError(`The option '${rawName}' takes no value.`);
  }
  const extra = positionals[command.maxPositionals ?? 0];
  if (extra !== undefined) throw new UsageError(`Unexpected argument '${extra}'. See 'portico ${name} --help'.`);
  return { options, flags, positionals };
}

export function unknownWord(what: string, word: string, known: readonly string[], help: string): UsageError {
  const meant = nearest(word, known);
  const question = meant === undefined ? "" : ` Did you mean '${meant}'?`;
  return new UsageError(`Unknown ${what} '${word}'.${question} See '${help}'.`);
}

function requireValue(name: string, value: string | undefined, isInline: boolean | undefined): string {
  // Without an equals sign, a value that begins with a dash is the next option, and this one's value is missing.
  if (value !== undefined && value !== "" && (isInline === true || !value.startsWith("-"))) return value;
  throw new UsageError(`The option '${name}' needs a value.`);
}
