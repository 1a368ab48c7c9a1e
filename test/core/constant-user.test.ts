/** Conversations that met under one constant `user` before anybody had shown a history, and part when they show theirs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter } from "../scripted.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const talk = (...texts: string[]): Item[] => texts.flatMap((text) => [user(text), assistant(`re: ${text}`)]);

/** Says something under the constant `user`; gives what the model saw. */
function createScene(): (items: readonly Item[]) => Promise<readonly Item[]> {
  const adapter = createScriptedAdapter(async function* ({ items }) {
    const last = items.at(-1);
    yield [{ type: "text", text: `re: ${last?.type === "message" && String(last.content)}` }];
  });
  const newId = createIds(() => new Date());
  const gateway = makeGateway({ adapter, store: createMemoryStore() });
  return async (items) => {
    const ask = { model: "m", items, itemsParam: "messages", settings: { tools: [] }, stream: false } as const;
    const caller = { turnId: newId("resp"), owner: "ann", hint: "user:app", signal: new AbortController().signal };
    const { events } = await gateway.answer({ ...ask, keep: "in-session" }, caller);
    await Array.fromAsync(events);
    return adapter.turns.at(-1)?.items ?? [];
  };
}

test("the one that was taken for the other's next message is alone as soon as it shows its own history", async () => {
  const say = createScene();
  await say([user("hello")]);
  await say([user("hi")]);
  assert.deepEqual(await say([...talk("hi"), user("and now?")]), [...talk("hi"), user("and now?")]);
  const later = [...talk("hi", "and now?"), user("later")];
  assert.deepEqual(await say(later), later);
  const first = [...talk("hello"), user("more")];
  assert.deepEqual(await say(first), first);
});

test("also when another one has shown its history before", async () => {
  const say = createScene();
  for (const text of ["hello", "hi", "hey"]) await say([user(text)]);
  for (const text of ["hello", "hey", "hi"]) {
    const shown = [...talk(text), user(`after ${text}`)];
    assert.deepEqual(await say(shown), shown);
    const later = [...talk(text, `after ${text}`), user("later")];
    assert.deepEqual(await say(later), later);
  }
});

test("a client that shows its last exchange alone is still given its whole thread, where the session has no other", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  assert.deepEqual(await say([...talk("two"), user("three")]), [...talk("one", "two"), user("three")]);
});
