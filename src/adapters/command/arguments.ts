/** A program and its arguments: checked when the adapter is made, filled for each turn. */
import { accessSync, constants, statSync } from "node:fs";
import { basename, delimiter, resolve } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import type { Turn } from "../../core/turn.ts";
import { promptOf } from "./request.ts";

const placeholder = /\{(model|prompt)\}/g;
const hasPlaceholder = (argument: string): boolean => argument.search(placeholder) !== -1;

/** The caller's words never become an option: neither a text nor a model's name begins an argument with a dash. */
export function fillArguments(rest: readonly string[], turn: Turn): string[] {
  const afterOptions = rest.indexOf("--");
  return rest.map((argument, place) => {
    // One pass: placeholders within the text are only text.
    const filled = argument.replace(placeholder, (_, word) => (word === "model" ? turn.model : promptOf(turn)));
    if (filled.includes("\0")) throw unfit("contains a NUL character");
    const isOption = filled.startsWith("-") && !argument.startsWith("-");
    if (!isOption || (afterOptions !== -1 && place > afterOptions)) return filled;
    if (argument.startsWith("{model}")) throw unfit("names a model that begins with a dash");
    return ` ${filled}`;
  });
}

function unfit(why: string): GatewayError {
  const message = `The request ${why}, which cannot be passed to this adapter's program.`;
  return new GatewayError("adapter_bad_request", message);
}

type Argv = readonly [program: string, ...rest: string[]];

export function checkCommand([program = "", ...rest]: readonly string[], cwd: string, path: string | undefined): Argv {
  if (program === "" || hasPlaceholder(program))
    throw new Error("argv[0] must name a program, without a placeholder: a caller must not choose what runs.");
  if (shells.has(basename(program)) && scriptOf(rest).some(hasPlaceholder)) {
    const remedy = 'Pass them as arguments behind the script ("$1"), or on standard input.';
    throw new Error(`argv: ${program} would run a caller's words as commands. ${remedy}`);
  }
  if (statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true) throw new Error(`There is no folder ${cwd}.`);
  const isFile = program.includes("/");
  // As the system will search; in its PATH an empty entry is the working folder.
  const folders = path?.split(delimiter) ?? ["/usr/local/bin", "/bin", "/usr/bin"];
  const files = isFile ? [resolve(cwd, program)] : folders.map((folder) => resolve(cwd, folder, program));
  if (!files.some(isProgram)) {
    const where = isFile ? "" : ` on its PATH (${folders.join(delimiter)})`;
    throw new Error(`There is no executable program ${program}${where}. Install it, or give its path.`);
  }
  // A name stays a name, so that a program that is installed anew is found at its new place.
  return [isFile ? resolve(cwd, program) : program, ...rest];
}

const shells: ReadonlySet<string> = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash"]);

/** What a shell reads itself: the script behind `-c`, and all before it. Between the two may be further options. */
function scriptOf(rest: readonly string[]): readonly string[] {
  const at = rest.findIndex((argument) => /^[-+]\w*c/.test(argument));
  if (at === -1) return [];
  return /^[-+]/.test(rest[at + 1] ?? "") ? rest : rest.slice(0, at + 2);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
