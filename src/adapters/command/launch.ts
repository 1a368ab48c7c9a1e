/** Starts a program in its own process group, and signals the whole group. */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { basename } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import type { Environment } from "../type.ts";

export interface Launch {
  readonly argv: readonly [program: string, ...rest: string[]];
  readonly cwd: string;
  readonly env: Environment;
  /** All of its standard input. */
  readonly input: string;
}

/** Starts the program as the head of a process group. It may fail to start at once or a little later. */
export function spawnGroup(launch: Launch): ChildProcessWithoutNullStreams {
  const {
    argv: [program, ...rest],
    cwd,
    env,
  } = launch;
  try {
    const options = { cwd, env, detached: true, windowsHide: true, stdio: "pipe" } as const;
    const child: ChildProcess = spawn(program, rest, options);
    if (hasPipes(child)) return child;
    // Without free descriptors Node makes no pipes, and reports it a moment later.
    child.once("error", () => {});
    throw Object.assign(new Error("There are no file descriptors left."), { code: "EMFILE" });
  } catch (thrown) {
    throw toLaunchFailure(thrown, launch);
  }
}

function hasPipes(child: ChildProcess): child is ChildProcessWithoutNullStreams {
  return Boolean(child.stdin && child.stdout && child.stderr);
}

/** Signals the program and everything that it has started. */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // No such group: everyone is gone, or the system has none.
    child.kill(signal);
  }
}

/** Why the program did not start, in words for the caller. */
export function toLaunchFailure(thrown: unknown, { argv: [program] }: Launch): GatewayError {
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown cause";
  const details = { cause: thrown };
  if (busy.has(code)) {
    const message = "The gateway's machine cannot start the adapter's program now.";
    return new GatewayError("overloaded", message, { ...details, retryAfterSeconds: 1 });
  }
  if (code === "E2BIG") {
    const message = "The text is too long for the command line of the adapter's program.";
    return new GatewayError("adapter_bad_request", message, details);
  }
  const why = reasons.get(code) ?? `could not be started (${code})`;
  return new GatewayError(
    "adapter_error",
    `The adapter's program ${basename(program)} ${why}. The gateway's operator must check the adapter's argv.`,
    details,
  );
}

const busy: ReadonlySet<string> = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"]);
const reasons: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "was not found"],
  ["EACCES", "could not be run: permission was denied"],
  ["ENOEXEC", "is not an executable program"],
]);
