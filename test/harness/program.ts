/** The executable as its users run it: started in a folder, called over its socket, stopped by a signal. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compiled } from "./compiled.ts";
import { endAfter, type Options, type Scope, toSettings } from "./house.ts";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const executable = join(root, "bin/portico.js");

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** What it has printed by the time the text appears. */
  said(text: string): Promise<string>;
  /** Where it listens, once it does. */
  address(): Promise<string>;
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
}

/** Runs `portico ARGS` in a folder; it is killed at the end of the test if it still runs. */
export function runProgram(context: Scope, folder: string, ...args: readonly string[]): Program {
  return runProgramIn(context, folder, {}, ...args);
}

/** The same, with more environment variables. */
export function runProgramIn(
  context: Scope,
  folder: string,
  more: NodeJS.ProcessEnv,
  ...args: readonly string[]
): Program {
  const env = { ...bareEnvironment(folder), ...more };
  return watch(context, spawn(process.execPath, [executable, ...args], { cwd: folder, env }));
}

/** Runs `npm ARGS` in the checkout, in its own process group, as a shell would. */
export function runNpm(context: Scope, folder: string, ...args: readonly string[]): Program {
  const path = process.env["npm_execpath"];
  const [command, first] = path === undefined ? ["npm", []] : [process.execPath, [path]];
  return watch(
    context,
    spawn(command, [...first, ...args], {
      cwd: root,
      // npm would ask the registry for a newer version of itself.
      env: { ...bareEnvironment(folder), npm_config_update_notifier: "false" },
      detached: true,
    }),
    true,
  );
}

/** Port 1 has no Ollama, so that a developer's own is never called; no provider's key is set. */
export function bareEnvironment(folder: string): NodeJS.ProcessEnv {
  const path = process.env["PATH"] ?? "";
  return {
    PATH: path,
    HOME: folder,
    OLLAMA_HOST: "127.0.0.1:1",
    NODE_COMPILE_CACHE: compiled,
  };
}

function watch(context: Scope, child: ReturnType<typeof spawn>, isGroup = false): Program {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = once(child, "close").then(([code]): Ended => ({ code: code as number | null, stdout, stderr }));

  function kill(signal: NodeJS.Signals): void {
    if (!isGroup || child.pid === undefined) child.kill(signal);
    else if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, signal);
  }
  endAfter(context, () => {
    kill("SIGKILL");
    return ended;
  });

  function said(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = () => (stdout.includes(text) ? resolve(stdout) : undefined);
      child.stdout?.on("data", look);
      child.once("close", () => reject(new Error(`It ended before it said '${text}': ${stdout}${stderr}`)));
      look();
    });
  }

  return {
    child,
    ended,
    said,
    address: async () => findAddress(await said("  config ")),
    stop(signal = "SIGTERM") {
      kill(signal);
      return ended;
    },
  };
}

/** Where a gateway listens, from what it has printed. */
export function findAddress(said: string): string {
  const [, address] = /listens on (\S+)/.exec(said) ?? [];
  if (address === undefined) throw new Error(`It does not listen: ${said}`);
  return address;
}

/** Writes a config file that only its owner can read, and returns its path. */
export function writeConfig(folder: string, text: string): string {
  const file = join(folder, "portico.json");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** A config file with both endpoints on a free port. */
export function toConfig(options: Options = {}): string {
  return JSON.stringify(toSettings(options));
}
