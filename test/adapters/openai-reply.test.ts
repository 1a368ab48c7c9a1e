/** How the openai adapter reads unusual answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createReplyReader, readWholeReply } from "../../src/adapters/openai/chat/reply.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { chunk } from "../upstream.ts";
import { worked } from "../worked.ts";

function deltasOf(...events: readonly unknown[]): readonly Delta[] {
  const reader = createReplyReader((text) => text);
  const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`);
  const deltas = reader.read([Buffer.from(`${lines.join("")}data: [DONE]\n\n`)]);
  reader.check();
  return deltas;
}

function failureIn(event: unknown): GatewayError {
  try {
    deltasOf(event);
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  }
  return assert.fail("It did not fail.");
}

test("an error within an answer of status 200 is reported with a status only if it names one", () => {
  const messageOf = (error: unknown) => failureIn({ error }).message;
  assert.equal(messageOf({ message: "Broken." }), "The upstream failed: Broken.");
  assert.equal(messageOf({ type: "overloaded_error" }), "The upstream failed.");
  assert.equal(messageOf({ message: "Broken.", code: 1302 }), "The upstream failed: Broken.");
  assert.equal(messageOf({ message: "Broken.", code: 500 }), "The upstream failed with status 500: Broken.");
  assert.equal(messageOf({ message: "Broken.", code: "500" }), "The upstream failed with status 500: Broken.");
  assert.equal(failureIn({ error: { message: "Slow down.", code: "429" } }).code, "adapter_rate_limit");
  assert.doesNotMatch(messageOf({ code: "invalid_api_key" }), /status/);
  assert.doesNotMatch(messageOf({ type: "rate_limit_error" }), /status/);
});

test("an error of a choice is reported in its own words, after what the choice has said", () => {
  const error = { code: 429, message: "Too many requests." };
  const choice = { index: 0, finish_reason: "error", error };
  const expected = { code: "adapter_rate_limit", message: "Too many requests." };
  const reader = createReplyReader((text) => text);
  const event = { choices: [{ ...choice, delta: { content: "Half" } }] };
  const said = reader.read([Buffer.from(`data: ${JSON.stringify(event)}\n\n`)]);
  assert.deepEqual(said, [{ type: "text", text: "Half", logprobs: undefined }]);
  assert.throws(() => reader.check(), expected);
  const whole = JSON.stringify({ choices: [{ ...choice, message: { role: "assistant", content: "Half" } }] });
  assert.throws(() => readWholeReply(whole, (text) => text), expected);
});

test("an object of type error is an error, and a message field alone does not make an answer one", () => {
  const failure = failureIn({ object: "error", message: "Broken.", type: "InternalServer" });
  assert.equal(failure.message, "The upstream failed: Broken.");
  const choices = [{ index: 0, delta: { content: "Hi" }, finish_reason: "stop" }];
  assert.equal(deltasOf({ choices, message: "ok", code: 0 }).length, 2);
});

test("an answer with more nesting than any answer has is refused before it is parsed", () => {
  const nested = (depth: number) => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`) as unknown;
  const expected = { code: "adapter_protocol", wireCode: "adapter_answer_too_large" };
  const toWhole = (depth: number) =>
    `{"choices":[{"index":0,"message":{"content":"Hi","steps":${"[".repeat(depth)}${"]".repeat(depth)}},"finish_reason":"stop"}]}`;
  assert.equal(readWholeReply(toWhole(900), (text) => text).length, 3);
  assert.throws(() => readWholeReply(toWhole(1_000), (text) => text), expected);
  assert.throws(() => deltasOf(chunk({ content: "Hi", steps: nested(1_000) })), expected);
  const start = worked();
  assert.throws(() => readWholeReply("[".repeat(5_000_000), (text) => text), expected);
  assert.ok(worked() - start < 500);
});

test("content that is a list of parts is read as their texts", () => {
  const content = [{ type: "text", text: "H" }, { type: "reference", ids: [1] }, null, { type: "text", text: "i" }];
  assert.deepEqual(deltasOf(chunk({ content }))[0], { type: "text", text: "Hi", logprobs: undefined });
});

test("reasoning among the parts of a content is read as such", () => {
  const thinking = (text: string) => ({ type: "thinking", thinking: [{ type: "text", text }] });
  const deltas = deltasOf(
    chunk({ content: [thinking("H")] }),
    chunk({ content: [thinking("m"), { type: "thinking", thinking: "." }, { type: "text", text: "Hi" }] }),
  );
  assert.deepEqual(deltas, [
    { type: "reasoning", text: "H" },
    { type: "reasoning", text: "m." },
    { type: "text", text: "Hi", logprobs: undefined },
  ]);
});

test("annotations are emitted after their text, early ones too, in whatever form a server writes them", () => {
  const fields = (url: string) => ({ url, title: "t", start_index: 0, end_index: 1 });
  const note = (url: string) => ({ type: "url_citation", url_citation: fields(url) });
  const emitted = (url: string) => ({ type: "annotation", annotation: { type: "url_citation", fields: fields(url) } });
  const deltas = deltasOf(
    chunk({ annotations: [note("a"), "none", { url: "b" }] }),
    chunk({ content: "Hi" }),
    chunk({ annotations: [{ type: "url_citation", ...fields("c") }] }),
    chunk({}, "stop"),
  );
  assert.deepEqual(deltas, [
    { type: "text", text: "Hi", logprobs: undefined },
    emitted("a"),
    emitted("c"),
    { type: "finish", reason: "stop" },
  ]);
});

test("content that is marked as a thought is reasoning, without its tags", () => {
  const mark = { extra_content: { google: { thought: true } } };
  const text = (said: string) => ({ type: "text", text: said, logprobs: undefined });
  const thought = (said: string) => ({ type: "reasoning", text: said });
  const end = { type: "finish", reason: "stop" };
  const pieces = [
    chunk({ role: "assistant", content: "<thought>Paris, ", ...mark }),
    chunk({ content: "surely.", ...mark }),
    chunk({ content: "</thought>It is Paris." }),
    chunk({ content: "</thought>" }, "stop"),
  ];
  assert.deepEqual(deltasOf(...pieces), [
    thought("Paris, "),
    thought("surely."),
    text("It is Paris."),
    text("</thought>"),
    end,
  ]);
  assert.deepEqual(deltasOf(...pieces.slice(0, 2), chunk({ content: "It is Paris." }, "stop")).slice(2), [
    text("It is Paris."),
    end,
  ]);
  const readWhole = (content: string) =>
    readWholeReply(JSON.stringify({ choices: [{ message: { content, ...mark }, finish_reason: "stop" }] }), String);
  assert.deepEqual(readWhole("<thought>Paris.</thought>It is."), [thought("Paris."), text("It is."), end]);
  assert.deepEqual(readWhole("It is."), [text("It is."), end]);
  assert.deepEqual(deltasOf(chunk({ reasoning_text: "Paris." }))[0], thought("Paris."));
});

test("fields of a server's own are passed on, but not empty lists, nor what marks a thought", () => {
  const images = [{ url: "data:image/png;base64,AA==" }];
  const said = { type: "text", text: "Hi", logprobs: undefined };
  assert.deepEqual(deltasOf(chunk({ content: "Hi", images: [], reasoning_details: [] })), [said]);
  const extra = { dialect: "chat", fields: { images } };
  const added = { type: "message-extra", extra };
  assert.deepEqual(deltasOf(chunk({ content: "Hi", images })), [added, said]);
  const marked = chunk({ content: "Hm", images, extra_content: { google: { thought: true } } });
  assert.deepEqual(deltasOf(marked), [{ type: "reasoning", text: "Hm" }, added]);
  const unmarked = { extra_content: { google: { grounding: 1 } } };
  const other = { type: "message-extra", extra: { dialect: "chat", fields: unmarked } };
  assert.deepEqual(deltasOf(chunk({ content: "Hi", ...unmarked })), [other, said]);
});

const prototypeWords = ["constructor", "toString", "__proto__", "hasOwnProperty"];

test("names of built-in properties are unknown words from an upstream", () => {
  for (const word of prototypeWords) {
    for (const error of [{ code: word }, { type: word }]) {
      const failure = failureIn({ error });
      assert.equal(failure.code, "adapter_error");
      assert.equal(failure.message, "The upstream failed.");
    }
    const deltas = deltasOf(chunk({ content: "Hi" }, word));
    assert.deepEqual(deltas.at(-1), { type: "finish", reason: "stop" });
  }
});

/** A whole answer with this finish reason. */
function wholeWith(finish: string): string {
  const message = { role: "assistant", content: "Half" };
  return JSON.stringify({ choices: [{ index: 0, message, finish_reason: finish }] });
}

const lengthWords = ["length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded"];
const filterWords = [
  "content_filter",
  "content_filter: RECITATION",
  "content_filtered",
  "guardrail_intervened",
  "PROHIBITED_CONTENT",
  "RECITATION",
  "SAFETY",
  "sensitive",
  "refusal",
];

for (const [reason, words] of [
  ["length", lengthWords],
  ["content-filter", filterWords],
] as const) {
  test(`other servers' names for the finish reason ${reason} are understood`, () => {
    for (const word of words) {
      assert.deepEqual(deltasOf(chunk({ content: "Half" }, word)).at(-1), { type: "finish", reason });
      assert.deepEqual(readWholeReply(wholeWith(word), (text) => text).at(-1), { type: "finish", reason });
    }
  });
}

test("an answer that the server aborted is a failure, not a short answer", () => {
  const malformed = ["function_call_filter: MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"];
  for (const word of ["error", "abort", "insufficient_system_resource", "network_error", ...malformed]) {
    const expected = { code: "adapter_error", message: new RegExp(`\\(finish_reason: ${word}\\)`) };
    const reader = createReplyReader((text) => text);
    const said = reader.read([Buffer.from(`data: ${JSON.stringify(chunk({ content: "Half" }, word))}\n\n`)]);
    assert.deepEqual(said, [{ type: "text", text: "Half", logprobs: undefined }]);
    assert.throws(() => reader.check(), expected);
    assert.throws(() => readWholeReply(wholeWith(word), (text) => text), expected);
  }
});

test("an invalid or negative token count is read as 0", () => {
  for (const count of [1.5, -3, 1e300, "7", null]) {
    const odd = {
      prompt_tokens: count,
      completion_tokens: count,
      prompt_tokens_details: { cached_tokens: count, cache_write_tokens: count },
      completion_tokens_details: { reasoning_tokens: count },
    };
    const deltas = deltasOf(chunk({ content: "Hi" }, "stop"), { choices: [], usage: odd });
    const none = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };
    assert.deepEqual(deltas.at(-1), { type: "usage", usage: none });
  }
});

test("tokens that a server counts only in the total were written by the model", () => {
  const usageOf = (usage: unknown) => deltasOf(chunk({ content: "Hi" }, "stop"), { choices: [], usage }).at(-1);
  const counted = (outputTokens: number, reasoningTokens: number) => ({
    type: "usage",
    usage: { inputTokens: 12, cachedTokens: 0, outputTokens, reasoningTokens },
  });
  const reasoning = { completion_tokens_details: { reasoning_tokens: 386 } };
  const apart = { prompt_tokens: 12, completion_tokens: 1, total_tokens: 399, ...reasoning };
  assert.deepEqual(usageOf(apart), counted(387, 386));
  assert.deepEqual(usageOf({ ...apart, completion_tokens: 387 }), counted(387, 386));
  assert.deepEqual(usageOf({ prompt_tokens: 12, total_tokens: 72 }), counted(60, 0));
  assert.deepEqual(usageOf({ prompt_tokens: 12, completion_tokens: 5, total_tokens: 3 }), counted(5, 0));
  const total = usageOf({ total_tokens: 72 });
  assert.deepEqual(total, { ...counted(0, 0), usage: { ...counted(0, 0).usage, inputTokens: 0 } });
});

test("cached tokens that a server counts only in the total were read by the model", () => {
  const usageOf = (usage: unknown) => deltasOf(chunk({ content: "Hi" }, "stop"), { choices: [], usage }).at(-1);
  const tokens = { prompt_tokens: 4, completion_tokens: 50 };
  const counted = { inputTokens: 1_004, cachedTokens: 1_000, outputTokens: 50, reasoningTokens: 0 };
  const read = { prompt_tokens_details: { cached_tokens: 1_000 } };
  assert.deepEqual(usageOf({ ...tokens, ...read, total_tokens: 1_054 }), { type: "usage", usage: counted });
  const written = { ...counted, inputTokens: 1_204, cacheWriteTokens: 200 };
  const both = { prompt_tokens_details: { cached_tokens: 1_000, cache_write_tokens: 200 } };
  assert.deepEqual(usageOf({ ...tokens, ...both, total_tokens: 1_254 }), { type: "usage", usage: written });
  // What was written to the cache may be counted nowhere else.
  assert.deepEqual(usageOf({ ...tokens, ...read, total_tokens: 1_254 }), {
    type: "usage",
    usage: { ...counted, inputTokens: 1_204 },
  });
});

test("no more tokens of a total are the model's than it reasoned", () => {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 10,
    total_tokens: 145,
    completion_tokens_details: { reasoning_tokens: 30 },
  };
  assert.deepEqual(deltasOf(chunk({ content: "Hi" }, "stop"), { choices: [], usage }).at(-1), {
    type: "usage",
    usage: { inputTokens: 100, cachedTokens: 0, outputTokens: 40, reasoningTokens: 30 },
  });
});

test("usage is found in a choice too, and the cached tokens beside the others", () => {
  const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
  const counted = { inputTokens: 9, cachedTokens: 7, outputTokens: 2, reasoningTokens: 0 };
  for (const cached of ["cached_tokens", "prompt_cache_hit_tokens"]) {
    const choice = { index: 0, delta: { content: "Hi" }, finish_reason: "stop", usage: { ...usage, [cached]: 7 } };
    assert.deepEqual(deltasOf({ choices: [choice] }).at(-1), { type: "usage", usage: counted });
  }
});

test("only the first choice is read, whatever index the others have", () => {
  const others = [1, 1.5, -3].map((index) => ({ choices: [{ index, delta: { content: "other" } }] }));
  const deltas = deltasOf(...others, chunk({ content: "Hi" }, "stop"));
  assert.deepEqual(deltas, [
    { type: "text", text: "Hi", logprobs: undefined },
    { type: "finish", reason: "stop" },
  ]);
});

test("a stream that contains a whole answer is read once", () => {
  const whole = { choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }] };
  const finish: Delta = { type: "finish", reason: "stop" };
  const text: Delta = { type: "text", text: "Hi", logprobs: undefined };
  assert.deepEqual(deltasOf(whole), [text, finish]);
  assert.deepEqual(deltasOf(chunk({ content: "Hi" }), whole), [text, finish]);
});

test("calls that share an id are separated by their index, and the second gets a new id", () => {
  const begin = (index: number) =>
    chunk({ tool_calls: [{ index, id: "same", function: { name: "f", arguments: "{" } }] });
  const go = (index: number) =>
    chunk({ tool_calls: [{ index, id: "same", function: { arguments: `"${index}":1}` } }] });
  const deltas = deltasOf(begin(0), begin(1), go(0), go(1), chunk({}, "tool_calls"));
  assert.deepEqual(
    deltas.flatMap((delta) => (delta.type === "tool-call" ? [[delta.index, delta.callId]] : [])),
    [
      [0, "same"],
      [1, undefined],
    ],
  );
  const emitted = ["", ""];
  for (const delta of deltas) if (delta.type === "tool-arguments") emitted[delta.index] += delta.text;
  assert.deepEqual(emitted, ['{"0":1}', '{"1":1}']);
});

test("calls that share an index are separated by their names and by where their arguments end", () => {
  const call = (name: string | undefined, text: string, id?: string, index = 0) => ({
    tool_calls: [{ index, id, type: "function", function: { name, arguments: text } }],
  });
  const read = (...deltas: readonly object[]) =>
    deltasOf(...deltas.map((delta) => chunk(delta)), chunk({}, "tool_calls")).filter(({ type }) => type !== "finish");
  const emitted = (name: string, index: number, ...texts: readonly string[]) => [
    { type: "tool-call", index, callId: undefined, name, kind: "function" },
    ...texts.map((text) => ({ type: "tool-arguments", index, text })),
  ];
  assert.deepEqual(read(call("look", '{"at":'), call("look", "1}"), call("look", '{"at":2}'), call("hear", "{}")), [
    ...emitted("look", 0, '{"at":', "1}"),
    ...emitted("look", 1, '{"at":2}'),
    ...emitted("hear", 2, "{}"),
  ]);
  assert.deepEqual(
    read(call("look", "", ""), call("look", "{", ""), call(undefined, "}", ""), call("hear", "{}", "")),
    [...emitted("look", 0, "{", "}"), ...emitted("hear", 1, "{}")],
  );
  const [first, ...others] = read(call("look", "{}", "c"), call("hear", "{", "c"), call(undefined, "}", "c"));
  assert.deepEqual(first, { type: "tool-call", index: 0, callId: "c", name: "look", kind: "function" });
  assert.deepEqual(others, [{ type: "tool-arguments", index: 0, text: "{}" }, ...emitted("hear", 1, "{", "}")]);
  assert.deepEqual(read(call("look", "{}", "c"), call("hear", "{}")).slice(2), emitted("hear", 1, "{}"));
  // A piece without a name belongs to the call with its id or, if none has that, at its place.
  const whole = read(call("look", "{", "c"), call(undefined, "}", "c"));
  assert.deepEqual(read(call("look", "{", "c"), call(undefined, "}", "d")), whole);
  assert.deepEqual(read(call("look", "{", "c"), call(undefined, "}", "c", 1)), whole);
  assert.deepEqual(read(call(undefined, "{"), call("look", "", "c"), call(undefined, "}")), whole);
});

test("calls of a whole answer are separated by their position, whatever their ids and indexes", () => {
  const entry = (name: string, more: object) => ({ type: "function", function: { name, arguments: "{}" }, ...more });
  for (const same of [{ id: "same" }, { id: "same", index: 0 }]) {
    const message = { role: "assistant", content: null, tool_calls: [entry("f", same), entry("g", same)] };
    const whole = { choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
    const called = [
      { type: "tool-call", index: 0, callId: "same", name: "f", kind: "function" },
      { type: "tool-arguments", index: 0, text: "{}" },
      { type: "tool-call", index: 1, callId: undefined, name: "g", kind: "function" },
      { type: "tool-arguments", index: 1, text: "{}" },
      { type: "finish", reason: "tool-calls" },
    ];
    assert.deepEqual(
      readWholeReply(JSON.stringify(whole), (text) => text),
      called,
    );
    assert.deepEqual(deltasOf(whole), called);
  }
});

test("extra fields of a call before its name are emitted with it, the newest value of each", () => {
  const piece = (fields: object) => chunk({ tool_calls: [{ index: 0, ...fields }] });
  const [first, ...others] = deltasOf(
    piece({ id: "c", one: 1, two: 1 }),
    piece({ two: 2 }),
    piece({ three: 3, function: { name: "f", arguments: "{}" } }),
    chunk({}, "tool_calls"),
  );
  const extra = { dialect: "chat", fields: { one: 1, two: 2, three: 3 } };
  assert.deepEqual(first, { type: "tool-call", index: 0, callId: "c", name: "f", kind: "function", extra });
  assert.deepEqual(
    others.map(({ type }) => type),
    ["tool-arguments", "finish"],
  );
});

test("extra fields of a call after its name are emitted as they arrive", () => {
  const piece = (fields: object) => chunk({ tool_calls: ["none", { index: 0, ...fields }] });
  const extra = { dialect: "chat", fields: { seal: "s" } };
  assert.deepEqual(deltasOf(piece({ id: "c", function: { name: "f" } }), piece({ seal: "s" })), [
    { type: "tool-call", index: 0, callId: "c", name: "f", kind: "function" },
    { type: "tool-extra", index: 0, extra },
  ]);
});

test("thousands of fields before a call's name are read in linear time", () => {
  const fields = Array.from({ length: 10_000 }, (_, at) => chunk({ tool_calls: [{ index: 0, [`field${at}`]: at }] }));
  const start = worked();
  const [first] = deltasOf(...fields, chunk({ tool_calls: [{ index: 0, function: { name: "f" } }] }));
  assert.ok(worked() - start < 5_000);
  assert.ok(first?.type === "tool-call");
  assert.equal(Object.keys(first.extra?.fields ?? {}).length, 10_000);
});

test("spaces around [DONE] do not matter, nor do line breaks that are missing after it", () => {
  const reader = createReplyReader((text) => text);
  reader.read([Buffer.from("data:  [DONE] \r\n\r\n")]);
  reader.check();
  assert.ok(reader.isDone());
  const cut = createReplyReader((text) => text);
  cut.read([Buffer.from("data: [DONE]")]);
  cut.end();
  cut.check();
  assert.ok(cut.isDone());
});

test("an answer of several choices may end when all started choices have, and is complete when all have", () => {
  const reader = createReplyReader((text) => text, undefined, 2);
  const read = (index: unknown, finish?: string) => {
    const delta = finish === undefined ? { content: "Hi" } : {};
    const body = { choices: [{ index, delta, finish_reason: finish }] };
    const deltas = reader.read([Buffer.from(`data: ${JSON.stringify(body)}\n\n`)]);
    reader.check();
    return deltas;
  };
  read(0);
  read(0, "stop");
  assert.equal(reader.isWhole(), false, "the second may still come");
  assert.deepEqual(read(1), [{ type: "text", text: "Hi", logprobs: undefined, choice: 1 }]);
  assert.deepEqual(read(2), []);
  assert.deepEqual(read(-1), []);
  assert.deepEqual(read(0.5), []);
  assert.equal(reader.isWhole(), false);
  assert.deepEqual(read(1, "length"), [{ type: "finish", reason: "length", choice: 1 }]);
  assert.equal(reader.isWhole(), true);
  assert.deepEqual(reader.end(), []);
  reader.check();
});

test("an answer that ends while a choice is open is incomplete", () => {
  const reader = createReplyReader((text) => text, undefined, 2);
  const chunks = [
    { choices: [{ index: 0, delta: { content: "Hi" }, finish_reason: "stop" }] },
    { choices: [{ index: 1, delta: { content: "Ho" } }] },
  ];
  reader.read(chunks.map((each) => Buffer.from(`data: ${JSON.stringify(each)}\n\n`)));
  reader.check();
  reader.end();
  assert.throws(() => reader.check(), { code: "adapter_protocol" });
});

test("choices whose finish reason comes with their text may have more text", () => {
  const reader = createReplyReader((text) => text, undefined, 2);
  const choices = [0, 1].map((index) => ({ index, delta: { content: "Hi" }, finish_reason: "stop" }));
  reader.read([Buffer.from(`data: ${JSON.stringify({ choices })}\n\n`)]);
  assert.equal(reader.isWhole(), false);
  reader.end();
  reader.check();
});

test("choices without an index are numbered by their position", () => {
  const say = (content: string) => ({ message: { role: "assistant", content }, finish_reason: "stop" });
  const whole = JSON.stringify({ choices: [say("one"), say("two"), say("three")] });
  const textsOf = (choices?: number) =>
    readWholeReply(whole, (text) => text, undefined, choices).flatMap((delta) =>
      delta.type === "text" ? [[delta.choice, delta.text]] : [],
    );
  assert.deepEqual(textsOf(2), [
    [undefined, "one"],
    [1, "two"],
  ]);
  assert.deepEqual(textsOf(), [[undefined, "one"]]);
});
