/** The openai adapter against a scripted upstream on a real socket. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { createOpenai } from "./made.ts";
import { options } from "../../src/adapters/openai/options.ts";
import { createReplyReader } from "../../src/adapters/openai/chat/reply.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Adapter } from "../../src/core/ports.ts";
import type { Turn } from "../../src/core/turn.ts";
import { type Script, answerEvents, answerJson, beginEvents, chunk, startUpstream, writeEvent } from "../upstream.ts";
import { startStopwatch } from "../stopwatch.ts";

const apiKey = "sk-very-secret-key";

function turnOf(stream: boolean): Turn {
  const items = [{ type: "message", role: "user", content: "Hello" }] as const;
  return { id: "resp_1", model: "model-1", items, settings: { tools: [] }, stream };
}

async function collect(adapter: Adapter, stream: boolean, signal = new AbortController().signal): Promise<Delta[]> {
  const deltas: Delta[] = [];
  for await (const batch of adapter.stream(turnOf(stream), signal)) deltas.push(...batch);
  return deltas;
}

async function startBoth(script: Script, options: Partial<Parameters<typeof createOpenai>[0]> = {}) {
  const server = await startUpstream(script);
  const adapter = createOpenai({ base_url: `${server.url}/v1`, api_key: apiKey, ...options }, {});
  return {
    server,
    adapter,
    async [Symbol.asyncDispose]() {
      await adapter.close?.();
      await server.close();
    },
  };
}

async function answerTo(script: Script, stream = true): Promise<Delta[]> {
  await using both = await startBoth(script);
  return await collect(both.adapter, stream);
}

async function failureOf(script: Script, stream = true): Promise<GatewayError> {
  try {
    await answerTo(script, stream);
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  }
  return assert.fail("It did not fail.");
}

function whole(message: unknown, finish = "stop", more: Record<string, unknown> = {}): Script {
  return answerJson({ id: "chatcmpl-1", choices: [{ index: 0, message, finish_reason: finish, ...more }] });
}

/** Events without the `[DONE]` that should follow them. */
function eventsOnly(...events: readonly unknown[]): Script {
  return (_, response) => {
    beginEvents(response);
    for (const event of events) writeEvent(response, event);
    response.end();
  };
}

function answerAs(contentType: string, body: string): Script {
  return (_, response) => void response.writeHead(200, { "content-type": contentType }).end(body);
}

function limited(retryAfter: string, more: Record<string, string> = {}): Promise<GatewayError> {
  return failureOf(answerJson({}, 429, { "retry-after": retryAfter, ...more }));
}

const usage = {
  prompt_tokens: 10,
  completion_tokens: 5,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
  completion_tokens_details: { reasoning_tokens: 2 },
};
const logprob = { token: "Hi", logprob: -0.5, bytes: [72, 105], top_logprobs: [] };
const usageDelta = {
  type: "usage",
  usage: { inputTokens: 10, cachedTokens: 4, cacheWriteTokens: 3, outputTokens: 5, reasoningTokens: 2 },
};

test("a whole answer is one batch of deltas", async () => {
  const message = { role: "assistant", content: "Hi", reasoning_content: "Hm.", refusal: null };
  await using both = await startBoth(
    answerJson({
      choices: [{ index: 0, message, finish_reason: "length", logprobs: { content: [logprob] } }],
      usage,
      system_fingerprint: "fp_1",
      service_tier: "default",
    }),
    { headers: { "X-Extra": "more" }, organization: "org-1", project: "proj-1" },
  );
  const batches: (readonly Delta[])[] = [];
  for await (const batch of both.adapter.stream(turnOf(false), new AbortController().signal)) batches.push(batch);
  assert.deepEqual(batches, [
    [
      { type: "notes", notes: { fingerprint: "fp_1", serviceTier: "default" } },
      { type: "reasoning", text: "Hm." },
      { type: "text", text: "Hi", logprobs: [logprob] },
      { type: "finish", reason: "length" },
      usageDelta,
    ],
  ]);
  const [received] = both.server.received;
  assert.equal(`${received?.method} ${received?.path}`, "POST /v1/chat/completions");
  assert.equal(received?.headers.authorization, `Bearer ${apiKey}`);
  assert.equal(received?.headers["x-extra"], "more");
  assert.equal(received?.headers["openai-organization"], "org-1");
  assert.equal(received?.headers["openai-project"], "proj-1");
  assert.deepEqual(received?.json, { model: "model-1", messages: [{ role: "user", content: "Hello" }] });
});

test("a streamed answer emits text, refusal, reasoning, finish and usage as they arrive", async () => {
  const notes = { system_fingerprint: "fp_1", service_tier: "default" };
  const deltas = await answerTo(
    answerEvents(
      { ...(chunk({ role: "assistant", content: "" }) as object), ...notes, usage: null },
      chunk({ reasoning: "Hm." }),
      { ...(chunk({ content: "Hi" }, null, { logprobs: { content: [logprob] } }) as object), ...notes },
      chunk({ content: " there" }),
      chunk({ refusal: "No." }),
      chunk({}, "content_filter"),
      { choices: [], usage },
    ),
  );
  assert.deepEqual(deltas, [
    { type: "notes", notes: { fingerprint: "fp_1", serviceTier: "default" } },
    { type: "reasoning", text: "Hm." },
    { type: "text", text: "Hi", logprobs: [logprob] },
    { type: "text", text: " there", logprobs: undefined },
    { type: "refusal", text: "No." },
    { type: "finish", reason: "content-filter" },
    usageDelta,
  ]);
});

test("a burst of events is emitted in few batches, and the connection is used again after [DONE]", async () => {
  const texts = Array.from({ length: 50 }, (_, index) => chunk({ content: `${index} ` }));
  await using both = await startBoth(answerEvents(...texts, chunk({}, "stop")));
  let batches = 0;
  for await (const batch of both.adapter.stream(turnOf(true), new AbortController().signal))
    batches += batch.length && 1;
  assert.ok(batches < 10, `${batches} batches`);
  await new Promise((resolve) => setImmediate(resolve));
  await collect(both.adapter, true);
  assert.equal(both.server.sockets.length, 1);
});

const first = { type: "tool-call", index: 0, callId: "call_a", name: "add", kind: "function" };
const second = { type: "tool-call", index: 1, callId: "call_b", name: "sub", kind: "function" };

test("interleaved arguments of parallel calls are kept apart", async () => {
  const deltas = await answerTo(
    answerEvents(
      chunk({ tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "add", arguments: "" } }] }),
      chunk({ tool_calls: [{ index: 1, id: "call_b", type: "function", function: { name: "sub", arguments: "{" } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }),
      chunk({ tool_calls: [{ index: 1, function: { name: "sub", arguments: "}" } }] }),
      chunk({}, "tool_calls"),
    ),
  );
  assert.deepEqual(deltas, [
    first,
    second,
    { type: "tool-arguments", index: 1, text: "{" },
    { type: "tool-arguments", index: 0, text: "{}" },
    { type: "tool-arguments", index: 1, text: "}" },
    { type: "finish", reason: "tool-calls" },
  ]);
});

const inWholePieces = [
  first,
  { type: "tool-arguments", index: 0, text: '{"a":1}' },
  second,
  { type: "tool-arguments", index: 1, text: "{}" },
];

test("calls without an index, or with the same one, are separated by their ids", async () => {
  const calls = [
    { id: "call_a", function: { name: "add", arguments: { a: 1 } } },
    { id: "call_b", function: { name: "sub", arguments: "{}" } },
  ];
  const together = await answerTo(answerEvents(chunk({ tool_calls: calls }), chunk({}, "stop")));
  assert.deepEqual(together.slice(0, 4), inWholePieces);
  const same = calls.map((call) => chunk({ tool_calls: [{ ...call, index: 0 }] }));
  assert.deepEqual((await answerTo(answerEvents(...same, chunk({}, "stop")))).slice(0, 4), inWholePieces);
  assert.deepEqual((await answerTo(whole({ content: null, tool_calls: calls }), false)).slice(0, 4), inWholePieces);
});

test("pieces without index or id belong to the last call, and custom and legacy calls are read", async () => {
  const custom = await answerTo(
    answerEvents(
      chunk({ tool_calls: [{ id: "call_c", type: "custom", custom: { name: "shell", input: "ls" } }] }),
      chunk({ tool_calls: [{ custom: { input: " -l" } }] }),
      chunk({}, "tool_calls"),
    ),
  );
  assert.deepEqual(custom.slice(0, 3), [
    { type: "tool-call", index: 0, callId: "call_c", name: "shell", kind: "custom" },
    { type: "tool-arguments", index: 0, text: "ls" },
    { type: "tool-arguments", index: 0, text: " -l" },
  ]);
  const legacy = await answerTo(
    answerEvents(
      chunk({ function_call: { name: "add", arguments: "" } }),
      chunk({ function_call: { arguments: "{}" } }),
      chunk({}, "function_call"),
    ),
  );
  assert.deepEqual(legacy, [
    { type: "tool-call", index: 0, callId: undefined, name: "add", kind: "function" },
    { type: "tool-arguments", index: 0, text: "{}" },
    { type: "finish", reason: "tool-calls" },
  ]);
});

test("a name after the arguments still begins the call, and a missing name is an error", async () => {
  const late = [
    chunk({ tool_calls: [{ index: 0, id: "call_a", function: { arguments: "{" } }] }),
    chunk({ tool_calls: [{ index: 0, function: { name: "add", arguments: "}" } }] }),
  ];
  const deltas = await answerTo(answerEvents(...late, chunk({}, "stop")));
  assert.deepEqual(deltas.slice(0, 2), [first, { type: "tool-arguments", index: 0, text: "{}" }]);
  assert.equal((await failureOf(answerEvents(late[0], chunk({}, "stop")))).code, "adapter_protocol");
});

test("a character split at any byte arrives intact", () => {
  const bytes = Buffer.from(`data: ${JSON.stringify(chunk({ content: "é€😀" }))}\r\n\r\ndata: [DONE]\n\n`);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const reader = createReplyReader((text) => text);
    const deltas = [...reader.read([bytes.subarray(0, cut)]), ...reader.read([bytes.subarray(cut)])];
    assert.deepEqual(deltas, [{ type: "text", text: "é€😀", logprobs: undefined }]);
    assert.ok(reader.isDone());
  }
});

test("an answer is read whether or not the server streams as requested", async () => {
  const hi = { type: "text", text: "Hi", logprobs: undefined };
  const stop = { type: "finish", reason: "stop" };
  assert.deepEqual(await answerTo(whole({ content: "Hi" }), true), [hi, stop]);
  assert.deepEqual(await answerTo(answerEvents(chunk({ content: "Hi" }), chunk({}, "stop")), false), [hi, stop]);
  const body = JSON.stringify({ choices: [{ index: 0, message: { content: "Hi" }, finish_reason: "stop" }] });
  for (const type of ["Application/JSON ;charset=utf-8", "application/vnd.house+json"])
    assert.deepEqual(await answerTo(answerAs(type, body)), [hi, stop], type);
});

test("a stream may end without [DONE] after its finish reason, but not before", async () => {
  assert.equal((await answerTo(eventsOnly(chunk({ content: "Hi" }, "stop")))).length, 2);
  assert.match((await failureOf(eventsOnly(chunk({ content: "Hi" })))).message, /broke off/);
  assert.equal((await failureOf(eventsOnly())).code, "adapter_protocol");
});

const statuses: readonly (readonly [status: number, code: string, expected: number])[] = [
  [301, "adapter_protocol", 502],
  [400, "adapter_bad_request", 400],
  [401, "adapter_refused", 502],
  [402, "adapter_refused", 502],
  [403, "adapter_refused", 502],
  [404, "adapter_not_found", 404],
  [408, "adapter_timeout", 504],
  [409, "adapter_error", 502],
  [413, "body_too_large", 413],
  [422, "adapter_bad_request", 400],
  [429, "adapter_rate_limit", 429],
  [500, "adapter_error", 502],
  [502, "adapter_error", 502],
  [503, "overloaded", 503],
  [504, "adapter_timeout", 504],
  [529, "overloaded", 503],
];

test("every status of an upstream maps to a code, and none reveals secrets", async () => {
  for (const [status, code, expected] of statuses) {
    const error = { message: `Bad ${apiKey} given`, type: "x", param: "messages", code: "some_code" };
    const failure = await failureOf(answerJson({ error }, status));
    assert.equal(failure.code, code, `${status}`);
    assert.equal(failure.status, expected, `${status}`);
    assert.doesNotMatch(`${failure.message} ${String(failure.cause)}`, /very-secret/, `${status}`);
    assert.equal(failure.wireCode, code === "adapter_refused" ? code : "some_code");
    assert.equal(failure.retryAfterSeconds, undefined);
  }
});

test("a bad request keeps the upstream's message, param and code", async () => {
  const error = {
    message: "Too long.",
    type: "invalid_request_error",
    param: "messages",
    code: "context_length_exceeded",
  };
  const failure = await failureOf(answerJson({ error }, 400));
  assert.equal(failure.message, "Too long.");
  assert.equal(failure.param, "messages");
  assert.equal(failure.wireCode, "context_length_exceeded");
});

test("errors in other formats, or in none, are read as far as possible", async () => {
  assert.equal((await failureOf(answerJson({ error: "No." }, 400))).message, "No.");
  assert.equal((await failureOf(answerJson({ object: "error", message: "No." }, 400))).message, "No.");
  assert.equal((await failureOf(answerJson({ detail: "No." }, 422))).message, "No.");
  assert.equal((await failureOf(answerJson({ detail: [{ loc: ["body"], msg: "No." }, {}] }, 422))).message, "No.");
  const detail = [{ type: "extra_forbidden", loc: ["body", "store"], msg: "Not permitted" }];
  for (const body of [{ detail }, { object: "error", message: { detail }, type: "invalid_request_error" }])
    assert.equal((await failureOf(answerJson(body, 422))).message, "store: Not permitted");
  assert.equal((await failureOf(answerJson([{ error: { message: "No." } }], 404))).message, "No.");
  const html = await failureOf((_, response) => void response.writeHead(502).end("<html>secret page</html>"));
  assert.equal(html.message, "The upstream failed with status 502.");
  assert.match(String(html.cause), /<html>/);
});

test("a 404 about the path says to check the adapter's base URL; one about a model is passed on", async () => {
  const aboutPath = "The upstream has nothing at this path (status 404). Check the adapter's base URL.";
  const refusals: readonly Script[] = [
    answerJson({ detail: "Not Found" }, 404),
    answerJson({ error: { message: "Invalid URL (POST /chat/completions)", code: null } }, 404),
    answerJson({ error: { message: "Unknown request URL: POST /chat/completions.", code: "unknown_url" } }, 404),
    (_, response) => void response.writeHead(404).end("404 page not found"),
  ];
  for (const refusal of refusals) {
    const failure = await failureOf(refusal);
    assert.equal(failure.message, aboutPath);
    assert.equal(failure.wireCode, "adapter_not_found");
  }
  const model = await failureOf(answerJson({ error: { message: "model 'x' not found", code: "not_found" } }, 404));
  assert.equal(model.message, "model 'x' not found");
  assert.equal(model.wireCode, "not_found");
  const within = await failureOf(answerEvents({ error: { message: "Not Found", code: 404 } }));
  assert.equal(within.message, "Not Found");
});

test("a rate limit keeps its Retry-After, in seconds, as a date or in milliseconds", async () => {
  assert.equal((await limited("7")).retryAfterSeconds, 7);
  const soon = (await limited(new Date(Date.now() + 30_000).toUTCString())).retryAfterSeconds!;
  assert.ok(soon >= 28 && soon <= 30, `${soon}`);
  const later = new Date(Date.now() + 3_600_000).toUTCString();
  assert.ok(((await limited(later, { date: "never" })).retryAfterSeconds ?? 0) > 3_500);
  const elsewhere = { date: "Wed, 01 Jan 2070 00:00:00 GMT" };
  assert.equal((await limited("Wed, 01 Jan 2070 00:00:20 GMT", elsewhere)).retryAfterSeconds, 20);
  assert.equal((await limited("soon")).retryAfterSeconds, undefined);
  assert.equal((await limited("soon", { "retry-after-ms": "4200" })).retryAfterSeconds, 5);
  assert.equal((await limited("7", { "retry-after-ms": "4200" })).retryAfterSeconds, 7);
  assert.equal((await failureOf(answerJson({}, 429, { "retry-after-ms": "5000" }))).retryAfterSeconds, 5);
});

test("an error within a stream fails the turn, before or after the first words", async () => {
  const error = { message: `Slow down, ${apiKey}.`, type: "rate_limit_error", code: null };
  const before = await failureOf(answerEvents({ error }));
  assert.equal(before.code, "adapter_rate_limit");
  assert.equal(before.message, "Slow down, [secret].");

  await using both = await startBoth((_, response) => {
    beginEvents(response);
    writeEvent(response, chunk({ content: "Hi" }));
    both.server.script = () => {};
    setImmediate(() => writeEvent(response, { error: { message: "Broken.", code: 502 } }));
  });
  const stream = both.adapter.stream(turnOf(true), new AbortController().signal)[Symbol.asyncIterator]();
  assert.deepEqual((await stream.next()).value, [{ type: "text", text: "Hi", logprobs: undefined }]);
  await assert.rejects(
    Promise.resolve(stream.next()),
    (thrown: GatewayError) => thrown.code === "adapter_error" && /502: Broken\./.test(thrown.message),
  );
});

test("an event that is named error keeps its message", async () => {
  for (const error of [
    { message: "Slow down.", code: 429 },
    { message: "Slow down.", type: "RateLimitError", code: 429 },
  ]) {
    const failure = await failureOf((_, response) => {
      beginEvents(response);
      response.end(`event: error\ndata: ${JSON.stringify(error)}\n\n`);
    });
    assert.deepEqual([failure.code, failure.message], ["adapter_rate_limit", "Slow down."]);
  }
});

test("an error within a whole answer of status 200 is an error", async () => {
  assert.equal((await failureOf(answerJson({ error: { message: "x", code: 429 } }), false)).status, 429);
});

test("a body that is not a chat completion is a protocol error that quotes nothing", async () => {
  const page = answerAs("text/html", "<html>private</html>");
  const broken = answerAs("application/json", '{"choices":[{"private');
  const scripts = [page, broken, answerJson({ hello: 1 }), answerJson(["private"]), answerEvents("{private")];
  for (const script of scripts) {
    const failure = await failureOf(script, false);
    assert.equal(failure.code, "adapter_protocol");
    assert.doesNotMatch(failure.message, /private/);
  }
  for (const type of ["private words", "private/".repeat(20)])
    assert.match((await failureOf(answerAs(type, "{}"))).message, /answered with an unknown content type/);
});

test("an answer without a content type is read as what it begins with", async () => {
  const stream = `: hello\n\ndata: ${JSON.stringify(chunk({ content: "Hi" }, "stop"))}\n\ndata: [DONE]\n\n`;
  const whole = JSON.stringify({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] });
  for (const body of [stream, whole]) {
    await using both = await startBoth((_, response) => void response.writeHead(200).end(body));
    const [said] = await collect(both.adapter, true);
    assert.deepEqual(said, { type: "text", text: "Hi", logprobs: undefined });
  }
  assert.equal((await failureOf((_, response) => void response.writeHead(200).end("Hi"))).code, "adapter_protocol");
});

test("a list of models is read with or without an object around it", async () => {
  for (const list of [{ object: "list", data: [{ id: "m" }, {}] }, [{ id: "m" }]]) {
    await using both = await startBoth(answerJson(list));
    assert.deepEqual(await both.adapter.models?.(), ["m"]);
  }
});

test("an abort closes the upstream's socket at once, even during a stream", async () => {
  await using both = await startBoth((_, response) => {
    beginEvents(response);
    writeEvent(response, chunk({ content: "Hi" }));
  });
  const caller = new AbortController();
  const stream = both.adapter.stream(turnOf(true), caller.signal)[Symbol.asyncIterator]();
  await stream.next();
  const next = assert.rejects(
    Promise.resolve(stream.next()),
    (thrown: GatewayError) => thrown.code === "client_closed",
  );
  const closed = once(both.server.sockets[0]!, "close");
  const watch = startStopwatch();
  caller.abort();
  await next;
  await closed;
  assert.ok(watch.stop() < 100);
});

test("a whole answer has a time limit and a size limit, a stream has neither", async () => {
  await using both = await startBoth(whole({ content: "x".repeat(3000) }), { max_response_bytes: 2048 });
  await assert.rejects(collect(both.adapter, false), { wireCode: "adapter_answer_too_large" });
  await using slow = await startBoth(() => {}, { total_timeout_ms: 30 });
  await assert.rejects(collect(slow.adapter, false), { wireCode: "adapter_total_timeout" });
  slow.server.script = (_, response) => {
    setTimeout(() => void answerEvents(chunk({ content: "late" }, "stop"))(slow.server.received[0]!, response), 60);
  };
  assert.equal((await collect(slow.adapter, true)).length, 2);
});

test("the responses wire counts input tokens, where the upstream can, from what a count may be told", async () => {
  await using both = await startBoth(answerJson({ object: "response.input_tokens", input_tokens: 11 }), {
    wire: "responses",
  });
  const { adapter, server } = both;
  const fields = { temperature: 1, store: true, reasoning: { effort: "low" }, text: { verbosity: "low" } };
  const settings = { tools: [], instructions: "Be kind.", native: { dialect: "responses", fields } } as const;
  const count = () => adapter.countTokens!({ ...turnOf(true), settings }, new AbortController().signal);
  assert.equal(await count(), 11);
  const [{ path, json, headers }] = server.received as [(typeof server.received)[number]];
  assert.deepEqual([path, headers.authorization], ["/v1/responses/input_tokens", `Bearer ${apiKey}`]);
  assert.deepEqual(json, {
    model: "model-1",
    instructions: "Be kind.",
    input: [{ type: "message", role: "user", content: "Hello" }],
    reasoning: { effort: "low" },
    text: { verbosity: "low" },
  });
  for (const status of [404, 405, 501]) {
    server.script = answerJson({ detail: "Not Found" }, status);
    assert.equal(await count(), undefined);
  }
  server.script = answerJson({ error: { message: "No such model.", code: "model_not_found" } }, 400);
  assert.equal(await count(), undefined);
  for (const body of [{ error: "Unexpected endpoint or method." }, { input_tokens: "11" }, []]) {
    server.script = answerJson(body);
    assert.equal(await count(), undefined);
  }
  server.script = answerJson({ error: { message: "Slow down." } }, 429);
  await assert.rejects(count(), { code: "adapter_rate_limit", message: "Slow down." });
  const chat = createOpenai({ base_url: server.url }, {});
  assert.equal(chat.countTokens, undefined);
  await chat.close?.();
});

test("the models are those that the upstream lists", async () => {
  await using both = await startBoth(answerJson({ object: "list", data: [{ id: "a" }, { id: "b" }, {}, null] }));
  assert.deepEqual(await both.adapter.models?.(), ["a", "b"]);
  assert.equal(both.server.received[0]?.path, "/v1/models");
  both.server.script = answerJson({ error: { message: "no" } }, 500);
  await assert.rejects(both.adapter.models!(), { code: "adapter_error" });
  for (const none of [{ hello: 1 }, null]) {
    both.server.script = answerJson(none);
    await assert.rejects(both.adapter.models!(), { code: "adapter_protocol" });
  }
});

test("every option has a description", () => {
  for (const [name, schema] of Object.entries(options.properties)) {
    assert.ok("description" in schema && typeof schema.description === "string", name);
  }
});

test("a byte order mark before a whole answer, or before an error, is skipped", async () => {
  const answer = JSON.stringify({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] });
  const [first] = await answerTo(answerAs("application/json", `\ufeff${answer}`), false);
  assert.deepEqual(first, { type: "text", text: "Hi", logprobs: undefined });
  const refused: Script = (_, response) =>
    void response.writeHead(400, { "content-type": "application/json" }).end('\ufeff{"error":{"message":"Too warm."}}');
  assert.equal((await failureOf(refused)).message, "Too warm.");
});

test("bare JSON, or a field called error, where events were announced is read as an error or as a whole answer", async () => {
  const error = JSON.stringify({ error: { message: "Out of memory.", code: 503 } });
  const first = `data: ${JSON.stringify(chunk({ content: "Hi" }))}\n`;
  for (const body of [error, `${error}\n`, `${first}\n${error}\n`, `${first}${error}\n\n`]) {
    const failure = await failureOf(answerAs("text/event-stream", body));
    assert.equal(failure.code, "overloaded");
    assert.match(failure.message, /Out of memory\./);
  }
  const field = `error: ${JSON.stringify({ code: 400, message: "Too long.", type: "invalid_request_error" })}\n\n`;
  for (const body of [field, `${first}\n${field}data: [DONE]\n\n`]) {
    const { code, message } = await failureOf(answerAs("text/event-stream", body));
    assert.deepEqual({ code, message }, { code: "adapter_bad_request", message: "Too long." });
  }
  const answer = JSON.stringify({ choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] });
  const deltas = await answerTo(answerAs("text/event-stream", answer));
  assert.deepEqual(deltas, [
    { type: "text", text: "Hi", logprobs: undefined },
    { type: "finish", reason: "stop" },
  ]);
});
