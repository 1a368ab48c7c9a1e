import assert from "node:assert/strict";
import { test } from "node:test";
import { createQueue } from "../../src/core/place/queue.ts";

const calm = new AbortController().signal;

test("turns of one key run one at a time, in the order of arrival", async () => {
  const queue = createQueue(() => 16);
  const order: number[] = [];
  let running = 0;
  await Promise.all(
    [1, 2, 3, 4].map(async (number) => {
      const leave = await queue.enter("a", calm);
      assert.equal(++running, 1);
      order.push(number);
      await new Promise(setImmediate);
      running--;
      leave();
    }),
  );
  assert.deepEqual(order, [1, 2, 3, 4]);
});

test("turns of different keys do not wait for each other", async () => {
  const queue = createQueue(() => 0);
  const leave = await queue.enter("a", calm);
  (await queue.enter("b", calm))();
  leave();
});

test("a full queue answers session_busy with a time to come again", async () => {
  const queue = createQueue(() => 1);
  const leave = await queue.enter("a", calm);
  const waiting = queue.enter("a", calm);
  await assert.rejects(queue.enter("a", calm), { code: "session_busy", retryAfterSeconds: 1 });
  leave();
  (await waiting)();
});

test("a caller who leaves while waiting gives its place back", async () => {
  const queue = createQueue(() => 2);
  const leave = await queue.enter("a", calm);
  const gone = new AbortController();
  const first = queue.enter("a", gone.signal);
  const second = queue.enter("a", calm);
  gone.abort(new Error("left"));
  await assert.rejects(first, /left/);
  leave();
  (await second)();
  (await queue.enter("a", calm))();
});

test("leaving twice lets only one in", async () => {
  const queue = createQueue(() => 4);
  const leave = await queue.enter("a", calm);
  const second = queue.enter("a", calm);
  let thirdIn = false;
  const third = queue.enter("a", calm).then((go) => {
    thirdIn = true;
    return go;
  });
  leave();
  leave();
  const leaveSecond = await second;
  await new Promise(setImmediate);
  assert.equal(thirdIn, false);
  leaveSecond();
  (await third)();
});

test("those who wait are counted, for their turn here and for the peers'", async () => {
  const others = Promise.withResolvers<() => void>();
  const alone = createQueue(() => 16);
  const shared = createQueue(() => 16, { enter: () => others.promise });
  for (const queue of [alone, shared]) assert.equal(queue.waiting(), 0);
  const leave = await alone.enter("a", calm);
  const caller = new AbortController();
  const left = assert.rejects(alone.enter("a", caller.signal));
  const next = alone.enter("a", calm);
  assert.equal(alone.waiting(), 2);
  caller.abort();
  await left;
  leave();
  (await next)();
  assert.equal(alone.waiting(), 0);
  const entered = shared.enter("a", calm);
  while (shared.waiting() !== 1) await new Promise(setImmediate);
  others.resolve(() => {});
  (await entered)();
  assert.equal(shared.waiting(), 0);
});

test("whoever waits stands in the line that the peers share at once, and is bounded all the same", async () => {
  const names: string[] = [];
  const queue = createQueue(() => 1, {
    enter(name) {
      names.push(name);
      return new Promise(() => {});
    },
  });
  for (const key of ["a", "a", "b"]) void queue.enter(key, calm);
  assert.deepEqual(names, ["a", "a", "b"]);
  await assert.rejects(queue.enter("a", calm), { code: "session_busy" });
  assert.deepEqual([queue.waiting(), queue.isIdle("a"), queue.isIdle("c")], [3, false, true]);
});
