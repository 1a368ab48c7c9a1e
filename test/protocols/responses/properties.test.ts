/** What holds for every answer, whatever the adapter says and however it is cut into batches. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Delta } from "../../../src/core/delta.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { checkStream } from "../grammar.ts";
import { play } from "./script.ts";

const text = fc.string({ unit: "grapheme", maxLength: 6 });
const index = fc.nat(2);

const delta: fc.Arbitrary<Delta> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("text" as const), text }) },
  fc.record({ type: fc.constant("text" as const), text, logprobs: fc.constant([{ token: "t", logprob: -1 }]) }),
  fc.record({ type: fc.constant("refusal" as const), text }),
  { weight: 2, arbitrary: fc.record({ type: fc.constant("reasoning" as const), text }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("reasoning" as const), text, summary: fc.constant(0) }) },
  fc.record({ type: fc.constant("reasoning-seal" as const), encrypted: text }),
  fc.record({
    type: fc.constant("tool-call" as const),
    index,
    name: fc.constantFrom("f", 'g"'),
    kind: fc.constantFrom("function" as const, "custom" as const),
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("tool-arguments" as const),
      index,
      text: fc.constantFrom("{", "}", '"a":1', "{}"),
    }),
  },
  fc.record({
    type: fc.constant("finish" as const),
    reason: fc.constantFrom("stop", "length", "content-filter", "tool-calls"),
  }),
  fc.record({
    type: fc.constant("usage" as const),
    usage: fc.record({
      inputTokens: fc.nat(),
      cachedTokens: fc.nat(),
      outputTokens: fc.nat(),
      reasoningTokens: fc.nat(),
    }),
  }),
);
const batches = fc.array(fc.array(delta, { maxLength: 6 }), { maxLength: 6 });
const body = fc.constantFrom({}, { include: ["reasoning.encrypted_content"] });

test("every stream is well formed, and ends with the very object that the whole answer is", async () => {
  await fc.assert(
    fc.asyncProperty(batches, body, async (batches, body) => {
      const { stream, whole } = await play(batches, body);
      assert.deepEqual(checkStream(stream).response, whole());
    }),
    { numRuns: 300 },
  );
});

test("a stream that fails anywhere is well formed, and ends once", async () => {
  const failure = new GatewayError("adapter_error", "It broke.");
  await fc.assert(
    fc.asyncProperty(batches, async (batches) => {
      const told: Delta[][] = [[{ type: "text", text: "a" }], ...batches];
      const { stream } = await play(told, {}, failure);
      assert.equal(checkStream(stream).response.error?.code, "server_error");
    }),
    { numRuns: 200 },
  );
});

test("how the answer is cut into batches changes nothing of what is told", async () => {
  await fc.assert(
    fc.asyncProperty(batches, async (batches) => {
      const { stream } = await play(batches);
      const { stream: atOnce } = await play([batches.flat()]);
      assert.equal(stream, atOnce);
    }),
    { numRuns: 100 },
  );
});
