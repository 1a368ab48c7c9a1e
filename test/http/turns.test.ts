import assert from "node:assert/strict";
import { test } from "node:test";
import { createHoldings } from "../../src/http/held.ts";
import { createTurns } from "../../src/http/turns.ts";
import { toToken } from "../scripted.ts";

test("admitted requests are served while the gateway drains, and refused once it has aborted running turns", async () => {
  const turns = createTurns(
    () => 10,
    createHoldings(() => 1_000, "requests"),
  );
  const run = () => turns.run(new AbortController(), { token: toToken("one") }, async () => "served");
  turns.drain();
  assert.equal(await run(), "served");
  turns.abort();
  await assert.rejects(run(), { code: "draining" });
});

test("a turn that takes its slot when its request has left counts like any other, until it ends", async () => {
  const held = createHoldings(() => 1_000, "requests");
  const turns = createTurns(() => 10, held);
  const token = toToken("one", { maxConcurrentTurns: 1 });
  const follow = { token, bytes: 100, onlyFollows: true };
  const acquireSlot = await turns.run(new AbortController(), follow, async (acquire) => acquire);
  assert.equal(held.bytes, 0);
  const release = acquireSlot();
  assert.equal(held.bytes, 100);
  assert.throws(() => turns.check({ token }), { code: "rate_limit_exceeded" });
  release();
  assert.equal(held.bytes, 0);
  turns.check({ token });
});

test("a turn and its request hold a body until both are over, and the turn its slot until it ends", async () => {
  const held = createHoldings(() => 1_000, "requests");
  const turns = createTurns(() => 10, held);
  const token = toToken("one", { maxConcurrentTurns: 1 });
  await turns.run(new AbortController(), { token, bytes: 100, onlyFollows: true }, async (acquireSlot) => {
    turns.check({ token });
    const release = acquireSlot();
    assert.throws(() => turns.check({ token }), { code: "rate_limit_exceeded" });
    release();
    turns.check({ token });
    assert.equal(held.bytes, 100);
  });
  assert.equal(held.bytes, 0);
});
