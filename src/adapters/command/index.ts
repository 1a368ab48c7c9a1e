/** The command adapter: a local program answers, one process for each turn. */
import { basename } from "node:path";
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

/** Throws if a caller could choose what runs. */
export function createCommand(settings: CommandSettings, environment: NodeJS.ProcessEnv): Adapter {
  const { cwd, input, output, set_env } = settings;
  const [name = "", ...rest] = settings.argv;
  const env = { ...Object.fromEntries(settings.env.map((name) => [name, environment[name]])), ...set_env };
  const running = new Set<Program>();
  checkArguments(settings.argv);

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
    const isOption = filled.startsWith("-") && !argument.startsWith("-");
    if (!isOption || (afterOptions !== -1 && place > afterOptions)) return filled;
    if (!argument.startsWith("{model}")) return ` ${filled}`;
    throw new GatewayError(
      "adapter_bad_request",
      "The model's name begins with a dash: a program would take it for an option.",
    );
  });
}

function checkArguments([program = "", ...rest]: readonly string[]): void {
  if (hasPlaceholder(program)) throw new Error("argv[0] must name a program, without a placeholder.");
  if (shells.has(basename(program)) && scriptOf(rest).some(hasPlaceholder)) {
    const remedy = 'Pass them as arguments behind the script ("$1"), or on standard input.';
    throw new Error(`argv: ${program} would run a caller's words as commands. ${remedy}`);
  }
}

const shells: ReadonlySet<string> = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash"]);

/** What a shell reads itself: the script behind `-c`, and all before it. Between the two may be further options. */
function scriptOf(rest: readonly string[]): readonly string[] {
  const at = rest.findIndex((argument) => /^[-+]\w*c/.test(argument));
  if (at === -1) return [];
  return /^[-+]/.test(rest[at + 1] ?? "") ? rest : rest.slice(0, at + 2);
}
