/** Much of something in one turn or one answer: an adapter takes a time that grows with it, and lets others go on meanwhile. */
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

/** What takes longer looks at all of something for each of something else. */
const boundMs = 2_000;

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** The longest that anybody else had to wait for the thread's own work while the echo answered, in ms. */
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
    "a long word in which a tool's name stands over and over",
    "xa".repeat(100_000),
    many(4_000, (index) => ({ type: "function", name: `a${"-".repeat(index % 2)}` })),
  ],
  ["a text that asks for 600 calls", "CALL f\n".repeat(600), [{ type: "function", name: "f", parameters: wide(100) }]],
];

for (const [what, text, tools] of texts) {
  test(`the echo lets others go on: ${what}`, async () => {
    let waited = await longestWait(text, tools);
    // A collection of garbage may fall into one try; work that holds others up falls into each.
    for (let again = 0; again < 2 && waited >= 400; again++) waited = Math.min(waited, await longestWait(text, tools));
    assert.ok(waited < 400, `somebody waited for ${Math.round(waited)} ms`);
  });
}

const refusal = { code: "adapter_bad_request", message: "The JSON Schema is too large for the echo adapter." };
const plain = { optional: false, told: new Map<string, string>() };

test("a schema with thousands of properties has its sample in no time", () => {
  const since = worked();
  assert.equal(Object.keys(makeSample(wide(6_000), plain) as object).length, 6_000);
  assert.ok(worked() - since < boundMs);
});

const schemas: readonly (readonly [what: string, make: () => JsonSchema])[] = [
  ["more properties than can be made", () => wide(100_000)],
  [
    "parts without number that must hold together",
    () => ({ allOf: many(100_000, (index) => ({ required: [`p${index}`] })) }),
  ],
  [
    "parts that make each other longer",
    () => ({ allOf: many(99, (part) => ({ required: many(2_500, (n) => `${part} ${n}`) })) }),
  ],
  [
    "a chain of references without end",
    () => ({
      $ref: "#/$defs/d0",
      $defs: Object.fromEntries(many(20_000, (index) => [`d${index}`, { $ref: `#/$defs/d${index + 1}` }])),
    }),
  ],
];

for (const [what, make] of schemas) {
  test(`a schema is refused at once for its length: ${what}`, () => {
    const schema = make();
    const since = worked();
    assert.throws(() => makeSample(schema, plain), refusal);
    assert.ok(worked() - since < boundMs);
  });
}

test("an upstream that makes very many calls in one answer is heard in no time", () => {
  const deltas: Delta[] = [];
  const reader = createCallReader(() => false);
  const since = worked();
  for (const id of many(60_000, (index) => `call_${index}`)) {
    reader.accept({ id, type: "function", function: { name: "f", arguments: "{}" } }, deltas);
  }
  assert.ok(worked() - since < boundMs);
  assert.equal(deltas.filter(({ type }) => type === "tool-call").length, 60_000);
});

const limits = { maxBytes: 1_000, timeoutMs: 1_000, allowPrivate: false };

test("a message, or what a tool gave back, may have any number of parts", () => {
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

test("a request that names its pictures over and over is looked through once for all that are fetched", async () => {
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
