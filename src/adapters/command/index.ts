/** The command adapter: a local program answers, one process for each turn. */
import { accessSync, constants, statSync } from "node:fs";
import { basename, delimiter, resolve } from "node:path";
import type { Delta } from "../../core/delta.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Adapter } from "../../core/ports.ts";
import type { Complete } from "../../core/schema.ts";
import { toLateFailure } from "../failures.ts";
import { type Environment, toLimits } from "../type.ts";
import { pullSteps } from "../waiting.ts";
import type { Limit } from "../watch.ts";
import type { Launch } from "./launch.ts";
import { type Program, startProgram } from "./program.ts";
import { createReplyReader } from "./reply.ts";
import { fillArguments, hasPlaceholder, writeInput } from "./request.ts";
import type { options } from "./options.ts";

export function create(chosen: Complete<typeof options>, environment: Environment): Adapter {
  const { input, output, max_concurrent: maxConcurrent } = chosen;
  const cwd = resolve(chosen.cwd);
  const env = toEnvironment(chosen.env, chosen.set_env ?? {}, environment);
  const [program, ...rest] = checkCommand(chosen.argv, cwd, env["PATH"]);
  const limitsOf = toLimits(chosen);
  const running = new Set<Program>();

  function start(launch: Launch, signal: AbortSignal): Program {
    if (running.size >= maxConcurrent) throw overloaded(maxConcurrent);
    const started = startProgram(launch, chosen.max_output_bytes, signal);
    running.add(started);
    void started.gone.then(() => running.delete(started));
    return started;
  }

  return {
    async *stream(turn, signal, tell) {
      const argv = [program, ...fillArguments(rest, turn)] as const;
      const launch = { argv, cwd, env, input: writeInput(turn, input, tell) };
      const readReply = createReplyReader(output);
      let started: Program | undefined;
      async function* answer(inner: AbortSignal) {
        started = start(launch, inner);
        for await (const bytes of started.read()) {
          const deltas: Delta[] = [];
          try {
            readReply(bytes, deltas);
          } finally {
            // What was said before a failure is sent first.
            yield deltas;
          }
        }
      }
      const toLateness = (limit: Limit, limitMs: number) =>
        toLateFailure(`The adapter's program ${missed[limit]}`, limit, limitMs, started?.toCause());
      for await (const deltas of pullSteps(answer, limitsOf(turn), signal, toLateness)) {
        if (deltas.length > 0) yield deltas;
      }
    },
    async close() {
      for (const one of running) one.kill();
      await Promise.all([...running].map((one) => one.gone));
    },
  };
}

/** What the program failed to do, by limit. */
const missed: Record<Limit, string> = {
  connect: "did not start",
  first_byte: "wrote nothing",
  idle: "went silent: it neither wrote anything nor exited",
  total: "did not finish",
  leave: "did not finish",
};

/** Reports what is sure to fail when the adapter is created, not at the first turn. */
function checkCommand(
  argv: readonly string[],
  cwd: string,
  path: string | undefined,
): readonly [program: string, ...rest: string[]] {
  const [program = "", ...rest] = argv;
  if (program === "" || hasPlaceholder(program)) {
    throw new Error("argv[0] must name a program, without placeholders: a caller must not choose what runs.");
  }
  if (shells.has(basename(program)) && scriptOf(rest).some(hasPlaceholder)) {
    throw new Error(
      `argv: ${program} would run a caller's words as commands. Pass them as separate arguments ("$1"), or on standard input.`,
    );
  }
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`cwd: there is no folder ${cwd}.`);
  if (!program.includes("/")) {
    // It stays a name, so that a reinstalled program is found at its new place. Windows looks for more than the name.
    if (process.platform !== "win32") checkPath(program, cwd, path);
    return [program, ...rest];
  }
  const file = resolve(cwd, program);
  if (!isProgram(file)) throw new Error(`argv[0]: there is no executable program ${file}.`);
  return [file, ...rest];
}

/**
 * What a shell that is given `-c` reads itself: its options, their values, and the script. What follows, or follows a
 * script's file, are the script's own arguments.
 */
function scriptOf(rest: readonly string[]): readonly string[] {
  let values = 0;
  const last = rest.findIndex((argument) => {
    values = /^[-+]/.test(argument) ? countValues(argument) : values - 1;
    return values < 0;
  });
  const read = last === -1 ? rest : rest.slice(0, last + 1);
  return read.some((argument) => /^[-+]\w*c/.test(argument)) ? read : [];
}

/** How many arguments belong to an option. Letters may be grouped (`-euo`), and each `o` takes one. */
function countValues(option: string): number {
  if (longOptionsWithValue.has(option)) return 1;
  const [letters = ""] = /^[-+]\w*/.exec(option) ?? [];
  return letters.split(/o/i).length - 1;
}

const longOptionsWithValue: ReadonlySet<string> = new Set(["--rcfile", "--init-file", "--emulate"]);

/** Searches as the system will: the program's own PATH, in which an empty entry is its working folder. */
function checkPath(program: string, cwd: string, path: string | undefined): void {
  const folders = path?.split(delimiter) ?? foldersWithoutPath;
  if (folders.some((folder) => isProgram(resolve(cwd, folder, program)))) return;
  const where = path === undefined ? "in the default folders, as it is given no PATH" : `on its PATH (${path})`;
  throw new Error(`argv[0]: there is no executable program ${program} ${where}. Install it, or give its path.`);
}

/** The C libraries' defaults, combined. */
const foldersWithoutPath: readonly string[] = ["/usr/local/bin", "/bin", "/usr/bin"];

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

const shells: ReadonlySet<string> = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash"]);

function toEnvironment(
  names: readonly string[],
  fixed: Readonly<Record<string, string>>,
  environment: Environment,
): Environment {
  return { ...Object.fromEntries(names.map((name) => [name, environment[name]])), ...fixed };
}

function overloaded(maxConcurrent: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `All ${maxConcurrent} programs that the adapter may run are busy (max_concurrent). Try again in a moment.`,
    { retryAfterSeconds: 1 },
  );
}
