/** A session's queue continues when a turn in it fails or is abandoned. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { callerLeft, GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { say } from "../scripted.ts";
import { codeOf, drain, open } from "./asking.ts";

test("a store that fails while a turn waits in its session's queue does not block those behind it", async () => {
  const inner = createMemoryStore();
  let reads = 0;
  let failsAt = Number.POSITIVE_INFINITY;
  const store = {
    ...inner,
    async readSession(id: string) {
      if (++reads === failsAt) throw new GatewayError("store_unavailable", "The store is away for a moment.");
      return inner.readSession(id);
    },
  };
  const { answer, gateway } = open([say("ok")], store);
  const memo = () => "{}";
  const first = await answer({}, { hint: "user:ann", memo });
  await drain(first);
  const previousId = first.about.id;
  failsAt = reads + 2; // the read that follows entering the queue
  assert.equal(await codeOf(answer({ previousId }, { memo })), "store_unavailable");
  assert.equal(reads, failsAt);
  const next = await answer({ previousId }, { memo, signal: AbortSignal.timeout(2_000) });
  assert.equal(next.about.history, "continued");
  await drain(next);
  assert.equal(gateway.load().waiting, 0);
});

const user = (content: string): Item => ({ type: "message", role: "user", content });
const hint = "garden";

test("a turn whose caller disconnects while it is being stored keeps its place, and the next one continues from it", async () => {
  const inner = createMemoryStore();
  const gate = Promise.withResolvers<void>();
  const storing = Promise.withResolvers<void>();
  const commit: SessionStore["commit"] = async (turns) => {
    storing.resolve();
    await gate.promise;
    return inner.commit(turns);
  };
  const { answer, adapter } = open([say("ok")], { ...inner, commit });
  const caller = new AbortController();
  const first = await answer({ items: [user("one")] }, { hint, signal: caller.signal });
  const told = drain(first);
  await storing.promise;
  caller.abort(callerLeft());
  void first.events.return();
  const next = answer({ items: [user("two")] }, { hint });
  await nextTick();
  assert.equal(adapter.turns.length, 1);
  gate.resolve();
  await told;
  const end = (await drain(await next)).at(-1);
  assert.equal(end?.type === "turn-end" && end.answer.status, "completed");
  assert.equal(adapter.turns[1]?.items.length, 3);
});

test("a turn whose caller disconnected before its end is not stored after the one that took its place", async () => {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const { answer, adapter } = open(async function* (turn) {
    yield say("ok");
    if (turn.items.length > 1) return;
    begun.resolve();
    await gate.promise;
  });
  const first = await answer({ items: [user("one")] }, { hint });
  const told = drain(first);
  await begun.promise;
  void first.events.return();
  const next = await answer({ items: [user("two"), user("three")] }, { hint });
  gate.resolve();
  const end = (await told).at(-1);
  assert.equal(end?.type === "turn-end" && end.answer.error?.code, "client_closed");
  const nextEnd = (await drain(next)).at(-1);
  assert.equal(nextEnd?.type === "turn-end" && nextEnd.answer.status, "completed");
  await drain(await answer({ items: [user("four")] }, { hint }));
  assert.deepEqual(
    adapter.turns.at(-1)?.items.map((item) => (item.type === "message" ? item.content : "")),
    ["two", "three", "ok", "four"],
  );
});
