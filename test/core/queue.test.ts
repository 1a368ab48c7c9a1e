import assert from "node:assert/strict";
import { test } from "node:test";
import { createQueue } from "../../src/core/place/queue.ts";

const noAbort = new AbortController().signal;

test("turns of one key run one at a time, in the order of arrival", async () => {
  const queue = createQueue(() => 16);
  const order: number[] = [];
  let running = 0;
  await Promise.all(
    [1, 2, 3, 4].map(async (number) => {
      const leave = await queue.enter("a", noAbort);
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
  const leave = await queue.enter("a", noAbort);
  (await queue.enter("b", noAbort))();
  leave();
});

test("a full queue answers session_busy with a Retry-After time", async () => {
  const queue = createQueue(() => 1);
  const leave = await queue.enter("a", noAbort);
  const waiting = queue.enter("a", noAbort);
  await assert.rejects(queue.enter("a", noAbort), { code: "session_busy", retryAfterSeconds: 1 });
  leave();
  (await waiting)();
});

test("a caller that disconnects in its turn takes nobody's place in the queue", async () => {
  const queue = createQueue(() => 2);
  const caller = new AbortController();
  const leave = await queue.enter("a", noAbort);
  const [second, third] = [queue.enter("a", caller.signal), queue.enter("a", noAbort)];
  leave();
  const leaveSecond = await second;
  assert.equal(queue.isIdle("a"), false);
  caller.abort();
  leaveSecond();
  const leaveThird = await third;
  assert.equal(queue.isIdle("a"), false);
  leaveThird();
  assert.equal(queue.isIdle("a"), true);
});

test("a caller that disconnects while waiting releases its place", async () => {
  const queue = createQueue(() => 2);
  const leave = await queue.enter("a", noAbort);
  const gone = new AbortController();
  const first = queue.enter("a", gone.signal);
  const second = queue.enter("a", noAbort);
  gone.abort(new Error("left"));
  await assert.rejects(first, /left/);
  leave();
  (await second)();
  (await queue.enter("a", noAbort))();
});

test("releasing a place twice admits only one", async () => {
  const queue = createQueue(() => 4);
  const leave = await queue.enter("a", noAbort);
  const second = queue.enter("a", noAbort);
  let thirdIn = false;
  const third = queue.enter("a", noAbort).then((go) => {
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

test("waiting callers are counted, both for their turn here and for the peers'", async () => {
  const others = Promise.withResolvers<() => void>();
  const alone = createQueue(() => 16);
  const shared = createQueue(() => 16, { enter: () => others.promise });
  for (const queue of [alone, shared]) assert.equal(queue.waiting(), 0);
  const leave = await alone.enter("a", noAbort);
  const caller = new AbortController();
  const left = assert.rejects(alone.enter("a", caller.signal));
  const next = alone.enter("a", noAbort);
  assert.equal(alone.waiting(), 2);
  caller.abort();
  await left;
  leave();
  (await next)();
  assert.equal(alone.waiting(), 0);
  const entered = shared.enter("a", noAbort);
  while (shared.waiting() !== 1) await new Promise(setImmediate);
  others.resolve(() => {});
  (await entered)();
  assert.equal(shared.waiting(), 0);
});

test("a caller that disconnects while another turn of this gateway still runs releases its place among the peers", async () => {
  let held = 0;
  const queue = createQueue(() => 16, {
    async enter() {
      held += 1;
      return () => (held -= 1);
    },
  });
  const leave = await queue.enter("a", noAbort);
  const caller = new AbortController();
  const left = assert.rejects(queue.enter("a", caller.signal), { name: "AbortError" });
  await new Promise(setImmediate);
  caller.abort();
  await left;
  assert.equal(held, 1);
  leave();
  assert.deepEqual([held, queue.isIdle("a")], [0, true]);
});

test("a waiting caller enters the queue shared with the peers at once, and is still limited", async () => {
  const names: string[] = [];
  const queue = createQueue(() => 1, {
    enter(name) {
      names.push(name);
      return new Promise(() => {});
    },
  });
  for (const key of ["a", "a", "b"]) void queue.enter(key, noAbort);
  assert.deepEqual(names, ["a", "a", "b"]);
  await assert.rejects(queue.enter("a", noAbort), { code: "session_busy" });
  assert.deepEqual([queue.waiting(), queue.isIdle("a"), queue.isIdle("c")], [3, false, true]);
});
