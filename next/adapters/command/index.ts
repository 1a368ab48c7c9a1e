/** The command adapter: a local program answers, one process for each turn. */
import type { Adapter } from "../../core/adapter.ts";
import type { Delta } from "../../core/event.ts";
import { type Missed, openSource, type Source, type Timeouts } from "../waiting.ts";
import { checkCommand, fillArguments } from "./arguments.ts";
import { type Launch, type Program, startProgram } from "./program.ts";
import { createReplyReader } from "./reply.ts";
import { writeInput } from "./request.ts";

export interface CommandSettings extends Timeouts {
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
  const { cwd, input, output } = settings;
  const env = { ...Object.fromEntries(settings.env.map((name) => [name, environment[name]])), ...settings.set_env };
  const [program, ...rest] = checkCommand(settings.argv, cwd, env["PATH"]);
  const running = new Set<Program>();
  const killAll = (): void => {
    for (const one of running) one.kill();
  };

  function start(launch: Launch): Program {
    const started = startProgram(launch);
    // No group outlives a gateway that breaks down.
    if (running.size === 0) process.on("exit", killAll);
    running.add(started);
    void leaveWith(started);
    return started;
  }

  async function leaveWith(started: Program): Promise<void> {
    await started.gone;
    running.delete(started);
    if (running.size === 0) process.off("exit", killAll);
  }

  return {
    speaks: [],
    async open(turn, signal, tell) {
      const argv = [program, ...fillArguments(rest, turn)] as const;
      const launch = { argv, cwd, env, input: writeInput(turn, input, tell) };
      return openSource(() => toSource(start(launch), output), turn, settings, signal, missed);
    },
    async close() {
      killAll();
      await Promise.all(Array.from(running, ({ gone }) => gone));
    },
  };
}

const missed: Missed = {
  first_byte: "the adapter's program wrote nothing",
  idle: "the adapter's program neither wrote anything nor ended",
  total: "the adapter's program did not finish",
};

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
    drop: (late) => (late ? program.stop() : program.kill()),
  };
}
