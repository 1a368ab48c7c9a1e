/** The queue of a session: one turn at a time, in order, and its place is given up whatever happens to the turn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLines } from "../../src/core/lines.ts";

const signal = new AbortController().signal;
const most = 32;

/** Whether a promise has resolved by now. */
async function isResolved(promise: Promise<unknown> | undefined): Promise<boolean> {
  const open = Symbol("open");
  await new Promise(setImmediate);
  return (await Promise.race([promise, Promise.resolve(open)])) !== open;
}

test("a second turn waits until the first has left, and a third until the second has", async () => {
  const lines = createLines();
  const [first, second, third] = [1, 2, 3].map(() => lines.enter("s", "", most, signal));
  assert.equal(first?.before, undefined);
  assert.equal(lines.waiting, 2);
  first?.leave();
  assert.ok(await isResolved(second?.before));
  assert.ok(!(await isResolved(third?.before)));
  second?.leave();
  assert.ok(await isResolved(third?.before));
  assert.equal(lines.waiting, 0);
});

test("turns of another session do not wait", () => {
  const lines = createLines();
  lines.enter("s", "", most, signal);
  assert.equal(lines.enter("t", "", most, signal).before, undefined);
});

test("a place that is left before its turn has come lets the next one through, and never blocks the session", async () => {
  const lines = createLines();
  const first = lines.enter("s", "", most, signal);
  const second = lines.enter("s", "", most, signal);
  const third = lines.enter("s", "", most, signal);
  second.leave();
  assert.equal(lines.waiting, 1);
  first.leave();
  assert.ok(await isResolved(third.before));
  await assert.rejects(second.before ?? Promise.resolve());
  third.leave();
  assert.equal(lines.enter("s", "", most, signal).before, undefined);
});

test("a caller that leaves while it waits gives up its place, and one that left before is not let in", async () => {
  const lines = createLines();
  const first = lines.enter("s", "", most, signal);
  const control = new AbortController();
  const second = lines.enter("s", "", most, control.signal);
  control.abort(new Error("left"));
  await assert.rejects(second.before ?? Promise.resolve(), /left/);
  second.leave();
  assert.throws(() => lines.enter("s", "", most, control.signal), /left/);
  first.leave();
  assert.equal(lines.enter("s", "", most, signal).before, undefined);
});

test("leaving twice gives up one place", async () => {
  const lines = createLines();
  const first = lines.enter("s", "", most, signal);
  const second = lines.enter("s", "", most, signal);
  const third = lines.enter("s", "", most, signal);
  first.leave();
  first.leave();
  assert.ok(await isResolved(second.before));
  assert.ok(!(await isResolved(third.before)));
});

test("with a bound of 0 the first turn enters, and the second is refused while it runs", () => {
  const lines = createLines();
  const first = lines.enter("s", "", 0, signal);
  assert.equal(first.before, undefined);
  assert.throws(() => lines.enter("s", "", 0, signal), { code: "session_busy", status: 429 });
  first.leave();
  assert.equal(lines.enter("s", "", 0, signal).before, undefined);
});

test("with a bound of 1, one turn may wait", () => {
  const lines = createLines();
  lines.enter("s", "", 1, signal);
  lines.enter("s", "", 1, signal);
  assert.throws(() => lines.enter("s", "", 1, signal), { code: "session_busy" });
});

test("the program at the front is the one whose turn runs", async () => {
  const lines = createLines();
  assert.equal(lines.front("s"), undefined);
  const first = lines.enter("s", "one", most, signal);
  const second = lines.enter("s", "two", most, signal);
  assert.equal(lines.front("s"), "one");
  first.leave();
  await second.before;
  assert.equal(lines.front("s"), "two");
  second.leave();
  assert.equal(lines.front("s"), undefined);
});

test("with several processes a turn waits for the queue, and one that has left returns a place that comes too late", async () => {
  const given: string[] = [];
  let come: (() => void) | undefined;
  const lines = createLines({
    enter: () => false,
    front: () => "elsewhere",
    wait: (_session, _about, gone) =>
      new Promise((resolve, reject) => {
        come = resolve;
        gone.addEventListener("abort", () => reject(gone.reason));
      }),
    offer: async () => true,
    release: (session) => void given.push(session),
  });
  const first = lines.enter("s", "", most, signal);
  assert.ok(!(await isResolved(first.before)));
  first.leave();
  await new Promise(setImmediate);
  assert.equal(lines.waiting, 0);
  const second = lines.enter("s", "", most, signal);
  await new Promise(setImmediate);
  come?.();
  assert.ok(await isResolved(second.before));
  second.leave();
  await new Promise(setImmediate);
  assert.deepEqual(given, ["s"]);
});
