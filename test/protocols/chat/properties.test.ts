/** Properties of every answer, whatever the adapter emits and however it is divided into batches. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Delta } from "../../../src/core/delta.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { createChatProtocol } from "../../../src/protocols/chat/index.ts";
import { createResponsesProtocol } from "../../../src/protocols/responses/index.ts";
import { createSeal } from "../../../src/seal.ts";
import { addedTo, fromItem, gatherChunks, toCall, type WireCompletion } from "../chunks.ts";
import { batches } from "../deltas.ts";
import { checkStream, isCall } from "../grammar.ts";
import { playWith } from "../script.ts";
import { play } from "./script.ts";

const body = fc.constantFrom({}, { include_reasoning: true });
const wantsUsage = { stream: true, stream_options: { include_usage: true } };

test("the chunks of a stream add up to the whole completion", async () => {
  await fc.assert(
    fc.asyncProperty(batches, body, async (batches, body) => {
      const { stream, whole } = await play(withOneReasoning(batches), { ...wantsUsage, ...body });
      const { message, logprobs, finishReason, rest, usage } = gatherChunks(stream, true);
      const { choices, object, usage: counted, ...others } = whole();
      const [choice] = choices;
      assert.deepEqual({ message, logprobs, finishReason }, summarise(choice!));
      assert.equal(object, "chat.completion");
      // A missing fingerprint is null in the whole completion only.
      assert.notEqual(rest["system_fingerprint"], null);
      assert.deepEqual({ system_fingerprint: null, ...rest }, others);
      assert.deepEqual(usage, counted);
    }),
    { numRuns: 300 },
  );
});

/** A message does not show the order of raw and summarised reasoning, so only one of them is used here. */
function withOneReasoning(batches: readonly (readonly Delta[])[]): Delta[][] {
  const first = batches.flat().find((delta) => delta.type === "reasoning");
  const isKept = (delta: Delta) =>
    delta.type !== "reasoning" || first?.type !== "reasoning" || isSummary(delta) === isSummary(first);
  return batches.map((batch) => batch.filter(isKept));
}

function isSummary(delta: Extract<Delta, { type: "reasoning" }>): boolean {
  return delta.summary !== undefined;
}

function summarise({ message, logprobs, finish_reason }: WireCompletion["choices"][number]) {
  const { content, refusal, reasoning_content: reasoning, tool_calls: calls } = message;
  return {
    message: {
      content: content ?? "",
      refusal: refusal ?? "",
      reasoning: reasoning ?? "",
      calls: calls?.map(toCall) ?? [],
      annotations: message.annotations ?? [],
      added: addedTo(message),
    },
    logprobs: logprobs?.content ?? [],
    finishReason: finish_reason,
  };
}

test("a stream that fails anywhere is well formed, and ends once", async () => {
  const failure = new GatewayError("adapter_error", "It broke.");
  await fc.assert(
    fc.asyncProperty(batches, body, async (batches, body) => {
      const sent: Delta[][] = [[{ type: "text", text: "a" }], ...batches.map((batch) => [...batch])];
      const { stream } = await play(sent, body, failure);
      assert.equal(gatherChunks(stream).error?.["code"], "adapter_error");
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

test("each of several choices is sent as it would be sent alone", async () => {
  const own = batches.map((each) =>
    each.map((batch) => batch.filter(({ type }) => type !== "usage" && type !== "notes")),
  );
  await fc.assert(
    fc.asyncProperty(own, own, body, async (first, second, body) => {
      const rounds = Array.from({ length: Math.max(first.length, second.length) }, (_, at): Delta[] => [
        ...(first[at] ?? []),
        ...(second[at] ?? []).map((delta) => ({ ...delta, choice: 1 })),
      ]);
      const { stream, whole } = await play([...rounds, [{ type: "finish", reason: "stop", choice: 1 }]], body);
      const alone = await Promise.all([
        play(first, body),
        play([...second, [{ type: "finish", reason: "stop" }]], body),
      ]);
      for (const [index, one] of alone.entries()) {
        assert.equal(choiceOf(stream, index), choiceOf(one.stream, 0));
        const [choice] = one.whole().choices;
        assert.equal(withCallIds(JSON.stringify(whole().choices[index])), JSON.stringify({ ...choice, index }));
      }
    }),
    { numRuns: 200 },
  );
});

/** The messages about one choice, as if it were the only one. */
function choiceOf(stream: string, index: number): string {
  const start = `"choices":[{"index":${index},`;
  const sent = stream.split("\n\n").filter((message) => message.includes(start));
  return withCallIds(sent.map((message) => message.replace(start, '"choices":[{"index":0,')).join("\n"));
}

/** A call without an id of the model has one of the gateway's, which differs between choices. */
function withCallIds(text: string): string {
  return text.replaceAll("call_ab12_1_", "call_ab12");
}

test("both dialects send the same text, refusal, calls and arguments of the same answer", async () => {
  const chat = createChatProtocol({ exposeReasoning: false });
  const responses = createResponsesProtocol({ seal: createSeal(new Uint8Array(32)) });
  const messages = [{ role: "user", content: "Hi" }];
  await fc.assert(
    fc.asyncProperty(batches, async (batches) => {
      const { stream } = await playWith(chat.parse({ model: "m", messages }, "default").voice, batches);
      const { stream: other } = await playWith(
        responses.parse({ model: "m", input: messages }, "default").voice,
        batches,
      );
      const { content, refusal, calls: sent } = gatherChunks(stream).message;
      const calls = sent.map(({ added: _added, ...call }) => call);
      const { output } = checkStream(other).response;
      const parts = output.flatMap((item) => (item.type === "message" ? (item.content ?? []) : []));
      assert.equal(content, parts.map((part) => part["text"] ?? "").join(""));
      assert.equal(refusal, parts.map((part) => part["refusal"] ?? "").join(""));
      assert.deepEqual(
        calls,
        output.flatMap((item) => (isCall(item) ? [fromItem(item)] : [])),
      );
    }),
    { numRuns: 200 },
  );
});
