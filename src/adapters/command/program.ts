/** Runs one program in its own process group: output waits to be read, and nothing of the group stays behind. */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { basename } from "node:path";
import { GatewayError } from "../../core/errors.ts";

interface Launch {
  readonly argv: readonly [program: string, ...rest: string[]];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** All of its standard input. */
  readonly input: string;
}

export interface Program {
  /** What it wrote next; undefined at the end of its output. */
  read(): Promise<Buffer | undefined>;
  /** Resolves when it has ended well; throws how it failed. */
  succeed(): Promise<void>;
  /** It may clean up: it is asked to end, and killed a little later. */
  stop(): void;
  /** At once. */
  kill(): void;
  /** It has ended, however it did. */
  readonly gone: Promise<void>;
}

const graceMs = 2_000;
/** How long after its end output may arrive: who left its group may hold the output open for ever. */
const maxDelayMs = 500;
const maxErrorBytes = 2_048;
const maxOutputBytes = 64 * 1024 * 1024;

export function startProgram(launch: Launch): Program {
  const child = spawnGroup(launch);
  const { stdout, stderr, stdin } = child;
  const output: AsyncIterator<Buffer> = stdout[Symbol.asyncIterator]();
  const { promise: gone, resolve: end } = Promise.withResolvers<void>();
  let errors = Buffer.alloc(0);
  let failure: GatewayError | undefined;
  let bytes = 0;
  let killer: NodeJS.Timeout | undefined;

  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;

  /** The id of a group that has ended may belong to another by now. */
  function send(order: NodeJS.Signals): void {
    stdout.destroy();
    if (!hasEnded()) signalGroup(child, order);
  }

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
    // Signals fail too, to a program that runs as another user.
    if (child.pid !== undefined) return;
    failure = toFailure(error, launch);
    stdout.destroy();
    end();
  });
  child.once("exit", () => {
    signalGroup(child, "SIGKILL");
    clearTimeout(killer);
    expectEnd();
    setTimeout(() => stderr.destroy(), maxDelayMs).unref();
  });
  child.once("close", () => end());
  // A program need not read its input, and a broken pipe is an end like any other.
  for (const pipe of [stdin, stdout, stderr]) pipe.on("error", () => {});
  stdin.end(launch.input);

  return {
    gone,
    async read() {
      // What is cut off ends too: the exit code tells whether it is complete.
      const { value } = await output.next().catch(() => ({ value: undefined }));
      if (value === undefined) return undefined;
      bytes += value.length;
      if (hasEnded()) expectEnd();
      if (bytes <= maxOutputBytes) return value;
      const message = `The adapter's program wrote more than ${maxOutputBytes} bytes.`;
      throw new GatewayError("adapter_protocol", message, { wireCode: "adapter_answer_too_large" });
    },
    async succeed() {
      await gone;
      if (failure !== undefined) throw failure;
      const { exitCode, signalCode } = child;
      if (exitCode === 0) return;
      const how = exitCode === null ? `was terminated by ${signalCode}` : `failed with exit code ${exitCode}`;
      // It may have acted before it failed, so it is not run again. It can report what may pass.
      const details = { isLasting: true, cause: toCause() };
      throw new GatewayError("adapter_error", `The adapter's program ${how}.`, details);
    },
    stop() {
      send("SIGTERM");
      killer = setTimeout(() => send("SIGKILL"), graceMs).unref();
    },
    kill: () => send("SIGKILL"),
  };
}

function spawnGroup(launch: Launch): ChildProcessWithoutNullStreams {
  const { argv, cwd, env } = launch;
  const [program, ...rest] = argv;
  try {
    const child: ChildProcess = spawn(program, rest, { cwd, env, detached: true, windowsHide: true, stdio: "pipe" });
    if (hasPipes(child)) return child;
    // Without free descriptors Node makes no pipes, and tells why a moment later.
    child.once("error", () => {});
    throw Object.assign(new Error("There are no file descriptors left."), { code: "EMFILE" });
  } catch (thrown) {
    throw toFailure(thrown, launch);
  }
}

function hasPipes(child: ChildProcess): child is ChildProcessWithoutNullStreams {
  return Boolean(child.stdin && child.stdout && child.stderr);
}

function signalGroup(child: ChildProcess, order: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, order);
  } catch {
    // No such group: everyone is gone, or the system has none.
    child.kill(order);
  }
}

function toFailure(cause: unknown, { argv: [program] }: Launch): GatewayError {
  const message = `The adapter's program ${basename(program)} could not be started (${Object(cause).code}).`;
  return new GatewayError("adapter_error", message, { cause });
}
