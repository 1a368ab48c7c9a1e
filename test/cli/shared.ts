/** What the tests of the command line share: one program for a file, and asking until it is so. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";

/** The scope of a whole file, for a program that its tests share. */
export function createFileScope(): TestContext {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return { after: (end: () => unknown) => void ends.push(end) } as TestContext;
}

/** Asks until it is so, or gives up: a signal to another process has no answer. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  // A test that was given up would ask for ever, and its file would never end.
  const end = performance.now() + 30_000;
  while (!(await isSo())) {
    assert.ok(performance.now() < end, `It does not become so: ${isSo}`);
    await setTimeout(10);
  }
}

/** Whether a port of the loopback address accepts connections. */
export async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
