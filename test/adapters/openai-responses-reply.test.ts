/** How the openai adapter reads answers on the responses wire. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenai } from "./made.ts";
import { createReplyReader, readWholeReply } from "../../src/adapters/openai/responses/reply.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Turn } from "../../src/core/turn.ts";
import { answerEvents, answerJson, startUpstream } from "../upstream.ts";
import { completed, item, itemAdded, itemDone, response, responseEvent } from "./openai-events.ts";

const scrub = (text: string) => text.replaceAll("secret", "[secret]");

function deltasOf(...events: readonly unknown[]): readonly Delta[] {
  const reader = createReplyReader(scrub);
  const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`);
  const deltas = [...reader.read([Buffer.from(lines.join(""))])];
  reader.check();
  if (!reader.isDone()) deltas.push(...reader.end());
  reader.check();
  return deltas;
}

function wholeOf(body: unknown): readonly Delta[] {
  return readWholeReply(JSON.stringify(body), scrub);
}

function failureOf(run: () => unknown): GatewayError {
  try {
    run();
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  }
  return assert.fail("It did not fail.");
}

function text(index: number, delta: string, more: Readonly<Record<string, unknown>> = {}): unknown {
  return responseEvent("output_text.delta", { output_index: index, content_index: 0, delta, logprobs: [], ...more });
}

function written(index: number, delta: string): unknown {
  return responseEvent("function_call_arguments.delta", { output_index: index, delta });
}

const stop = { type: "finish", reason: "stop" };
const hi = { type: "text", text: "Hi", logprobs: undefined };
const logprob = { token: "Hi", logprob: -0.5, bytes: [72, 105], top_logprobs: [] };
const messageEnd = { type: "message-end", extra: undefined };

test("a stream emits reasoning, its seal, text, refusal, tier, usage and finish as they arrive", () => {
  const begun = response([], { status: "in_progress", service_tier: "auto", usage: null });
  const usage = {
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 2 },
  };
  const summary = (output: number, section: number, delta: string) =>
    responseEvent("reasoning_summary_text.delta", { output_index: output, summary_index: section, delta });
  const reasoning = item.reasoning(["One.", "Two."], { encrypted_content: "sealed" });
  assert.deepEqual(
    deltasOf(
      responseEvent("created", { response: begun }),
      responseEvent("in_progress", { response: begun }),
      itemAdded(0, item.reasoning([])),
      responseEvent("reasoning_summary_part.added", { output_index: 0, summary_index: 0 }),
      summary(0, 0, "On"),
      summary(0, 0, "e."),
      summary(0, 1, "Two."),
      itemDone(0, reasoning),
      itemAdded(1, item.message("")),
      responseEvent("content_part.added", { output_index: 1, part: { type: "output_text", text: "" } }),
      text(1, "Hi", { logprobs: [logprob] }),
      text(1, " there"),
      responseEvent("output_text.done", { output_index: 1, text: "Hi there" }),
      itemDone(1, item.message("Hi there")),
      responseEvent("refusal.delta", { output_index: 2, delta: "No." }),
      completed([reasoning, item.message("Hi there")], { usage, service_tier: "default" }),
    ),
    [
      { type: "reasoning", text: "On", summary: 0 },
      { type: "reasoning", text: "e.", summary: 0 },
      { type: "reasoning", text: "Two.", summary: 1 },
      { type: "reasoning-seal", encrypted: "sealed" },
      { type: "text", text: "Hi", logprobs: [logprob] },
      { type: "text", text: " there", logprobs: undefined },
      messageEnd,
      { type: "refusal", text: "No." },
      { type: "notes", notes: { serviceTier: "default" } },
      {
        type: "usage",
        usage: { inputTokens: 10, cachedTokens: 4, cacheWriteTokens: 3, outputTokens: 5, reasoningTokens: 2 },
      },
      stop,
    ],
  );
});

test("summaries of two reasoning items stay separate, and raw reasoning is no summary", () => {
  const summary = (output: number, delta: string) =>
    responseEvent("reasoning_summary_text.delta", { output_index: output, summary_index: 0, delta });
  const raw = responseEvent("reasoning_text.delta", { output_index: 4, content_index: 0, delta: "Hm." });
  assert.deepEqual(deltasOf(summary(0, "One."), summary(2, "Two."), raw, completed([])).slice(0, 3), [
    { type: "reasoning", text: "One.", summary: 0 },
    { type: "reasoning", text: "Two.", summary: 1 },
    { type: "reasoning", text: "Hm." },
  ]);
});

const add = { type: "tool-call", index: 0, callId: "call_a", name: "add", kind: "function" };
const shell = { type: "tool-call", index: 1, callId: "call_b", name: "shell", kind: "custom" };

test("arguments of functions and input of custom tools are streamed", () => {
  assert.deepEqual(
    deltasOf(
      itemAdded(0, item.call("call_a", "add", "")),
      itemAdded(1, item.custom("call_b", "shell", "")),
      written(0, '{"a"'),
      responseEvent("custom_tool_call_input.delta", { output_index: 1, delta: "ls" }),
      written(0, ":1}"),
      responseEvent("function_call_arguments.done", { output_index: 0, arguments: '{"a":1}' }),
      itemDone(0, item.call("call_a", "add", '{"a":1}')),
      itemDone(1, item.custom("call_b", "shell", "ls")),
      completed([]),
    ),
    [
      add,
      shell,
      { type: "tool-arguments", index: 0, text: '{"a"' },
      { type: "tool-arguments", index: 1, text: "ls" },
      { type: "tool-arguments", index: 0, text: ":1}" },
      { type: "finish", reason: "tool-calls" },
    ],
  );
});

const inOnePiece = [
  add,
  { type: "tool-arguments", index: 0, text: "{}" },
  shell,
  { type: "tool-arguments", index: 1, text: "ls" },
  { type: "reasoning", text: "Hm." },
  { type: "reasoning", text: "Well.", summary: 0 },
  { type: "reasoning-seal", encrypted: "sealed" },
  hi,
  messageEnd,
  { type: "refusal", text: "No." },
  messageEnd,
];

const output = [
  item.call("call_a", "add", "{}"),
  item.custom("call_b", "shell", "ls"),
  item.reasoning(["Well."], { encrypted_content: "sealed", content: [{ type: "reasoning_text", text: "Hm." }] }),
  item.message("Hi"),
  { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
];

test("a call begins when it has a name, with the group that it is in", () => {
  const call = { type: "function_call", call_id: "call_a", arguments: "{}" };
  const named = { ...call, name: "add", namespace: "math" };
  const finish = { type: "finish", reason: "tool-calls" };
  assert.deepEqual(deltasOf(itemAdded(0, call), written(0, "{"), written(0, "}"), itemDone(0, named), completed([])), [
    { ...add, group: "math" },
    { type: "tool-arguments", index: 0, text: "{}" },
    finish,
  ]);
  assert.equal(failureOf(() => deltasOf(itemAdded(0, call), itemDone(0, call))).code, "adapter_protocol");
  // What a server itself calls has a name too.
  const hosted = { type: "mcp_call", id: "mcp_1", name: "roll", arguments: "{}" };
  assert.deepEqual(deltasOf(itemAdded(0, hosted), itemDone(0, hosted), completed([hosted])), [
    { type: "other", extra: { dialect: "responses", fields: hosted } },
    stop,
  ]);
});

test("arguments that a server writes as an object are its JSON text", () => {
  const call = { ...item.call("c", "look", ""), arguments: { at: 1 } };
  const expected = [
    { type: "tool-call", index: 0, callId: "c", name: "look", kind: "function" },
    { type: "tool-arguments", index: 0, text: '{"at":1}' },
    { type: "finish", reason: "tool-calls" },
  ];
  assert.deepEqual(deltasOf(itemAdded(0, call), itemDone(0, call), completed([call])), expected);
  assert.deepEqual(wholeOf(response([call])), expected);
});

test("the rest of partly streamed arguments is emitted when they, or their call, are done", () => {
  const call = item.call("c", "look", '{"at":1}');
  const begun = { type: "tool-call", index: 0, callId: "c", name: "look", kind: "function" };
  const piece = (text: string) => ({ type: "tool-arguments", index: 0, text });
  const finish = { type: "finish", reason: "tool-calls" };
  const whole = responseEvent("function_call_arguments.done", { output_index: 0, arguments: '{"at":1}' });
  const ofCall = (...events: readonly unknown[]) => deltasOf(itemAdded(0, { ...call, arguments: "" }), ...events);
  const rest = [begun, piece('{"at"'), piece(":1}"), finish];
  assert.deepEqual(ofCall(written(0, '{"at"'), itemDone(0, call), completed([call])), rest);
  assert.deepEqual(ofCall(written(0, '{"at"'), whole, itemDone(0, call), completed([call])), rest);
  const empty = itemDone(0, { ...call, arguments: "" });
  assert.deepEqual(ofCall(whole, empty, completed([])), [begun, piece('{"at":1}'), finish]);
  assert.deepEqual(ofCall(written(0, "{}"), whole, itemDone(0, call), completed([])), [begun, piece("{}"), finish]);
  const other = itemAdded(1, item.message(""));
  assert.deepEqual(ofCall(written(0, "{"), other, itemDone(0, call), completed([])), [begun, piece("{"), finish]);
  const input = responseEvent("custom_tool_call_input.done", { output_index: 0, input: "*** Begin" });
  const custom = item.custom("c", "patch", "");
  assert.deepEqual(deltasOf(itemAdded(0, custom), input, itemDone(0, custom), completed([]))[1], piece("*** Begin"));
});

test("content that was not streamed is emitted when its item, or the response, is done", () => {
  const finish = { type: "finish", reason: "tool-calls" };
  const items = output.map((one, index) => itemDone(index, one));
  assert.deepEqual(deltasOf(...items, completed(output)), [...inOnePiece, finish]);
  assert.deepEqual(deltasOf(completed(output)), [...inOnePiece, finish]);
  assert.deepEqual(wholeOf(response(output)), [...inOnePiece, finish]);
});

test("the rest of a partly streamed text is emitted when its item, or the response, is done", () => {
  const hello = item.message("Hi there", { annotations: [{ type: "x" }] });
  const there = { type: "text", text: " there" };
  const noted = { type: "annotation", annotation: { type: "x", fields: {} } };
  const whole = completed([hello]);
  assert.deepEqual(deltasOf(text(0, "Hi"), itemDone(0, hello), whole), [hi, there, noted, messageEnd, stop]);
  assert.deepEqual(deltasOf(text(0, "Hi"), whole), [hi, there, stop]);
  const parts = { ...hello, content: ["Hi", " the", "re"].map((part) => ({ type: "output_text", text: part })) };
  const second = text(0, " t", { content_index: 1 });
  assert.deepEqual(deltasOf(text(0, "H"), second, completed([parts])).slice(2), [{ type: "text", text: "he" }, stop]);
});

test("a final text that differs from the streamed one, or is followed by another item, changes nothing", () => {
  assert.deepEqual(deltasOf(text(0, "Hi"), completed([item.message("Good day")])), [hi, stop]);
  assert.deepEqual(deltasOf(text(0, "Hi"), completed([item.message("H")])), [hi, stop]);
  assert.deepEqual(deltasOf(text(0, "Hi"), completed([item.reasoning([]), item.message("Hi there")])), [hi, stop]);
  const call = item.call("call_a", "add", "{}");
  const late = completed([item.message("Hi there"), call]);
  assert.deepEqual(
    deltasOf(text(0, "Hi"), itemAdded(1, call), late).map(({ type }) => type),
    ["text", "tool-call", "finish"],
  );
  assert.deepEqual(
    deltasOf(text(0, "Hi"), itemAdded(1, call), itemDone(0, item.message("Hi there")), late).map(({ type }) => type),
    ["text", "tool-call", "message-end", "finish"],
  );
  assert.deepEqual(deltasOf(text(0, "Hi"), itemDone(0, item.message("Hi")), late), [hi, messageEnd, stop]);
});

test("the call of a hosted tool is emitted whole when it is done, and unknown events are skipped", () => {
  const search = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } };
  const searched = { type: "other", extra: { dialect: "responses", fields: search } };
  assert.deepEqual(
    deltasOf(
      itemAdded(0, search),
      responseEvent("web_search_call.searching", { output_index: 0 }),
      responseEvent("mcp_call_arguments.delta", { output_index: 0, delta: "{}" }),
      written(0, "{}"),
      itemDone(0, search),
      { type: "keepalive" },
      text(1, "Hi"),
      responseEvent("output_text.annotation.added", { output_index: 1, annotation: { type: "x" } }),
      completed([search, item.message("Hi")]),
    ),
    [searched, hi, { type: "annotation", annotation: { type: "x", fields: {} } }, stop],
  );
  assert.deepEqual(wholeOf(response([search, item.message("Hi")])), [searched, hi, messageEnd, stop]);
});

test("an item that the caller must answer is matched by its call id or its own id, and its output likewise", () => {
  const cases = [
    [
      { type: "mcp_approval_request", id: "a1", call_id: "c1" },
      { side: "model", id: "a1" },
    ],
    [
      { type: "computer_call", id: "a1", call_id: "c1" },
      { side: "model", id: "c1" },
    ],
    [
      { type: "computer_call_output", id: "a1", call_id: "c1" },
      { side: "tools", id: "c1" },
    ],
  ] as const;
  for (const [fields, exchange] of cases) {
    const [emitted] = wholeOf(response([fields]));
    assert.deepEqual(emitted, { type: "other", extra: { dialect: "responses", fields }, exchange });
  }
});

test("extra fields of a call are emitted with it, and again if they have changed when it is done", () => {
  const call = item.call("c1", "add", "{}");
  const extra = (seal: string) => ({ dialect: "responses", fields: { seal } });
  const begun = { type: "tool-call", index: 0, callId: "c1", name: "add", kind: "function", extra: extra("a") };
  const written = { type: "tool-arguments", index: 0, text: "{}" };
  for (const [seal, more] of [
    ["a", []],
    ["b", [{ type: "tool-extra", index: 0, extra: extra("b") }]],
  ] as const) {
    const [first, ...rest] = deltasOf(
      itemAdded(0, { ...call, seal: "a" }),
      itemDone(0, { ...call, seal }),
      completed([]),
    );
    assert.deepEqual([first, ...rest.slice(0, -1)], [begun, ...more, written]);
  }
});

test("an annotation before its text is emitted after it, in order with those that follow", () => {
  const fields = (url: string) => ({ url, title: "t", start_index: 0, end_index: 1 });
  const note = (url: string) => ({ type: "url_citation", ...fields(url) });
  const noted = (url: string) =>
    responseEvent("output_text.annotation.added", { output_index: 0, content_index: 0, annotation: note(url) });
  const emitted = (url: string) => ({ type: "annotation", annotation: { type: "url_citation", fields: fields(url) } });
  assert.deepEqual(
    deltasOf(
      noted("a"),
      text(0, "Hi"),
      noted("b"),
      itemDone(0, item.message("Hi", { annotations: [note("a"), note("b")] })),
      completed([]),
    ),
    [hi, emitted("a"), emitted("b"), messageEnd, stop],
  );
});

test("positions of annotations on later texts are shifted, as the texts of a message become one", () => {
  const note = { type: "url_citation", url: "u", title: "t", start_index: 0, end_index: 2, index: 1 };
  const part = (said: string) => ({ type: "output_text", text: said, annotations: [note] });
  const refusal = { type: "refusal", refusal: "No." };
  const message = { type: "message", id: "msg_1", content: [part("One."), part("Two."), refusal, part("Three.")] };
  const noted = (number: number) =>
    responseEvent("output_text.annotation.added", { output_index: 0, content_index: number, annotation: note });
  const emitted = (start: number) => {
    const fields = { url: "u", title: "t", start_index: start, end_index: start + 2, index: 1 };
    return { type: "annotation", annotation: { type: "url_citation", fields } };
  };
  const say = (said: string) => ({ type: "text", text: said, logprobs: undefined });
  const all = [
    say("One."),
    emitted(0),
    say("Two."),
    emitted(4),
    { type: "refusal", text: "No." },
    say("Three."),
    emitted(0),
    messageEnd,
    stop,
  ];
  assert.deepEqual(wholeOf(response([message])), all);
  const streamed = deltasOf(
    text(0, "One."),
    noted(0),
    text(0, "Tw", { content_index: 1 }),
    text(0, "o.", { content_index: 1 }),
    noted(1),
    responseEvent("refusal.delta", { output_index: 0, content_index: 2, delta: "No." }),
    text(0, "Three.", { content_index: 3 }),
    noted(3),
    itemDone(0, message),
    completed([message]),
  );
  assert.deepEqual(streamed, all.toSpliced(2, 1, say("Tw"), say("o.")));
});

test("the phase of a message is emitted with its first text, and never alone", () => {
  const extra = { dialect: "responses", fields: { phase: "commentary" } };
  const message = { ...item.message("Hi there"), phase: "commentary" };
  const end = { type: "message-end", extra };
  const begun = itemAdded(0, { ...message, content: [] });
  const there = { type: "text", text: " there", logprobs: undefined };
  const rest = [itemDone(0, message), completed([message])];
  assert.deepEqual(deltasOf(begun, text(0, "Hi"), text(0, " there"), ...rest), [{ ...hi, extra }, there, end, stop]);
  const refused = { ...message, content: [{ type: "refusal", refusal: "No." }] };
  const no = responseEvent("refusal.delta", { output_index: 0, content_index: 0, delta: "No." });
  const refusal = { type: "refusal", text: "No.", extra };
  assert.deepEqual(deltasOf(begun, no, itemDone(0, refused), completed([])), [refusal, end, stop]);
  assert.deepEqual(wholeOf(response([refused])), [refusal, end, stop]);
  const atOnce = [{ type: "text", text: "Hi there", logprobs: undefined, extra }, end, stop];
  assert.deepEqual(deltasOf(begun, ...rest), atOnce);
  assert.deepEqual(wholeOf(response([message])), atOnce);
  const reader = createReplyReader(scrub);
  assert.deepEqual(reader.read([Buffer.from(`data: ${JSON.stringify(begun)}\n\n`)]), []);
});

test("an event may hold an image of many megabytes", () => {
  const image = { type: "image_generation_call", id: "ig_1", status: "completed", result: "A".repeat(9_000_000) };
  const bytes = Buffer.from(
    `data: ${JSON.stringify(itemDone(0, image))}\n\ndata: ${JSON.stringify(completed([]))}\n\n`,
  );
  const reader = createReplyReader(scrub);
  const half = reader.read([bytes.subarray(0, 8_900_000)]);
  reader.check();
  assert.deepEqual(half, []);
  assert.deepEqual(reader.read([bytes.subarray(8_900_000)]), [
    { type: "other", extra: { dialect: "responses", fields: image } },
    stop,
  ]);
  reader.check();
});

test("an answer that is cut off names its limit", () => {
  const cases = [
    ["max_output_tokens", "length"],
    ["content_filter", "content-filter"],
    ["some_other_limit", "length"],
  ] as const;
  for (const [reason, finish] of cases) {
    const cut = response([], { status: "incomplete", incomplete_details: { reason } });
    assert.deepEqual(deltasOf(responseEvent("incomplete", { response: cut })), [{ type: "finish", reason: finish }]);
    assert.deepEqual(wholeOf(cut), [{ type: "finish", reason: finish }]);
    const half = { ...item.message("Hi"), status: "incomplete" };
    assert.deepEqual(wholeOf({ ...cut, output: [half] }), [hi, { type: "finish", reason: finish }]);
  }
});

test("a failure is read in every form, with its code and without secrets", () => {
  const error = { code: "rate_limit_exceeded", message: "Slow down, secret." };
  const failed = response([], { status: "failed", error });
  const ways = [
    () => deltasOf(responseEvent("failed", { response: failed })),
    () => deltasOf({ type: "error", ...error, param: null, sequence_number: 3 }),
    () => deltasOf({ type: "error", error: { type: "rate_limit_error", ...error } }),
    () => deltasOf({ error }),
    () => deltasOf(error),
    () => wholeOf(failed),
    () => wholeOf(error),
  ];
  for (const way of ways) {
    const failure = failureOf(way);
    assert.equal(failure.code, "adapter_rate_limit");
    assert.equal(failure.wireCode, "rate_limit_exceeded");
    assert.equal(failure.message, "Slow down, [secret].");
  }
  const codes = [
    ["server_error", "adapter_error"],
    ["invalid_prompt", "adapter_bad_request"],
    ["context_length_exceeded", "adapter_bad_request"],
    ["server_is_overloaded", "overloaded"],
    [null, "adapter_error"],
  ] as const;
  for (const [code, ours] of codes) {
    const body = response([], { status: "failed", error: { code, message: "No." } });
    assert.equal(failureOf(() => deltasOf(responseEvent("failed", { response: body }))).code, ours);
  }
  assert.equal(failureOf(() => wholeOf(response([], { status: "failed" }))).code, "adapter_error");
});

test("text before a failure is emitted before it", () => {
  const reader = createReplyReader(scrub);
  const events = [text(0, "Hi"), { type: "error", message: "Broken." }];
  const bytes = Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  assert.deepEqual(reader.read([bytes]), [hi]);
  assert.throws(() => reader.check(), /Broken/);
});

test("a stream ends with its terminal event, and is incomplete without one", () => {
  assert.deepEqual(deltasOf(text(0, "Hi"), completed([]), text(0, "more")), [hi, stop]);
  assert.equal(failureOf(() => deltasOf(text(0, "Hi"))).code, "adapter_protocol");
  assert.match(failureOf(() => deltasOf()).message, /broke off/);
  const reader = createReplyReader(scrub);
  reader.read([Buffer.from("data: [DONE]\n\n")]);
  assert.throws(() => reader.check(), /broke off/);
});

test("a body that is not a response is a protocol error that quotes nothing", () => {
  const bodies = [{ hello: "private" }, ["private"], response([], { status: "queued" }), { status: "cancelled" }];
  for (const body of bodies) {
    const failure = failureOf(() => wholeOf(body));
    assert.equal(failure.code, "adapter_protocol");
    assert.doesNotMatch(failure.message, /private/);
  }
  const { name: _, ...nameless } = item.call("call_a", "add", "{}");
  assert.equal(failureOf(() => deltasOf(itemDone(0, nameless))).code, "adapter_protocol");
});

test("on the responses wire a turn is one request to /responses, and the connection is used again", async () => {
  await using server = await startUpstream(answerEvents(text(0, "Hi"), completed([item.message("Hi")])));
  const adapter = createOpenai({ base_url: `${server.url}/v1`, wire: "responses" }, {});
  const items = [{ type: "message", role: "user", content: "Hello" }] as const;
  const turn: Turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream: true };
  async function collect(): Promise<readonly Delta[]> {
    const deltas: Delta[] = [];
    for await (const batch of adapter.stream(turn, new AbortController().signal)) deltas.push(...batch);
    return deltas;
  }
  assert.deepEqual(await collect(), [hi, stop]);
  await new Promise((resolve) => setImmediate(resolve));
  server.script = answerJson(response([item.message("Hi")]));
  assert.deepEqual(await collect(), [hi, messageEnd, stop]);
  assert.equal(server.sockets.length, 1);
  assert.equal(server.received[0]?.path, "/v1/responses");
  assert.deepEqual(adapter.speaks, ["responses"]);
  assert.deepEqual(createOpenai({}, {}).speaks, ["chat"]);
  await adapter.close?.();
});

test("a tool search of the caller is a call, and one of the server is an item of its own", () => {
  const search = { type: "tool_search_call", id: "tsc_1", status: "completed", arguments: { query: "f" } };
  const client = { ...search, execution: "client", call_id: "call_s" };
  const server = { ...search, execution: "server", call_id: null };
  const called = [
    { type: "tool-call", index: 0, callId: "call_s", name: "tool_search", kind: "search" },
    { type: "tool-arguments", index: 0, text: '{"query":"f"}' },
    { type: "finish", reason: "tool-calls" },
  ];
  assert.deepEqual(deltasOf(itemAdded(0, client), itemDone(0, client), completed([client])), called);
  assert.deepEqual(wholeOf(response([client])), called);
  const { execution: _, ...unmarked } = server;
  for (const fields of [server, unmarked])
    assert.deepEqual(deltasOf(itemAdded(0, fields), itemDone(0, fields), completed([fields])), [
      { type: "other", extra: { dialect: "responses", fields } },
      stop,
    ]);
});
