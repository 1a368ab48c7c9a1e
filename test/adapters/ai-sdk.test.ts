/** The ai-sdk adapter against loopback servers: finding packages, failures, timeouts and callers that disconnect. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { installPackage } from "./ai-sdk-package.ts";
import { createAiSdk } from "./made.ts";
import { createSecretScrubber, toFailure } from "../../src/adapters/ai-sdk/failure.ts";
import { createReplyReader } from "../../src/adapters/ai-sdk/reply.ts";
import type { StreamPart } from "../../src/adapters/ai-sdk/spec.ts";
import { adapterTypes } from "../../src/adapters/index.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Adapter } from "../../src/core/ports.ts";
import type { Turn } from "../../src/core/turn.ts";
import { startGateway } from "../gateway.ts";
import { type Script, answerJson, beginEvents, startUpstream } from "../upstream.ts";
import { tellWell } from "../whole/talk.ts";
import {
  type AiSdkOptions,
  type Wire,
  answerStream,
  anthropic,
  apiKey,
  compatible,
  createAdapter,
  google,
  root,
  wires,
} from "./ai-sdk-wires.ts";
import { startStopwatch } from "../stopwatch.ts";

const turn: Turn = {
  id: "resp_1",
  model: "model-1",
  items: [{ type: "message", role: "user", content: "Hello" }],
  settings: { tools: [] },
  stream: true,
};

async function collect(adapter: Adapter, emitted: Delta[] = [], asked: Turn = turn): Promise<readonly Delta[]> {
  for await (const batch of adapter.stream(asked, new AbortController().signal)) emitted.push(...batch);
  return emitted;
}

async function failureOf(adapter: Adapter, emitted: Delta[] = [], asked: Turn = turn): Promise<GatewayError> {
  try {
    await collect(adapter, emitted, asked);
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  }
  return assert.fail("It did not fail.");
}

async function failureWith(wire: Wire, script: Script, options: AiSdkOptions = {}): Promise<GatewayError> {
  await using server = await startUpstream(script);
  return await failureOf(createAdapter(wire, server.url, options));
}

test("a package that is not installed is reported at the start, with the command that installs it", () => {
  assert.throws(
    () => createAiSdk({ package: "@ai-sdk/nowhere" }, {}, root),
    new Error("The package '@ai-sdk/nowhere' is not installed. Run: npm i @ai-sdk/nowhere"),
  );
  assert.ok(adapterTypes["ai-sdk"]);
});

test("a package in the operator's folder is loaded at the first turn, in any supported specification version", async (context) => {
  const source = (version: string, finish: string) => `
    const parts = [{ type: "text-delta", id: "1", delta: "Hi" }, { type: "finish", ${finish} }];
    export const createHouse = (options) => (name) => ({
      specificationVersion: "${version}", provider: "house.chat",
      async doStream({ prompt }) {
        const [{ data }] = prompt[0].content;
        parts[0].delta = [options.greeting, name, data.type ?? "plain"].join(" ");
        return { stream: ReadableStream.from(parts) };
      },
    });
    export const createHome = createHouse;`;
  const picture = { type: "image", url: "data:image/png;base64,AAAA" } as const;
  const asked: Turn = { ...turn, items: [{ type: "message", role: "user", content: [picture] }] };
  const collectFrom = async (version: string, finish: string) => {
    const folder = installPackage(context, "house", source(version, finish));
    return await collect(createAiSdk({ package: "house", options: { greeting: "Hey" } }, {}, folder), [], asked);
  };
  const usage = { inputTokens: 3, cachedTokens: 1, outputTokens: 2, reasoningTokens: 1 };
  const finish = { type: "finish", reason: "length" };
  const nestedEnding = [{ type: "usage", usage: { ...usage, cacheWriteTokens: 2 } }, finish];
  const nested =
    'finishReason: { unified: "length", raw: "length" }, usage: { inputTokens: { total: 3, cacheRead: 1, cacheWrite: 2 }, outputTokens: { total: 2, reasoning: 1 } }';
  const flat =
    'finishReason: "length", usage: { inputTokens: 3, cachedInputTokens: 1, outputTokens: 2, reasoningTokens: 1 }';
  const [plain, data] = ["plain", "data"].map((kind) => ({ type: "text", text: `Hey model-1 ${kind}` }));
  assert.deepEqual(await collectFrom("v2", flat), [plain, { type: "usage", usage }, finish]);
  assert.deepEqual(await collectFrom("v3", nested), [plain, ...nestedEnding]);
  assert.deepEqual(await collectFrom("v4", nested), [data, ...nestedEnding]);
  const folder = installPackage(context, "house", source("v9", nested));
  const failure = await failureOf(createAiSdk({ package: "house" }, {}, folder), [], asked);
  assert.match(failure.message, /'house' implements version v9 .*the gateway supports v2, v3, v4/);
});

test("a package that failed to initialise is tried again at the next turn", async (context) => {
  const source = `
    let times = 0;
    const model = { specificationVersion: "v3", provider: "p", doStream: async () => { throw new Error("asked"); } };
    export function createLate() {
      times += 1;
      if (times === 1) throw new Error("The file with the credentials is not there yet.");
      return () => model;
    }`;
  const adapter = createAiSdk({ package: "late" }, {}, installPackage(context, "late", source));
  assert.match((await failureOf(adapter)).message, /'late' cannot be used with the adapter's options/);
  assert.match((await failureOf(adapter)).message, /asked/);
});

test("a package with several factories needs one to be chosen", async (context) => {
  const source = `
    const model = { specificationVersion: "v3", provider: "p", doStream: async () => { throw new Error("asked"); } };
    export const createOne = () => () => model;
    export const createTwo = () => ({ languageModel: () => model });`;
  const folder = installPackage(context, "pair", source);
  const failure = await failureOf(createAiSdk({ package: "pair" }, {}, folder));
  assert.match(failure.message, /Choose one of createOne, createTwo/);
  const named = await failureOf(createAiSdk({ package: "pair", provider: "createTwo" }, {}, folder));
  assert.match(named.message, /asked/);
  const missing = await failureOf(createAiSdk({ package: "pair", provider: "createTen" }, {}, folder));
  assert.match(missing.message, /no export 'createTen'/);
});

test("an upstream's error keeps its meaning, its message and its Retry-After", async () => {
  const limited = await failureWith(
    anthropic,
    answerJson(anthropic.refuse(429, "Slow down."), 429, { "retry-after": "7" }),
  );
  assert.equal(limited.code, "adapter_rate_limit");
  assert.equal(limited.message, "Slow down.");
  assert.equal(limited.retryAfterSeconds, 7);
  const inMs = await failureWith(anthropic, answerJson(anthropic.refuse(429, "."), 429, { "retry-after-ms": "5000" }));
  assert.equal(inMs.retryAfterSeconds, 5);
  const dates = { "retry-after": "Wed, 01 Jan 2070 00:00:20 GMT", date: "Wed, 01 Jan 2070 00:00:00 GMT" };
  const byDate = await failureWith(anthropic, answerJson(anthropic.refuse(429, "."), 429, dates));
  assert.equal(byDate.retryAfterSeconds, 20);
  const busy = await failureWith(anthropic, answerStream(anthropic.fail(529, "Overloaded")));
  assert.deepEqual([busy.code, busy.retryAfterSeconds], ["overloaded", undefined]);
  const unknown = await failureWith(google, answerJson(google.refuse(404, "models/x is not found"), 404));
  assert.deepEqual([unknown.code, unknown.message], ["adapter_not_found", "models/x is not found"]);
  const long = { error: { message: "Too long.", type: "invalid_request_error", code: "context_length_exceeded" } };
  const refused = await failureWith(compatible, answerJson(long, 400));
  assert.deepEqual([refused.code, refused.wireCode], ["adapter_bad_request", "context_length_exceeded"]);
});

test("a web page with a 4xx status is not the provider's answer", async () => {
  for (const [wire, status] of [
    [google, 404],
    [anthropic, 400],
    [compatible, 422],
  ] as const) {
    const page = await failureWith(wire, (_, response) => {
      response.writeHead(status, { "content-type": "text/html" }).end("<html><body>No such page</body></html>");
    });
    assert.equal(page.code, "adapter_protocol");
    assert.match(page.message, new RegExp(`not an answer \\(status ${status}\\)`));
  }
  const busy = await failureWith(google, (_, response) => void response.writeHead(429).end("<html>Busy</html>"));
  assert.equal(busy.code, "adapter_rate_limit");
});

test("a redirect is refused, so that the key goes to no other server", async () => {
  await using elsewhere = await startUpstream(answerJson({}));
  for (const wire of wires) {
    const redirect = answerJson({}, 307, { location: `${elsewhere.url}/v1` });
    const { code, message } = await failureWith(wire, redirect);
    assert.equal(code, "adapter_protocol");
    assert.match(message, /a redirect \(status 307\)\. Check the adapter's base URL\./);
  }
  assert.deepEqual(elsewhere.received, []);
});

test("only the adapter's own limits end a silence, not those of Node's fetch", async (context) => {
  const place = Symbol.for("undici.globalDispatcher.1");
  const own = Reflect.get(globalThis, place) as NonNullable<RequestInit["dispatcher"]>;
  const limits: unknown[] = [];
  const watched = own.compose((dispatch) => (options, handler) => {
    limits.push([options.headersTimeout, options.bodyTimeout]);
    return dispatch(options, handler);
  });
  Reflect.set(globalThis, place, watched);
  context.after(() => Reflect.set(globalThis, place, own));
  await using upstream = await startUpstream(
    answerStream(anthropic.begin(), anthropic.say(["Hi"]), anthropic.end("stop")),
  );
  await collect(createAdapter(anthropic, upstream.url));
  assert.deepEqual(limits, [[0, 0]]);
});

test("a dispatcher of an older undici, such as an operator's proxy, is used as it is", async (context) => {
  const place = Symbol.for("undici.globalDispatcher.1");
  const own = Reflect.get(globalThis, place) as NonNullable<RequestInit["dispatcher"]>;
  let used = 0;
  const older: Pick<typeof own, "dispatch"> = {
    dispatch(options, handler) {
      used += 1;
      return own.dispatch(options, handler);
    },
  };
  Reflect.set(globalThis, place, older);
  context.after(() => Reflect.set(globalThis, place, own));
  await using upstream = await startUpstream(
    answerStream(anthropic.begin(), anthropic.say(["Hi"]), anthropic.end("stop")),
  );
  await collect(createAdapter(anthropic, upstream.url));
  assert.equal(used, 1);
});

test("the key and the headers of the adapter never appear in an error", async () => {
  const message = `Wrong key ${apiKey}, wrong header secret-header-1`;
  const options = { options: { headers: { "x-house": "Bearer secret-header-1" } } };
  const refused = await failureWith(anthropic, answerJson(anthropic.refuse(401, message), 401), options);
  assert.equal(refused.code, "adapter_refused");
  const failed = await failureWith(google, answerJson(google.refuse(500, message), 500), options);
  assert.equal(failed.message, "The upstream failed with status 500: Wrong key [secret], wrong header [secret]");
  for (const { message: said, cause } of [refused, failed]) assert.doesNotMatch(`${said} ${String(cause)}`, /secret-/);
});

test("secrets in the environment and in the options are removed from what a provider says", () => {
  const options = { baseURL: "https://plain.example", apiKey: "option-1", headers: { "x-house": "header-1" } };
  const nested = { credentials: { login: "nested-1" }, region: "europe-1" };
  const scrub = createSecretScrubber({ ...options, nested }, { HOUSE_TOKEN: "environment-1", HOME: "/home/house" });
  assert.equal(
    scrub("https://plain.example option-1 header-1 nested-1 europe-1 environment-1 /home/house"),
    "https://plain.example [secret] [secret] [secret] europe-1 [secret] /home/house",
  );
});

test("whatever a package throws or reports becomes an error with its words", () => {
  const read = (thrown: unknown) => {
    const { code, message } = toFailure(thrown, "house", (text) => text);
    return [code, message];
  };
  const upstream = (fields: object) => Object.assign(new Error("Too much."), fields);
  const network = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
  assert.deepEqual(read("Broken."), ["adapter_error", "The upstream failed: Broken."]);
  assert.deepEqual(read({ error: { type: "rate_limit_error", message: "Slow down." } }), [
    "adapter_rate_limit",
    "Slow down.",
  ]);
  assert.deepEqual(read({ code: 400, message: "Wrong." }), ["adapter_bad_request", "Wrong."]);
  assert.deepEqual(read(new TypeError("fetch failed", { cause: network })), [
    "adapter_error",
    "The upstream at house refuses connections (ECONNREFUSED).",
  ]);
  // A URL may hold a key.
  assert.match(String(read(upstream({ url: "http://127.0.0.1:9/v1?key=1", cause: network }))), /at 127\.0\.0\.1:9 /);
  const responseBody = JSON.stringify([{ error: { code: "context_length_exceeded" } }]);
  assert.equal(toFailure(upstream({ statusCode: 400, responseBody }), "", String).wireCode, "context_length_exceeded");
  assert.deepEqual(read(upstream({ statusCode: 429 })), ["adapter_rate_limit", "Too much."]);
});

test("a missing key is reported as the operator's error", async (context) => {
  const before = process.env["ANTHROPIC_API_KEY"];
  delete process.env["ANTHROPIC_API_KEY"];
  context.after(() => {
    if (before !== undefined) process.env["ANTHROPIC_API_KEY"] = before;
  });
  const failure = await failureOf(createAiSdk({ package: "@ai-sdk/anthropic" }, {}, root));
  assert.equal(failure.code, "adapter_refused");
  assert.match(failure.message, /ANTHROPIC_API_KEY/);
});

test("an upstream that refuses connections is named by its address", async () => {
  const server = await startUpstream();
  await server.close();
  const failure = await failureOf(createAdapter(anthropic, server.url));
  assert.equal(failure.code, "adapter_error");
  assert.match(failure.message, new RegExp(`127\\.0\\.0\\.1:${server.port} refuses connections`));
});

for (const wire of wires) {
  test(`an incomplete answer of ${wire.packageName} is a failure, never a shorter answer`, async () => {
    const emitted: Delta[] = [];
    await using ended = await startUpstream(answerStream(wire.begin(), wire.say(["Hel"])));
    const failure = await failureOf(createAdapter(wire, ended.url), emitted);
    assert.equal(failure.code, "adapter_protocol");
    assert.deepEqual(emitted, [{ type: "text", text: "Hel" }]);
    await using cut = await startUpstream((_, response) => {
      beginEvents(response);
      response.write(wire.begin() + wire.say(["Hel"]), () => response.destroy());
    });
    assert.equal((await failureOf(createAdapter(wire, cut.url))).code, "adapter_error");
  });
}

test("an upstream that sends nothing, stops sending or does not finish is abandoned at its timeout", async () => {
  const silent: Script = (_, response) => beginEvents(response);
  const stuck: Script = (_, response) => {
    beginEvents(response);
    response.write(google.say(["Hel"]));
  };
  const first = await failureWith(google, silent, { first_byte_timeout_ms: 30 });
  assert.deepEqual([first.code, first.wireCode], ["adapter_timeout", "adapter_first_byte_timeout"]);
  const idle = await failureWith(google, stuck, { idle_timeout_ms: 30 });
  assert.deepEqual([idle.code, idle.wireCode], ["adapter_timeout", "adapter_idle_timeout"]);
  await using server = await startUpstream(stuck);
  const adapter = createAdapter(google, server.url, { total_timeout_ms: 30 });
  const total = await failureOf(adapter, [], { ...turn, stream: false });
  assert.equal(total.wireCode, "adapter_total_timeout");
});

test("a caller that disconnects before the first word, or between two pulls, closes the socket at once", async () => {
  const asked = Promise.withResolvers<void>();
  await using mute = await startUpstream(() => asked.resolve());
  const caller = new AbortController();
  const stream = createAdapter(anthropic, mute.url).stream(turn, caller.signal)[Symbol.asyncIterator]();
  const first = assert.rejects(stream.next(), { code: "client_closed" });
  await asked.promise;
  const gone = once(mute.sockets[0]!, "close");
  const watch = startStopwatch();
  caller.abort();
  await Promise.all([first, gone]);
  assert.ok(watch.stop() < 100);

  await using slow = await startUpstream((_, response) => {
    beginEvents(response);
    response.write(compatible.begin() + compatible.say(["Hel"]));
  });
  const other = new AbortController();
  const iterator = createAdapter(compatible, slow.url).stream(turn, other.signal)[Symbol.asyncIterator]();
  await iterator.next();
  const closed = once(slow.sockets[0]!, "close");
  other.abort();
  await closed;
  await assert.rejects(iterator.next(), { code: "client_closed" });
});

test("a reader that returns early closes the socket too", async () => {
  await using server = await startUpstream((_, response) => {
    beginEvents(response);
    response.write(compatible.begin() + compatible.say(["Hel"]));
  });
  for await (const _ of createAdapter(compatible, server.url).stream(turn, new AbortController().signal)) break;
  const [socket] = server.sockets;
  if (socket?.destroyed === false) await once(socket, "close");
});

test("a burst of words is emitted in few batches, and the connection is used again", async () => {
  const words = Array.from({ length: 100 }, (_, index) => `${index} `);
  await using server = await startUpstream(
    answerStream(anthropic.begin(), anthropic.say(words), anthropic.end("stop")),
  );
  const adapter = createAdapter(anthropic, server.url);
  let batches = 0;
  let text = "";
  for await (const batch of adapter.stream(turn, new AbortController().signal)) {
    batches++;
    for (const delta of batch) if (delta.type === "text") text += delta.text;
  }
  assert.equal(text, words.join(""));
  assert.ok(batches < 20, `${batches} batches`);
  await new Promise((resolve) => setImmediate(resolve));
  await collect(adapter);
  assert.equal(server.sockets.length, 1);
});

test("a response that ends shortly after the last event keeps its connection", async () => {
  const collected = Promise.withResolvers<void>();
  await using server = await startUpstream(async (_, response) => {
    beginEvents(response);
    response.write(anthropic.begin() + anthropic.say(["Hi"]) + anthropic.end("stop"));
    await collected.promise;
    response.end();
  });
  const adapter = createAdapter(anthropic, server.url);
  await collect(adapter);
  collected.resolve();
  await collect(adapter);
  assert.equal(server.sockets[0]?.destroyed, false);
});

test("a package that ignores the abort signal is not waited for, and its stream is cancelled", async (context) => {
  const source = `
    export const createDeaf = ({ events, opening }) => (name) => ({
      specificationVersion: "v3", provider: "deaf.chat",
      doStream: async () => {
        events.dispatchEvent(new Event("asked"));
        await opening;
        return { stream: new ReadableStream({
          start: (controller) => controller.enqueue({ type: "text-delta", id: "1", delta: "Hi" }),
          pull: () => new Promise(() => {}),
          cancel: () => events.dispatchEvent(new Event("cancelled")),
        }) };
      },
    });`;
  const events = new EventTarget();
  const folder = installPackage(context, "deaf", source);
  const { promise: opening, resolve: open } = Promise.withResolvers<void>();
  const begin = () => {
    const caller = new AbortController();
    const adapter = createAiSdk({ package: "deaf", options: { events, opening } }, {}, folder);
    return { caller, iterator: adapter.stream(turn, caller.signal)[Symbol.asyncIterator]() };
  };
  const asked = once(events, "asked");
  const early = begin();
  const earlyEnd = assert.rejects(early.iterator.next(), { code: "client_closed" });
  await asked;
  early.caller.abort();
  await earlyEnd;
  const late = once(events, "cancelled");
  open();
  await late;

  const { caller, iterator } = begin();
  assert.deepEqual((await iterator.next()).value, [{ type: "text", text: "Hi" }]);
  const cancelled = once(events, "cancelled");
  const ended = assert.rejects(iterator.next(), { code: "client_closed" });
  caller.abort();
  await Promise.all([ended, cancelled]);
});

test("what a package leaves out is told before the first byte, for which the limit is still in force", async (context) => {
  const source = `
    export const createSlow = () => (name) => ({
      specificationVersion: "v3", provider: "slow.chat",
      doStream: async () => ({ stream: new ReadableStream({
        start: (controller) =>
          controller.enqueue({ type: "stream-start", warnings: [{ type: "unsupported", feature: "topK" }] }),
      }) }),
    });`;
  const folder = installPackage(context, "slow", source);
  const adapter = createAiSdk({ package: "slow", first_byte_timeout_ms: 20 }, {}, folder);
  const told: unknown[] = [];
  const stream = adapter.stream(turn, new AbortController().signal, (remark) => told.push(remark));
  await assert.rejects(Array.fromAsync(stream), { wireCode: "adapter_first_byte_timeout" });
  assert.deepEqual(told, [{ type: "left-out", what: "top_k" }]);
});

test("a stream that stays open after the finish is aborted and cancelled, which nobody waits for", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const source = `
    export const createOpen = ({ events }) => (name) => ({
      specificationVersion: "v3", provider: "open.chat",
      doStream: async ({ abortSignal }) => {
        abortSignal.addEventListener("abort", () => events.push("aborted"));
        return { stream: new ReadableStream({
          start: (controller) => controller.enqueue({ type: "finish", finishReason: { unified: "stop" }, usage: {} }),
          cancel: () => void events.push("cancelled"),
        }) };
      },
    });`;
  const events: string[] = [];
  const folder = installPackage(context, "open", source);
  await collect(createAiSdk({ package: "open", options: { events } }, {}, folder));
  context.mock.timers.tick(999);
  assert.deepEqual(events, []);
  context.mock.timers.tick(1);
  assert.deepEqual(events.toSorted(), ["aborted", "cancelled"]);
});

function readParts(...parts: readonly StreamPart[]): readonly Delta[] {
  const deltas: Delta[] = [];
  const reader = createReplyReader({ isCustom: () => false, reportOmission() {} });
  for (const part of parts) reader.accept(part, deltas);
  return deltas;
}

test("a call that comes whole is emitted whole, and a call without input has an empty object", () => {
  const call = { type: "tool-call", toolName: "look", input: '{"at":1}' } as const;
  assert.deepEqual(readParts({ ...call, toolCallId: "a" }), [
    { type: "tool-call", index: 0, callId: "a", name: "look", kind: "function" },
    { type: "tool-arguments", index: 0, text: '{"at":1}' },
  ]);
  const streamed = readParts(
    { type: "tool-input-start", id: "a", toolName: "look" },
    { type: "tool-input-end", id: "a" },
    { ...call, toolCallId: "a", input: "{}" },
  );
  assert.deepEqual(streamed.at(-1), { type: "tool-arguments", index: 0, text: "{}" });
});

test("a call that is reported twice is emitted once", () => {
  const call = { type: "tool-call", toolCallId: "a", toolName: "look", input: "{}" } as const;
  assert.deepEqual(readParts(call, call), readParts(call));
});

test("input that streams as plain text is emitted once it is complete, as the JSON that the tool takes", () => {
  const start = { type: "tool-input-start", id: "a", toolName: "look", inputEncoding: "text" } as const;
  const begun = { type: "tool-call", index: 0, callId: "a", name: "look", kind: "function" };
  const parts = [start, { type: "tool-input-delta", id: "a", delta: "plain" }] as const;
  assert.deepEqual(readParts(...parts), [begun]);
  const whole = { type: "tool-call", toolCallId: "a", toolName: "look", input: '{"text":"plain"}' } as const;
  assert.deepEqual(readParts(...parts, whole), [begun, { type: "tool-arguments", index: 0, text: whole.input }]);
});

test("tools that the provider runs itself are not reported as calls", () => {
  const run = { toolName: "web_search", providerExecuted: true } as const;
  assert.deepEqual(
    readParts(
      { type: "tool-input-start", id: "a", ...run },
      { type: "tool-input-delta", id: "a", delta: "{}" },
      { type: "tool-call", toolCallId: "a", input: "{}", ...run },
    ),
    [],
  );
});

test("metadata of a call that arrives while another call is open is emitted after both", () => {
  const mark = { house: { signature: "s" } };
  const none = undefined;
  const uncounted = { total: none, noCache: none, cacheRead: none, cacheWrite: none, text: none, reasoning: none };
  const deltas = readParts(
    { type: "tool-input-start", id: "a", toolName: "look" },
    { type: "tool-input-start", id: "b", toolName: "look", providerMetadata: mark },
    { type: "tool-input-delta", id: "a", delta: "{}" },
    { type: "tool-call", toolCallId: "a", toolName: "look", input: "{}" },
    { type: "tool-call", toolCallId: "b", toolName: "look", input: "{}", providerMetadata: mark },
    {
      type: "finish",
      finishReason: { unified: "tool-calls", raw: "x" },
      usage: { inputTokens: uncounted, outputTokens: uncounted },
    },
  );
  assert.deepEqual(
    deltas.map((delta) => delta.type),
    ["tool-call", "tool-call", "tool-arguments", "tool-arguments", "reasoning-seal", "finish"],
  );
});

test("two texts are two messages, and the last one has no message-end", () => {
  const emitted: string[] = [];
  const reader = createReplyReader({ isCustom: () => false, reportOmission: () => {} });
  const parts: readonly StreamPart[] = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "one" },
    { type: "text-end", id: "1" },
    { type: "text-start", id: "2" },
    { type: "text-delta", id: "2", delta: "two" },
    { type: "text-end", id: "2" },
  ];
  for (const part of parts) {
    const deltas: Delta[] = [];
    reader.accept(part, deltas);
    emitted.push(...deltas.map((delta) => (delta.type === "text" ? delta.text : delta.type)));
  }
  assert.deepEqual(emitted, ["one", "message-end", "two"]);
});

test("generated files and cited sources are reported as left out", () => {
  const remarks: string[] = [];
  const deltas: Delta[] = [];
  const reader = createReplyReader({ isCustom: () => false, reportOmission: (what) => remarks.push(what) });
  const source = { type: "source", sourceType: "url", id: "1", url: "https://example.com" } as const;
  for (const part of [source, source, { type: "file", mediaType: "image/png", data: "AAAA" } as const]) {
    reader.accept(part, deltas);
  }
  assert.deepEqual(deltas, []);
  assert.deepEqual(remarks, ["sources that the model cited", "file of type image/png that the model generated"]);
});

test("what a package says it ignores is reported in the words of the wires, in each version of the specification", () => {
  const remarks: string[] = [];
  const reader = createReplyReader({ isCustom: () => false, reportOmission: (what) => remarks.push(what) });
  const tool = { type: "function", name: "look", inputSchema: {} } as const;
  reader.begin({ type: "stream-start", warnings: [{ type: "unsupported", feature: "topK" }] });
  reader.begin({ type: "stream-start", warnings: [{ type: "unsupported-setting", setting: "frequencyPenalty" }] });
  reader.begin({ type: "stream-start", warnings: [{ type: "unsupported-tool", tool }] });
  reader.begin({ type: "stream-start", warnings: [{ type: "other", message: "Be careful." }] });
  assert.deepEqual(remarks, ["top_k", "frequency_penalty", "tool look"]);
});

test("an answer ends with a reason that is known, with any other, or fails", () => {
  const usage = { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined };
  const finish = (finishReason: unknown) => readParts({ type: "finish", usage, finishReason } as StreamPart);
  for (const reason of ["stop", "length", "content-filter", "tool-calls"] as const) {
    assert.deepEqual(finish({ unified: reason, raw: "x" }), [{ type: "finish", reason }]);
    assert.deepEqual(finish(reason), [{ type: "finish", reason }]);
  }
  assert.deepEqual(finish({ unified: "other", raw: "pause_turn" }), [{ type: "finish", reason: "stop" }]);
  assert.throws(() => finish({ unified: "other", raw: undefined }), { code: "adapter_protocol" });
  assert.throws(() => finish({ unified: "error", raw: "x" }), { code: "adapter_error" });
  assert.throws(() => finish("error"), { code: "adapter_error" });
  assert.throws(() => createReplyReader({ isCustom: () => false, reportOmission() {} }).end(), /broke off/);
});

test("a gateway finds packages next to its config file", async (context) => {
  const source = `
    const usage = { inputTokens: {}, outputTokens: {} };
    const parts = [
      { type: "text-delta", id: "1", delta: "from beside" },
      { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } },
    ];
    export const createHouse = () => () => ({
      specificationVersion: "v3", provider: "house.chat",
      doStream: async () => ({ stream: ReadableStream.from(parts) }),
    });`;
  const folder = installPackage(context, "beside", source);
  const adapters = { house: { type: "ai-sdk", package: "beside" } };
  const { address } = await startGateway(context, { adapters, sessions: { store: "memory:" } }, folder);
  assert.equal((await tellWell(address, { on: "chat", say: "hello" })).text, "from beside");
});
