import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send } from "node:http";
import { test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import { createJournal } from "../../src/http/journal.ts";
import { createMetrics } from "../../src/http/metrics.ts";
import { openPortico, type PorticoSettings } from "../../src/index.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { authorization, type Box, createBox, say, token, usage } from "../scripted.ts";
import { dial } from "./websocket-client.ts";

const headers = { authorization, "content-type": "application/json" };
const ask = { model: "m", messages: [{ role: "user", content: "hi" }] };

interface Line {
  readonly status: number;
  readonly path: string;
  readonly code?: string;
  readonly model?: string;
  readonly history?: string;
  readonly owner?: string;
  readonly ms: number;
  readonly firstMs?: number;
  readonly adapter?: string;
  readonly upstreamModel?: string;
  readonly session?: string;
  readonly inputTokens?: number;
  readonly cachedTokens?: number;
  readonly outputTokens?: number;
}

/** The log lines of requests, once there are so many. */
async function lines(box: Box, count: number): Promise<readonly Line[]> {
  for (;;) {
    const found = box.logged.filter(({ message }) => message === "request").map(({ fields }) => fields as Line);
    if (found.length >= count) return found;
    await new Promise(setImmediate);
  }
}

test("every request is logged in one line with its outcome", async (context) => {
  const box = createBox(context, [say("hi")]);
  const address = await box.listen();
  await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify({ ...ask, user: "u" }),
  });
  const [line] = await lines(box, 1);
  const { status, path, model, history, owner } = line!;
  assert.deepEqual(
    { status, path, model, history, owner },
    { status: 200, path: "/v1/chat/completions", model: "m", history: "new", owner: "default" },
  );
  assert.doesNotMatch(JSON.stringify(box.logged), /sk-test|"u"/);
});

test("the log line of a turn has its time to the first byte, its session and its tokens", async (context) => {
  const box = createBox(context, [say("hel", "lo"), [{ type: "usage", usage }]]);
  const address = await box.listen();
  const post = (body: object, more: object = {}) =>
    fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify({ ...ask, ...body }),
    });
  const sessions: (string | null)[] = [];
  for (const stream of [false, true]) {
    const response = await post({ user: "u", stream });
    sessions.push(response.headers.get("x-portico-session"));
    await response.text();
  }
  for (const { ms, firstMs = Number.NaN, session, inputTokens, cachedTokens, outputTokens } of await lines(box, 2)) {
    assert.ok(firstMs >= 0 && firstMs <= ms);
    assert.deepEqual({ ...usage, inputTokens, cachedTokens, outputTokens }, usage);
    assert.ok(session !== undefined && sessions.includes(session));
  }
  const client = await dial(context, address);
  client.create({ input: "hi" });
  await client.answer();
  const [, , overSocket] = await lines(box, 3);
  assert.equal(overSocket?.inputTokens, usage.inputTokens);
  assert.ok((overSocket?.firstMs ?? -1) >= 0);
  client.create({ input: "hi", generate: false });
  await client.answer();
  const [, , , prepared] = await lines(box, 4);
  assert.deepEqual([prepared?.outputTokens, prepared?.firstMs], [undefined, undefined], "nothing was generated");
  for (const stream of [false, true]) {
    for (let times = 0; times < 2; times++) await (await post({ stream }, { "idempotency-key": `${stream}` })).text();
  }
  const [, , , , whole, wholeAgain, streamed, streamedAgain] = await lines(box, 8);
  for (const first of [whole, streamed]) assert.equal(first?.outputTokens, usage.outputTokens);
  for (const repeated of [wholeAgain, streamedAgain]) {
    assert.deepEqual(
      [repeated?.outputTokens, repeated?.firstMs],
      [undefined, undefined],
      "a replayed answer has neither",
    );
  }
});

test("the log line names the adapter that was asked last, and its own name for the model", async (context) => {
  const logged: Line[] = [];
  const log = {
    info: (fields: object, message: string) => void (message === "request" && logged.push(fields as Line)),
  };
  const adapters = {
    main: { type: "echo", retry: { times: 0 }, fallback: ["spare"], models: { m: "large" } },
    spare: { type: "echo", retry: { times: 0 }, model: "small" },
  } as const;
  const gateway: PorticoSettings["gateway"] = {
    http: { port: 0, auth_token: token, endpoints: { compat_chat: true } },
    sessions: { store: "memory:" },
    adapters,
    default_adapter: "main",
  };
  const portico = await openPortico({ gateway }, { env: {}, log: { ...log, error: () => {} } });
  context.after(() => portico.close());
  for (const content of ["hi", "FAIL before"]) {
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content }] });
    await (await fetch(`${portico.address}/v1/chat/completions`, { method: "POST", headers, body })).text();
  }
  while (logged.length < 2) await new Promise(setImmediate);
  assert.deepEqual(
    logged.map(({ status, model, adapter, upstreamModel }) => [status, model, adapter, upstreamModel]),
    [
      [200, "m", "main", "large"],
      [502, "m", "spare", "small"],
    ],
  );
});

test("a stream that fails after its start is logged with its code and its cause", async (context) => {
  const box = createBox(context, async function* () {
    yield say("half");
    throw new GatewayError("adapter_error", "broke", { cause: new Error("the wire was cut") });
  });
  const address = await box.listen();
  const body = JSON.stringify({ ...ask, stream: true });
  await (await fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body })).text();
  const [line] = await lines(box, 1);
  assert.equal(line?.status, 200);
  assert.equal(line?.code, "adapter_error");
  const failure = box.logged.find(({ level }) => level === "error")!;
  assert.match(String((failure.fields as { err: Error }).err), /the wire was cut/);
});

test("a caller that disconnects is logged as 499 with its code", async (context) => {
  const started = Promise.withResolvers<void>();
  const box = createBox(context, async function* (_turn, signal) {
    started.resolve();
    await once(signal, "abort");
    yield say("too late");
  });
  const request = send(`${await box.listen()}/v1/chat/completions`, { method: "POST", headers });
  request.on("error", () => {});
  request.end(JSON.stringify(ask));
  await started.promise;
  request.destroy();
  const [line] = await lines(box, 1);
  assert.deepEqual([line?.status, line?.code], [499, "client_closed"]);
  await box.close();
  assert.equal(box.logged.length, 1, "it is no failure of ours, whose cause would be logged");
});

test("a method that a route does not have is logged under the route's path", async (context) => {
  const box = createBox(context, [say("hi")]);
  await fetch(`${await box.listen()}/v1/responses/resp_1`, { method: "PUT", headers });
  const [line] = await lines(box, 1);
  assert.deepEqual([line?.status, line?.path], [405, "/v1/responses/:id"]);
});

test("a query, which may contain a secret, is not logged", async (context) => {
  const box = createBox(context, [say("hi")]);
  await fetch(`${await box.listen()}/v1/nope?api_key=sk-secret`, { headers });
  assert.equal((await lines(box, 1))[0]?.path, "/v1/nope");
  assert.doesNotMatch(JSON.stringify(box.logged), /secret/);
});

const full = () => new GatewayError("store_unavailable", "The disk is full.", { cause: new Error("no room") });

test("while turns cannot be stored the cause is logged once, and every request has its line and code", async (context) => {
  const store = { ...createMemoryStore(), check: () => Promise.reject(full()) };
  const box = createBox(context, [say("hi")], { store });
  const address = await box.listen();
  const body = JSON.stringify({ ...ask, user: "u" });
  for (let count = 0; count < 5; count += 1) {
    assert.equal((await fetch(`${address}/readyz`)).status, 503);
    assert.equal((await fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body })).status, 503);
  }
  for (const { status, code } of await lines(box, 10)) assert.deepEqual([status, code], [503, "store_unavailable"]);
  const causes = box.logged.filter(({ level }) => level === "error");
  assert.equal(causes.length, 1);
  assert.match(String((causes[0]!.fields as { err: Error }).err), /no room/);
});

test("a lasting problem is logged again after a minute, and another one at once", () => {
  const reported: string[] = [];
  let nowMs = 0;
  const journal = createJournal(
    { info: () => {}, error: (_fields, message) => void reported.push(message) },
    createMetrics(),
    undefined,
    () => nowMs,
  );
  const report = (error: GatewayError) => {
    const request = { id: "req_1", failure: undefined };
    journal.report(error, request);
    assert.equal(request.failure, error, "its own line has the code in any case");
  };
  const moved = () => new GatewayError("store_unavailable", "The file was moved.");
  for (const error of [full(), full(), moved(), full(), moved()]) report(error);
  assert.deepEqual(reported.splice(0), ["The disk is full.", "The file was moved."]);
  nowMs = 59_999;
  report(full());
  assert.deepEqual(reported, []);
  nowMs = 60_000;
  for (const error of [full(), full()]) report(error);
  assert.deepEqual(reported.splice(0), ["The disk is full."]);
  const busy = () => new GatewayError("overloaded", "Too many turns run.");
  for (const error of [busy(), busy(), full()]) report(error);
  assert.deepEqual(reported.splice(0), ["Too many turns run."]);
  for (let count = 0; count < 100; count += 1)
    report(new GatewayError("overloaded", `Not now, said request ${count}.`));
  assert.equal(reported.splice(0).length, 100);
  report(busy());
  assert.deepEqual(reported.splice(0), ["Too many turns run."], "not every message is remembered for ever");
  const broken = () => new GatewayError("adapter_error", "The model broke.");
  for (const error of [broken(), broken()]) report(error);
  assert.deepEqual(
    reported,
    ["The model broke.", "The model broke."],
    "what is not a lasting problem is always logged",
  );
});
