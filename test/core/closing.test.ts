/** A closing gateway: running turns end or are cancelled, and nothing starts afterwards. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { SessionStore } from "../../src/core/store.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { say } from "../scripted.ts";
import { codeOf, key, open } from "./asking.ts";

const memo = () => "{}";

/** A store that waits for a signal before it looks up a turn or a key. */
function createHeld() {
  const store = createMemoryStore();
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  async function held<Result>(look: () => Promise<Result>): Promise<Result> {
    asked.resolve();
    await gate.promise;
    return look();
  }
  const findKey: SessionStore["findKey"] = (...given) => held(() => store.findKey(...given));
  const findTurn: SessionStore["findTurn"] = (...given) => held(() => store.findTurn(...given));
  return { store: { ...store, findKey, findTurn }, asked: asked.promise, go: () => gate.resolve() };
}

suite("a request that is being accepted when the gateway closes", () => {
  test("does not start in the background", async () => {
    const { answer, gateway, store, adapter } = open([say("ok")]);
    const turnId = `resp_${"a".repeat(48)}`;
    const asked = codeOf(answer({ background: true, stream: false }, { memo, turnId }));
    await gateway.close(Promise.resolve());
    assert.equal(await asked, "draining");
    assert.equal(await store.findTurn("ann", turnId), undefined);
    assert.deepEqual([gateway.load().live, adapter.turns.length], [0, 0]);
  });

  test("does not start in the background after its key was looked up", async () => {
    const { store, asked, go } = createHeld();
    const { answer, gateway, adapter } = open([say("ok")], store);
    const answered = codeOf(answer({ background: true }, { memo, key }));
    await asked;
    const closed = gateway.close(Promise.resolve());
    go();
    await closed;
    assert.equal(await answered, "draining");
    assert.deepEqual([gateway.load().live, adapter.turns.length], [0, 0]);
  });

  test("does not start after the items that it references were looked up", async () => {
    const { store, asked, go } = createHeld();
    const { answer, gateway, adapter } = open([say("ok")], store);
    await gateway.conversations.create("ann", {}, { turnId: `resp_${"b".repeat(48)}`, items: [said] });
    const answered = codeOf(answer({ items: [{ type: "reference", id: `msg_${"b".repeat(48)}s0000` }] }));
    await asked;
    await gateway.close(Promise.resolve());
    go();
    assert.equal(await answered, "draining");
    assert.equal(adapter.turns.length, 0);
  });
});

const said = { type: "message", role: "user", content: "hi" } as const;
