/**
 * What a request continues is deleted before its turn or while it runs; and failed turns are deleted with their
 * session.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Item } from "../../src/core/item.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { say, type Script } from "../scripted.ts";
import { codeOf, drain, open } from "./asking.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const textOf = (item: Item): unknown => (item.type === "message" ? item.content : item.type);

/** A model that answers `re: <the last text>`, and waits for `go` when asked something slow. */
function createScene(store = createMemoryStore()) {
  const gate = Promise.withResolvers<void>();
  const script: Script = async function* ({ items }, signal) {
    const asked = textOf(items.at(-1)!);
    yield say("re: ");
    if (asked === "slow") {
      signal.throwIfAborted();
      const left = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      await Promise.race([gate.promise, left]);
    }
    if (asked === "break") throw new Error("broken");
    yield say(String(asked));
  };
  const scene = open(script, store);
  return {
    ...scene,
    go: () => gate.resolve(),
    /** Resolves when a request waits for another one. */
    async whenWaiting() {
      while (scene.gateway.load().waiting === 0) await setImmediate();
    },
    seen: () => scene.adapter.turns.at(-1)!.items.map(textOf),
  };
}

/** A store from which something is deleted just before a path is read. */
function createDeletingStore() {
  const store = createMemoryStore();
  let deletion: (() => Promise<unknown>) | undefined;
  const deleting: SessionStore = {
    ...store,
    recallPath: async () => undefined,
    async readPath(turnId) {
      const next = deletion;
      deletion = undefined;
      await next?.();
      return store.readPath(turnId);
    },
  };
  return { store: deleting, before: (next: () => Promise<unknown>) => (deletion = next) };
}

test("a response deleted while a request waits to continue it counts as not found", async () => {
  const { answer, gateway, adapter, go, whenWaiting } = createScene();
  const caller = { hint: "kitchen" };
  const first = await answer({ items: [user("one")] }, caller);
  await drain(first);
  const slow = await answer({ items: [user("slow")], previousId: first.about.id });
  const told = slow.events.next();
  const waits = codeOf(answer({ items: [user("What did I say?")], previousId: first.about.id }));
  await whenWaiting();
  await gateway.forget("ann", first.about.id);
  go();
  await told;
  await drain(slow);
  assert.equal(await waits, "previous_response_not_found");
  assert.equal(adapter.turns.length, 2);
});

test("a session deleted while a request waits for its turn starts over with that request", async () => {
  const { answer, gateway, go, whenWaiting, seen } = createScene();
  const caller = { hint: "kitchen" };
  const first = await answer({ items: [user("one")] }, caller);
  await drain(first);
  const slow = await answer({ items: [user("slow")] }, caller);
  const told = slow.events.next();
  const waits = answer({ items: [user("two")] }, caller);
  await whenWaiting();
  await gateway.conversations.delete("ann", first.about.session!);
  go();
  await told;
  await drain(slow);
  const next = await waits;
  await drain(next);
  assert.deepEqual([next.about.history, seen()], ["new", ["two"]]);
  assert.notEqual(next.about.session, first.about.session);
  const third = await answer({ items: [user("three")] }, caller);
  await drain(third);
  assert.deepEqual([third.about.history, third.about.session], ["continued", next.about.session]);
  assert.deepEqual(seen(), ["two", "re: two", "three"]);
  assert.equal(gateway.load().waiting, 0);
});

test("a history deleted at the moment it is read is not treated as empty", async () => {
  const { store, before } = createDeletingStore();
  const { answer, gateway, seen } = createScene(store);
  const caller = { hint: "kitchen" };
  await drain(await answer({ items: [user("one")] }, caller));
  const second = await answer({ items: [user("two")] }, caller);
  await drain(second);

  const history = [user("one"), assistant("re: one"), user("two"), assistant("re: two")];
  before(() => gateway.forget("ann", second.about.id));
  const shown = await answer({ items: [...history, user("three")] }, caller);
  await drain(shown);
  assert.deepEqual(seen(), ["one", "re: one", "two", "re: two", "three"]);

  const { session } = shown.about;
  before(() => gateway.forget("ann", shown.about.id));
  const fourth = await answer({ items: [user("four")], conversationId: session });
  await drain(fourth);
  assert.deepEqual(seen(), ["one", "re: one", "four"]);
  before(() => gateway.forget("ann", fourth.about.id));
  await drain(await answer({ items: [user("four again")], conversationId: session }));
  assert.deepEqual(seen(), ["one", "re: one", "four again"]);
  before(() => gateway.conversations.delete("ann", session!));
  assert.equal(await codeOf(answer({ items: [user("five")], conversationId: session })), "not_found");
});

test("one of two identical conversations deleted at the moment they are compared is not continued", async () => {
  const { store, before } = createDeletingStore();
  const { answer, gateway, seen } = createScene(store);
  const system = (content: string): Item => ({ type: "message", role: "system", content });
  const caller = { hint: "kitchen" };
  const first = await answer({ items: [system("a"), user("one")] }, caller);
  await drain(first);
  await drain(await answer({ items: [system("b"), user("x"), assistant("y"), user("x")] }, caller));
  await drain(await answer({ items: [system("b"), user("one")] }, caller));
  before(async () => before(() => gateway.forget("ann", first.about.id)));
  await drain(await answer({ items: [user("one"), assistant("re: one"), user("two")] }, caller));
  assert.deepEqual(seen(), ["b", "one", "re: one", "two"]);
});

test("a session deleted at the moment a request continues it starts over", async () => {
  const { store, before } = createDeletingStore();
  const { answer, gateway, seen } = createScene(store);
  const first = await answer({ items: [user("one")] }, { hint: "kitchen" });
  await drain(first);
  before(() => gateway.conversations.delete("ann", first.about.session!));
  const second = await answer({ items: [user("two")] }, { hint: "kitchen" });
  await drain(second);
  assert.deepEqual([second.about.history, seen()], ["new", ["two"]]);
  assert.deepEqual((await gateway.recall("ann", second.about.id))?.about.session, second.about.session);
});

test("failed and stopped turns are deleted with their session, and are not listed in it before", async () => {
  const { answer, gateway, store } = createScene();
  const caller = { hint: "kitchen", memo: () => "memo" };
  const first = await answer({ items: [user("one")] }, caller);
  await drain(first);
  const { session } = first.about;
  const failed = await answer({ items: [user("break")] }, caller);
  await drain(failed);
  const leaving = new AbortController();
  const stopped = await answer({ items: [user("slow")] }, { ...caller, signal: leaving.signal });
  await stopped.events.next();
  leaving.abort();
  await drain(stopped);
  const unthreaded = [failed.about.id, stopped.about.id];
  for (const id of unthreaded) assert.equal((await gateway.recall("ann", id))?.about.session, session);
  assert.deepEqual(
    (await gateway.conversations.places("ann", session!)).map(({ item }) => item && textOf(item)),
    ["one", "re: one"],
  );
  assert.deepEqual(
    (await store.listSessions({ limit: 9 })).map(({ turns }) => turns),
    [1],
  );
  await gateway.conversations.delete("ann", session!);
  for (const id of unthreaded) assert.equal(await gateway.recall("ann", id), undefined);
  assert.equal((await Array.fromAsync(store.exportRecords())).length, 1);
});

for (const background of [false, true]) {
  test(`a turn ${background ? "in the background " : ""}whose session is deleted while it runs leaves nothing behind`, async () => {
    const { answer, gateway, store, go } = createScene();
    const caller = { hint: "kitchen", memo: () => "memo" };
    const first = await answer({ items: [user("one")] }, caller);
    await drain(first);
    const slow = await answer({ items: [user("slow")], background }, caller);
    const { value } = await slow.events.next();
    if (value?.[0]?.type === "turn-queued") await slow.events.next();
    await gateway.conversations.delete("ann", first.about.session!);
    go();
    const end = (await drain(slow)).at(-1);
    assert.equal(end?.type === "turn-end" && end.answer.status, "failed");
    assert.equal(await gateway.recall("ann", slow.about.id), undefined);
    assert.equal((await Array.fromAsync(store.exportRecords())).length, 1);
  });
}
