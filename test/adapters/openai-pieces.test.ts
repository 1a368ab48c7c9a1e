/** How the openai adapter puts together what signs a model's reasoning. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gatherPieces } from "../../src/adapters/openai/chat/pieces.ts";
import { createReplyReader } from "../../src/adapters/openai/chat/reply.ts";
import type { Delta } from "../../src/core/delta.ts";
import { chunk } from "../upstream.ts";

type Fields = Readonly<Record<string, unknown>>;

function gather(...pieces: readonly Fields[]): Fields {
  const gathered = gatherPieces();
  for (const fields of pieces) gathered.add(fields);
  return gathered.toFields();
}

/** The types of the deltas, and what signs the reasoning. */
function read(...messages: readonly Fields[]): readonly (string | Fields)[] {
  const toShort = (delta: Delta) => (delta.type === "reasoning-extra" ? delta.extra.fields : delta.type);
  const reader = createReplyReader(String);
  const lines = [...messages.map((delta) => chunk(delta)), chunk({}, "stop")].map((event) => JSON.stringify(event));
  const deltas = reader.read([Buffer.from([...lines, "[DONE]"].map((line) => `data: ${line}\n\n`).join(""))]);
  reader.check();
  return deltas.map(toShort);
}

const details = (...entries: readonly Fields[]) => ({ reasoning_details: entries });
const text = { type: "reasoning.text", format: "anthropic-claude-v1", index: 0 };

test("what signs reasoning is told once before what follows it, and what comes later at the end", () => {
  const hm = (more: Fields) => ({ reasoning: "Hm. ", ...details({ ...text, ...more }) });
  const [one, two, late] = [{ text: "Hm. " }, { text: "Hm.", signature: "c2ln" }, { type: "late", data: "AAAA" }];
  const whole = details({ ...text, text: "Hm. Hm.", signature: "c2ln" });
  const call = { tool_calls: [{ index: 0, id: "call_1", function: { name: "look", arguments: "{}" } }] };
  const begun = ["reasoning", "reasoning", whole];
  for (const [next, said] of [
    [{ content: "Yes" }, "text"],
    [{ refusal: "No" }, "refusal"],
  ] as const)
    assert.deepEqual(read(hm(one), hm(two), next, { ...next, ...details(late) }), [
      ...begun,
      said,
      said,
      "finish",
      details(late),
    ]);
  const called = [...begun, "tool-call", "tool-arguments", "finish", details(late)];
  assert.deepEqual(read(hm(one), hm(two), call, details(late)), called);
});

test("what signs reasoning is told early if it is too much to hold, so that it counts towards the answer's length", () => {
  const piece = JSON.stringify(chunk(details({ ...text, text: "x".repeat(6 * 1024 * 1024) })));
  const toldAfterEach = { 1: [0, 0, 1, 0], 2: [0, 1, 0, 1], 128: [1, 1, 1, 0] };
  for (const [choices, expected] of Object.entries(toldAfterEach)) {
    const reader = createReplyReader(String, undefined, Number(choices));
    const read = (data: string) => reader.read([Buffer.from(`data: ${data}\n\n`)]);
    const told = [piece, piece, piece, "[DONE]"].map((data) => read(data).map(({ type }) => type));
    assert.deepEqual(
      told,
      expected.map((count) => Array(count).fill("reasoning-extra")),
    );
  }
});

test("reasoning that comes a few words at a time is one entry, signed as a whole", () => {
  const whole = details({ ...text, text: "Let me compute.", signature: "c2ln" });
  const pieces = [details({ ...text, text: "Let" }), details({ ...text, text: " me compute." })];
  const signature = details({ ...text, signature: "c2ln" });
  assert.deepEqual(gather(...pieces, signature), whole);
  assert.deepEqual(gather(whole), whole);
  assert.deepEqual(gather(...pieces, details({ type: "other", index: 1 }), signature), {
    reasoning_details: [...whole.reasoning_details, { type: "other", index: 1 }],
  });
});

test("reasoning is told apart by its type, by its index, or by its signature", () => {
  const [said, sum] = [{ text: "Hm." }, { type: "reasoning.summary", summary: "So." }];
  assert.deepEqual(gather(details(said), details(sum)), details(said, sum));
  const second = { ...text, index: 1, text: "Then" };
  assert.deepEqual(gather(details({ ...text, text: "First" }), details(second), details({ ...second, text: "!" })), {
    reasoning_details: [
      { ...text, text: "First" },
      { ...second, text: "Then!" },
    ],
  });
  const block = (thinking: string, signature: string) => ({
    thinking_blocks: [{ type: "thinking", thinking, signature }],
  });
  const [first, next] = [block("One.", "1"), block("Two.", "2")];
  const blocks = { thinking_blocks: [...first.thinking_blocks, ...next.thinking_blocks] };
  assert.deepEqual(gather(block("On", ""), block("e.", ""), block("", "1"), block("Two.", ""), block("", "2")), blocks);
  // Some servers repeat all words with the signature.
  assert.deepEqual(gather(block("On", ""), block("e.", ""), first, block("Two.", ""), next), blocks);
  assert.deepEqual(gather(blocks), blocks);
});

test("what is encrypted is never joined", () => {
  const encrypted = { type: "reasoning.encrypted", index: 0, data: "AAAA" };
  assert.deepEqual(gather(details(encrypted), details({ ...encrypted, data: "BBBB" })), {
    reasoning_details: [encrypted, { ...encrypted, data: "BBBB" }],
  });
  const [open, hidden] = [{ text: "Hm." }, { data: "AAAA" }];
  assert.deepEqual(gather(details(open), details(hidden)), details(open, hidden));
});

test("a hundred thousand pieces are gathered at once", () => {
  const gathered = gatherPieces();
  for (let index = 0; index < 100_000; index += 1)
    gathered.add(details({ ...text, index: index % 1000, text: "word " }));
  const entries = Array.from({ length: 1000 }, (_, index) => ({ ...text, index, text: "word ".repeat(100) }));
  assert.deepEqual(gathered.toFields(), details(...entries));
});
