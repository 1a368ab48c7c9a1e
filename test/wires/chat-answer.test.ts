/** The answer of chat completions, whole and in chunks, as a client of the live wire reads it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readChunks } from "../harness/chunks.ts";
import { call, type Delta, say, shareGateway } from "../harness/house.ts";
import { playChat } from "./play.ts";

const open = shareGateway();
const counts = { inputTokens: 7, cachedTokens: 2, outputTokens: 5, reasoningTokens: 1 };
const usage: Delta = { type: "usage", usage: counts };
const finish = (reason: "stop" | "length" | "content-filter" | "tool-calls"): Delta => ({ type: "finish", reason });
const wantsUsage = { stream_options: { include_usage: true } };

const counted = {
  prompt_tokens: 7,
  completion_tokens: 5,
  total_tokens: 12,
  prompt_tokens_details: { cached_tokens: 2, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 1,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};

/** A call whose arguments come in two pieces. */
function called(callId: string, name: string, index: number): Delta[] {
  const pieces = ['{"city"', ':"Rome"}'].map((text): Delta => ({ type: "tool-arguments", index, text }));
  return [{ type: "tool-call", index, callId, name }, ...pieces];
}

/** The deltas of a stream, and its finish reasons. */
function deltasOf(stream: string) {
  return readChunks(stream).flatMap(({ choices }) => choices.map(({ delta }) => delta));
}

test("a whole completion has every key of the live wire", async () => {
  const notes: Delta = { type: "notes", notes: { fingerprint: "fp_1", serviceTier: "flex" } };
  const { whole } = await playChat(await open(), [say("Hel"), say("lo"), [usage, notes]]);
  const { id, created, ...rest } = whole as unknown as Record<string, unknown>;
  assert.match(String(id), /^chatcmpl-\w+$/);
  assert.ok(Math.abs(Number(created) - Date.now() / 1000) < 120);
  assert.deepEqual(rest, {
    object: "chat.completion",
    model: "m",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "Hello", refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: counted,
    service_tier: "flex",
    system_fingerprint: "fp_1",
  });
});

test("a text is streamed between a chunk with the role and one with the finish reason", async () => {
  const { stream } = await playChat(await open(), [say('Say "'), say("hé\n")]);
  const deltas = deltasOf(stream);
  assert.deepEqual(deltas[0], { role: "assistant", content: "", refusal: null });
  assert.deepEqual(deltas.at(-1), {});
  assert.equal(deltas.map(({ content }) => content ?? "").join(""), 'Say "hé\n');
  for (const chunk of readChunks(stream)) {
    assert.deepEqual([chunk["object"], chunk["model"], chunk["id"]], ["chat.completion.chunk", "m", chunk["id"]]);
    assert.match(String(chunk["id"]), /^chatcmpl-\w+$/);
    assert.equal("usage" in chunk, false);
  }
});

test("an empty answer still has a chunk with its role and one with its finish reason", async () => {
  const { stream, whole, choice } = await playChat(await open(), []);
  assert.deepEqual(deltasOf(stream), [{ role: "assistant", content: "", refusal: null }, {}]);
  assert.deepEqual(choice.message, { role: "assistant", content: "", refusal: null, annotations: [] });
  assert.deepEqual(
    [choice.finish_reason, whole["service_tier"], whole["system_fingerprint"]],
    ["stop", "default", null],
  );
});

test("calls are in the message, whose content is null where nothing was said", async () => {
  const { choice } = await playChat(await open(), [
    [
      ...call("call_a", "weather", "{}", 0),
      { type: "tool-call", index: 1, callId: "call_b", name: "patch", kind: "custom" },
      { type: "tool-arguments", index: 1, text: "*** Begin" },
    ],
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

test("a call that comes first is in the first chunk, and its arguments follow by index, call after call", async () => {
  const { stream } = await playChat(await open(), [
    [...called("call_a", "weather", 0), ...called("call_b", "time", 1)],
  ]);
  const [first, ...rest] = deltasOf(stream);
  const begun = { type: "function", function: { name: "weather", arguments: "" } };
  const tool_calls = [{ index: 0, id: "call_a", ...begun }];
  assert.deepEqual(first, { role: "assistant", content: null, refusal: null, tool_calls });
  const pieces = rest.flatMap(({ tool_calls: calls = [] }) => calls);
  const second = pieces.findIndex(({ id }) => id !== undefined);
  assert.deepEqual(pieces[second]!.function, { name: "time", arguments: "" });
  for (const [at, { index, function: written }] of pieces.entries()) {
    if (at !== second) assert.deepEqual(pieces[at], { index, function: { arguments: written!.arguments } });
    assert.equal(index, at < second ? 0 : 1);
  }
});

test("a call after some text is sent in a chunk of its own, and text around calls is one content", async () => {
  const { stream, choice } = await playChat(await open(), [
    [...say("Let me "), ...call("call_a", "look", "{}", 7), ...say("see.")],
  ]);
  const deltas = deltasOf(stream);
  assert.deepEqual(deltas[0], { role: "assistant", content: "", refusal: null });
  const at = deltas.findIndex(({ tool_calls }) => tool_calls !== undefined);
  assert.deepEqual(deltas[at], {
    tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "look", arguments: "" } }],
  });
  assert.deepEqual([choice.message.content, choice.finish_reason], ["Let me see.", "tool_calls"]);
});

test("a refusal stands beside the content, not in it", async () => {
  const refuse = (...texts: string[]): Delta[] => texts.map((text) => ({ type: "refusal", text }));
  const { choice, gathered } = await playChat(await open(), [refuse("I can", "not.")]);
  assert.deepEqual([choice.message.content, choice.message.refusal], [null, "I cannot."]);
  assert.deepEqual([gathered.message.content, gathered.message.refusal], ["", "I cannot."]);
  const late = await playChat(await open(), [[...say("Well"), ...refuse("no.")]]);
  assert.deepEqual([late.choice.message.content, late.choice.message.refusal], ["Well", "no."]);
});

test("log probabilities come with the pieces of the text, and together in the whole", async () => {
  const said = ["a", "b"].map((token): Delta => {
    const logprobs = [{ token, logprob: -0.5, bytes: [97], top_logprobs: [{ token: "z", logprob: -2 }] }];
    return { type: "text", text: token, logprobs };
  });
  const { choice, gathered } = await playChat(await open(), [said], { logprobs: true, top_logprobs: 1 });
  const expected = ["a", "b"].map((token) => {
    const top_logprobs = [{ token: "z", logprob: -2 }];
    return { token, logprob: -0.5, bytes: [97], top_logprobs };
  });
  assert.deepEqual(choice.logprobs, { content: expected, refusal: null });
  assert.deepEqual(gathered.logprobs, expected);
});

test("citations are sent in their order, with the fields of the wire", async () => {
  const cite = (url: string): Delta => {
    const fields = { url, title: "t", start_index: 0, end_index: 1 };
    return { type: "annotation", annotation: { type: "url_citation", fields } };
  };
  const { choice, gathered } = await playChat(await open(), [[...say("a"), cite("one"), cite("two")]]);
  const expected = ["one", "two"].map((url) => {
    return { type: "url_citation", url_citation: { url, title: "t", start_index: 0, end_index: 1 } };
  });
  assert.deepEqual(choice.message.annotations, expected);
  assert.deepEqual(gathered.message.annotations, expected);
});

const finishes = [
  [[], "stop", "stop"],
  [[], "tool-calls", "stop"],
  [[], "length", "length"],
  [[], "content-filter", "content_filter"],
  [call("c", "f"), "stop", "tool_calls"],
  [call("c", "f"), "tool-calls", "tool_calls"],
  [call("c", "f"), "length", "length"],
  [call("c", "f"), "content-filter", "content_filter"],
] as const;

for (const [said, reason, sent] of finishes) {
  test(`an answer ${said.length > 0 ? "with a call" : "of text"} that ended by ${reason} ends with ${sent}`, async () => {
    const { choice, gathered } = await playChat(await open(), [[...say("So"), ...said, finish(reason)]]);
    assert.deepEqual([choice.finish_reason, gathered.finishReason], [sent, sent]);
  });
}

test("a caller that asks for usage gets it in a last chunk without choices, and null in every other", async () => {
  const { stream } = await playChat(await open(), [[...say("a"), usage]], wantsUsage);
  const chunks = readChunks(stream);
  assert.deepEqual([chunks.at(-1)!.choices, chunks.at(-1)!.usage], [[], counted]);
  assert.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null));
  const { gathered } = await playChat(await open(), [say("a")], wantsUsage);
  assert.equal(gathered.usage, undefined, "what the model did not count is not invented");
  const silent = await playChat(await open(), [[...say("a"), usage]], { stream_options: {} });
  assert.equal(silent.stream.includes("usage"), false);
});

test("the end of a stream tells the fingerprint and the service tier", async () => {
  const notes: Delta = { type: "notes", notes: { fingerprint: "fp_1", serviceTier: "priority" } };
  const { gathered, whole } = await playChat(await open(), [[notes], say("a")]);
  assert.deepEqual([gathered.rest["system_fingerprint"], gathered.rest["service_tier"]], ["fp_1", "priority"]);
  assert.equal(whole["service_tier"], "priority");
});
