/** Packages that do not keep the AI SDK's specification: what they mean is understood, and the rest is their failure, not ours. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createAiSdk } from "./made.ts";
import type { Delta } from "../../src/core/delta.ts";
import { toGatewayError, type GatewayError } from "../../src/core/errors.ts";
import type { Turn } from "../../src/core/turn.ts";

const turn: Turn = {
  id: "resp_1",
  model: "model-1",
  items: [{ type: "message", role: "user", content: "Hello" }],
  settings: { tools: [] },
  stream: true,
};
const word = '{ type: "text-delta", id: "1", delta: "Hi" }';
const stop = 'finishReason: { unified: "stop", raw: "stop" }';

/** What a package tells whose model gives this, a JavaScript expression. */
async function hear(context: TestContext, given: string): Promise<{ told: Delta[]; failure?: GatewayError }> {
  const folder = mkdtempSync(join(tmpdir(), "portico-ai-sdk-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const home = join(folder, "node_modules", "odd");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), JSON.stringify({ name: "odd", type: "module", exports: "./index.js" }));
  const model = `{ specificationVersion: "v3", provider: "odd.chat", doStream: async () => (${given}) }`;
  writeFileSync(join(home, "index.js"), `export const createOdd = () => () => (${model});`);
  const told: Delta[] = [];
  try {
    const adapter = createAiSdk({ package: "odd" }, {}, folder);
    for await (const batch of adapter.stream(turn, new AbortController().signal)) told.push(...batch);
    return { told };
  } catch (thrown) {
    return { told, failure: toGatewayError(thrown) };
  }
}

/** Parts that come one by one, also those that `ReadableStream.from` would not take. */
const streamOf = (...parts: readonly string[]) =>
  `{ stream: new ReadableStream({ start(it) { for (const part of [${parts.join(", ")}]) it.enqueue(part); it.close(); } }) }`;

for (const part of [
  "null",
  "undefined",
  '"text"',
  '{ type: "text-delta", id: "1" }',
  '{ type: "reasoning-delta", delta: "hm" }',
  '{ type: "tool-input-start", id: "a" }',
  '{ type: "tool-call", toolCallId: "a", toolName: "look", input: { at: 1 } }',
]) {
  test(`a part like ${part} is no answer, and what was said before it is told before it`, async (context) => {
    const { told, failure } = await hear(context, streamOf(word, part, word, `{ type: "finish", ${stop} }`));
    assert.deepEqual(told, [{ type: "text", text: "Hi" }]);
    assert.equal(failure?.code, "adapter_protocol");
    assert.doesNotMatch(failure.message, /Cannot|undefined/);
  });
}

test("a model that gives no stream has not answered", async (context) => {
  for (const given of ["{}", "undefined", '{ stream: "Hi" }']) {
    assert.equal((await hear(context, given)).failure?.code, "adapter_protocol");
  }
});

test("an answer without a count of its tokens is an answer", async (context) => {
  const expected = [
    { type: "text", text: "Hi" },
    { type: "finish", reason: "stop" },
  ];
  for (const usage of ["undefined", "null", "{}", "{ inputTokens: NaN, outputTokens: NaN, totalTokens: NaN }"]) {
    const finish = `{ type: "finish", ${stop}, usage: ${usage} }`;
    const { told, failure } = await hear(context, streamOf('{ type: "stream-start" }', word, finish));
    assert.deepEqual([told, failure], [expected, undefined], usage);
  }
});

test("what cannot be a number of tokens counts as none", async (context) => {
  const usage = "{ inputTokens: { total: 3, cacheRead: NaN, cacheWrite: -1 }, outputTokens: { total: 1.5 } }";
  const { told } = await hear(context, streamOf(word, `{ type: "finish", ${stop}, usage: ${usage} }`));
  const counted = { inputTokens: 3, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  assert.deepEqual(told[1], { type: "usage", usage: counted });
});

test("a stream that ends without any reason has broken off", async (context) => {
  const { told, failure } = await hear(context, streamOf(word, '{ type: "finish" }'));
  assert.deepEqual(told, [{ type: "text", text: "Hi" }]);
  assert.equal(failure?.code, "adapter_protocol");
});
