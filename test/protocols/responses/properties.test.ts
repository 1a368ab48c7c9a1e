/** Properties of every answer, whatever the adapter emits and however it is divided into batches. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Delta } from "../../../src/core/delta.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { batches } from "../deltas.ts";
import { checkStream } from "../grammar.ts";
import { play } from "./script.ts";

const body = fc.constantFrom(
  {},
  { include: ["reasoning.encrypted_content"] },
  { reasoning: { summary: "auto" } },
  { include: ["reasoning.encrypted_content"], reasoning: { summary: "auto" } },
);

test("every stream is well formed, and ends with the object of the whole answer", async () => {
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
    fc.asyncProperty(batches, body, async (batches, body) => {
      const sent: Delta[][] = [[{ type: "text", text: "a" }], ...batches];
      const { stream } = await play(sent, body, failure);
      assert.equal(checkStream(stream).response.error?.code, "server_error");
    }),
    { numRuns: 200 },
  );
});

test("how the answer is divided into batches does not change the stream", async () => {
  await fc.assert(
    fc.asyncProperty(batches, body, async (batches, body) => {
      const { stream } = await play(batches, body);
      const { stream: atOnce } = await play([batches.flat()], body);
      assert.equal(stream, atOnce);
    }),
    { numRuns: 100 },
  );
});
