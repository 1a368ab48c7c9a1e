/**
 * Packages that do not follow the AI SDK's specification: small deviations are tolerated, the rest fails as the
 * package's error.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { installPackage } from "./ai-sdk-package.ts";
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

/** The deltas and the failure of a package whose model returns this JavaScript expression. */
async function collect(context: TestContext, given: string): Promise<{ emitted: Delta[]; failure?: GatewayError }> {
  const model = `{ specificationVersion: "v3", provider: "odd.chat", doStream: async () => (${given}) }`;
  const folder = installPackage(context, "odd", `export const createOdd = () => () => (${model});`);
  const emitted: Delta[] = [];
  try {
    const adapter = createAiSdk({ package: "odd" }, {}, folder);
    for await (const batch of adapter.stream(turn, new AbortController().signal)) emitted.push(...batch);
    return { emitted };
  } catch (thrown) {
    return { emitted, failure: toGatewayError(thrown) };
  }
}

/** A stream of these parts, including those that `ReadableStream.from` would not accept. */
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
  test(`the part ${part} fails the answer after the text before it was emitted`, async (context) => {
    const { emitted, failure } = await collect(context, streamOf(word, part, word, `{ type: "finish", ${stop} }`));
    assert.deepEqual(emitted, [{ type: "text", text: "Hi" }]);
    assert.equal(failure?.code, "adapter_protocol");
    assert.doesNotMatch(failure.message, /Cannot|undefined/);
  });
}

test("a model that returns no stream fails with adapter_protocol", async (context) => {
  for (const given of ["{}", "undefined", '{ stream: "Hi" }']) {
    assert.equal((await collect(context, given)).failure?.code, "adapter_protocol");
  }
});

for (const [source, why] of [
  ["export const makeOdd = () => ({});", /No function's name begins with 'create'/],
  ["export const createOdd = () => ({});", /does not provide language models/],
  ["export const createOdd = () => undefined;", /does not provide language models/],
  ["export const createOdd = () => () => ({});", /does not provide language models/],
  ["export const createOdd = () => () => null;", /does not provide language models/],
  ["export const createOdd = () => () => ({ doStream() {} });", /implements version undefined/],
] as const) {
  test(`a package with '${source}' is refused by its name`, async (context) => {
    const adapter = createAiSdk({ package: "odd" }, {}, installPackage(context, "odd", source));
    const failure = await Array.fromAsync(adapter.stream(turn, new AbortController().signal)).catch(toGatewayError);
    assert.ok(!Array.isArray(failure));
    assert.equal(failure.code, "adapter_error");
    assert.match(failure.message, /'odd'/);
    assert.match(failure.message, why);
  });
}

test("an answer without token counts is complete", async (context) => {
  const expected = [
    { type: "text", text: "Hi" },
    { type: "finish", reason: "stop" },
  ];
  for (const usage of ["undefined", "null", "{}", "{ inputTokens: NaN, outputTokens: NaN, totalTokens: NaN }"]) {
    const finish = `{ type: "finish", ${stop}, usage: ${usage} }`;
    const { emitted, failure } = await collect(context, streamOf('{ type: "stream-start" }', word, finish));
    assert.deepEqual([emitted, failure], [expected, undefined], usage);
  }
});

test("an invalid token count is read as 0", async (context) => {
  const usage = "{ inputTokens: { total: 3, cacheRead: NaN, cacheWrite: -1 }, outputTokens: { total: 1.5 } }";
  const { emitted } = await collect(context, streamOf(word, `{ type: "finish", ${stop}, usage: ${usage} }`));
  const counted = { inputTokens: 3, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };
  assert.deepEqual(emitted[1], { type: "usage", usage: counted });
});

test("tokens that a package counts only in the total were written by the model", async (context) => {
  const usage = "{ inputTokens: 12, outputTokens: 1, reasoningTokens: 386, totalTokens: 399 }";
  const { emitted } = await collect(context, streamOf(word, `{ type: "finish", ${stop}, usage: ${usage} }`));
  const counted = { inputTokens: 12, cachedTokens: 0, outputTokens: 387, reasoningTokens: 386 };
  assert.deepEqual(emitted[1], { type: "usage", usage: counted });
});

test("a stream that ends without a finish reason is incomplete", async (context) => {
  const { emitted, failure } = await collect(context, streamOf(word, '{ type: "finish" }'));
  assert.deepEqual(emitted, [{ type: "text", text: "Hi" }]);
  assert.equal(failure?.code, "adapter_protocol");
});
