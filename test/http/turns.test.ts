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
