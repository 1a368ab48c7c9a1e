/** System messages in a session: where the model sees them, and how often they are stored. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import { say } from "../scripted.ts";
import { drain, open } from "./asking.ts";
import { withInnerInstructions } from "../../src/core/place/steering.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });
const output = (callId: string): Item => ({ type: "tool-output", kind: "function", callId, output: "done" });
const call = (callId: string): Item => ({ type: "tool-call", kind: "function", callId, name: "f", arguments: "" });
const textOf = (item: Item): string =>
  item.type === "message" && typeof item.content === "string" ? item.content : item.type;

const toolCall = (index: number) => ({ type: "tool-call", index, callId: `c${index + 1}`, name: "f" }) as const;

/** A model that answers `yes`, or calls one or two tools on `CALL` and `CALL TWO`. */
function createScene() {
  const { adapter, answer, gateway } = open(async function* ({ items }) {
    const asked = textOf(items.at(-1)!);
    if (asked === "CALL") yield [toolCall(0)];
    else if (asked === "CALL TWO") yield [toolCall(0), toolCall(1)];
    else yield say("yes");
  });
  return {
    gateway,
    async see(items: readonly Item[], rest: object = {}) {
      const reply = await answer({ items, ...rest }, { hint: "previousId" in rest ? undefined : "kitchen" });
      await drain(reply);
      const shown = adapter.turns.at(-1)!.items;
      const seen = shown.map((item) =>
        item.type === "message" && typeof item.content !== "string" ? "yes" : textOf(item),
      );
      const outputs = shown.flatMap((item) => (item.type === "tool-output" ? [item.callId] : []));
      return { ...reply.about, seen, outputs };
    },
  };
}

test("a system message after or inside the shown history stays where it was sent", async () => {
  const { see } = createScene();
  const items = [system("S"), user("one")];
  await see(items);
  items.push(assistant("yes"), system("BEFORE"), user("two"), system("BEHIND"));
  const second = await see(items);
  assert.equal(second.history, "matched");
  assert.deepEqual(second.seen, ["S", "one", "yes", "BEFORE", "two", "BEHIND"]);
  items.push(assistant("yes"), user("three"));
  const third = await see(items);
  assert.equal(third.history, "matched");
  assert.deepEqual(third.seen, ["S", "one", "yes", "BEFORE", "two", "BEHIND", "yes", "three"]);
  const edited = [...items.slice(0, -1), user("other")];
  const fourth = await see(edited);
  assert.equal(fourth.history, "forked");
  assert.deepEqual(fourth.seen, edited.map(textOf));
});

test("it also stays in a history that is partly unknown, split differently, or shown from its middle", async () => {
  const { see } = createScene();
  await see([system("S"), user("one")]);
  const items = [
    system("S"),
    user("one"),
    assistant("yes"),
    user("two"),
    system("AMID"),
    user("more"),
    assistant("yes"),
  ];
  const second = await see([...items, system("BEFORE"), user("three")]);
  assert.equal(second.history, "forked");
  assert.deepEqual(second.seen, [...items, system("BEFORE"), user("three")].map(textOf));
  const third = await see([...items, system("BEFORE"), user("three"), assistant("yes"), user("four")]);
  assert.equal(third.history, "matched");
  assert.deepEqual(third.seen, ["S", "one", "yes", "two", "AMID", "more", "yes", "BEFORE", "three", "yes", "four"]);
  const merged = [user("two\nmore"), assistant("yes"), system("BEFORE"), user("three"), assistant("yes"), user("five")];
  const fourth = await see(merged);
  assert.deepEqual(
    [fourth.history, fourth.seen],
    ["forked", ["one", "yes", "two", "more", "yes", "BEFORE", "three", "yes", "five"]],
  );
});

test("in a request without history, system messages before its first message go in front, and others stay", async () => {
  const { see } = createScene();
  await see([system("S"), user("one")]);
  assert.deepEqual((await see([system("T"), user("two"), system("LAST")])).seen, ["T", "one", "yes", "two", "LAST"]);
  assert.deepEqual((await see([user("three")])).seen, ["T", "LAST", "one", "yes", "two", "yes", "three"]);
  const alone = await see([system("U")]);
  assert.deepEqual(alone.seen, ["U", "one", "yes", "two", "yes", "three", "yes"]);
});

test("a system message between an answer without words and the first words is neither lost nor doubled", async () => {
  const { see } = createScene();
  for (const begun of [
    [assistant(""), system("S"), user("one")],
    [system("S"), user(" "), system("T"), assistant(""), user("one")],
  ]) {
    await see(begun);
    const { history, seen } = await see([...begun, assistant("yes"), user("two")]);
    assert.equal(history, "matched");
    assert.deepEqual(
      seen.filter((text) => text.trim() !== ""),
      [...begun.map(textOf).filter((text) => text.trim() !== ""), "yes", "two"],
    );
  }
});

test("a system message inside a shown history has the same place in what is remembered", () => {
  const [x, y] = [system("X"), system("Y")];
  const thought: Item = { type: "reasoning", summary: [], text: "hm" };
  const [a, b, c, d] = [user("a"), user("b"), assistant("c"), assistant("d")];
  assert.deepEqual(withInnerInstructions([a, b, thought, c, d], [a, x, b, y, c, d]), [a, x, b, y, thought, c, d]);
  assert.deepEqual(withInnerInstructions([a, b, user("e"), c], [user("a\nb"), x, user("e"), c]), [
    x,
    a,
    b,
    user("e"),
    c,
  ]);
  assert.deepEqual(withInnerInstructions([a, assistant("")], [a, x, assistant("")]), [a, x, assistant("")]);
});

test("a system message never stands between a call and its output", async () => {
  const { see } = createScene();
  await see([user("one")]);
  const { id } = await see([user("CALL")]);
  const seen = ["one", "yes", "CALL", "tool-call", "tool-output", "two", "LAST"];
  assert.deepEqual((await see([user("two"), system("LAST"), output("c1")])).seen, seen);
  assert.deepEqual((await see([user("two"), system("LAST"), output("c1")], { previousId: id })).seen, seen);
});

test("a system message never stands between outputs that the caller shows around it", async () => {
  const { see } = createScene();
  await see([user("CALL")]);
  await see([user("CALL"), call("c1"), output("c1"), user("two")]);
  const items = [user("CALL"), call("c1"), system("AMID"), output("c1"), user("two"), assistant("yes"), user("three")];
  const seen = ["CALL", "tool-call", "tool-output", "AMID", "two", "yes", "three"];
  assert.deepEqual((await see(items)).seen, seen);
});

test("outputs that the caller shows around a system message keep their order", async () => {
  const { see } = createScene();
  const asked = [user("CALL TWO"), call("c1"), call("c2"), output("c1")];
  await see(asked.slice(0, 1));
  await see([...asked, output("c2"), user("two")]);
  const last = await see([...asked, system("AMID"), output("c2"), user("two"), assistant("yes"), user("three")]);
  const given = ["tool-call", "tool-call", "tool-output", "tool-output"];
  assert.deepEqual(last.seen, ["CALL TWO", ...given, "AMID", "two", "yes", "three"]);
  assert.deepEqual(last.outputs, ["c1", "c2"]);
});

test("a system message that is sent with every request of a session is stored once", async () => {
  const { see, gateway } = createScene();
  const items = [system("S")];
  let session: string | undefined;
  for (const text of ["one", "two", "three"]) {
    items.push(user(text));
    const about = await see(items);
    assert.deepEqual(about.seen, items.map(textOf));
    session = about.session;
    items.push(assistant("yes"));
  }
  const readSystem = async () => {
    const places = await gateway.conversations.places("ann", session!);
    return places.flatMap(({ item }) => (item?.type === "message" && item.role === "system" ? [item.content] : []));
  };
  assert.deepEqual(await readSystem(), ["S"]);
  const byName = await see([user("four")], { conversationId: session });
  assert.deepEqual(byName.seen, ["S", "one", "yes", "two", "yes", "three", "yes", "four"]);
  await see([...items, user("four"), assistant("yes"), user("five")].with(0, system("T")));
  assert.deepEqual(await readSystem(), ["S", "T"]);
  assert.deepEqual((await see([user("six")], { conversationId: session })).seen.slice(-3), ["five", "yes", "six"]);
});

test("a system message with other fields, another name or another role is a different one", async () => {
  const said = { type: "message", role: "system", content: "S" } as const;
  const named = { ...said, name: "house" };
  const marked = { ...named, extra: { dialect: "chat", fields: { cache_control: { type: "ephemeral" } } } } as const;
  const instructions: readonly Item[] = [said, named, marked, { ...marked, role: "developer" }];
  const { adapter, answer } = open([say("yes")]);
  const send = async (...items: readonly Item[]) => drain(await answer({ items }, { hint: "kitchen" }));
  for (const own of instructions) {
    await send(own, user("one"));
    await send(user("two"));
    assert.deepEqual(adapter.turns.at(-1)!.items[0], own);
  }
});

test("a system message that is still sent outlives the turn it was stored with", async () => {
  for (const sent of [3, 4]) {
    const { adapter, answer } = open([say("yes")], undefined, { maxTurnsPerThread: 2 });
    const send = async (...items: readonly Item[]) => drain(await answer({ items }, { hint: "kitchen" }));
    for (const text of ["one", "two", "three", "four"].slice(0, sent)) await send(system("S"), user(text));
    await send(user("five"));
    assert.equal(textOf(adapter.turns.at(-1)!.items[0]!), "S");
  }
});

test("a caller that names what it continues has its system messages stored as often as it sends them", async () => {
  const { see } = createScene();
  const { id, session } = await see([system("S"), user("one")]);
  const next = await see([system("S"), user("two")], { conversationId: session });
  assert.deepEqual(next.seen, ["S", "one", "yes", "S", "two"]);
  const last = await see([user("three")], { previousId: next.id });
  assert.deepEqual(last.seen, ["S", "one", "yes", "S", "two", "yes", "three"]);
  assert.notEqual(id, last.id);
});

test("a system message stands before the history that was shown with it, for callers that continue it by name", async () => {
  const begun = [system("S"), user("one"), system("AMID"), assistant("yes"), user("two")];
  const { see, gateway } = createScene();
  await see([user("zero")]);
  const { id, session, history } = await see(begun);
  assert.equal(history, "foreign");
  const said = ["S", "AMID", "one", "yes", "two"];
  assert.deepEqual((await see([user("three")], { previousId: id })).seen, [...said, "yes", "three"]);
  assert.deepEqual((await see([user("four")], { conversationId: session })).seen.slice(0, 5), said);
  const { input } = (await gateway.recall("ann", id))!;
  assert.deepEqual(
    input.map(({ item }) => textOf(item)),
    said,
  );
});

test("system messages that begin a conversation by name stay before those of its turns", async () => {
  const { see, gateway } = createScene();
  const items = [system("S"), user("one"), assistant("yes")];
  const { id } = await gateway.conversations.create("ann", {}, { turnId: `resp_${"0".repeat(48)}`, items });
  const { seen } = await see([system("T"), user("two")], { conversationId: id });
  assert.deepEqual(seen, ["S", "one", "yes", "T", "two"]);
});
