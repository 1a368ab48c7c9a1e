import assert from "node:assert/strict";
import { test } from "node:test";
import { createHoldings } from "../../src/http/held.ts";
import { createTurns } from "../../src/http/turns.ts";
import { toToken } from "../scripted.ts";

test("who was let in is served while the gateway drains, and nobody once it has called off what ran", async () => {
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
