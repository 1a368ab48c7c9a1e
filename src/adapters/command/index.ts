/** The command adapter: a local program answers, one process for each turn. */
import { accessSync, constants, statSync } from "node:fs";
import { basename, delimiter, resolve } from "node:path";
import type { Adapter } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Turn } from "../../core/turn.ts";
import { openSource, type Timeouts } from "../waiting.ts";
import { type Launch, type Program, startProgram } from "./program.ts";
import { createReplyReader, type Output } from "./reply.ts";
import { promptOf, writeInput } from "./request.ts";

interface CommandSettings extends Timeouts {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The gateway's own variables that it may see, by name. */
  readonly env: readonly string[];
  readonly set_env: Readonly<Record<string, string>>;
  readonly input: "json" | "text" | "none";
  readonly output: Output;
}

/** Throws what is sure to fail at the first turn. */
export function createCommand(settings: CommandSettings, environment: NodeJS.ProcessEnv): Adapter {
  const { cwd, input, output, set_env } = settings;
  const env = { ...Object.fromEntries(settings.env.map((name) => [name, environment[name]])), ...set_env };
  const [name, ...rest] = checkCommand(settings.argv, cwd, env["PATH"]);
  const running = new Set<Program>();

  function killAll(): void {
    for (const one of running) one.kill();
  }

  function start(launch: Launch, signal: AbortSignal) {
    const program = startProgram(launch);
    // No group outlives a gateway that breaks down.
    if (running.size === 0) process.on("exit", killAll);
    running.add(program);
    void program.gone.finally(() => {
      running.delete(program);
      if (running.size === 0) process.off("exit", killAll);
    });
    signal.addEventListener("abort", () => program.kill());
    return listen(program, output);
  }

  return {
    speaks: [],
    async open(turn, caller, tell) {
      const argv = [name, ...fillArguments(rest, turn)] as const;
      const launch: Launch = { argv, cwd, env, input: writeInput(turn, input, tell) };
      return openSource("the adapter's program", (signal) => start(launch, signal), turn, settings, caller);
    },
    async close() {
      killAll();
      await Promise.all(Array.from(running, ({ gone }) => gone));
    },
  };
}

async function* listen({ output: bytes }: Program, output: Output) {
  const read = createReplyReader(output);
  for await (const some of bytes) yield* read(some);
  yield* read(undefined);
}

const placeholder = /\{(model|prompt)\}/g;
const hasPlaceholder = (argument: string): boolean => argument.search(placeholder) !== -1;

/** The caller's words never become an option: neither a text nor a model's name begins an argument with a dash. */
function fillArguments(rest: readonly string[], turn: Turn): string[] {
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

function checkCommand([program = "", ...rest]: readonly string[], cwd: string, path: string | undefined): Argv {
  if (program === "" || hasPlaceholder(program))
    throw new Error("argv[0] must name a program, without a placeholder: a caller must not choose what runs.");
  if (shells.has(basename(program)) && scriptOf(rest).some(hasPlaceholder)) {
    const remedy = 'Pass them as arguments behind the script ("$1"), or on standard input.';
    throw new Error(`argv: ${program} would run a caller's words as commands. ${remedy}`);
  }
  if (statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true) throw new Error(`There is no folder ${cwd}.`);
  const isFile = program.includes("/");
  // As the system will search; in its PATH an empty entry is the working folder.
  const folders = isFile ? [""] : (path?.split(delimiter) ?? ["/usr/local/bin", "/bin", "/usr/bin"]);
  if (!folders.some((folder) => isProgram(resolve(cwd, folder, program)))) {
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
