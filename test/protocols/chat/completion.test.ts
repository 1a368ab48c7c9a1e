/** The whole chat completion. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../../src/core/delta.ts";
import { play } from "./script.ts";

async function complete(deltas: readonly Delta[], body: object = {}) {
  const { whole } = await play([deltas], body);
  const completion = whole();
  return { completion, choice: completion.choices[0]! };
}

test("a text is one choice, with every key of the live wire in its order", async () => {
  const { whole, answer } = await play([
    [{ type: "text", text: "Hel" }],
    [{ type: "text", text: "lo" }],
    [{ type: "usage", usage: { inputTokens: 7, cachedTokens: 2, outputTokens: 5, reasoningTokens: 1 } }],
    [{ type: "notes", notes: { fingerprint: "fp_1", serviceTier: "flex" } }],
  ]);
  assert.equal(answer.status, "completed");
  assert.equal(
    JSON.stringify(whole()),
    `{"id":"chatcmpl-ab12","object":"chat.completion","created":1700000000,"model":"some-model","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":2,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"flex","system_fingerprint":"fp_1"}`,
  );
});

test("an empty answer has empty content and no usage", async () => {
  const { completion, choice } = await complete([]);
  assert.deepEqual(choice.message, { role: "assistant", content: "", refusal: null, annotations: [] });
  assert.deepEqual([choice.finish_reason, completion.usage], ["stop", undefined]);
  assert.deepEqual([completion["service_tier"], completion["system_fingerprint"]], ["default", null]);
});

test("the number of cache write tokens is sent where the model reports it", async () => {
  const usage = { inputTokens: 7, cachedTokens: 2, cacheWriteTokens: 4, outputTokens: 5, reasoningTokens: 1 };
  const { completion } = await complete([{ type: "usage", usage }]);
  const details = `"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":4,"audio_tokens":0}`;
  assert.ok(JSON.stringify(completion).includes(details));
});

test("calls are in the message, whose content is null when there is no text", async () => {
  const { choice } = await complete([
    { type: "tool-call", index: 0, callId: "call_a", name: "weather" },
    { type: "tool-arguments", index: 0, text: "{}" },
    { type: "tool-call", index: 1, callId: "call_b", name: "patch", kind: "custom" },
    { type: "tool-arguments", index: 1, text: "*** Begin" },
  ]);
  assert.deepEqual(choice.message, {
    role: "assistant",
    content: null,
    refusal: null,
    annotations: [],
    tool_calls: [
      { id: "call_a", type: "function", function: { name: "weather", arguments: "{}" } },
      { id: "call_b", type: "custom", custom: { name: "patch", input: "*** Begin" } },
    ],
  });
  assert.equal(choice.finish_reason, "tool_calls");
});

test("text before and after a call is one content", async () => {
  const { choice } = await complete([
    { type: "text", text: "Before, " },
    { type: "tool-call", index: 0, callId: "call_a", name: "f" },
    { type: "text", text: "after." },
  ]);
  assert.equal(choice.message.content, "Before, after.");
  assert.equal(choice.message.tool_calls?.length, 1);
});

test("a refusal is sent next to the content", async () => {
  const { choice } = await complete([{ type: "refusal", text: "No." }]);
  assert.deepEqual([choice.message.content, choice.message.refusal], [null, "No."]);
  const { choice: late } = await complete([
    { type: "text", text: "Well" },
    { type: "refusal", text: "no." },
  ]);
  assert.deepEqual([late.message.content, late.message.refusal], ["Well", "no."]);
});

test("log probabilities of all pieces are collected", async () => {
  const { choice } = await complete(
    [
      { type: "text", text: "a", logprobs: [{ token: "a", logprob: -1 }] },
      { type: "text", text: "b", logprobs: [{ token: "b", logprob: -2 }] },
    ],
    { logprobs: true },
  );
  assert.deepEqual(choice.logprobs, {
    content: [
      { token: "a", logprob: -1, bytes: null, top_logprobs: [] },
      { token: "b", logprob: -2, bytes: null, top_logprobs: [] },
    ],
    refusal: null,
  });
});

test("a service tier that clients do not know is sent as the default one", async () => {
  for (const [served, sent] of [
    ["priority", "priority"],
    ["on_demand", "default"],
    ["ultrafast", "default"],
    ["constructor", "default"],
  ] as const) {
    const { whole, stream } = await play([[{ type: "notes", notes: { serviceTier: served } }]]);
    assert.equal(whole()["service_tier"], sent);
    assert.ok(stream.includes(`"service_tier":"${sent}"`));
    assert.equal(stream.includes(`"service_tier":"${served}"`), sent === served);
  }
});

test("citations are sent in the order in which they came", async () => {
  const cite = (url: string) =>
    ({ type: "annotation", annotation: { type: "url_citation", fields: { url } } }) as const;
  const { choice } = await complete([{ type: "text", text: "a" }, cite("one"), cite("two")]);
  const sent = choice.message["annotations"] as readonly { readonly url_citation: { readonly url: string } }[];
  assert.deepEqual(
    sent.map(({ url_citation }) => url_citation.url),
    ["one", "two"],
  );
});

test("citations and log probabilities have the fields of the wire, and no others", async () => {
  const fields = { url: "u", title: "t", start_index: 0, end_index: 1, content: "snippet" };
  const odd = { token: "a", logprob: -1, rank: 3, top_logprobs: [{ token: "b", logprob: -2, id: 7 }] };
  const { choice } = await complete([
    { type: "text", text: "a", logprobs: [odd] },
    { type: "annotation", annotation: { type: "url_citation", fields } },
  ]);
  const { content: _, ...sent } = fields;
  assert.deepEqual(choice.message["annotations"], [{ type: "url_citation", url_citation: sent }]);
  assert.deepEqual(choice.logprobs?.content, [
    { token: "a", logprob: -1, bytes: null, top_logprobs: [{ token: "b", logprob: -2, bytes: null }] },
  ]);
});

test("reasoning is sent only to a caller that asks for it", async () => {
  const deltas: Delta[] = [
    { type: "reasoning", text: "First", summary: 0 },
    { type: "reasoning", text: "Then", summary: 1 },
    { type: "text", text: "Hello" },
  ];
  const { choice: hidden } = await complete(deltas);
  assert.ok(!("reasoning_content" in hidden.message));
  const { choice: shown } = await complete(deltas, { include_reasoning: true });
  assert.equal(shown.message.reasoning_content, "First\n\nThen");
});
