/** Whatever a model says, and however it is cut: a streamed answer is well formed, equals the whole one, and ends once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { fromItem, gatherChunks } from "../harness/chunks.ts";
import { checkStream, isCall, type WireResponse } from "../harness/grammar.ts";
import { type Delta, shareGateway } from "../harness/house.ts";
import { failure, gatherWhole, normalise, playChat, playFailure, playResponse } from "./play.ts";

const open = shareGateway();
const text = fc.string({ unit: "grapheme", maxLength: 6 });
const chatFields = fc.constantFrom({}, { include_reasoning: true }, { stream_options: { include_usage: true } });
const sealing = { include: ["reasoning.encrypted_content"] };
const responseFields = fc.constantFrom({}, sealing);

/**
 * Calls with their arguments in pieces, which may come between one another's; some never get any. Nothing follows a JSON
 * that is whole, and the input of a custom tool comes at once, because either call is over then.
 */
const calls: fc.Arbitrary<Delta[]> = fc
  .array(
    fc.record({
      kind: fc.constantFrom("function" as const, "custom" as const),
      name: fc.constantFrom("f", "g"),
      pieces: fc.array(fc.constantFrom("{", "}", '"a":1', " ", "é"), { maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .chain((made) => {
    const rest = made.map(({ kind, pieces }) => (kind === "custom" ? [] : untilWhole(pieces)));
    const order = rest.flatMap((pieces, index) => pieces.map(() => index));
    return fc.shuffledSubarray(order, { minLength: order.length }).map((shuffled) => {
      const begun = made.flatMap(({ kind, name, pieces }, index): Delta[] => {
        const input = kind === "custom" ? pieces.join("") : "";
        return [
          { type: "tool-call", index, name, kind },
          { type: "tool-arguments", index, text: input },
        ];
      });
      const next = rest.map((pieces) => pieces.values());
      const written = shuffled.map((index): Delta => {
        return { type: "tool-arguments", index, text: next[index]!.next().value! };
      });
      return [...begun, ...written];
    });
  });

function untilWhole(pieces: readonly string[]): readonly string[] {
  const end = pieces.findIndex((_, at) => /^\s*\{("a":1)?\s*\}$/.test(pieces.slice(0, at + 1).join("")));
  return end === -1 ? pieces : pieces.slice(0, end + 1);
}

const annotation = fc.record({ url: text, title: text, start_index: fc.nat(9), end_index: fc.nat(9) });

const delta: fc.Arbitrary<Delta> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant("text" as const), text }) },
  fc.record({ type: fc.constant("text" as const), text, logprobs: fc.constant([{ token: "t", logprob: -1 }]) }),
  fc.record({ type: fc.constant("refusal" as const), text }),
  fc.record({ type: fc.constant("reasoning" as const), text }),
  fc.record({ type: fc.constant("reasoning" as const), text, summary: fc.nat(2) }),
  fc.record({ type: fc.constant("reasoning-seal" as const), encrypted: text }),
  annotation.map((fields) => ({ type: "annotation" as const, annotation: { type: "url_citation", fields } })),
  fc.constant({ type: "message-end" as const }),
  fc
    .constantFrom("stop" as const, "length" as const, "content-filter" as const, "tool-calls" as const)
    .map((reason) => {
      return { type: "finish" as const, reason };
    }),
  fc
    .record({ serviceTier: fc.constantFrom("flex", "scale"), fingerprint: fc.constantFrom("fp_1", "fp_2") })
    .map((notes) => {
      return { type: "notes" as const, notes };
    }),
  fc.tuple(fc.nat(), fc.nat()).map(([inputTokens, outputTokens]) => {
    const usage = { inputTokens, cachedTokens: 0, outputTokens, reasoningTokens: 0 };
    return { type: "usage" as const, usage };
  }),
);

/** Batches as the network brings them. A message does not show the order of raw reasoning and a summary: one of them. */
const batches = fc
  .array(fc.array(fc.oneof({ weight: 3, arbitrary: delta.map((one) => [one]) }, calls), { maxLength: 6 }), {
    maxLength: 5,
  })
  .map((all) => all.map((batch) => batch.flat()))
  .map((all) => {
    const first = all.flat().find(({ type }) => type === "reasoning");
    const isSummary = (each: Delta) => each.type === "reasoning" && each.summary !== undefined;
    return all.map((batch) =>
      batch.filter((each) => each.type !== "reasoning" || first === undefined || isSummary(each) === isSummary(first)),
    );
  })
  .filter((all) => all.every((batch) => batch.length > 0))
  .map(numberCalls);

/** Each call of an answer has its own number and id. */
function numberCalls(all: Delta[][]): Delta[][] {
  let calls = 0;
  const numbers = new Map<number, number>();
  const number = (delta: Delta): Delta => {
    if (delta.type === "tool-call") {
      numbers.set(delta.index, calls);
      return { ...delta, index: calls, callId: `call_${calls++}` };
    }
    return delta.type === "tool-arguments" ? { ...delta, index: numbers.get(delta.index)! } : delta;
  };
  return all.map((batch) => batch.map(number));
}

test("the stream of any answer adds up to the whole one on both endpoints, which say the same", async () => {
  const gateway = await open();
  await fc.assert(
    fc.asyncProperty(batches, chatFields, responseFields, async (said, more, others) => {
      const { response, whole } = await playResponse(gateway, said, { ...others, store: false });
      assert.deepEqual(normalise(response), normalise(whole));

      const { gathered, whole: completion } = await playChat(gateway, said, more);
      const { usage, rest, error, ...streamed } = gathered;
      const expected = gatherWhole(completion);
      const counted = "stream_options" in more ? expected.usage : undefined;
      assert.deepEqual([error, usage], [undefined, counted]);
      // A fingerprint that is missing is null in the whole completion alone.
      const all = { ...streamed, rest: { system_fingerprint: null, ...rest } };
      assert.deepEqual(normalise(all), normalise({ ...expected, usage: undefined }));

      const { content, refusal, calls } = gathered.message;
      assert.deepEqual({ content, refusal, calls }, saidIn(response));
    }),
    { numRuns: 150 },
  );
});

test("an answer that breaks anywhere is well formed on both endpoints, and ends once", async () => {
  const gateway = await open();
  const broken = failure("adapter_error");
  await fc.assert(
    fc.asyncProperty(batches, async (said) => {
      const begun: Delta[][] = [[{ type: "text", text: "a" }], ...said];
      const chat = gatherChunks(await playFailure(gateway, "chat", begun, broken));
      assert.equal(chat.error?.["code"], "adapter_error");
      const { events, response } = checkStream(await playFailure(gateway, "responses", begun, broken));
      assert.deepEqual([response.status, response.error?.code], ["failed", "server_error"]);
      assert.equal(events.filter(({ type }) => type === "error").length, 1);
    }),
    { numRuns: 75 },
  );
});

function saidIn({ output }: WireResponse) {
  const parts = output.flatMap((item) => (item.type === "message" ? (item.content ?? []) : []));
  return {
    content: parts.map((part) => part["text"] ?? "").join(""),
    refusal: parts.map((part) => part["refusal"] ?? "").join(""),
    calls: output.filter(isCall).map(fromItem),
  };
}
