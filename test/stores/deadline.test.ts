import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextRound, setTimeout as wait } from "node:timers/promises";
import { createDeadline } from "../../src/stores/redis/deadline.ts";

/** A deadline of so many milliseconds, and whether it is over. */
function begin(ms: number) {
  const over = Promise.withResolvers<void>();
  let isOver = false;
  const deadline = createDeadline(ms, () => {
    isOver = true;
    over.resolve();
  });
  return { ...deadline, over: over.promise, isOver: () => isOver };
}

/** Keeps the event loop from everything else. */
function standStill(ms: number): void {
  for (const since = performance.now(); performance.now() - since < ms;);
}

test("a deadline passes when its time is over, and never when it was stopped", async () => {
  const [stopped, short] = [begin(10), begin(10)];
  stopped.stop();
  // Whoever only waits for it keeps no process alive.
  const alive = setInterval(() => {}, 1_000);
  await short.over;
  clearInterval(alive);
  assert.equal(stopped.isOver(), false);
});

test("a sign of life begins it anew", async () => {
  const { isOver, renew, stop } = begin(50);
  for (let signs = 0; signs < 12; signs += 1) {
    await wait(7);
    renew();
  }
  assert.equal(isOver(), false);
  stop();
});

test("time in which the event loop stood still counts for no more than a round", async () => {
  const { isOver, stop } = begin(20);
  standStill(40);
  for (let rounds = 0; rounds < 3; rounds += 1) await nextRound();
  assert.equal(isOver(), false);
  stop();
});
