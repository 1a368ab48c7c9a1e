/** Runs one program in its own process group: output waits to be pulled, and nothing of the group stays behind. */
import type { ChildProcess } from "node:child_process";
import { basename } from "node:path";
import type { Readable } from "node:stream";
import { callerLeft, GatewayError } from "../../core/errors.ts";
import { toLateFailure } from "../failures.ts";
import type { AnswerLimits } from "../type.ts";
import { type Limit, createWatch } from "../watch.ts";
import { type Launch, signalGroup, spawnGroup, toLaunchFailure } from "./launch.ts";

interface ProgramLimits extends AnswerLimits {
  readonly maxOutputBytes: number;
}

export interface Program {
  /** Its output since the last pull; undefined at the end. */
  pull(): Promise<Buffer | undefined>;
  /** Resolves when it has succeeded; throws otherwise. */
  finish(): Promise<void>;
  /** Asks it to end; kills it if it does not. */
  dismiss(): void;
  /** Kills it at once, unless already asked to end. */
  leave(): void;
  /** Kills it anyway. */
  kill(): void;
  /** Resolves when it has ended, however it did. */
  readonly gone: Promise<void>;
}

/** Between asking it to end and killing it. */
const graceMs = 2_000;
const maxKeptErrorBytes = 2_048;
/** How long after its end output may arrive. */
const maxDelayMs = 500;

/** An abort kills the program at once; a passed deadline first asks it to end. */
export function startProgram(launch: Launch, limits: ProgramLimits, signal: AbortSignal): Program {
  if (signal.aborted) throw callerLeft();
  const child = spawnGroup(launch);
  const name = basename(launch.argv[0]);
  const gone = Promise.withResolvers<void>();
  let failure: GatewayError | undefined;
  let saidBytes = 0;
  let closed = false;
  let killer: NodeJS.Timeout | undefined;
  let wake: (() => void) | undefined;
  let isPulled = false;
  const lastCall = createLastCall(endOutput);
  const readErrors = keepEnd(child.stderr);
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;

  const watch = createWatch(limits.totalMs, (limit, limitMs) => {
    stop(toLateFailure(`The adapter's program ${missed[limit]}`, limit, limitMs, toCause()));
  });
  const leave = () => stop(callerLeft(), 0);

  function toCause(): Error {
    return new Error(`${name} wrote to its standard error: ${readErrors().trim() || "nothing"}`);
  }

  /** The first reason to stop stands. */
  function stop(why: GatewayError, withinMs = graceMs): void {
    if (closed || failure !== undefined) return;
    failure = why;
    watch.stop();
    child.stdout.destroy();
    send(withinMs === 0 ? "SIGKILL" : "SIGTERM");
    if (withinMs > 0) killer = setTimeout(() => send("SIGKILL"), withinMs).unref();
    wake?.();
  }

  /** A finished group's id may belong to another by now. */
  function send(order: NodeJS.Signals): void {
    if (!hasExited()) signalGroup(child, order);
  }

  /**
   * Processes outside the group may hold the output open forever, so its end is not awaited when the program is gone.
   */
  function expectEnd(): void {
    lastCall.cancel();
    if (isPulled && hasExited()) lastCall.start();
  }

  function endOutput(): void {
    if (!isPulled) return;
    child.stdout.destroy();
    wake?.();
  }

  /** Time counts only while somebody waits for the program. */
  async function waitUntil(isReady: () => boolean): Promise<void> {
    const isOver = () => failure !== undefined || isReady();
    if (!isOver()) {
      if (saidBytes > 0) watch.enter("idle", limits.idleMs);
      else watch.enter("first_byte", limits.firstByteMs);
      while (!isOver()) await new Promise<void>((resolve) => (wake = resolve));
      watch.rest();
    }
    if (failure !== undefined) throw failure;
  }

  function count(bytes: Buffer): Buffer {
    saidBytes += bytes.length;
    if (saidBytes <= limits.maxOutputBytes) return bytes;
    const message = `The adapter's program wrote more than ${limits.maxOutputBytes} bytes (max_output_bytes).`;
    const excess = new GatewayError("adapter_protocol", message, { cause: toCause() });
    stop(excess);
    throw excess;
  }

  signal.addEventListener("abort", leave);
  child.once("error", (error) => {
    if (child.pid !== undefined) return;
    failure ??= toLaunchFailure(error, launch);
    gone.resolve();
    wake?.();
  });
  child.once("exit", () => {
    // Processes left behind would hold its output open, and live on.
    signalGroup(child, "SIGKILL");
    clearTimeout(killer);
    gone.resolve();
    expectEnd();
    setTimeout(() => child.stderr.destroy(), maxDelayMs).unref();
  });
  child.once("close", () => {
    closed = true;
    watch.stop();
    signal.removeEventListener("abort", leave);
    wake?.();
  });
  child.stdout.on("readable", () => wake?.());
  child.stdout.once("end", () => wake?.());
  // A program need not read its input, and a broken pipe is an end like any other.
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on("error", () => {});
  child.stdin.end(launch.input);

  return {
    gone: gone.promise,
    async pull() {
      const { stdout } = child;
      let bytes: Buffer | null = null;
      isPulled = true;
      expectEnd();
      await waitUntil(() => (bytes = stdout.read()) !== null || stdout.readableEnded || stdout.destroyed || closed);
      isPulled = false;
      return bytes === null ? undefined : count(bytes);
    },
    async finish() {
      await waitUntil(() => closed);
      if (child.exitCode === 0) return;
      throw new GatewayError("adapter_error", `The adapter's program ${describeExit(child)}.`, { cause: toCause() });
    },
    dismiss: () => stop(callerLeft()),
    leave,
    kill() {
      stop(callerLeft(), 0);
      send("SIGKILL");
    },
  };
}

/** Calls `end` when output had time to arrive. */
function createLastCall(end: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let look: NodeJS.Immediate | undefined;
  return {
    start(): void {
      // Timers run before pipes: if we were held up, what came meanwhile is still unread.
      timer = setTimeout(() => (look = setImmediate(end)), maxDelayMs).unref();
    },
    cancel(): void {
      clearTimeout(timer);
      clearImmediate(look);
    },
  };
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

/** What it failed to do, by limit. */
const missed: Record<Limit, string> = {
  connect: "did not start",
  first_byte: "wrote nothing",
  idle: "went silent: it neither wrote anything nor exited",
  total: "did not finish",
  leave: "did not finish",
};
