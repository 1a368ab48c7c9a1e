/** The command adapter: a local program answers, one process for each turn. */
import type { Adapter } from "../../core/adapter.ts";
import type { Delta } from "../../core/event.ts";
import { openSource, type Source, type Timeouts } from "../waiting.ts";
import { checkCommand, fillArguments } from "./arguments.ts";
import { type Program, startProgram } from "./program.ts";
import { createReplyReader } from "./reply.ts";
import { writeInput } from "./request.ts";

interface CommandSettings extends Timeouts {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The gateway's own variables that it may see, by name. */
  readonly env: readonly string[];
  readonly set_env: Readonly<Record<string, string>>;
  readonly input: "json" | "text" | "none";
  readonly output: "auto" | "text" | "jsonl";
}

/** Throws what is sure to fail at the first turn. */
export function createCommand(settings: CommandSettings, environment: NodeJS.ProcessEnv): Adapter {
  const { cwd, input, output, set_env } = settings;
  const env = { ...Object.fromEntries(settings.env.map((name) => [name, environment[name]])), ...set_env };
  const [program, ...rest] = checkCommand(settings.argv, cwd, env["PATH"]);
  const running = new Set<Program>();

  function killAll(): void {
    for (const one of running) one.kill();
  }

  /** No group outlives a gateway that breaks down. */
  async function watch(started: Program): Promise<void> {
    if (running.size === 0) process.on("exit", killAll);
    running.add(started);
    await started.gone;
    running.delete(started);
    if (running.size === 0) process.off("exit", killAll);
  }

  return {
    speaks: [],
    async open(turn, caller, tell) {
      const argv = [program, ...fillArguments(rest, turn)] as const;
      const launch = { argv, cwd, env, input: writeInput(turn, input, tell) };
      function start(): Source {
        const started = startProgram(launch);
        void watch(started);
        return toSource(started, output);
      }
      return openSource("the adapter's program", start, turn, settings, caller);
    },
    async close() {
      killAll();
      await Promise.all(Array.from(running, ({ gone }) => gone));
    },
  };
}

function toSource(program: Program, output: CommandSettings["output"]): Source {
  const readReply = createReplyReader(output);
  let isOver = false;
  let failure: unknown;
  return {
    async next() {
      if (failure !== undefined) throw failure;
      if (isOver) return undefined;
      const deltas: Delta[] = [];
      try {
        const bytes = await program.read();
        readReply(bytes, deltas);
        isOver = bytes === undefined;
        if (isOver) await program.succeed();
      } catch (thrown) {
        // What was said before is told first.
        failure = thrown;
      }
      return deltas;
    },
    drop: (isLeft) => (isLeft ? program.kill() : program.stop()),
  };
}
