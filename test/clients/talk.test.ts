/** Turns that a program starts itself, for channels other than HTTP, in the sessions that HTTP clients share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tellWell } from "../harness/client.ts";
import { createModel, openGateway, repeatLast, say, seenBy, shareGateway, usage } from "../harness/house.ts";

const open = shareGateway();

/** The shared gateway; its model repeats what is said to it. */
async function openRepeating() {
  const portico = await open();
  portico.model.script = repeatLast;
  return portico;
}

type Message = Parameters<Awaited<ReturnType<typeof open>>["talk"]>[0];

test("a channel and HTTP continue the same conversation by its name", async () => {
  const portico = await openRepeating();
  const first = await portico.talk({ session: "room-1", content: "one" });
  assert.equal(first.about.history, "new");
  assert.equal(await first.text(), "re: one");
  const { headers } = await tellWell(portico.address, {
    on: "responses",
    say: "two",
    headers: { "x-session-id": "room-1" },
  });
  assert.equal(headers.get("x-portico-history"), "continued");
  assert.equal(headers.get("x-portico-session"), first.about.session);
  const third = await portico.talk({ session: "room-1", content: "three" });
  assert.deepEqual([third.about.history, third.about.contextItems, await third.text()], ["continued", 5, "re: three"]);
  assert.deepEqual(seenBy(portico.model.turns.at(-1)), [
    "user: one",
    "assistant: re: one",
    "user: two",
    "assistant: re: two",
    "user: three",
  ]);
});

test("an answer is received piece by piece, once, and as one text", async () => {
  const portico = await openRepeating();
  portico.model.script = [say("one "), say("two "), say("three")];
  const talk = await portico.talk({ content: "hi" });
  assert.deepEqual(await Array.fromAsync(talk), ["one ", "two ", "three"]);
  await assert.rejects(talk.text(), TypeError);
  assert.equal(await (await portico.talk({ content: "hi" })).text(), "one two three");
});

test("a message without a session is not remembered, and another owner's session is another one", async () => {
  const portico = await openRepeating();
  const alone = await portico.talk({ content: "one" });
  assert.deepEqual([alone.about.history, await alone.text()], ["stateless", "re: one"]);
  await (await portico.talk({ session: "owned", content: "one" })).text();
  const other = await portico.talk({ session: "owned", owner: "bot", content: "two" });
  assert.deepEqual([other.about.history, await other.text()], ["new", "re: two"]);
  assert.deepEqual(seenBy(portico.model.turns.at(-1)), ["user: two"]);
});

test("instructions, parts and fields that are null reach the model as they should", async () => {
  const portico = await openRepeating();
  const content = [
    { type: "text", text: "What is this?" },
    { type: "image", url: "https://a.example/b.png", detail: "low" },
  ] as const;
  await (await portico.talk({ content, instructions: "Be brief." })).text();
  assert.deepEqual(seenBy(portico.model.turns.at(-1)), ["instructions: Be brief.", "user: What is this?[image]"]);
  const none = { session: null, owner: null, model: null, instructions: null, signal: null };
  const talk = await portico.talk({ content: "hi", ...none } as unknown as Message);
  assert.deepEqual([talk.about.history, await talk.text()], ["stateless", "re: hi"]);
});

const wrong: readonly (readonly [field: string, message: unknown])[] = [
  ["message", undefined],
  ["message.content", {}],
  ["message.content", { content: null }],
  ["message.content", { content: 42 }],
  ["message.content[1]", { content: [{ type: "text", text: "a" }, "b"] }],
  ["message.content[0].text", { content: [{ type: "text" }] }],
  ["message.content[0].type", { content: [{ type: "image_url" }] }],
  ["message.content[0].url", { content: [{ type: "image", url: {} }] }],
  ["message.session", { content: "a", session: 42 }],
  ["message.owner", { content: "a", owner: {} }],
  ["message.model", { content: "a", model: "" }],
  ["message.instructions", { content: "a", instructions: ["b"] }],
  ["message.signal", { content: "a", signal: 1_000 }],
];
for (const [field, message] of wrong) {
  test(`a message is refused by the name of its wrong field: ${JSON.stringify(message)}`, async () => {
    const portico = await openRepeating();
    const asked = portico.model.turns.length;
    await assert.rejects(portico.talk(message as Message), { param: field });
    assert.equal(portico.model.turns.length, asked);
  });
}

test("a message without a model uses the first that is listed, or the adapter's name where none is", async (context) => {
  const portico = await openRepeating();
  const listed = await portico.talk({ content: "hi" });
  assert.deepEqual([listed.about.model, await listed.text()], ["scripted", "re: hi"]);
  const { stream } = createModel().adapter;
  const bare = await openGateway(context, { given: { agent: { stream } }, gateway: { adapters: {} } });
  const named = await bare.talk({ content: "hi" });
  assert.deepEqual([named.about.model, await named.text()], ["agent", "re: hi"]);
});

/** How a caller may leave a turn that says one word and then no more. */
const leavings: Record<string, (talk: AsyncIterable<string>, caller: AbortController) => Promise<unknown>> = {
  "stops reading": async (talk) => {
    for await (const piece of talk) return piece;
    return undefined;
  },
  "returns before the first piece": async (talk) => talk[Symbol.asyncIterator]().return?.(),
  "gives a signal while it reads": async (talk, caller) => {
    await assert.rejects(
      async () => {
        for await (const _ of talk) caller.abort();
      },
      { code: "cancelled" },
    );
  },
  "gives a signal before it reads": async (talk, caller) => {
    caller.abort();
    await assert.rejects(Array.fromAsync(talk), { code: "cancelled" });
  },
};
for (const [how, leave] of Object.entries(leavings)) {
  test(`a caller that ${how} leaves the session as it was, and holds nobody up`, async () => {
    const portico = await openRepeating();
    const session = `leaves: ${how}`;
    portico.model.script = async function* (_, signal) {
      yield say("one ");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    };
    const caller = new AbortController();
    await leave(await portico.talk({ session, content: "hi", signal: caller.signal }), caller);
    portico.model.script = repeatLast;
    const next = await portico.talk({ session, content: "two" });
    assert.deepEqual([next.about.contextItems, await next.text()], [1, "re: two"]);
  });
}

test("a failure is thrown with its code after the pieces before it, and logged with its cause under the turn's id", async () => {
  const portico = await openRepeating();
  portico.model.script = async function* () {
    yield say("one ");
    throw new Error("out of order");
  };
  const talk = await portico.talk({ content: "hi" });
  const pieces: string[] = [];
  await assert.rejects(
    async () => {
      for await (const piece of talk) pieces.push(piece);
    },
    { code: "adapter_error" },
  );
  assert.deepEqual(pieces, ["one "]);
  const cause = portico.logged.findLast(({ level }) => level === "error");
  assert.equal(cause?.fields["turnId"], talk.about.id);
  assert.match(String(cause?.fields["err"]), /out of order/);
});

test("a message has its line in the log, with its owner and its usage", async () => {
  const portico = await openRepeating();
  portico.model.script = [say("well"), [{ type: "usage", usage }]];
  const talk = await portico.talk({ session: "logged", owner: "ann", content: "hi" });
  await talk.text();
  const { fields } = portico.logged.findLast(({ fields }) => fields["turnId"] === talk.about.id) ?? {};
  const { owner, model, session, history, inputTokens, outputTokens } = fields ?? {};
  assert.deepEqual(
    { owner, model, session, history, inputTokens, outputTokens },
    { owner: "ann", model: "scripted", session: talk.about.session, history: "new", inputTokens: 3, outputTokens: 2 },
  );
});

test("what a channel reads for longer than a closing gateway waits is cancelled", async (context) => {
  const portico = await openGateway(context, { limits: { drain_timeout_ms: 50 } });
  portico.model.script = async function* (_, signal) {
    yield say("one ");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  const talk = await portico.talk({ session: "s", content: "hi" });
  const text = assert.rejects(talk.text(), { code: "draining" });
  await portico.close();
  await text;
});
