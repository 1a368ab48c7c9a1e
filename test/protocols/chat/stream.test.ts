/** An answer as a stream of chunks, compared byte by byte with what a client of the live wire reads. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../../src/core/delta.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { failedTurn } from "../../../src/core/frame/frame.ts";
import type { Extra } from "../../../src/core/item.ts";
import { createChatProtocol } from "../../../src/protocols/chat/index.ts";
import { gatherChunks, readChunks } from "../chunks.ts";
import { about, playWith } from "../script.ts";
import { play, protocol } from "./script.ts";

const beginning = `data: {"id":"chatcmpl-ab12","object":"chat.completion.chunk","created":1700000000,"model":"some-model",`;
const spoken = `"choices":[{"index":0,"delta":`;
const served = `"service_tier":"default","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":`;
const done = "data: [DONE]\n\n";

/** The deltas of a stream as they are written, and its finish; everything around them must be as usual. */
function inner(stream: string): string[] {
  assert.ok(stream.endsWith(done));
  return stream
    .slice(0, -done.length)
    .split("\n\n")
    .slice(0, -1)
    .map((message) => {
      assert.ok(message.startsWith(beginning), message);
      const body = message.slice(beginning.length);
      if (body.startsWith(served)) return body.slice(served.length, -"}]}".length);
      assert.ok(body.startsWith(spoken) && body.endsWith(`,"logprobs":null,"finish_reason":null}]}`), body);
      return body.slice(spoken.length, -`,"logprobs":null,"finish_reason":null}]}`.length);
    });
}

const hello = `{"role":"assistant","content":"","refusal":null}`;

test("a text is streamed in pieces, between a chunk with the role and one with the finish reason", async () => {
  const { stream } = await play([[{ type: "text", text: 'Say "' }], [{ type: "text", text: "hé\n" }]]);
  assert.equal(
    stream,
    `data: {"id":"chatcmpl-ab12","object":"chat.completion.chunk","created":1700000000,"model":"some-model","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}\n\n` +
      `data: {"id":"chatcmpl-ab12","object":"chat.completion.chunk","created":1700000000,"model":"some-model","choices":[{"index":0,"delta":{"content":"Say \\""},"logprobs":null,"finish_reason":null}]}\n\n` +
      `data: {"id":"chatcmpl-ab12","object":"chat.completion.chunk","created":1700000000,"model":"some-model","choices":[{"index":0,"delta":{"content":"hé\\n"},"logprobs":null,"finish_reason":null}]}\n\n` +
      `data: {"id":"chatcmpl-ab12","object":"chat.completion.chunk","created":1700000000,"model":"some-model","service_tier":"default","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n` +
      `data: [DONE]\n\n`,
  );
  gatherChunks(stream);
});

test("an empty answer has a chunk with its role and one with its finish reason", async () => {
  const { stream } = await play([]);
  assert.deepEqual(inner(stream), [hello, `"stop"`]);
});

test("a call that comes first is in the first chunk, and parallel calls are sent one after the other", async () => {
  const { stream } = await play([
    [
      { type: "tool-call", index: 0, callId: "call_a", name: "weather" },
      { type: "tool-call", index: 1, callId: "call_b", name: "time" },
      { type: "tool-arguments", index: 0, text: '{"city"' },
      { type: "tool-arguments", index: 1, text: "{}" },
      { type: "tool-arguments", index: 0, text: ':"Rome"}' },
    ],
  ]);
  assert.deepEqual(inner(stream), [
    `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"weather","arguments":""}}],"refusal":null}`,
    `{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\""}}]}`,
    `{"tool_calls":[{"index":0,"function":{"arguments":":\\"Rome\\"}"}}]}`,
    `{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"time","arguments":""}}]}`,
    `{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`,
    `"tool_calls"`,
  ]);
  gatherChunks(stream);
});

test("a call after some text is sent in a chunk of its own", async () => {
  const { stream } = await play([
    [
      { type: "text", text: "Let me see." },
      { type: "tool-call", index: 7, callId: "call_a", name: "look" },
      { type: "tool-arguments", index: 7, text: "{}" },
      { type: "finish", reason: "tool-calls" },
    ],
  ]);
  assert.deepEqual(inner(stream), [
    hello,
    `{"content":"Let me see."}`,
    `{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"look","arguments":""}}]}`,
    `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`,
    `"tool_calls"`,
  ]);
});

test("a custom tool's input is sent in the form of custom tools", async () => {
  const { stream } = await play([
    [
      { type: "tool-call", index: 0, callId: "call_c", name: "patch", kind: "custom" },
      { type: "tool-arguments", index: 0, text: "*** Begin" },
    ],
  ]);
  assert.deepEqual(inner(stream), [
    `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_c","type":"custom","custom":{"name":"patch","input":""}}],"refusal":null}`,
    `{"tool_calls":[{"index":0,"custom":{"input":"*** Begin"}}]}`,
    `"tool_calls"`,
  ]);
});

test("a refusal is sent next to the content, not in it", async () => {
  const { stream } = await play([[{ type: "refusal", text: "I can" }], [{ type: "refusal", text: "not." }]]);
  assert.deepEqual(inner(stream), [hello, `{"refusal":"I can"}`, `{"refusal":"not."}`, `"stop"`]);
});

test("log probabilities are sent with the pieces of the text", async () => {
  const logprob = { token: "a", logprob: -0.5, bytes: [97], top_logprobs: [] };
  const { stream } = await play([[{ type: "text", text: "a", logprobs: [logprob] }]], { logprobs: true });
  assert.ok(
    stream.includes(
      `{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}],"refusal":null},"finish_reason":null}]}\n\n`,
    ),
  );
  assert.deepEqual(gatherChunks(stream).logprobs, [logprob]);
});

const counted: Delta[] = [
  { type: "text", text: "a" },
  { type: "usage", usage: { inputTokens: 7, cachedTokens: 2, outputTokens: 5, reasoningTokens: 1 } },
];
const wantsUsage = { stream: true, stream_options: { include_usage: true } };

test("a caller that asks for usage gets it in a last chunk without choices, and null in every other", async () => {
  const { stream } = await play([counted], wantsUsage);
  const chunks = readChunks(stream);
  assert.equal(
    stream.slice(stream.lastIndexOf("\n\n", stream.length - done.length - 3) + 2, -done.length),
    `${beginning}"service_tier":"default","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":2,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}\n\n`,
  );
  assert.deepEqual(
    chunks.slice(0, -1).map((chunk) => chunk.usage),
    [null, null, null],
  );
  gatherChunks(stream, true);
});

test("usage is not sent to a caller that does not ask for it, nor where it is unknown", async () => {
  const { stream } = await play([counted], { stream: true, stream_options: {} });
  assert.ok(!stream.includes("usage"));
  const { stream: uncounted } = await play([[{ type: "text", text: "a" }]], wantsUsage);
  assert.equal(gatherChunks(uncounted, true).usage, undefined);
});

test("the last chunk has the fingerprint and the service tier", async () => {
  const { stream } = await play([
    [{ type: "notes", notes: { fingerprint: "fp_1", serviceTier: "flex" } }],
    [{ type: "text", text: "a" }],
  ]);
  const { rest } = gatherChunks(stream);
  assert.deepEqual([rest["system_fingerprint"], rest["service_tier"]], ["fp_1", "flex"]);
});

test("the finish reason is sent in the words of the wire, and a cut-off takes precedence over a call", async () => {
  const call: Delta = { type: "tool-call", index: 0, name: "f" };
  const table = [
    [[], "stop", "stop"],
    [[], "length", "length"],
    [[], "content-filter", "content_filter"],
    [[call], "stop", "tool_calls"],
    [[call], "tool-calls", "tool_calls"],
    [[call], "length", "length"],
    [[call], "content-filter", "content_filter"],
  ] as const;
  for (const [said, reason, sent] of table) {
    const { stream, whole } = await play([[...said, { type: "finish", reason }]]);
    assert.equal(gatherChunks(stream).finishReason, sent);
    assert.equal(whole().choices[0]?.finish_reason, sent);
  }
});

const thought: Delta[] = [
  { type: "reasoning", text: "First", summary: 0 },
  { type: "reasoning", text: "ly", summary: 0 },
  { type: "reasoning", text: "Then", summary: 1 },
  { type: "tool-call", index: 0, callId: "call_a", name: "f" },
];

test("reasoning is hidden, so that a call after it is still in the first chunk", async () => {
  const { stream } = await play([thought]);
  assert.deepEqual(inner(stream), [
    `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":""}}],"refusal":null}`,
    `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`,
    `"tool_calls"`,
  ]);
});

test("reasoning is sent to a caller that asks for it, with sections of a summary separated", async () => {
  const expected = [hello, `"First"`, `"ly"`, `"\\n\\nThen"`].map((text, index) =>
    index === 0 ? text : `{"reasoning_content":${text}}`,
  );
  for (const body of [{ include_reasoning: true }, { reasoning: {} }, { reasoning: { effort: "low" } }]) {
    const { stream } = await play([thought], body);
    assert.deepEqual(inner(stream).slice(0, 4), expected);
  }
  const { stream: raw } = await play([[{ type: "reasoning", text: "hm" }]], { reasoning: {} });
  assert.deepEqual(inner(raw), [hello, `{"reasoning_content":"hm"}`, `"stop"`]);
});

test("reasoning that the operator exposes is sent to all callers except those that decline it", async () => {
  const open = createChatProtocol({ exposeReasoning: true });
  const messages = [{ role: "user", content: "Hi" }];
  const shown = async (body: object) => {
    const { stream } = await playWith(open.parse({ model: "m", messages, ...body }, "default").voice, [thought]);
    return gatherChunks(stream).message.reasoning;
  };
  assert.equal(await shown({}), "Firstly\n\nThen");
  assert.equal(await shown({ include_reasoning: null }), "Firstly\n\nThen");
  assert.equal(await shown({ include_reasoning: false }), "");
  assert.equal(await shown({ reasoning: { exclude: true } }), "");
});

test("a turn that fails after some text sends its error instead of a finish reason, and ends", async () => {
  const failure = new GatewayError("adapter_rate_limit", "Too fast.", { wireCode: "tokens_per_minute" });
  const { stream } = await play([[{ type: "text", text: "So" }]], wantsUsage, failure);
  assert.ok(
    stream.endsWith(
      `"delta":{"content":"So"},"logprobs":null,"finish_reason":null}],"usage":null}\n\n` +
        `data: {"error":{"message":"Too fast.","type":"rate_limit_error","param":null,"code":"tokens_per_minute"}}\n\n` +
        `data: [DONE]\n\n`,
    ),
  );
  gatherChunks(stream, true);
});

test("a turn that fails before its first word can be sent as a stream too", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const { voice } = protocol.parse({ model: "m", messages, stream: true }, "default");
  assert.equal(
    voice.stream(about)(failedTurn(new GatewayError("adapter_timeout", "Nothing came."), new Date(0))),
    `data: {"error":{"message":"Nothing came.","type":"api_error","param":null,"code":"adapter_timeout"}}\n\ndata: [DONE]\n\n`,
  );
});

test("a batch of events is one write", async () => {
  const { writes } = await play([
    [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ],
    [{ type: "text", text: "c" }],
  ]);
  assert.deepEqual(
    writes.map((write) => write.match(/^data: /gm)?.length),
    [3, 1, 2],
  );
});

test("extra fields of a call without a value are not sent", async () => {
  const extra = { dialect: "chat", fields: { signature: undefined } } as const;
  const { stream } = await play([
    [
      { type: "tool-call", index: 0, callId: "c1", name: "look" },
      { type: "tool-extra", index: 0, extra },
      { type: "tool-arguments", index: 0, text: "{}" },
    ],
  ]);
  assert.deepEqual(inner(stream).slice(1), [
    `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`,
    `"tool_calls"`,
  ]);
});

test("what an adapter adds changes none of the fields that the gateway itself sends, whole or streamed", async () => {
  const claim = (...keys: readonly string[]): { readonly extra: Extra } => ({
    extra: { dialect: "chat", fields: Object.fromEntries(keys.map((key) => [key, "not ours"])) },
  });
  const ofCompletion = claim(
    ..."id object created model choices usage service_tier system_fingerprint error".split(" "),
  );
  const ofMessage = claim(..."role content refusal annotations reasoning_content tool_calls function_call".split(" "));
  const ofCall = claim(..."index id type function custom name arguments".split(" "));
  const told: readonly Delta[] = [
    { type: "reasoning", text: "hm" },
    { type: "text", text: "Look." },
  ];
  const called: readonly Delta[] = [0, 1].flatMap((index): readonly Delta[] => [
    { type: "tool-call", index, callId: `c${index}`, name: "look" },
    { type: "tool-arguments", index, text: "{}" },
  ]);
  const withExtra = (deltas: readonly Delta[]): readonly Delta[] => [
    ...deltas.flatMap((delta): readonly Delta[] => {
      if (delta.type === "reasoning") return [delta, { type: "reasoning-extra", ...ofMessage }];
      if (delta.type !== "tool-call") return [delta];
      return delta.index === 0 ? [{ ...delta, ...ofCall }] : [delta, { type: "tool-extra", index: 1, ...ofCall }];
    }),
    { type: "message-extra", ...ofMessage },
    { type: "notes", notes: ofCompletion },
  ];
  const functions = [{ name: "look" }];
  for (const body of [{}, { include_reasoning: true }, { functions }]) {
    for (const deltas of [told, called, called.slice(2)]) {
      const [plain, added] = [await play([deltas], body), await play([withExtra(deltas)], body)];
      assert.equal(added.stream, plain.stream);
      assert.deepEqual(added.whole(), plain.whole());
    }
  }
});
