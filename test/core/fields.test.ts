import assert from "node:assert/strict";
import { test } from "node:test";
import { gatherFields } from "../../src/core/fields.ts";

type Fields = Readonly<Record<string, unknown>>;

function gather(...pieces: readonly Fields[]): Fields | undefined {
  const gathered = gatherFields(true);
  for (const fields of pieces) gathered.add({ dialect: "chat", fields });
  return gathered.toExtra()?.fields;
}

const details = (...entries: readonly Fields[]) => ({ reasoning_details: entries });
const text = { type: "reasoning.text", format: "anthropic-claude-v1", index: 0 };

test("lists grow, and of anything else the last value counts", () => {
  assert.equal(gather(), undefined);
  const [cat, dog] = [
    { type: "image_url", index: 0 },
    { type: "image_url", index: 0 },
  ];
  assert.deepEqual(gather({ images: [cat], id: 1 }, { images: [dog], id: 2 }), { images: [cat, dog], id: 2 });
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

test("reasoning is told apart by its index, or by its signature", () => {
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
  const gathered = gatherFields(true);
  for (let index = 0; index < 100_000; index += 1)
    gathered.add({ dialect: "chat", fields: details({ ...text, index: index % 1000, text: "word " }) });
  const entries = Array.from({ length: 1000 }, (_, index) => ({ ...text, index, text: "word ".repeat(100) }));
  assert.deepEqual(gathered.toExtra()?.fields, details(...entries));
});
