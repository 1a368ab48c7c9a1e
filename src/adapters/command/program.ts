/** Runs one program in its own process group: output waits to be pulled, and nothing of the group stays behind. */
import type { ChildProcess } from "node:child_process";
import { basename } from "node:path";
import type { Readable } from "node:stream";
import { callerLeft, GatewayError } from "../../core/errors.ts";
import { type Launch, signalGroup, spawnGroup, toLaunchFailure } from "./launch.ts";

export interface Program {
  /** Its output, read by read, and undefined at its end; then throws unless the program succeeds. */
  read(): AsyncGenerator<Buffer | undefined, void, void>;
  /** For the log: what it wrote to its standard error. */
  toCause(): Error;
  /** Kills it at once. */
  kill(): void;
  /** Resolves when it has ended, however it did. */
  readonly gone: Promise<void>;
}

/** Between asking it to end and killing it. */
const graceMs = 2_000;
const maxKeptErrorBytes = 2_048;
/** How long after its end output may arrive. */
const maxDelayMs = 500;

/** The signal stops the program: kills it at once if nobody waits any more, otherwise first asks it to end. */
export function startProgram(launch: Launch, maxOutputBytes: number, signal: AbortSignal): Program {
  const child = spawnGroup(launch);
  const { stdout, stderr } = child;
  const output: AsyncIterable<Buffer> = stdout;
  const name = basename(launch.argv[0]);
  const gone = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let failure: GatewayError | undefined;
  let killer: NodeJS.Timeout | undefined;
  let lastCall: NodeJS.Timeout | undefined;
  let lastLook: NodeJS.Immediate | undefined;
  const readErrors = keepEnd(stderr);
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;

  function toCause(): Error {
    return new Error(`${name} wrote to its standard error: ${readErrors().trim() || "nothing"}`);
  }

  function stop(): void {
    const isLeft = signal.reason instanceof DOMException && signal.reason.name === "AbortError";
    stdout.destroy();
    send(isLeft ? "SIGKILL" : "SIGTERM");
    if (!isLeft) killer = setTimeout(() => send("SIGKILL"), graceMs).unref();
  }

  /** A finished group's id may belong to another by now. */
  function send(order: NodeJS.Signals): void {
    if (!hasExited()) signalGroup(child, order);
  }

  /** Ends the answer at once. */
  function fail(why: GatewayError): void {
    failure ??= why;
    stdout.destroy();
    closed.resolve();
  }

  function kill(): void {
    fail(callerLeft());
    send("SIGKILL");
  }

  /**
   * Processes outside the group may hold the output open forever, so its end is not awaited when the program is gone.
   */
  function expectEnd(): void {
    clearTimeout(lastCall);
    clearImmediate(lastLook);
    if (!hasExited()) return;
    // Timers run before pipes: if we were held up, what came meanwhile is still unread.
    lastCall = setTimeout(() => (lastLook = setImmediate(endOutput)), maxDelayMs).unref();
  }

  /** What a slow reader has not pulled yet stays. */
  function endOutput(): void {
    if (stdout.readableLength === 0) stdout.destroy();
  }

  signal.addEventListener("abort", stop);
  // Not only the start can fail: so does every signal to a program that runs as another user.
  child.on("error", (error) => {
    if (child.pid !== undefined) return;
    fail(toLaunchFailure(error, launch));
    gone.resolve();
  });
  child.once("exit", () => {
    // Processes left behind would hold its output open, and live on.
    signalGroup(child, "SIGKILL");
    clearTimeout(killer);
    gone.resolve();
    expectEnd();
    setTimeout(() => stderr.destroy(), maxDelayMs).unref();
  });
  child.once("close", () => closed.resolve());
  // A program need not read its input, and a broken pipe is an end like any other.
  for (const pipe of [child.stdin, stdout, stderr]) pipe.on("error", () => {});
  child.stdin.end(launch.input);
  void killAtExit(kill, gone.promise);

  return {
    gone: gone.promise,
    async *read() {
      let saidBytes = 0;
      try {
        for await (const bytes of output) {
          saidBytes += bytes.length;
          if (saidBytes > maxOutputBytes) {
            const message = `The adapter's program wrote more than ${maxOutputBytes} bytes (max_output_bytes).`;
            fail(new GatewayError("adapter_protocol", message, { cause: toCause() }));
            break;
          }
          expectEnd();
          yield bytes;
        }
      } catch {
        // The output was cut off: if nothing has failed, the exit code says whether the answer is complete.
      }
      if (failure === undefined) yield undefined;
      await closed.promise;
      if (failure !== undefined) throw failure;
      if (child.exitCode === 0) return;
      // Not retried: it may have acted before it failed. A program that wants to be can report a passing error.
      throw new GatewayError("adapter_error", `The adapter's program ${describeExit(child)}.`, {
        isLasting: true,
        cause: toCause(),
      });
    },
    toCause,
    kill,
  };
}

/** What kills the running programs when the process exits; one listener for all, however many adapters there are. */
const running = new Set<() => void>();

async function killAtExit(kill: () => void, gone: Promise<void>): Promise<void> {
  if (running.size === 0) process.on("exit", killAll);
  running.add(kill);
  await gone;
  running.delete(kill);
  if (running.size === 0) process.off("exit", killAll);
}

function killAll(): void {
  for (const kill of running) kill();
}

/** Keeps the end of what is written to a pipe, for whoever asks. */
function keepEnd(pipe: Readable): () => string {
  let end = Buffer.alloc(0);
  pipe.on("data", (bytes: Buffer) => {
    end = Buffer.concat([end, bytes]).subarray(-maxKeptErrorBytes);
  });
  return () => end.toString("utf8");
}

function describeExit({ exitCode, signalCode }: ChildProcess): string {
  return exitCode === null ? `was terminated by ${signalCode}` : `failed with exit code ${exitCode}`;
}
