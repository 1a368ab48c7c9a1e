import assert from "node:assert/strict";
import { test } from "node:test";
import { makeOnce } from "../../src/core/lazy.ts";

test("a lazy value is created once, and created again after a failure", async () => {
  let times = 0;
  const made = makeOnce(async () => {
    if (++times === 1) throw new Error("too many open files");
    return times;
  });
  const [one, other] = [made(), made()];
  await assert.rejects(one, /too many/);
  await assert.rejects(other, /too many/);
  assert.equal(times, 1);
  assert.deepEqual([await made(), await made()], [2, 2]);
});
