import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextRound, setTimeout as wait } from "node:timers/promises";
import { createDeadline } from "../../src/stores/redis/deadline.ts";

/** A deadline of so many milliseconds, and whether it has passed. */
function begin(ms: number) {
  const over = Promise.withResolvers<void>();
  let isOver = false;
  const deadline = createDeadline(ms, () => {
    isOver = true;
    over.resolve();
  });
  return { ...deadline, over: over.promise, isOver: () => isOver };
}

/** Blocks the event loop. */
function blockLoop(ms: number): void {
  for (const since = performance.now(); performance.now() - since < ms;);
}

test("a deadline passes when its time is over, and never when it was stopped", async () => {
  const [stopped, short] = [begin(10), begin(10)];
  stopped.stop();
  // The deadline alone does not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  await short.over;
  clearInterval(alive);
  assert.equal(stopped.isOver(), false);
});

test("renewing a deadline restarts it", async () => {
  const { isOver, renew, stop } = begin(50);
  for (let signs = 0; signs < 12; signs += 1) {
    await wait(7);
    renew();
  }
  assert.equal(isOver(), false);
  stop();
});

test("time during which the event loop was blocked counts for at most one round", async () => {
  const { isOver, stop } = begin(20);
  blockLoop(40);
  for (let rounds = 0; rounds < 3; rounds += 1) await nextRound();
  assert.equal(isOver(), false);
  stop();
});
