/** Turns that the store knows before they end: they also end in the store, whichever of its operations fails. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { say } from "../scripted.ts";
import { codeOf, createSlow, drain, key, open } from "./asking.ts";
import { createPeerStores } from "./peer-stores.ts";

const memo = () => "{}";
const hint = "garden";
const user = (content: string): Item => ({ type: "message", role: "user", content });
const unavailable = () => new GatewayError("store_unavailable", "The store is away for a moment.");

/** Stores a turn that begins, but fails to confirm it, as long as `isLost`. */
function withLostConfirmations(store: SessionStore) {
  const state = { isLost: true };
  const begin: SessionStore["begin"] = async (turn, key) => {
    await store.begin(turn, key);
    if (state.isLost) throw unavailable();
  };
  return { state, store: { ...store, begin } };
}

suite("a turn whose start the store could not confirm", () => {
  const turnId = `resp_${"a".repeat(48)}`;

  test("does not stay running when nobody works on it", async () => {
    const { store } = withLostConfirmations(createMemoryStore());
    const { answer, gateway } = open([say("ok")], store);
    const asked = answer({ background: true, stream: false }, { memo, turnId });
    assert.equal(await codeOf(asked), "store_unavailable");
    assert.equal((await store.findTurn("ann", turnId))?.status, "failed");
    assert.deepEqual(gateway.load(), { waiting: 0, live: 0 });
  });

  test("leaves its session's queue", async () => {
    const inner = createMemoryStore();
    await beginSession(inner);
    const { script, begun, go } = createSlow();
    const { store, state } = withLostConfirmations(inner);
    const { answer, gateway } = open(script, store);
    const promise = () => answer({ background: true, stream: false }, { hint, memo });
    // It fails once as the first in the queue, and once while waiting in it.
    assert.equal(await codeOf(promise()), "store_unavailable");
    const first = drain(await answer({}, { hint, memo }));
    await begun;
    assert.equal(await codeOf(promise()), "store_unavailable");
    assert.deepEqual(gateway.load(), { waiting: 0, live: 0 });
    state.isLost = false;
    const second = await promise();
    assert.equal(gateway.load().waiting, 1);
    go();
    await Promise.all([first, drain(second)]);
  });

  test("releases its key", async () => {
    for (const background of [true, false]) {
      const { store, state } = withLostConfirmations(createPeerStores()().store);
      const { answer } = open([say("ok")], store);
      assert.equal(await codeOf(answer({ background }, { memo, turnId, key })), "store_unavailable");
      assert.equal((await store.findTurn("ann", turnId))?.status, "failed");
      state.isLost = false;
      const again = await answer({ background }, { memo, key });
      assert.notEqual(again.isRepeated, true);
      await drain(again);
    }
  });
});

suite("a turn that does not complete", () => {
  test("is ended, even if the store cannot read its session at that moment", async () => {
    const inner = createMemoryStore();
    await beginSession(inner);
    let isFailing = false;
    const readSession: SessionStore["readSession"] = async (id) => {
      if (isFailing) throw unavailable();
      return inner.readSession(id);
    };
    const { script, begun } = createSlow();
    const { answer, gateway } = open(script, { ...inner, readSession });
    const { about } = await answer({ background: true, stream: false }, { hint, memo });
    await begun;
    isFailing = true;
    await gateway.cancel("ann", about.id);
    assert.equal((await inner.findTurn("ann", about.id))?.status, "cancelled");
  });

  test("leaves nothing behind when its session is deleted while it is stored", async () => {
    const inner = createMemoryStore();
    const session = await beginSession(inner);
    const begin: SessionStore["begin"] = async (turn) => {
      await inner.deleteSession("ann", session);
      await inner.begin(turn);
    };
    const { script, begun } = createSlow();
    const { answer } = open(script, { ...inner, begin });
    const caller = new AbortController();
    const left = await answer({ items: [user("two")] }, { hint, memo, signal: caller.signal });
    const told = drain(left);
    await begun;
    caller.abort(new GatewayError("client_closed", "gone"));
    await told;
    assert.equal(await inner.findTurn("ann", left.about.id), undefined);
  });
});

suite("a turn that the store could not end", () => {
  test("is ended once it is old enough, and can be pruned; one that is still running continues", async () => {
    const inner = createMemoryStore();
    let isFailing = true;
    const end: SessionStore["end"] = async (turn) => {
      if (isFailing) throw unavailable();
      return inner.end(turn);
    };
    const store = { ...inner, end };
    const first = await open([say("ok")], store).answer({}, { memo });
    await drain(first);
    const { script, begun, go } = createSlow();
    const { answer, gateway } = open(script, store);
    const lost = await answer({ background: true, previousId: first.about.id }, { memo });
    await begun;
    await gateway.cancel("ann", lost.about.id);
    const running = await answer({ background: true }, { memo });
    isFailing = false;
    const idleBefore = new Date(lost.about.createdAt.getTime() + 1);
    await gateway.endLeft(lost.about.createdAt);
    assert.equal((await inner.findTurn("ann", lost.about.id))?.status, "running");
    await gateway.endLeft(idleBefore);
    assert.equal((await inner.findTurn("ann", lost.about.id))?.status, "failed");
    await inner.prune({ idleBefore });
    assert.equal(await inner.findTurn("ann", lost.about.id), undefined);
    go();
    await drain(running);
    assert.equal((await inner.findTurn("ann", running.about.id))?.status, "completed");
  });
});

/** The id of a session that has a turn. */
async function beginSession(store: SessionStore): Promise<string> {
  const { answer } = open([say("ok")], store);
  const { about, events } = await answer({ items: [user("one")] }, { hint, memo });
  for await (const _ of events);
  return about.session ?? "";
}
