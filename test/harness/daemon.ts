/** A program that serves others, in a folder of its own: ready when it says so, and ended with all of its processes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, readFileSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { endAfter, endAtExit, makeFolder, type Scope } from "./scope.ts";

/** Where a program runs, and as whom; for the options of a process. */
export interface Home {
  readonly cwd: string;
  readonly uid?: number;
  readonly gid?: number;
}

export interface Daemon {
  /** Sends a signal, and waits until the last of its processes is gone. Without one it ends at once, and tidies up. */
  end(signal?: NodeJS.Signals): Promise<void>;
  /** Kills all of its processes, which leave whatever they leave, and waits until they are gone. */
  kill(): Promise<void>;
}

/** A folder for a program that refuses to run as root, which runs as the user `postgres` then. */
export function makeHome(scope: Scope): Home {
  const cwd = makeFolder(scope);
  endAfter(
    scope,
    endAtExit(() => rmSync(cwd, { recursive: true, force: true, maxRetries: 5 })),
  );
  if (process.getuid?.() !== 0) return { cwd };
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync("/etc/passwd", "utf8")) ?? [];
  if (uid === undefined) throw new Error("There is no user 'postgres', and root may not run these programs.");
  const user = { uid: Number(uid), gid: Number(gid) };
  chownSync(cwd, user.uid, user.gid);
  return { cwd, ...user };
}

/** Runs a program until it says on stderr that it is ready. From then on it does not retain this process. */
export async function startDaemon(path: string, args: readonly string[], home: Home, ready: string): Promise<Daemon> {
  const child = spawn(path, args, { ...home, stdio: ["ignore", "ignore", "pipe"] });
  // Its processes share its stderr, which closes with the last of them.
  const ended = once(child, "close");
  const killAll = () => {
    const { pid, exitCode, signalCode } = child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    // Stopped, it starts no more of them.
    process.kill(pid, "SIGSTOP");
    for (const each of [...childrenOf(pid), pid]) process.kill(each, "SIGKILL");
  };
  const forget = [endAtExit(() => child.kill(atOnce)), outlast(child.pid, home)];
  child.once("close", () => forget.forEach((each) => each()));
  let said = "";
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (piece: string) => {
      said += piece;
      if (said.includes(ready)) resolve();
    });
    ended.then(() => reject(new Error(`${path} is not ready: ${said}`)), reject);
  });
  child.stderr.removeAllListeners("data").resume();

  const pipe = child.stderr instanceof Socket ? child.stderr : undefined;
  child.unref();
  pipe?.unref();
  async function wait(): Promise<void> {
    child.ref();
    pipe?.ref();
    await ended;
  }
  return {
    end(signal = atOnce) {
      child.kill(signal);
      return wait();
    },
    kill() {
      killAll();
      return wait();
    },
  };
}

/** A server waits for nobody then, but gives back what it has of the system. */
const atOnce = "SIGQUIT";

/** Ends a program, and removes its folder, even if this process is killed; returns how to give that up. */
function outlast(pid: number | undefined, { cwd }: Home): () => void {
  const script = 'read -r _; kill -QUIT "$0" && sleep 1; rm -rf "$1"';
  // It is told by the end of its input, and by no signal that a terminal sends to all.
  const guard = spawn("sh", ["-c", script, String(pid), cwd], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  guard.unref();
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return () => void guard.kill();
}

/** Only Linux tells them; elsewhere they notice by themselves that the first is gone. */
function childrenOf(pid: number): number[] {
  const list = `/proc/${pid}/task/${pid}/children`;
  return existsSync(list) ? (readFileSync(list, "utf8").match(/\d+/g) ?? []).map(Number) : [];
}
