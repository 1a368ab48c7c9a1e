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
  const { kept } = start(100);
  for (let value = 0; value < 100; value += 1) kept.set("same", value, 60);
  assert.deepEqual([kept.hasRoom(40), kept.hasRoom(41)], [true, false]);
  kept.set("other", 1, 40);
  assert.deepEqual([kept.get("same"), kept.get("other")], [99, 1]);
  kept.set("same", 1, 61);
  assert.deepEqual([kept.get("same"), kept.get("other")], [undefined, 1]);
  kept.delete("other");
  kept.set("same", 2, 100);
  assert.deepEqual([kept.get("same"), kept.get("other")], [2, undefined]);
});

test("what is not set again for two generations is forgotten, and then nothing waits any more", () => {
  const { kept, waiting, pass } = start(100);
  kept.set("old", 1, 10);
  pass();
  kept.set("new", 2, 10);
  assert.deepEqual([kept.get("old"), kept.get("new"), waiting.length], [1, 2, 1]);
  pass();
  assert.deepEqual([kept.get("old"), kept.get("new")], [undefined, 2]);
  pass();
  assert.deepEqual([kept.get("new"), waiting.length], [undefined, 0]);
});

test("what is cleared is gone from both generations, and then nothing waits any more", () => {
  const { kept, waiting, pass } = start(100);
  kept.set("old", 1, 10);
  pass();
  kept.set("new", 2, 10);
  kept.clear();
  assert.deepEqual([kept.get("old"), kept.get("new")], [undefined, undefined]);
  pass();
  assert.equal(waiting.length, 0);
});
