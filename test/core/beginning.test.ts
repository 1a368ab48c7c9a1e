/** Several requests that start a session at the same time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import type { Turn } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter } from "../scripted.ts";
import { createPeerStores } from "./peer-stores.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });

/** A model that answers each turn on demand. */
function createScene(store = createMemoryStore(), alwaysResends = false) {
  const waiting = new Map<string, () => void>();
  const lastText = (turn: Turn) => String((turn.items.at(-1) as { content?: unknown }).content);
  const adapter = createScriptedAdapter(async function* (turn) {
    const said = lastText(turn);
    await new Promise<void>((resolve) => waiting.set(said, resolve));
    if (said === "fail") throw new Error("The model is gone.");
    yield [{ type: "text", text: `re: ${said}` }];
  });
  const newId = createIds(() => new Date());
  const gateway = makeGateway({ adapter, store, alwaysResends });
  return {
    adapter,
    async ask(items: readonly Item[]) {
      const ask = { model: "m", items, itemsParam: "messages", settings: { tools: [] }, stream: false } as const;
      const signal = new AbortController().signal;
      const caller = { turnId: newId("resp"), owner: "ann", hint: "header:one", signal };
      const { about, events } = await gateway.answer({ ...ask, keep: "in-session" }, caller);
      const all = Array.fromAsync(events);
      all.catch(() => {});
      return { about, all };
    },
    async answer(said: string) {
      while (!waiting.has(said)) await new Promise(setImmediate);
      waiting.get(said)!();
    },
    seen: (said: string) => adapter.turns.find((turn) => lastText(turn) === said)?.items,
  };
}

const title = [system("Make a title."), user("title")];
const main = [system("You write code."), user("main")];

for (const [name, open] of Object.entries({
  memory: createMemoryStore,
  sqlite: () => createSqliteStore({ file: ":memory:" }),
})) {
  for (const order of [
    ["title", "main"],
    ["main", "title"],
  ] as const) {
    test(`${name}: concurrent first requests with different instructions start two threads of a session, ${order[0]} ends first`, async (context) => {
      const store = open();
      context.after(() => store.close());
      const scene = createScene(store);
      const first = await scene.ask(title);
      const second = await scene.ask(main);
      for (const said of order) {
        await scene.answer(said);
        await (said === "title" ? first : second).all;
      }
      assert.equal(first.about.session, second.about.session);
      assert.equal(second.about.history, "new");
      assert.deepEqual(scene.seen("main"), main);
      const next = await scene.ask([...main, assistant("re: main"), user("next")]);
      await scene.answer("next");
      await next.all;
      assert.equal(next.about.history, "matched");
      assert.deepEqual(scene.seen("next"), [...main, assistant("re: main"), user("next")]);
    });
  }
}

test("the second first request is stored when the first one fails", async () => {
  const scene = createScene();
  const first = await scene.ask([system("Make a title."), user("fail")]);
  const second = await scene.ask(main);
  await scene.answer("fail");
  await assert.rejects(first.all);
  await scene.answer("main");
  await second.all;
  const next = await scene.ask([user("next")]);
  await scene.answer("next");
  await next.all;
  assert.deepEqual(scene.seen("next"), [...main, assistant("re: main"), user("next")]);
});

for (const [which, words] of Object.entries({
  "has the instructions of the first": "Make a title.",
  "has its own instructions": "Be kind.",
})) {
  test(`after the first request fails, the next one joins the session of the second, even if it ${which}`, async () => {
    const scene = createScene();
    const first = await scene.ask([system("Make a title."), user("fail")]);
    const second = await scene.ask(main);
    await scene.answer("fail");
    await assert.rejects(first.all);
    const third = await scene.ask([system(words), user("third")]);
    await scene.answer("main");
    await second.all;
    await scene.answer("third");
    await third.all;
    assert.equal(third.about.session, second.about.session);
  });
}

for (const [name, open] of Object.entries({
  "a store of its own": createMemoryStore,
  "a shared store": () => createPeerStores()().store,
})) {
  test(`on ${name}, later requests wait for the one that came after the first one failed, though a second still runs`, async () => {
    const scene = createScene(open());
    const first = await scene.ask([system("Make a title."), user("fail")]);
    const second = await scene.ask(main);
    await scene.answer("fail");
    await assert.rejects(first.all);
    const third = await scene.ask([system("Be kind."), user("third")]);
    const fourth = scene.ask([system("Be kind."), user("fourth")]);
    await scene.answer("third");
    await third.all;
    await scene.answer("fourth");
    assert.equal((await fourth).about.history, "continued");
    await (
      await fourth
    ).all;
    assert.deepEqual(scene.seen("fourth"), [system("Be kind."), user("third"), assistant("re: third"), user("fourth")]);
    await scene.answer("main");
    await second.all;
  });
}

test("a request with the same instructions, or none, waits for the first answer and continues from it", async () => {
  const scene = createScene();
  const first = await scene.ask(main);
  const same = scene.ask([system("You write code."), user("same")]);
  const none = scene.ask([user("none")]);
  await scene.answer("main");
  await first.all;
  await scene.answer("same");
  assert.equal((await same).about.history, "continued");
  await (
    await same
  ).all;
  await scene.answer("none");
  assert.equal((await none).about.history, "continued");
  await (
    await none
  ).all;
  const texts = ["You write code.", "main", "re: main", "same", "re: same", "none"];
  assert.deepEqual(
    scene.seen("none")?.map((item) => (item as { content?: unknown }).content),
    texts,
  );
});

test("a turn that continued a thread is stored, even if another caller has meanwhile matched and moved on", async () => {
  const scene = createScene();
  const first = await scene.ask([user("one")]);
  await scene.answer("one");
  await first.all;
  const second = await scene.ask([user("two")]);
  const third = await scene.ask([user("one"), assistant("re: one"), user("three")]);
  await scene.answer("three");
  await third.all;
  await scene.answer("two");
  const end = (await second.all).flat().at(-1);
  assert.equal(end?.type === "turn-end" && end.answer.status, "completed");
  assert.deepEqual([second.about.history, third.about.history], ["continued", "matched"]);
  assert.equal(second.about.session, third.about.session);
});

test("callers that always resend their history never wait for the session's first answer", async () => {
  const scene = createScene(createMemoryStore(), true);
  const first = await scene.ask([user("one")]);
  const second = await scene.ask([user("two")]);
  await scene.answer("two");
  await second.all;
  await scene.answer("one");
  await first.all;
  assert.deepEqual(scene.seen("two"), [user("two")]);
  assert.equal(first.about.session, second.about.session);
});
