/** Another user of the machine, for whom file modes apply. */
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { compiled } from "../compiled.ts";
import { type Ended, executable } from "../whole/program.ts";

/** A user without any rights here; on most systems its name is nobody. */
const nobody = 65_534;

/** Runs while a file or a folder is closed. Root, for whom no mode applies, becomes another user meanwhile. */
export async function whileClosed<Result>(path: string, act: () => Result | Promise<Result>): Promise<Result> {
  const isRoot = process.geteuid?.() === 0;
  const { mode } = statSync(path);
  chmodSync(path, 0);
  if (isRoot) process.seteuid?.(nobody);
  try {
    return await act();
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(path, mode);
  }
}

const asStranger = process.geteuid?.() === 0 ? { uid: nobody, gid: nobody } : {};

/** Its own compile cache. */
const compiledForIt = join(compiled, "stranger");

/** Why nothing can be run as a user for whom modes apply; false if it can. */
export const noStranger =
  process.platform === "win32"
    ? "Windows has no such file modes"
    : spawnSync(process.execPath, [executable, "--version"], asStranger).status !== 0 && "another user may not run it";

/** Makes the other user the owner. */
export function giveAway(path: string): void {
  if (process.geteuid?.() === 0) chownSync(path, nobody, nobody);
}

/** Runs `portico ARGS` in a folder, in a process of its own; if this is root, as the other user. */
export function runAsStranger(folder: string, ...args: readonly string[]): Promise<Ended> {
  mkdirSync(compiledForIt, { recursive: true });
  giveAway(compiledForIt);
  const env = {
    PATH: process.env["PATH"],
    HOME: "/nowhere",
    OLLAMA_HOST: "127.0.0.1:1",
    NODE_COMPILE_CACHE: compiledForIt,
  };
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const child = execFile(
    process.execPath,
    [executable, ...args],
    { cwd: folder, env, timeout: 20_000, ...asStranger },
    (_, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
  );
  return promise;
}
