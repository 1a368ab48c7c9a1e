import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Gateway } from "../../src/core/gateway.ts";
import type { Item } from "../../src/core/item.ts";
import type { SessionStore } from "../../src/core/store.ts";
import type { Ask } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { worked } from "../worked.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter, say, type Script, type ScriptedAdapter, usage } from "../scripted.ts";

const { signal } = new AbortController();
const newId = createIds(() => new Date());
const end = { type: "finish", reason: "stop" } as const;
const hello: Script = [[...say("Hello"), { type: "usage", usage }, end]];

let store: SessionStore;
beforeEach(() => {
  store = createMemoryStore();
});

function make(script: Script = hello, limits = {}): Gateway & { readonly adapter: ScriptedAdapter } {
  const adapter = createScriptedAdapter(script);
  return { ...makeGateway({ adapter, store, limits }), adapter };
}

function said(text: string, role: "user" | "assistant" = "user"): Item {
  return { type: "message", role, content: text };
}

function add(...items: readonly Item[]) {
  return { turnId: newId("resp"), items };
}

/** The texts of all existing items, oldest first. */
async function textsOf(gateway: Gateway, id: string, owner = "a"): Promise<unknown[]> {
  const places = await gateway.conversations.places(owner, id);
  return places.flatMap(({ item }) => (item === undefined ? [] : [item.type === "message" ? item.content : item.type]));
}

async function ask(gateway: Gateway, conversationId: string, ...items: readonly Item[]): Promise<string> {
  return continueFrom(gateway, { conversationId }, ...items);
}

async function continueFrom(
  gateway: Gateway,
  from: Pick<Ask, "conversationId" | "previousId">,
  ...items: readonly Item[]
): Promise<string> {
  const turnId = newId("resp");
  const settings = { tools: [] };
  const { events } = await gateway.answer(
    { model: "m", items, itemsParam: "input", settings, stream: false, ...from, keep: "yes" },
    { turnId, owner: "a", hint: undefined, signal },
  );
  for await (const batch of events) {
    const last = batch.at(-1);
    if (last?.type === "turn-end" && last.answer.error !== undefined) throw last.answer.error;
  }
  return turnId;
}

test("items that are added belong to their conversation, and are deleted with it", async () => {
  const { createSession, commit } = store;
  const sessions: (string | undefined)[] = [];
  store.createSession = (session, turn) => (sessions.push(turn?.session), createSession(session, turn));
  store.commit = (kept) => (sessions.push(...kept.turns.map(({ session }) => session)), commit(kept));
  const gateway = make();
  const { id } = await gateway.conversations.create("a", {}, add(said("one")));
  await gateway.conversations.append("a", id, add(said("two")), signal);
  await gateway.conversations.create("a", {}, add());
  assert.deepEqual(sessions, [id, id, undefined]);
  const turns = (await gateway.conversations.places("a", id)).map(({ turnId }) => turnId);
  assert.equal(turns.length, 2);
  await gateway.conversations.delete("a", id);
  for (const turnId of turns) assert.equal(await store.findTurn("a", turnId), undefined);
});

test("a conversation starts with the items it is created with, and a turn in it continues from them", async () => {
  const gateway = make();
  const { id, metadata } = await gateway.conversations.create("a", { topic: "tea" }, add(said("one"), said("two")));
  await ask(gateway, id, said("three"));
  assert.deepEqual(metadata, { topic: "tea" });
  assert.deepEqual(
    gateway.adapter.turns[0]?.items.map((item) => item.type === "message" && item.content),
    ["one", "two", "three"],
  );
  assert.deepEqual(await textsOf(gateway, id), ["one", "two", "three", "Hello"]);
});

test("a conversation that the store failed to store is not reported as created", async () => {
  store = { ...store, createSession: () => Promise.reject(new Error("the disk is full")) };
  await assert.rejects(make().conversations.create("a", {}, add()), /the disk is full/);
});

test("a session found by a hint is a conversation too", async () => {
  const gateway = make();
  const { about, events } = await gateway.answer(
    {
      model: "m",
      items: [said("hi")],
      itemsParam: "messages",
      settings: { tools: [] },
      stream: false,
      keep: "in-session",
    },
    { turnId: newId("resp"), owner: "a", hint: "user:u", signal },
  );
  await Array.fromAsync(events);
  assert.ok(about.session);
  await gateway.conversations.append("a", about.session, add(said("and then")), signal);
  assert.deepEqual(await textsOf(gateway, about.session), ["hi", "Hello", "and then"]);
});

/** A conversation in which a question is being answered. */
async function beginAnswer() {
  const started = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const gateway = make(async function* () {
    started.resolve();
    await released.promise;
    yield [...say("Hello"), end];
  });
  const { id } = await gateway.conversations.create("a", {}, add());
  const answered = ask(gateway, id, said("question"));
  await started.promise;
  return { gateway, id, answered, release: released.resolve };
}

test("items added while a turn runs come after its answer", async () => {
  const { gateway, id, answered, release } = await beginAnswer();
  const added = gateway.conversations.append("a", id, add(said("later")), signal);
  // Whatever is possible without the answer is done by now: a memory store never waits for anything.
  await setImmediate();
  release();
  await Promise.all([answered, added]);
  assert.deepEqual(await textsOf(gateway, id), ["question", "Hello", "later"]);
});

test("items added at the same time are all stored", async () => {
  const gateway = make();
  const { id } = await gateway.conversations.create("a", {}, add());
  const numbers = Array.from({ length: 10 }, (_, index) => `${index}`);
  await Promise.all(numbers.map((text) => gateway.conversations.append("a", id, add(said(text)), signal)));
  assert.deepEqual(await textsOf(gateway, id), numbers);
});

test("adding items is retried when another turn was committed first, and refused when that keeps happening", async () => {
  const { commit } = store;
  let refusals = 1;
  store = { ...store, commit: async (turns) => (refusals-- > 0 ? false : commit(turns)) };
  const gateway = make();
  const { id } = await gateway.conversations.create("a", {}, add());
  await gateway.conversations.append("a", id, add(said("one")), signal);
  refusals = 100;
  await assert.rejects(gateway.conversations.append("a", id, add(said("two")), signal), { code: "session_busy" });
  refusals = 0;
  await gateway.conversations.append("a", id, add(said("three")), signal);
  assert.deepEqual(await textsOf(gateway, id), ["one", "three"]);
});

test("a deleted item is hidden from the model, and the items after it keep their places", async () => {
  const gateway = make();
  const { id } = await gateway.conversations.create("a", {}, add(said("one"), said("two"), said("three")));
  const before = await gateway.conversations.places("a", id);
  assert.ok(before[0]);
  assert.equal((await gateway.conversations.removeItem("a", id, before[0], signal))?.id, id);
  const after = await gateway.conversations.places("a", id);
  assert.deepEqual(after.slice(1), before.slice(1));
  assert.equal(after[0]?.item, undefined);
  assert.equal(await gateway.conversations.removeItem("a", id, before[0], signal), undefined);
  await ask(gateway, id, said("four"));
  assert.deepEqual(gateway.adapter.turns[0]?.items, [said("two"), said("three"), said("four")]);
});

/** A call and its output, of a function or of a tool that only one dialect knows. */
const exchanges: readonly (readonly [of: string, call: Item, output: Item])[] = [
  [
    "a function",
    { type: "tool-call", kind: "function", callId: "c1", name: "f", arguments: "{}" },
    { type: "tool-output", kind: "function", callId: "c1", output: "ok" },
  ],
  ["a dialect's own tool", foreign("computer_call", "model"), foreign("computer_call_output", "tools")],
];

function foreign(type: string, side: "model" | "tools"): Item {
  return { type: "other", extra: { dialect: "responses", fields: { type } }, exchange: { side, id: "c1" } };
}

for (const [of, call, output] of exchanges) {
  test(`the call of ${of} and its output can be deleted one after the other without breaking the conversation`, async () => {
    const gateway = make();
    const { id } = await gateway.conversations.create("a", {}, add(said("one"), call, output, said("two")));
    const places = await gateway.conversations.places("a", id);
    assert.ok(places[1] && places[2]);
    await gateway.conversations.removeItem("a", id, places[1], signal);
    await ask(gateway, id, said("three"));
    await gateway.conversations.removeItem("a", id, places[2], signal);
    await ask(gateway, id, said("four"));
    assert.deepEqual(await textsOf(gateway, id), ["one", "two", "three", "Hello", "four", "Hello"]);
    assert.ok(gateway.adapter.turns.every(({ items }) => items.every(({ type }) => type === "message")));
  });
}

test("items of one turn that are deleted at the same time are all deleted", async () => {
  const gateway = make();
  const { id } = await gateway.conversations.create("a", {}, add(said("one"), said("two"), said("three")));
  const places = await gateway.conversations.places("a", id);
  await Promise.all(places.slice(1).map((place) => gateway.conversations.removeItem("a", id, place, signal)));
  assert.deepEqual(await textsOf(gateway, id), ["one"]);
});

test("an item of an answer can be deleted, and the answer is returned without it", async () => {
  const gateway = make([[{ type: "reasoning", text: "hm" }, ...say("Hello"), end]]);
  const { id } = await gateway.conversations.create("a", {}, add());
  const turnId = await ask(gateway, id, said("question"));
  await gateway.conversations.removeItem("a", id, { turnId, side: "output", index: 0 }, signal);
  assert.deepEqual(await textsOf(gateway, id), ["question", "Hello"]);
  const { state } = (await gateway.recall("a", turnId))!;
  assert.deepEqual(state.status === "over" && state.answer.items.map(({ type }) => type), ["message"]);
});

test("a turn fails with a clear error when what it continues is deleted while it runs", async () => {
  const whileRunning: (() => Promise<unknown>)[] = [];
  const gateway = make(async function* () {
    yield say("Hello");
    await whileRunning.pop()?.();
  });
  const { id } = await gateway.conversations.create("a", {}, add(said("one")));
  const previousId = await ask(gateway, id, said("two"));
  const missing = "was deleted while this turn ran, so the turn was not stored.";
  whileRunning.push(() => gateway.forget("a", previousId));
  await assert.rejects(continueFrom(gateway, { previousId }, said("three")), {
    code: "previous_response_not_found",
    param: "previous_response_id",
    message: `Previous response with id '${previousId}' ${missing}`,
  });
  whileRunning.push(() => gateway.conversations.delete("a", id));
  await assert.rejects(continueFrom(gateway, { conversationId: id }, said("three")), {
    code: "not_found",
    param: "conversation",
    message: `Conversation with id '${id}' ${missing}`,
  });
});

test("an item is deleted from its own conversation only", async () => {
  const gateway = make();
  const one = await gateway.conversations.create("a", {}, add(said("one")));
  const other = await gateway.conversations.create("a", {}, add(said("other")));
  const [place] = await gateway.conversations.places("a", other.id);
  assert.ok(place);
  assert.equal(await gateway.conversations.removeItem("a", one.id, place, signal), undefined);
  assert.deepEqual(await textsOf(gateway, other.id), ["other"]);
});

test("another owner's conversation gets the same error as one that does not exist", async () => {
  const gateway = make();
  const { id } = await gateway.conversations.create("a", { secret: "s" }, add(said("one")));
  const { conversations } = gateway;
  const [place] = await conversations.places("a", id);
  assert.ok(place);
  const attempts = (owner: string) => [
    () => conversations.read(owner, id),
    () => conversations.update(owner, id, {}),
    () => conversations.delete(owner, id),
    () => conversations.places(owner, id),
    () => conversations.append(owner, id, add(said("two")), signal),
    () => conversations.append(owner, id, add(), signal),
    () => conversations.removeItem(owner, id, place, signal),
  ];
  const unknown = { code: "not_found", message: `Conversation with id '${id}' not found.`, param: null };
  for (const attempt of attempts("b")) await assert.rejects(attempt, unknown);
  assert.deepEqual(await textsOf(gateway, id), ["one"]);
  await conversations.delete("a", id);
  for (const attempt of attempts("a")) await assert.rejects(attempt, unknown);
});

test("metadata is replaced, not merged", async () => {
  const { conversations } = make();
  const { id } = await conversations.create("a", { one: "1" }, add());
  assert.deepEqual((await conversations.update("a", id, { two: "2" })).metadata, { two: "2" });
  assert.deepEqual((await conversations.read("a", id)).metadata, { two: "2" });
});

test("deleting a conversation deletes its turns", async () => {
  const gateway = make();
  const { id } = await gateway.conversations.create("a", {}, add(said("one")));
  const turnId = await ask(gateway, id, said("two"));
  await gateway.conversations.delete("a", id);
  assert.equal(await gateway.recall("a", turnId), undefined);
});

test("items can be referenced instead of sent, if they belong to the owner", async () => {
  const gateway = make();
  const { id } = await gateway.conversations.create("a", {}, add(said("one")));
  const turnId = await ask(gateway, id, said("two"));
  const reference = { type: "reference", id: `msg_${turnId.slice("resp_".length)}0000` } as const;
  const addition = { turnId: newId("resp"), items: [reference] };
  const copy = await gateway.conversations.create("a", {}, addition);
  assert.deepEqual(await textsOf(gateway, copy.id), ["Hello"]);
  await assert.rejects(gateway.conversations.create("b", {}, addition), { code: "not_found", param: "items[0]" });
});

for (const [of, call, output] of exchanges) {
  test(`the output of ${of} is accepted only after its call`, async () => {
    const gateway = make();
    const { id } = await gateway.conversations.create("a", {}, add());
    const mismatch = { code: "tool_call_mismatch", param: "items" };
    await assert.rejects(gateway.conversations.append("a", id, add(output), signal), mismatch);
    await assert.rejects(gateway.conversations.create("a", {}, add(output, call)), mismatch);
    const others = exchanges.flatMap(([, other]) => (other === call ? [] : [other]));
    await assert.rejects(gateway.conversations.create("a", {}, add(...others, output)), mismatch);
    await gateway.conversations.append("a", id, add(call), signal);
    await gateway.conversations.append("a", id, add(output), signal);
    assert.deepEqual(await textsOf(gateway, id), [call.type, output.type]);
  });
}

test("an output is added to a long conversation without comparing its calls, though all have one id", async () => {
  const [, call, output] = exchanges[0]!;
  const calls = Array.from({ length: 5_000 }, (_, at) => ({ ...call, arguments: `{"at":${at}}` }) as Item);
  const gateway = make(hello, { maxItems: 10_000 });
  const started = worked();
  const { id } = await gateway.conversations.create("a", {}, add(...calls.flatMap((each) => [each, output])));
  const created = worked();
  for (let count = 0; count < 10; count += 1) await gateway.conversations.append("a", id, add(output), signal);
  assert.ok(worked() - created < 2 * (created - started));
});

test("too many items at once are refused", async () => {
  const gateway = make(hello, { maxItems: 2 });
  const three = add(said("one"), said("two"), said("three"));
  const refusal = { code: "too_many_messages", param: "items" };
  await assert.rejects(gateway.conversations.create("a", {}, three), refusal);
  const { id } = await gateway.conversations.create("a", {}, add());
  await assert.rejects(gateway.conversations.append("a", id, three, signal), refusal);
});

test("a conversation that exceeds its limit loses its oldest turns", async () => {
  const gateway = make(hello, { maxTurnsPerThread: 2 });
  const { id } = await gateway.conversations.create("a", {}, add(said("one")));
  for (const text of ["two", "three"]) await gateway.conversations.append("a", id, add(said(text)), signal);
  assert.deepEqual(await textsOf(gateway, id), ["two", "three"]);
});

test("a conversation that has too many characters loses its oldest turns, but never what is added", async () => {
  const gateway = make(hello, { maxCharactersPerThread: 1_000 });
  const { id } = await gateway.conversations.create("a", {}, add(said("one")));
  const [two, three] = ["two".padEnd(500, "."), "three".padEnd(2_000, ".")];
  for (const [text, left] of [
    [two, ["one", two]],
    ["new", ["one", two, "new"]],
    [two, ["new", two]],
    [three, [three]],
    ["last", ["last"]],
  ] as const) {
    await gateway.conversations.append("a", id, add(said(text)), signal);
    assert.deepEqual(await textsOf(gateway, id), left);
  }
});

test("a caller that disconnects while it waits adds nothing", async () => {
  const { gateway, id, answered, release } = await beginAnswer();
  const caller = new AbortController();
  const added = gateway.conversations.append("a", id, add(said("later")), caller.signal);
  caller.abort(new Error("gone"));
  await assert.rejects(added, /gone/);
  release();
  await answered;
  assert.deepEqual(await textsOf(gateway, id), ["question", "Hello"]);
});

test("only the item that the model was producing when it was cut off is incomplete", async () => {
  const gateway = make([[{ type: "reasoning", text: "hm" }, ...say("Hel"), { type: "finish", reason: "length" }]]);
  const { id } = await gateway.conversations.create("a", {}, add());
  await ask(gateway, id, said("question"));
  const places = await gateway.conversations.places("a", id);
  assert.deepEqual(
    places.map(({ isWhole }) => isWhole),
    [true, true, false],
  );
});

test("items can be added after one was deleted, and adding none changes nothing", async () => {
  const gateway = make();
  const { id } = await gateway.conversations.create("a", {}, add(said("one"), said("two")));
  const [first] = await gateway.conversations.places("a", id);
  await gateway.conversations.removeItem("a", id, first!, signal);
  const before = await store.readSession(id);
  assert.deepEqual(await gateway.conversations.append("a", id, add(), signal), []);
  assert.deepEqual(await store.readSession(id), before);
  await gateway.conversations.append("a", id, add(said("three")), signal);
  assert.deepEqual(await textsOf(gateway, id), ["two", "three"]);
});
