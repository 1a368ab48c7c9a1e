/** Turns that the store knows before they are over: they end there too, whatever it fails at. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { say } from "../scripted.ts";
import { codeOf, createSlow, drain, key, open } from "./asking.ts";
import { createPeerStores } from "./peer-stores.ts";

const memo = () => "{}";
const hint = "garden";
const user = (content: string): Item => ({ type: "message", role: "user", content });
const isAway = () => new GatewayError("store_unavailable", "The store is away for a moment.");

/** Keeps a turn that begins, and cannot say so, for as long as `isLost`. */
function losing(store: SessionStore) {
  const state = { isLost: true };
  const begin: SessionStore["begin"] = async (turn, key) => {
    await store.begin(turn, key);
    if (state.isLost) throw isAway();
  };
  return { state, store: { ...store, begin } };
}

suite("a turn whose beginning the store could not confirm", () => {
  const turnId = `resp_${"a".repeat(48)}`;

  test("does not run for ever, though nobody works on it", async () => {
    const { store } = losing(createMemoryStore());
    const { answer, gateway } = open([say("ok")], store);
    const asked = answer({ background: true, stream: false }, { memo, turnId });
    assert.equal(await codeOf(asked), "store_unavailable");
    assert.equal((await store.findTurn("ann", turnId))?.status, "failed");
    assert.deepEqual(gateway.load(), { waiting: 0, live: 0 });
  });

  test("leaves its session's line", async () => {
    const kept = createMemoryStore();
    await beginSession(kept);
    const { script, begun, go } = createSlow();
    const { store, state } = losing(kept);
    const { answer, gateway } = open(script, store);
    const promise = () => answer({ background: true, stream: false }, { hint, memo });
    // It is the first in the line, and then waits in it.
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

  test("leaves its key free", async () => {
    for (const background of [true, false]) {
      const { store, state } = losing(createPeerStores()().store);
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

suite("a turn that comes to nothing", () => {
  test("is ended, though the store cannot tell then whether its session is there", async () => {
    const kept = createMemoryStore();
    await beginSession(kept);
    let isHindered = false;
    const readSession: SessionStore["readSession"] = async (id) => {
      if (isHindered) throw isAway();
      return kept.readSession(id);
    };
    const { script, begun } = createSlow();
    const { answer, gateway } = open(script, { ...kept, readSession });
    const { about } = await answer({ background: true, stream: false }, { hint, memo });
    await begun;
    isHindered = true;
    await gateway.cancel("ann", about.id);
    assert.equal((await kept.findTurn("ann", about.id))?.status, "cancelled");
  });

  test("leaves nothing when its session is deleted while it is kept", async () => {
    const kept = createMemoryStore();
    const session = await beginSession(kept);
    const begin: SessionStore["begin"] = async (turn) => {
      await kept.deleteSession("ann", session);
      await kept.begin(turn);
    };
    const { script, begun } = createSlow();
    const { answer } = open(script, { ...kept, begin });
    const caller = new AbortController();
    const left = await answer({ items: [user("two")] }, { hint, memo, signal: caller.signal });
    const told = drain(left);
    await begun;
    caller.abort(new GatewayError("client_closed", "gone"));
    await told;
    assert.equal(await kept.findTurn("ann", left.about.id), undefined);
  });
});

suite("a turn that the store could not end", () => {
  test("is ended once it is old, and can go; one that runs goes on", async () => {
    const kept = createMemoryStore();
    let isHindered = true;
    const end: SessionStore["end"] = async (turn) => {
      if (isHindered) throw isAway();
      return kept.end(turn);
    };
    const store = { ...kept, end };
    const first = await open([say("ok")], store).answer({}, { memo });
    await drain(first);
    const { script, begun, go } = createSlow();
    const { answer, gateway } = open(script, store);
    const lost = await answer({ background: true, previousId: first.about.id }, { memo });
    await begun;
    await gateway.cancel("ann", lost.about.id);
    const running = await answer({ background: true }, { memo });
    isHindered = false;
    const idleBefore = new Date(lost.about.createdAt.getTime() + 1);
    await gateway.endLeft(lost.about.createdAt);
    assert.equal((await kept.findTurn("ann", lost.about.id))?.status, "running");
    await gateway.endLeft(idleBefore);
    assert.equal((await kept.findTurn("ann", lost.about.id))?.status, "failed");
    await kept.prune({ idleBefore });
    assert.equal(await kept.findTurn("ann", lost.about.id), undefined);
    go();
    await drain(running);
    assert.equal((await kept.findTurn("ann", running.about.id))?.status, "completed");
  });
});

/** The id of a session in which something was said. */
async function beginSession(store: SessionStore): Promise<string> {
  const { answer } = open([say("ok")], store);
  const { about, events } = await answer({ items: [user("one")] }, { hint, memo });
  for await (const _ of events);
  return about.session ?? "";
}
