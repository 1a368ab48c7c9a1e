/** What a test starts has an end, and ends with the test; what a program leaves running ends with this process. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Whatever has an end to wait for: a test's context, or a whole file. */
export interface Scope {
  after(end: () => unknown): void;
}

const ending = new WeakMap<Scope, (() => unknown)[]>();

/**
 * Ends what a test started, the last first: a gateway closes before its store does. Then it is released: the runner
 * retains what it is told to do after a test as long as it lives.
 */
export function endAfter(scope: Scope, end: () => unknown): void {
  const ends = ending.get(scope) ?? [];
  ends.push(end);
  if (ending.has(scope)) return;
  ending.set(scope, ends);
  scope.after(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
}

/** Ends at once what must not outlive this process, even if it is interrupted, the last first; returns how to forget it. */
export function endAtExit(end: () => void): () => void {
  if (!process.listeners("exit").includes(endLeftovers)) process.once("exit", endLeftovers);
  leftovers.add(end);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    if (!process.listeners(signal).includes(leave)) process.once(signal, leave);
  }
  return () => void leftovers.delete(end);
}

const leftovers = new Set<() => void>();

function endLeftovers(): void {
  for (const end of [...leftovers].toReversed()) end();
}

function leave(): void {
  process.exit(1);
}

/** A folder that is removed at the end. */
export function makeFolder(scope: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), "portico-"));
  scopes.set(folder, scope);
  endAfter(scope, () => {
    scopes.delete(folder);
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

const scopes = new Map<string, Scope>();

/** Whose end is the folder's, for what belongs to it and is elsewhere. */
export function scopeOf(folder: string): Scope {
  const scope = scopes.get(folder);
  if (scope === undefined) throw new Error(`${folder} was not made for a test.`);
  return scope;
}

/** A free port of the loopback address, outside of the range that the system assigns to connections. */
export async function findFreePort(): Promise<number> {
  const port = randomInt(20_000, 32_000);
  const server = createServer().listen(port, "127.0.0.1");
  const isFree = await once(server, "listening").then(
    () => true,
    () => false,
  );
  server.close();
  return isFree ? port : findFreePort();
}
