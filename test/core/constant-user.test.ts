/** Conversations that shared one constant `user` before any showed its history, and separate once they do. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import type { Item } from "../../src/core/item.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter } from "../scripted.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const talk = (...texts: string[]): Item[] => texts.flatMap((text) => [user(text), assistant(`re: ${text}`)]);

const system = (content: string): Item => ({ type: "message", role: "system", content });

const call: Item = { type: "tool-call", kind: "function", callId: "c1", name: "f", arguments: "{}" };
const output: Item = { type: "tool-output", kind: "function", callId: "c1", output: "done" };

/**
 * Sends items under the constant `user`, or another; returns what the model saw. It answers `re: <the last text>`, or
 * always the same, or calls a tool on `CALL`.
 */
function createScene(
  alwaysResends = false,
  answer?: string,
  hintsAtTalk = false,
  digest = (text: string) => hash("sha256", text),
): (items: readonly Item[], keep?: "no", name?: string) => Promise<readonly Item[]> {
  const adapter = createScriptedAdapter(async function* ({ items }) {
    const last = items.at(-1);
    const said = last?.type === "message" && String(last.content);
    if (said !== "CALL") yield [{ type: "text", text: answer ?? `re: ${said}` }];
    else
      yield [
        { type: "tool-call", index: 0, callId: "c1", name: "f" },
        { type: "tool-arguments", index: 0, text: "{}" },
      ];
  });
  const newId = createIds(() => new Date());
  const gateway = makeGateway({ adapter, store: createMemoryStore(), alwaysResends, digest });
  return async (items, keep, name = "app") => {
    const ask = { model: "m", items, itemsParam: "messages", settings: { tools: [] }, stream: false } as const;
    const { signal } = new AbortController();
    const caller = { turnId: newId("resp"), owner: "ann", hint: `user:${name}`, hintsAtTalk, signal };
    const { events } = await gateway.answer({ ...ask, keep: keep ?? "in-session" }, caller);
    await Array.fromAsync(events);
    return adapter.turns.at(-1)?.items ?? [];
  };
}

test("a conversation mistaken for another one's next message is separate once it shows its own history", async () => {
  const say = createScene();
  await say([user("hello")]);
  await say([user("hi")]);
  assert.deepEqual(await say([...talk("hi"), user("and now?")]), [...talk("hi"), user("and now?")]);
  const later = [...talk("hi", "and now?"), user("later")];
  assert.deepEqual(await say(later), later);
  const first = [...talk("hello"), user("more")];
  assert.deepEqual(await say(first), first);
});

test("it is separate even if its first turn had several steps", async () => {
  const say = createScene();
  await say([user("hello")]);
  await say([user("CALL")]);
  const turn = [user("CALL"), call, output];
  await say(turn);
  const shown = [...turn, assistant("re: false"), user("and now?")];
  assert.deepEqual(await say(shown), shown);
  const first = [...talk("hello"), user("more")];
  assert.deepEqual(await say(first), first);
});

test("it is separate even if another conversation has shown its history before", async () => {
  const say = createScene();
  for (const text of ["hello", "hi", "hey"]) await say([user(text)]);
  for (const text of ["hello", "hey", "hi"]) {
    const shown = [...talk(text), user(`after ${text}`)];
    assert.deepEqual(await say(shown), shown);
    const later = [...talk(text, `after ${text}`), user("later")];
    assert.deepEqual(await say(later), later);
  }
});

test("a client that shows only its last exchange still gets its whole thread if the session has no other", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  assert.deepEqual(await say([...talk("two"), user("three")]), [...talk("one", "two"), user("three")]);
});

test("conversations that start with the same words keep their own system messages, and one without any gets none", async () => {
  for (const alwaysResends of [false, true]) {
    const say = createScene(alwaysResends);
    await say([...talk("known to resend"), user("yes")]);
    const beginnings = [[], [system("Ann")], [system("Bob")], [system("Ann"), system("Bob")]];
    for (const steering of beginnings) await say([...steering, user("hi")]);
    for (const steering of beginnings) {
      for (const texts of [["hi"], ["hi", "who am I?"]]) {
        const shown = [...steering, ...talk(...texts), user("who am I?")];
        assert.deepEqual(await say(shown), shown);
      }
      const edited = [...steering, ...talk("hi"), user("edited")];
      assert.deepEqual(await say(edited), edited);
    }
  }
});

test("a caller without a system message gets none where several conversations with its words have one", async () => {
  const say = createScene();
  await say([...talk("known to resend"), user("yes")]);
  for (const name of ["Ann", "Bob"]) await say([system(name), user("hi")]);
  const shown = [...talk("hi"), user("who am I?")];
  assert.deepEqual(await say(shown), shown);
  const later = [...talk("hi", "who am I?"), user("really?")];
  assert.deepEqual(await say(later), later);
});

test("a caller does not get what preceded the same words in another conversation", async () => {
  const say = createScene(false, "H");
  const chat = (...texts: string[]) => texts.flatMap((text) => [user(text), assistant("H")]);
  await say([...chat("known to resend"), user("yes")]);
  for (const [name, ...texts] of [["Ann"], ["Bob"], ["Carl", "my secret"]] as const) {
    const before = [system(name), ...chat(...texts)];
    await say([...before, user("hi")]);
    await say([...before, ...chat("hi"), user("ok")]);
  }
  const shown = [...chat("hi", "ok"), user("who am I?")];
  assert.deepEqual(await say(shown), shown);
});

test("a caller gets no system message where too many conversations are alike to compare, even if those compared agree", async () => {
  const say = createScene();
  await say([...talk("known to resend"), user("yes")]);
  await say([user("hi")]);
  for (let count = 0; count < 8; count += 1) await say([system("Ann"), user("hi")]);
  const shown = [...talk("hi"), user("who am I?")];
  assert.deepEqual(await say(shown), shown);
});

test("a caller that omits its system message gets the one of its conversation if no other has the same words", async () => {
  const say = createScene();
  await say([system("Ann"), user("hi")]);
  const shown = [...talk("hi"), user("who am I?")];
  assert.deepEqual(await say(shown), [system("Ann"), ...shown]);
  await say([system("Ann"), ...talk("hi"), user("who am I?")]);
  const later = [...talk("hi", "who am I?"), user("and now?")];
  assert.deepEqual(await say(later), [system("Ann"), ...later]);
});

test("where all callers show their whole history, the end of another conversation is not matched", async () => {
  const say = createScene(true);
  await say([user("my salary is 5000")]);
  await say([...talk("my salary is 5000"), user("hi")]);
  await say([user("hi")], "no");
  const shown = [...talk("hi"), user("what do you know about me?")];
  assert.deepEqual(await say(shown), shown);
});

test("where all callers show their whole history, a chat app's requests for titles stay out of the chat they name", async () => {
  const say = createScene(true, undefined, true);
  const title = [user("Title this chat:\nUser: hi")];
  assert.deepEqual(await say(title), title);
  for (const chat of [[user("hi")], [...talk("hi"), user("more")], [...talk("hi", "more"), user("later")]]) {
    assert.deepEqual(await say(chat), chat);
    assert.deepEqual(await say(title), title);
  }
});

test("short conversations that each send their history see only their own", async () => {
  const words = fc.constantFrom("hi", "ok", "go");
  const step = fc.record({ who: fc.nat(11), text: words, back: fc.constantFrom(0, 0, 0, 1, 2), isKept: fc.boolean() });
  const instructions = [[], [system("Ann")], [system("Bob")]];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), fc.boolean(), async (steps, alwaysResends) => {
      const say = createScene(alwaysResends, "H");
      await say([user("known to resend"), assistant("H"), user("yes")]);
      const told = new Map<number, readonly Item[]>();
      for (const { who, text, back, isKept } of steps) {
        const said = told.get(who) ?? [];
        const shown = [...said.slice(0, Math.max(0, said.length - 2 * back)), user(text)];
        const sent = [...instructions[who % 3]!, ...shown];
        // An answer that is not stored could also be the end of another conversation, unless all callers show
        // everything.
        assert.deepEqual(await say(sent, isKept || !alwaysResends ? undefined : "no"), sent);
        told.set(who, [...shown, assistant("H")]);
      }
    }),
    { numRuns: 200 },
  );
});

test("conversations with tools see only their own as soon as they show their history", async () => {
  const words = fc.constantFrom("hi", "CALL", "CALL");
  const step = fc.record({ who: fc.nat(3), text: words, isAside: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      const say = createScene(false, "H");
      const told = new Map<number, readonly Item[]>();
      for (const { who, text, isAside } of steps) {
        const said = told.get(who) ?? [];
        const asked: readonly Item[] =
          said.at(-1) === call ? [output, ...(isAside ? [user(text)] : [])] : [user(`${who}`), user(text)];
        const shown = [...said, ...asked];
        const seen = await say(shown);
        if (said.some((item) => item.type === "message" && item.role === "assistant")) assert.deepEqual(seen, shown);
        told.set(who, [...shown, asked.at(-1) === output || text !== "CALL" ? assistant("H") : call]);
      }
    }),
    { numRuns: 150 },
  );
});

test("conversations that take turns under one `user` are not hashed again while they show the same objects", async () => {
  let hashed = 0;
  const say = createScene(false, undefined, false, (text) => {
    hashed += 1;
    return hash("sha256", text);
  });
  const conversations = ["one", "two"].map((name) => {
    const texts = Array.from({ length: 30 }, (_, index) => `${name} ${index}`);
    return { name, items: talk(...texts) };
  });
  for (const round of [1, 2, 3, 4]) {
    for (const { name, items } of conversations) {
      hashed = 0;
      items.push(user(`${name} round ${round}`));
      assert.deepEqual(await say(items), items);
      if (round > 2) assert.ok(hashed < 10, `round ${round}: ${hashed} runs were hashed`);
      items.push(assistant(`re: ${name} round ${round}`));
    }
  }
});

test("the same objects under another `user` are another conversation", async () => {
  const say = createScene();
  const items = talk("a", "b");
  for (const [index, name] of ["ann", "bob", "ann", "bob"].entries()) {
    const text = `${name} ${index}`;
    const shown = [...items, user(text)];
    assert.deepEqual(await say(shown, undefined, name), shown);
    const later = [...shown, assistant(`re: ${text}`), user("later")];
    assert.deepEqual(await say(later, undefined, name), later);
  }
});
