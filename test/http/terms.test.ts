/** Settings that change while the HTTP server is running. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { authorization, createBox, decide, say, token, toToken } from "../scripted.ts";
import { dial, refusalOf, textOf } from "./websocket-client.ts";

const other = "sk-other-0123456789abcdef";
const question = { model: "m", messages: [{ role: "user", content: "hi" }] };

function post(address: string, more: object = {}, path = "/v1/chat/completions", bearer = token): Promise<Response> {
  return fetch(address + path, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: JSON.stringify({ ...question, ...more }),
  });
}

async function statusOf(asking: Promise<Response>): Promise<number> {
  const answer = await asking;
  await answer.text();
  return answer.status;
}

/** The endpoints that a token opens; `asked` resolves when a request was admitted. */
function createOpenings() {
  const asked = Promise.withResolvers<void>();
  const opens = new Set(["chat", "responses"] as const);
  const has = opens.has.bind(opens);
  opens.has = (endpoint) => {
    asked.resolve();
    return has(endpoint);
  };
  return { opens, asked: asked.promise };
}

test("a request keeps the settings under which it arrived, even while its body is still arriving", async (context) => {
  const { opens, asked } = createOpenings();
  const box = createBox(context, [say("hi")], { settings: { tokens: [toToken(token, { opens })] } });
  const address = await box.listen();
  const asking = request(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization,
      "content-type": "application/json",
      "transfer-encoding": "chunked",
      "x-session-id": "room",
    },
  });
  const answering = once(asking, "response") as Promise<[IncomingMessage]>;
  asking.flushHeaders();
  await asked;
  const endpoints = { chat: false, responses: true };
  box.change(decide({ tokens: [toToken(other)], endpoints, hints: [] }, { maxBodyBytes: 1 }));
  assert.equal(await statusOf(post(address)), 401);
  asking.end(JSON.stringify(question));
  const [answer] = await answering;
  assert.equal(answer.statusCode, 200, await text(answer));
  assert.equal(answer.headers["x-portico-history"], "new", "its hint was read too");
});

test("tokens, endpoints, hints and limits are those of the new settings", async (context) => {
  const box = createBox(context, [say("hi")]);
  const address = await box.listen();
  const before = await post(address, { user: "anna" });
  assert.deepEqual([before.status, before.headers.get("x-portico-history")], [200, "new"]);
  await before.text();
  box.change(
    decide({ tokens: [toToken(other)], endpoints: { chat: true, responses: false }, hints: [] }, { maxBodyBytes: 100 }),
  );
  assert.equal(await statusOf(post(address)), 401);
  const after = await post(address, { user: "anna" }, undefined, other);
  assert.deepEqual([after.status, after.headers.get("x-portico-history")], [200, "stateless"]);
  await after.text();
  assert.equal(await statusOf(post(address, { user: "a".repeat(100) }, undefined, other)), 413);
  const disabled = await post(address, { input: "hi" }, "/v1/responses", other);
  assert.equal(disabled.status, 404);
  assert.match(await disabled.text(), /endpoint_disabled/);
});

test("running turns count whatever settings they began with", async (context) => {
  const going = Promise.withResolvers<void>();
  const box = createBox(context, async function* () {
    yield say("a");
    await going.promise;
    yield say("b");
  });
  const address = await box.listen();
  const first = await post(address, { stream: true });
  assert.equal(first.status, 200);
  box.change(decide({}, { maxConcurrentTurns: 1 }));
  const second = await post(address, { stream: true });
  assert.equal(second.status, 503);
  assert.match(await second.text(), /max_concurrent_turns/);
  box.change(decide({}, { maxConcurrentTurns: 2 }));
  const third = await post(address, { stream: true });
  assert.equal(third.status, 200);
  going.resolve();
  for (const answer of [first, third]) assert.match(await answer.text(), /\[DONE\]/);
});

test("failures of an address and the used rate of a token survive a change", async (context) => {
  const now = () => new Date(1_000_000);
  const rate = { requestsPerMinute: 2, burst: 2 };
  const box = createBox(context, [say("hi")], { now, limits: { maxAuthFailuresPerMinute: 1, rate } });
  const address = await box.listen();
  assert.deepEqual([await statusOf(post(address, {}, undefined, "no")), await statusOf(post(address))], [401, 200]);
  box.change(decide({}, { maxAuthFailuresPerMinute: 1, rate }));
  assert.equal(await statusOf(post(address, {}, undefined, "no")), 429);
  assert.deepEqual([await statusOf(post(address)), await statusOf(post(address))], [200, 429]);
  box.change(decide());
  assert.equal(await statusOf(post(address)), 200);
});

test("every answer under a rate limit says what is left of it, streamed or refused too", async (context) => {
  const rate = { requestsPerMinute: 60, burst: 2 };
  const box = createBox(context, [say("hi")], { now: () => new Date(1_000_000), limits: { rate } });
  const address = await box.listen();
  const ask = async (body: object) => {
    const { status, headers } = await post(address, body);
    return [status, ...["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}-requests`))];
  };
  assert.deepEqual(await ask({ stream: true }), [200, "2", "1", "1s"]);
  assert.deepEqual(await ask({}), [200, "2", "0", "2s"]);
  assert.deepEqual(await ask({}), [429, "2", "0", "2s"]);
  box.change(decide());
  assert.deepEqual(await ask({}), [200, null, null, null]);
});

test("allowed origins change with the settings", async (context) => {
  const origin = "https://chat.example";
  const box = createBox(context, [say("hi")]);
  const address = await box.listen();
  const ask = async () => {
    const { headers } = await fetch(`${address}/v1/models`, { headers: { origin, authorization } });
    const preflight = { origin, "access-control-request-method": "POST" };
    const { status } = await fetch(`${address}/v1/models`, { method: "OPTIONS", headers: preflight });
    return [headers.get("access-control-allow-origin"), headers.get("vary"), status];
  };
  assert.deepEqual(await ask(), [null, null, 401]);
  box.change(decide({ corsOrigins: [origin] }));
  assert.deepEqual(await ask(), [origin, "Origin", 204]);
  box.change(decide());
  assert.deepEqual(await ask(), [null, null, 401]);
});

test("a connection stays open, and each of its turns uses the current settings", async (context) => {
  const going = Promise.withResolvers<void>();
  const box = createBox(context, async function* () {
    yield say("a");
    await going.promise;
    yield say("b");
  });
  const address = await box.listen();
  const client = await dial(context, address);
  client.create({ input: "first" });
  await client.next();
  box.change(decide({ tokens: [toToken(other)] }));
  going.resolve();
  assert.equal(textOf(await client.answer()), "ab");

  const refusedWith = async () => {
    client.create({ input: "again" });
    return (await client.answer()).at(-1)?.error?.code;
  };
  assert.equal(await refusedWith(), "invalid_api_key");
  box.change(decide({ endpoints: { chat: true, responses: false } }));
  assert.equal(await refusedWith(), "endpoint_disabled");
  box.change(decide({ tokens: [toToken(token, { opens: new Set(["chat"]) })] }));
  assert.equal(await refusedWith(), "endpoint_not_allowed");
  box.change(decide({ webSocket: { enabled: false, maxConnections: 100, maxMinutes: 60 } }));
  assert.equal(await refusedWith(), "upgrade_required");
  assert.equal((await refusalOf(address)).status, 426);
  box.change(decide());
  assert.equal(await refusedWith(), undefined);
  assert.equal(client.socket.readyState, client.socket.OPEN);
});

test("the maximum frame length is that of the settings when the connection was opened", async (context) => {
  const box = createBox(context, [say("hi")], { limits: { maxBodyBytes: 1_000 } });
  const address = await box.listen();
  const long = { input: "a".repeat(2_000) };
  box.change(decide({}, { maxBodyBytes: 10_000 }));
  const client = await dial(context, address);
  client.create(long);
  assert.equal(textOf(await client.answer()), "hi");
  box.change(decide({}, { maxBodyBytes: 1_000 }));
  const later = await dial(context, address);
  later.create(long);
  assert.equal((await later.closed).code, 1009);
});
