/** A session's line goes on when whoever was in it came to nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { say } from "../scripted.ts";
import { codeOf, drain, open } from "./asking.ts";

test("a store that fails while a turn waits in its session's line keeps nobody waiting behind it", async () => {
  const kept = createMemoryStore();
  let reads = 0;
  let failsAt = Number.POSITIVE_INFINITY;
  const store = {
    ...kept,
    async readSession(id: string) {
      if (++reads === failsAt) throw new GatewayError("store_unavailable", "The store is away for a moment.");
      return kept.readSession(id);
    },
  };
  const { answer, gateway } = open([say("ok")], store);
  const memo = () => "{}";
  const first = await answer({}, { hint: "user:ann", memo });
  await drain(first);
  const previousId = first.about.id;
  failsAt = reads + 2; // the look that comes when the line was entered
  assert.equal(await codeOf(answer({ previousId }, { memo })), "store_unavailable");
  assert.equal(reads, failsAt);
  const next = await answer({ previousId }, { memo, signal: AbortSignal.timeout(2_000) });
  assert.equal(next.about.history, "continued");
  await drain(next);
  assert.equal(gateway.load().waiting, 0);
});
