import assert from "node:assert/strict";
import { test } from "node:test";
import { createSharing } from "../../src/stores/sharing.ts";

/** Reads what is stored at the time, and answers when told to. */
function createSlowStore() {
  const readings: { readonly name: string; answer(): void; fail(): void }[] = [];
  const share = createSharing<number>();
  let stored = 0;
  return {
    readings,
    store: () => (stored += 1),
    find: (name: string) =>
      share(name, () => {
        const { promise, resolve, reject } = Promise.withResolvers<number>();
        const found = stored;
        readings.push({ name, answer: () => resolve(found), fail: () => reject(new Error("down")) });
        return promise;
      }),
  };
}

const settle = () => new Promise(setImmediate);

test("those who look for the same turn while it is being read share the next reading, and see what was stored by then", async () => {
  const { readings, store, find } = createSlowStore();
  const first = find("a");
  await settle();
  store();
  const others = [find("a"), find("a")];
  const another = find("b");
  await settle();
  assert.deepEqual(
    readings.map(({ name }) => name),
    ["a", "b"],
  );
  readings[0]?.answer();
  readings[1]?.answer();
  assert.deepEqual([await first, await another], [0, 1]);
  await settle();
  assert.equal(readings.length, 3);
  readings[2]?.answer();
  assert.deepEqual(await Promise.all(others), [1, 1]);
  const later = find("a");
  await settle();
  readings[3]?.answer();
  assert.equal(await later, 1);
});

test("a failed reading fails for all who wait, and the next to ask reads again", async () => {
  const { readings, find } = createSlowStore();
  const failing = [find("a")];
  await settle();
  for (let count = 0; count < 40; count += 1) failing.push(find("a"));
  const failed = Promise.all(failing.map((each) => assert.rejects(each, /down/)));
  readings[0]?.fail();
  await failed;
  const next = find("a");
  await settle();
  assert.equal(readings.length, 2);
  readings[1]?.answer();
  assert.equal(await next, 0);
});

test("no more than 32 share a reading", async () => {
  const { readings, find } = createSlowStore();
  const found = Promise.all(Array.from({ length: 65 }, () => find("a")));
  for (let read = 1; read <= 3; read += 1) {
    await settle();
    assert.equal(readings.length, read);
    readings[read - 1]?.answer();
  }
  assert.equal((await found).length, 65);
});
