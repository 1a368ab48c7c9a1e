/** What a command is, and how its arguments are read. */
import { parseArgs } from "node:util";
import { nearest } from "../config/nearest.ts";
import type { Runtime } from "./runtime.ts";
import type { Terminal } from "./terminal.ts";

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
  run(given: Arguments, terminal: Terminal, runtime: Runtime): Promise<number>;
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

/** Thrown if a command cannot do what it was asked for; says why, and what to do. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
}

/** Thrown if a command line is invalid; says what was probably meant. */
export class UsageError extends CommandError {
  override readonly name = "UsageError";
}

/** Undefined if they ask for help. */
export function readArguments(name: string, command: Command, args: readonly string[]): Arguments | undefined {
  const known = Object.keys(command.options);
  const isFlag = (option: string): boolean => command.options[option]?.value === undefined;
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    options: {
      help: { type: "boolean", short: "h" },
      ...Object.fromEntries(known.map((option) => [option, { type: isFlag(option) ? "boolean" : "string" } as const])),
    },
  });
  const options: Record<string, string> = {};
  const flags = new Set<string>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const { name: option, rawName, value, inlineValue } = token;
    if (option === "help") return undefined;
    if (!known.includes(option)) {
      const words = [...known, "help"].map((each) => `--${each}`);
      throw unknownWord("option", rawName, words, `portico ${name} --help`);
    } else if (!isFlag(option)) options[option] = requireValue(rawName, value, inlineValue);
    else if (value === undefined) flags.add(option);
    else throw new UsageError(`The option '${rawName}' takes no value.`);
  }
  const extra = positionals[command.maxPositionals ?? 0];
  if (extra !== undefined) throw new UsageError(`Unexpected argument '${extra}'. See 'portico ${name} --help'.`);
  return { options, flags, positionals };
}

export function unknownWord(
  kind: "command" | "option",
  word: string,
  known: readonly string[],
  help: string,
): UsageError {
  const meant = nearest(word, known);
  const question = meant === undefined ? "" : ` Did you mean '${meant}'?`;
  return new UsageError(`Unknown ${kind} '${word}'.${question} See '${help}'.`);
}

function requireValue(name: string, value: string | undefined, isInline: boolean | undefined): string {
  // Without an equals sign, a value that begins with a dash is the next option, and this one's value is missing.
  if (value === undefined || value === "" || (isInline !== true && value.startsWith("-"))) {
    throw new UsageError(`The option '${name}' needs a value.`);
  }
  return value;
}
