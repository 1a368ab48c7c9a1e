import assert from "node:assert/strict";
import { test } from "node:test";
import { createRetries } from "../../src/stores/redis/retries.ts";

test("what could not be asked for is asked for again until it is done, and for each turn one thing", async () => {
  const { add, retryAll } = createRetries();
  const asked: string[] = [];
  let isThere = false;
  const ask = (what: string) => async () => {
    asked.push(what);
    if (!isThere) throw new Error("away");
  };
  add("one", ask("keep one"));
  add("two", ask("keep two"));
  add("one", ask("remove one"));
  assert.deepEqual(asked.splice(0), ["keep one", "keep two", "remove one"]);
  isThere = true;
  retryAll();
  assert.deepEqual(asked.splice(0), ["remove one", "keep two"]);
  await new Promise(setImmediate);
  retryAll();
  assert.deepEqual(asked, []);
});
