/** Conversations that grow are sent as if each was written anew. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { writeRequest as writeChat } from "../../src/adapters/openai/chat/request.ts";
import { writeRequest as writeResponses } from "../../src/adapters/openai/responses/request.ts";
import { createWritten } from "../../src/adapters/openai/written.ts";
import type { Item, Message, Part } from "../../src/core/item.ts";
import type { Settings, Turn } from "../../src/core/turn.ts";
import { createOpenai } from "./made.ts";

const text = fc.constantFrom("", "Hi", 'say "é"', "👋");
const image: Part = { type: "image", url: "https://x.test/a.png" };
const content = fc.oneof(text, fc.constant([image]));
const extra = fc.constantFrom(undefined, { dialect: "chat" as const, fields: { cache: true } });
const kind = fc.constantFrom("function" as const, "custom" as const);
const callId = fc.constantFrom("a", "b");

const item: fc.Arbitrary<Item> = fc.oneof(
  fc.record({
    type: fc.constant("message" as const),
    role: fc.constantFrom("user" as const, "assistant" as const, "developer" as const),
    content,
    extra,
  }),
  fc.record({ type: fc.constant("tool-call" as const), kind, callId, name: callId, arguments: text }),
  fc.record({ type: fc.constant("tool-output" as const), kind, callId, output: content }),
  fc.record({
    type: fc.constant("reasoning" as const),
    summary: fc.constant([]),
    text,
    extra: fc.constantFrom(undefined, { dialect: "chat" as const, source: "s", fields: { signature: "x" } }),
  }),
);

const settings = fc.constantFrom<Settings>(
  { tools: [] },
  { tools: [], instructions: "Be brief." },
  // Its developer messages are sent as such, those of others as `system`.
  { tools: [], native: { dialect: "chat", fields: {} } },
);

/** Each turn says again what was said before, or some of it, and something new. */
const turn = fc.record({
  kept: fc.oneof(fc.constant(99), fc.nat(9)),
  /** What was said first comes anew with each request, and may be something else. */
  first: fc.constantFrom({}, {}, { extra: { dialect: "chat", fields: { seen: 1 } } } as const),
  added: fc.array(item, { maxLength: 4 }),
  settings,
});

const wires = {
  chat: (turn: Turn, written = createWritten()) => writeChat(turn, { written, sendsReasoning: true, source: "s" }),
  responses: (turn: Turn, written = createWritten()) => writeResponses(turn, undefined, { written }),
};

for (const [name, write] of Object.entries(wires)) {
  test(`on the ${name} wire a conversation is the same, whatever was written before`, () => {
    fc.assert(
      fc.property(fc.array(turn, { minLength: 2, maxLength: 6 }), (turns) => {
        const written = createWritten(0);
        let items: readonly Item[] = [];
        for (const [index, { kept, first, added, settings }] of turns.entries()) {
          const again = items.slice(0, kept).map((each, at) => (at === 0 ? { ...each, ...first } : each));
          items = [...again, ...added];
          const asked: Turn = { id: "resp_1", model: "m", items, settings, stream: index % 2 === 0 };
          assert.equal(write(asked, written).toString(), write(asked).toString());
        }
      }),
      { numRuns: 300 },
    );
  });

  test(`on the ${name} wire only what is new is written`, () => {
    const written = createWritten();
    const said = Array.from({ length: 200 }, (_, index) => counted(index));
    /** Instructions come anew with each request. */
    const ask = (length: number, changed: Partial<Message> = {}) => {
      looks = 0;
      const first: Message = { type: "message", role: "developer", content: "Be brief.", ...changed };
      const items = [first, ...said.slice(0, length)];
      write({ id: "resp_1", model: "m", items, settings: { tools: [] }, stream: false }, written);
      return looks;
    };
    assert.ok(ask(180) >= 180);
    // Only now it is known that the conversation comes again.
    assert.ok(ask(183) >= 183);
    assert.ok(ask(187) < 20, `${looks} looks`);
    assert.ok(ask(187) < 20, `${looks} looks`);
    const extra = { dialect: "chat", fields: { seen: 1 } } as const;
    for (const changed of [{ content: "Be kind." }, { role: "user" as const }, { name: "boss" }, { extra }]) {
      assert.ok(ask(187, changed) >= 187, JSON.stringify(changed));
      for (let again = 0; again < 3; again += 1) ask(187);
    }
  });
}

for (const [name, write] of Object.entries(wires)) {
  test(`on the ${name} wire a conversation counts with all that its items have, written or not`, () => {
    const written = createWritten();
    const dialect = name === "chat" ? "responses" : "chat";
    const ask = (note: unknown) => {
      const items: Item[] = [
        { type: "message", role: "user", content: "Hi", extra: { dialect, fields: { note } } },
        ...Array.from({ length: 100 }, (_, index) => counted(index)),
      ];
      const asked: Turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream: false };
      return [1, 2, 3].map(() => {
        looks = 0;
        write(asked, written);
        return looks;
      });
    };
    // Only once it is examined whether there is room for it.
    const notKept = [100, 300, 100];
    assert.deepEqual(ask("x".repeat(16 * 1024 * 1024)), notKept);
    // These take more memory than their JSON has characters.
    assert.deepEqual(ask("語".repeat(8 * 1024 * 1024)), notKept);
    assert.deepEqual(ask(Array.from({ length: 300_000 }, () => ({}))), notKept);
    assert.deepEqual(ask(Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`key ${at}`, at]))), notKept);
    assert.deepEqual(ask("x"), [100, 300, 0]);
  });
}

test("calls of custom tools that are written as functions are not written again", () => {
  const written = createWritten();
  const items: readonly Item[] = [
    { type: "tool-call", kind: "custom", callId: "a", name: "shell", arguments: "ls" },
    { type: "tool-output", kind: "custom", callId: "a", output: "" },
    ...Array.from({ length: 100 }, (_, index) => counted(index)),
  ];
  const asked: Turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream: false };
  const allLooks = [1, 2, 3].map(() => {
    looks = 0;
    writeChat(asked, { written, customTools: "function" });
    return looks;
  });
  assert.deepEqual(allLooks, [100, 300, 0]);
});

test("there is room for two conversations of 20,000 short messages", () => {
  const written = createWritten();
  for (const items of [0, 1].map(() => Array.from({ length: 20_000 }, (_, index) => counted(index, 10)))) {
    for (let requests = 0; requests < 3; requests += 1) {
      looks = 0;
      wires.chat({ id: "resp_1", model: "m", items, settings: { tools: [] }, stream: false }, written);
    }
    assert.equal(looks, 0);
  }
});

test("a short conversation is not remembered, however long its instructions and tools are", () => {
  const written = createWritten();
  const items = [counted(0), counted(1), counted(2)];
  const settings = { tools: [], instructions: "x".repeat(20_000) };
  for (let requests = 0; requests < 3; requests += 1) {
    looks = 0;
    wires.chat({ id: "resp_1", model: "m", items, settings, stream: false }, written);
    assert.ok(looks >= 3, `${looks} looks`);
  }
});

test("an adapter that is closed forgets what it has sent", async () => {
  const adapter = createOpenai({ base_url: "http://127.0.0.1:1" }, {});
  const items = Array.from({ length: 100 }, (_, index) => counted(index));
  const ask = async () => {
    looks = 0;
    const asked: Turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream: false };
    await assert.rejects(Array.fromAsync(adapter.stream(asked, AbortSignal.abort())));
    return looks;
  };
  await ask();
  await ask();
  assert.equal(await ask(), 0);
  await adapter.close?.();
  assert.ok((await ask()) >= 100, `${looks} looks`);
});

let looks = 0;

/** A message that counts how often it is read. */
function counted(index: number, words = 100): Item {
  return {
    type: "message",
    role: index % 2 === 0 ? "user" : "assistant",
    get content() {
      looks += 1;
      return `${index} `.repeat(words);
    },
  };
}
