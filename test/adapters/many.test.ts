/**
 * Very much of something in one turn or one answer: an adapter takes linear time, and does not block the event loop.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as breathe } from "node:timers/promises";
import { makeSample } from "../../src/adapters/echo/sample.ts";
import { createEcho } from "./made.ts";
import { fetchFiles } from "../../src/adapters/ai-sdk/media.ts";
import { writePrompt } from "../../src/adapters/ai-sdk/prompt.ts";
import { createCallReader } from "../../src/adapters/openai/chat/calls.ts";
import type { Delta } from "../../src/core/delta.ts";
import type { Item, Part } from "../../src/core/item.ts";
import type { JsonSchema, Tool } from "../../src/core/turn.ts";
import { worked } from "../worked.ts";

/** Quadratic work takes longer. */
const boundMs = 2_000;

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** The longest time in ms for which echo's work blocked the event loop while it answered. */
async function longestWait(content: string, tools: readonly Tool[]): Promise<number> {
  const turn = { id: "resp_1", model: "echo", settings: { tools }, stream: true };
  const items = [{ type: "message", role: "user", content }] as const;
  let longest = 0;
  const over = new AbortController();
  const waiting = (async () => {
    while (!over.signal.aborted) {
      const since = worked();
      await breathe();
      longest = Math.max(longest, worked() - since);
    }
  })();
  const said = createEcho({}).stream({ ...turn, items }, new AbortController().signal);
  for await (const _ of said) continue;
  over.abort();
  await waiting;
  return longest;
}

const wide = (count: number): JsonSchema => ({
  type: "object",
  properties: Object.fromEntries(many(count, (index) => [`p${index}`, { type: "string" }])),
  required: many(count, (index) => `p${index}`),
  additionalProperties: false,
});

const texts: readonly (readonly [what: string, text: string, tools: readonly Tool[]])[] = [
  [
    "a long text that might name one of 4,000 tools",
    "f1 ".repeat(500_000),
    many(4_000, (index) => ({ type: "function", name: `f${index}_` })),
  ],
  [
    "a long word that contains a tool's name many times",
    "xa".repeat(100_000),
    many(4_000, (index) => ({ type: "function", name: `a${"-".repeat(index % 2)}` })),
  ],
  ["a text that asks for 600 calls", "CALL f\n".repeat(600), [{ type: "function", name: "f", parameters: wide(100) }]],
];

for (const [what, text, tools] of texts) {
  test(`echo does not block the event loop: ${what}`, async () => {
    let waited = await longestWait(text, tools);
    // Garbage collection may fall into one try; blocking work falls into each.
    for (let again = 0; again < 2 && waited >= 400; again++) waited = Math.min(waited, await longestWait(text, tools));
    assert.ok(waited < 400, `the event loop was blocked for ${Math.round(waited)} ms`);
  });
}

const refusal = { code: "adapter_bad_request", message: "The JSON Schema is too large for the echo adapter." };
const plain = { optional: false, told: new Map<string, string>() };

test("a sample of a schema with thousands of properties is made in linear time", () => {
  const since = worked();
  assert.equal(Object.keys(makeSample(wide(6_000), plain) as object).length, 6_000);
  assert.ok(worked() - since < boundMs);
});

const schemas: readonly (readonly [what: string, make: () => JsonSchema])[] = [
  ["more properties than can be made", () => wide(100_000)],
  ["100,000 parts in allOf", () => ({ allOf: many(100_000, (index) => ({ required: [`p${index}`] })) })],
  [
    "parts of allOf that grow when merged",
    () => ({ allOf: many(99, (part) => ({ required: many(2_500, (n) => `${part} ${n}`) })) }),
  ],
  [
    "a very long chain of references",
    () => ({
      $ref: "#/$defs/d0",
      $defs: Object.fromEntries(many(20_000, (index) => [`d${index}`, { $ref: `#/$defs/d${index + 1}` }])),
    }),
  ],
];

for (const [what, make] of schemas) {
  test(`a schema that is too large is refused at once: ${what}`, () => {
    const schema = make();
    const since = worked();
    assert.throws(() => makeSample(schema, plain), refusal);
    assert.ok(worked() - since < boundMs);
  });
}

test("very many calls in one answer are read in linear time", () => {
  const deltas: Delta[] = [];
  const reader = createCallReader(
    (delta) => deltas.push(delta),
    () => false,
  );
  const since = worked();
  for (const id of many(60_000, (index) => `call_${index}`)) {
    reader.accept({ id, type: "function", function: { name: "f", arguments: "{}" } });
  }
  assert.ok(worked() - since < boundMs);
  assert.equal(deltas.filter(({ type }) => type === "tool-call").length, 60_000);
});

const limits = { maxBytes: 1_000, timeoutMs: 1_000, allowPrivate: false };

test("a message, or a tool's output, may have any number of parts", () => {
  const count = 200_000;
  const texts = many(count, (): Part => ({ type: "text", text: "word" }));
  const pictures = many(count, (): Part => ({ type: "image", url: "data:image/png;base64,AA==" }));
  const items: readonly Item[] = [
    { type: "message", role: "assistant", content: texts },
    { type: "tool-call", kind: "function", callId: "c1", name: "look", arguments: "{}" },
    { type: "tool-output", kind: "function", callId: "c1", output: pictures },
  ];
  const lengths = writePrompt(undefined, items, limits).map(({ content }) => content.length);
  assert.deepEqual(lengths, [count + 1, 1, count + 1]);
});

test("a request that repeats its image URLs is searched once for all of them", async () => {
  const urls = many(200, (index) => `http://127.0.0.1/${index}.png`);
  const content = [...urls, ...many(60_000, () => urls[0])].map((url) => ({ type: "image", url }) as const);
  const items: readonly Item[] = [{ type: "message", role: "user", content }];
  const prompt = writePrompt(undefined, items, limits);
  const rules = { ...limits, isEnabled: false, maxCount: 200 };
  const since = worked();
  const { part } = await fetchFiles(prompt, items, {}, rules, () => {}, new AbortController().signal).then(
    () => assert.fail("nothing may be fetched"),
    (thrown: { readonly part: unknown }) => thrown,
  );
  assert.ok(worked() - since < boundMs, `it took ${Math.round(worked() - since)} ms`);
  assert.equal(part, content.at(-1));
});
