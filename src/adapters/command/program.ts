/** Runs one program in its own process group: output waits to be read, and nothing of the group stays behind. */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { basename } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { tooLarge } from "../http/failure.ts";

export interface Launch {
  readonly argv: readonly [program: string, ...rest: string[]];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** All of its standard input. */
  readonly input: string;
}

export interface Program {
  /** What it writes; behind that it throws how the program has failed. */
  readonly output: AsyncIterable<Buffer>;
  /** At once, with all that it has started. */
  kill(): void;
  /** It has ended, however it did. */
  readonly gone: Promise<void>;
}

/** How long after its end output may arrive: who left its group may hold the output open for ever. */
const maxDelayMs = 500;
const maxErrorBytes = 2_048;
const maxOutputBytes = 64 * 1024 * 1024;

export function startProgram(launch: Launch): Program {
  const child = spawnGroup(launch);
  const { stdout, stderr, stdin } = child;
  const { promise: gone, resolve: end } = Promise.withResolvers<void>();
  let errors = Buffer.alloc(0);
  let failure: GatewayError | undefined;

  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;

  /** Timers run before pipes: what came in time is still unread. */
  function expectEnd(): void {
    setTimeout(() => setImmediate(() => stdout.readableLength === 0 && stdout.destroy()), maxDelayMs).unref();
  }

  function toCause(): Error {
    const said = errors.toString("utf8").trim();
    return new Error(`${basename(launch.argv[0])} wrote to its standard error: ${said || "nothing"}`);
  }

  stderr.on("data", (more: Buffer) => (errors = Buffer.concat([errors, more]).subarray(-maxErrorBytes)));
  child.on("error", (error) => {
    failure = toFailure(error, launch);
    stdout.destroy();
    end();
  });
  child.once("exit", () => {
    killGroup(child);
    expectEnd();
    setTimeout(() => stderr.destroy(), maxDelayMs).unref();
  });
  child.once("close", () => end());
  stdin.end(launch.input);

  async function* read(): AsyncGenerator<Buffer> {
    const pieces: AsyncIterator<Buffer> = stdout[Symbol.asyncIterator]();
    // What is cut off ends too: the exit code tells whether it is complete.
    const next = () => pieces.next().catch(() => ({ value: undefined }));
    let size = 0;
    for (let { value } = await next(); value !== undefined; { value } = await next()) {
      size += value.length;
      if (size > maxOutputBytes) throw tooLarge(`${maxOutputBytes} bytes`);
      if (hasEnded()) expectEnd();
      yield value;
    }
    await gone;
    if (failure !== undefined) throw failure;
    const { exitCode, signalCode } = child;
    if (exitCode === 0) return;
    const how = exitCode === null ? `was terminated by ${signalCode}` : `failed with exit code ${exitCode}`;
    // It may have acted before it failed, so it is not run again. It can report what may pass.
    throw new GatewayError("adapter_error", `The adapter's program ${how}.`, { isLasting: true, cause: toCause() });
  }

  return {
    gone,
    output: read(),
    kill() {
      stdout.destroy();
      // The id of a group that has ended may belong to another by now.
      if (!hasEnded()) killGroup(child);
    },
  };
}

function spawnGroup(launch: Launch): ChildProcessWithoutNullStreams {
  const { argv, cwd, env } = launch;
  const [program, ...rest] = argv;
  try {
    const child = spawn(program, rest, { cwd, env, detached: true, stdio: "pipe" });
    // Without free descriptors Node makes no pipes, and tells why a moment later.
    child.once("error", () => {});
    // A program need not read its input, and a broken pipe is an end like any other.
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on("error", () => {});
    return child;
  } catch (thrown) {
    throw toFailure(thrown, launch);
  }
}

function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    // No such group: everyone is gone, or the system has none.
    child.kill("SIGKILL");
  }
}

function toFailure(cause: unknown, { argv: [program] }: Launch): GatewayError {
  const message = `The adapter's program ${basename(program)} could not be started (${Object(cause).code}).`;
  return new GatewayError("adapter_error", message, { cause });
}
