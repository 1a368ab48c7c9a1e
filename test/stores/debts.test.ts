import assert from "node:assert/strict";
import { test } from "node:test";
import { createDebts } from "../../src/stores/redis/debts.ts";

test("what could not be asked for is asked for again until it is done, and for each turn one thing", async () => {
  const { add, settle } = createDebts();
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
  settle();
  assert.deepEqual(asked.splice(0), ["remove one", "keep two"]);
  await new Promise(setImmediate);
  settle();
  assert.deepEqual(asked, []);
});
