import assert from "node:assert/strict";
import { test } from "node:test";
import { createKept } from "../../src/core/kept.ts";

function start(maxSize: number) {
  const waiting: (() => void)[] = [];
  const kept = createKept<string, number>({ maxSize: () => maxSize, later: (work) => waiting.push(work) });
  return { kept, waiting, pass: () => waiting.splice(0).forEach((work) => work()) };
}

test("what is kept never takes more than the limit: those that came first stay", () => {
  const { kept } = start(100);
  for (let key = 0; key < 20; key += 1) kept.set(String(key), key, 10);
  const all = Array.from({ length: 20 }, (_, key) => kept.get(String(key)));
  assert.deepEqual(all, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...Array<undefined>(10).fill(undefined)]);
});

test("a value replaces the one before and frees its room, even if there is none for it", () => {
  const { kept, pass } = start(100);
  for (let value = 0; value < 100; value += 1) kept.set("same", value, 60);
  assert.deepEqual([kept.hasRoom(40), kept.hasRoom(41)], [true, false]);
  kept.set("other", 1, 40);
  assert.deepEqual([kept.get("same"), kept.get("other")], [99, 1]);
  kept.set("same", 1, 61);
  assert.deepEqual([kept.get("same"), kept.get("other")], [undefined, 1]);
  kept.delete("other");
  kept.set("same", 2, 100);
  assert.deepEqual([kept.get("same"), kept.get("other")], [2, undefined]);
  pass();
  kept.set("other", 2, 1);
  kept.set("same", 3, 100);
  assert.deepEqual([kept.get("same"), kept.get("other")], [3, undefined]);
});

test("what has been idle makes room, the idlest first and no more than needed; what has not stays", () => {
  const { kept, pass } = start(100);
  for (let key = 0; key < 10; key += 1) kept.set(String(key), key, 10);
  pass();
  kept.set("0", 10, 10);
  assert.equal(kept.hasRoom(1), false);
  pass();
  assert.equal(kept.hasRoom(101), false);
  assert.equal(kept.hasRoom(20), true);
  kept.set("new", 11, 20);
  assert.deepEqual(
    Array.from({ length: 10 }, (_, key) => kept.get(String(key))),
    [10, undefined, undefined, 3, 4, 5, 6, 7, 8, 9],
  );
  assert.deepEqual([kept.hasRoom(70), kept.hasRoom(71)], [true, false]);
  assert.deepEqual([kept.get("0"), kept.get("new")], [10, 11]);
});

test("what is idle stays if even without it there is no room", () => {
  const { kept, pass } = start(100);
  kept.set("idle", 1, 30);
  pass();
  kept.set("active", 2, 30);
  pass();
  kept.set("active, too", 3, 30);
  for (const size of [41, 101]) {
    assert.equal(kept.hasRoom(size), false);
    assert.equal(kept.get("idle"), 1);
  }
  assert.equal(kept.hasRoom(40), true);
  assert.deepEqual([kept.get("idle"), kept.get("active"), kept.get("active, too")], [undefined, 2, 3]);
});

test("what is not set again for ten periods is forgotten, and then nothing waits any more", () => {
  const { kept, waiting, pass } = start(100);
  kept.set("old", 1, 10);
  pass();
  kept.set("new", 2, 10);
  for (let period = 2; period < 10; period += 1) pass();
  assert.deepEqual([kept.get("old"), kept.get("new"), waiting.length], [1, 2, 1]);
  pass();
  assert.deepEqual([kept.get("old"), kept.get("new")], [undefined, 2]);
  pass();
  assert.deepEqual([kept.get("new"), waiting.length], [undefined, 0]);
});

test("what is cleared is gone and frees its room, and then nothing waits any more", () => {
  const { kept, waiting, pass } = start(100);
  kept.set("old", 1, 10);
  pass();
  kept.set("new", 2, 90);
  kept.clear();
  assert.deepEqual([kept.get("old"), kept.get("new")], [undefined, undefined]);
  assert.equal(kept.hasRoom(100), true);
  pass();
  assert.equal(waiting.length, 0);
});
