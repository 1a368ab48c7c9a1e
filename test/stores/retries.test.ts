import assert from "node:assert/strict";
import { test } from "node:test";
import { createRetries } from "../../src/stores/redis/retries.ts";

test("a failed operation is retried until it succeeds, with one operation per turn", async () => {
  const { add, retryAll } = createRetries();
  const asked: string[] = [];
  let isReachable = false;
  const ask = (what: string) => async () => {
    asked.push(what);
    if (!isReachable) throw new Error("away");
  };
  add("one", ask("keep one"));
  add("two", ask("keep two"));
  add("one", ask("remove one"));
  assert.deepEqual(asked.splice(0), ["keep one", "keep two", "remove one"]);
  isReachable = true;
  retryAll();
  assert.deepEqual(asked.splice(0), ["remove one", "keep two"]);
  await new Promise(setImmediate);
  retryAll();
  assert.deepEqual(asked, []);
});
