/** A Redis for tests: on a free port of the loopback address, with its files in a folder that is removed with it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFreePort } from "../gateway.ts";

export interface RedisServer {
  readonly port: number;
  /** The URL of a store that no other test uses. */
  url(prefix?: string): string;
  /** Sends a command in the simplest form of the protocol, over its own connection. */
  ask(...command: readonly string[]): Promise<string>;
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** The same server again, on the same port and with the same files. */
  start(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  remove(): Promise<void>;
}

/** Why there is none; undefined if there is one. On Debian, as root, it is installed first. */
export function whyNoRedis(): string | undefined {
  const isThere = findProgram() !== undefined || (process.getuid?.() === 0 && install() && findProgram() !== undefined);
  return isThere ? undefined : "redis-server is not on the PATH";
}

function install(): boolean {
  const packages = "apt-get";
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const run = (...args: readonly string[]) =>
    spawnSync(packages, args, { stdio: "ignore", timeout: 60_000, env }).status === 0;
  // Several test files may start at once: the others wait until it is installed.
  const patient = ["-o", "DPkg::Lock::Timeout=50"];
  const add = () => run("install", ...patient, "-y", "--no-install-recommends", "redis-server");
  return add() || (run("update") && add());
}

/** Cached once it is found, as a test starts many servers. */
let program: string | undefined;

function findProgram(): string | undefined {
  program ??= ["redis-server", "valkey-server"].find((name) => spawnSync(name, ["--version"]).status === 0);
  return program;
}

export async function startRedis(...settings: readonly string[]): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), "portico-redis-"));
  const port = await findFreePort();
  let child: ChildProcess | undefined;
  let stores = 0;

  async function start(): Promise<void> {
    const quiet = ["--save", "", "--daemonize", "no", "--loglevel", "warning"];
    const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder];
    const started = spawn(findProgram() ?? "redis-server", [...place, ...quiet, ...settings], { stdio: "ignore" });
    child = started;
    for (;;) {
      if (started.exitCode !== null) throw new Error(`redis-server ended with ${started.exitCode}`);
      const reply = await ask("PING").catch(() => "");
      // A server that requires a password answers too.
      if (/^(\+PONG|-NOAUTH)/.test(reply)) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async function ask(...command: readonly string[]): Promise<string> {
    const socket = createConnection(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      socket.write(
        `*${command.length}\r\n${command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join("")}`,
      );
      const [bytes] = await once(socket, "data");
      return String(bytes);
    } finally {
      socket.destroy();
    }
  }

  async function stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  await start();
  return {
    port,
    url: (prefix = `test${(stores += 1)}`) => `redis://127.0.0.1:${port}?prefix=${prefix}`,
    ask,
    stop,
    start,
    signal: (signal) => void child?.kill(signal),
    async remove() {
      await stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
