import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { IncomingMessage } from "node:http";
import { connect, Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { GatewayError } from "../../src/core/errors.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { createWebSockets } from "../../src/http/websocket.ts";
import { authorization, createBox, say, toToken } from "../scripted.ts";
import { dial, refusalOf, textOf, toSocketUrl } from "./websocket-client.ts";

const on = { enabled: true, maxConnections: 100, maxMinutes: 60 };

test("an upgrade needs an enabled endpoint and a token that opens it", async (context) => {
  const tokens = [toToken("sk-chat", { opens: new Set(["chat"]) })];
  const address = await createBox(context, [], { settings: { tokens } }).listen();
  const missing = await refusalOf(address, {});
  assert.deepEqual([missing.status, missing.code], [401, "missing_api_key"]);
  assert.equal(missing.headers["www-authenticate"], "Bearer");
  assert.ok(missing.headers["x-request-id"]);
  assert.equal((await refusalOf(address, { authorization: "Bearer no" })).code, "invalid_api_key");
  const notAllowed = await refusalOf(address, { authorization: "Bearer sk-chat" });
  assert.deepEqual([notAllowed.status, notAllowed.code], [403, "endpoint_not_allowed"]);

  const closed = createBox(context, [], { settings: { endpoints: { chat: true, responses: false } } });
  assert.equal((await refusalOf(await closed.listen())).code, "endpoint_disabled");
});

test("an upgrade is answered with 426 where WebSocket is disabled", async (context) => {
  const box = createBox(context, [say("hi")], { settings: { webSocket: { ...on, enabled: false } } });
  const address = await box.listen();
  const refused = await refusalOf(address);
  assert.deepEqual([refused.status, refused.code, refused.headers.upgrade], [426, "upgrade_required", "HTTP/1.1"]);
  assert.equal((await refusalOf(address, {})).status, 401);
});

test("a GET without an upgrade is not allowed, and other upgrades are ignored", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const plain = await fetch(`${address}/v1/responses`, { headers: { authorization } });
  assert.equal(plain.status, 405);
  assert.equal(plain.headers.get("allow"), "POST");

  const body = JSON.stringify({ model: "m", input: "hi" });
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  socket.write(
    `POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nconnection: Upgrade, HTTP2-Settings\r\n` +
      `upgrade: h2c\r\nhttp2-settings: AA\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.match(String(answer), /^HTTP\/1\.1 200 /);

  const elsewhere = new WebSocket(`${address.replace("http", "ws")}/v1/models`, { headers: { authorization } });
  const [, { statusCode }] = (await once(elsewhere, "unexpected-response")) as [unknown, { statusCode: number }];
  elsewhere.on("error", () => {}).terminate();
  assert.equal(statusCode, 200);
});

test("a malformed upgrade is refused in the common error format, and logged so", async (context) => {
  const box = createBox(context, []);
  const address = await box.listen();
  const key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const malformed = [
    { fields: `connection: close\r\n${key}sec-websocket-version: 13\r\n`, said: "An upgrade needs the header" },
    { fields: "connection: upgrade\r\n", said: "Sec-WebSocket-Key" },
    { fields: `connection: upgrade\r\n${key}sec-websocket-version: 7\r\n`, said: "Sec-WebSocket-Version" },
  ];
  for (const { fields, said } of malformed) {
    const socket = connect(Number(new URL(address).port), "127.0.0.1");
    context.after(() => socket.destroy());
    socket.write(
      `GET /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nupgrade: websocket\r\n${fields}\r\n`,
    );
    let text = "";
    for await (const chunk of socket) text += String(chunk);
    assert.match(text, new RegExp(`^HTTP/1\\.1 400 .*${said}.*"code":"malformed_http"`, "s"));
    assert.equal(/^sec-websocket-version: 13\r$/m.test(text), said !== "An upgrade needs the header");
    assert.match(text, /^connection: close\r$/im);
  }
  assert.deepEqual(
    box.logged.map(({ fields }) => ("status" in fields && "code" in fields ? [fields.status, fields.code] : fields)),
    malformed.map(() => [400, "malformed_http"]),
  );
});

test("an upgrade may be written in any case, and its answer has the id of the request", async (context) => {
  const address = await createBox(context, []).listen();
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  socket.write(
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nconnection: Upgrade\r\n` +
      "upgrade: WebSocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.match(String(answer), /^HTTP\/1\.1 101 .*^x-request-id: req_/ms);
  // The gateway would wait for its close frame.
  socket.destroy();
});

test("a connection that breaks before its upgrade is answered is closed", () => {
  const server = new EventEmitter();
  const app = { server, serve() {} } as unknown as HttpServer;
  createWebSockets(() => assert.fail("nothing is answered")).install(app);
  const socket = new Socket();
  server.emit("upgrade", new IncomingMessage(socket), socket, Buffer.alloc(0));
  socket.emit("error", new Error("read ECONNRESET"));
  assert.equal(socket.destroyed, true);
});

test("an upgrade behind a request that is still being answered ends the connection, and the turn with it", async (context) => {
  const begun = Promise.withResolvers<AbortSignal>();
  const box = createBox(context, async function* (_turn, signal) {
    begun.resolve(signal);
    await once(signal, "abort");
    yield say("unheard");
  });
  const body = JSON.stringify({ model: "m", input: "hi" });
  const head = `host: x\r\nauthorization: ${authorization}\r\n`;
  const socket = connect(Number(new URL(await box.listen()).port), "127.0.0.1");
  socket.write(
    `POST /v1/responses HTTP/1.1\r\n${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const signal = await begun.promise;
  socket.write(
    `GET /v1/responses HTTP/1.1\r\n${head}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n` +
      `sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  );
  const left = once(signal, "abort");
  await once(socket.resume(), "close");
  await left;
});

test("an error frame says when to retry wherever an HTTP answer would, even if nobody has said when", async (context) => {
  const busy = (): never => {
    throw new GatewayError("adapter_rate_limit", "The upstream limits the rate.");
  };
  const address = await createBox(context, busy).listen();
  const client = await dial(context, address);
  client.create();
  await client.answer();
  assert.match(client.received.at(-1) ?? "", /"status":429.*"headers":\{"retry-after":"1"\}/);
});

test("connections beyond the limit are refused until one has ended", async (context) => {
  const address = await createBox(context, [say("hi")], {
    settings: { webSocket: { ...on, maxConnections: 1 } },
  }).listen();
  const first = await dial(context, address);
  const refused = await refusalOf(address);
  assert.deepEqual([refused.status, refused.code], [503, "overloaded"]);
  assert.ok(refused.headers["retry-after"]);
  first.socket.close();
  await first.closed;
  const second = await dial(context, address);
  second.create();
  assert.equal(textOf(await second.answer()), "hi");
});

test("a wrong frame is answered with an error, and the connection stays usable", async (context) => {
  const address = await createBox(context, [say("hi")], { limits: { maxJsonDepth: 8 } }).listen();
  const client = await dial(context, address);
  const deep = `{"type":"response.create","model":"m","input":${"[".repeat(20)}${"]".repeat(20)}}`;
  const wrong: readonly (readonly [frame: object | string, code: string, param: string | null])[] = [
    ["{", "invalid_json", null],
    ["", "invalid_json", null],
    ["[]", "invalid_type", null],
    [deep, "json_too_deep", null],
    [{ model: "m", input: "hi" }, "missing_required_parameter", "type"],
    [{ type: "response.cancel" }, "invalid_value", "type"],
    [{ type: "response.create", input: "hi" }, "missing_required_parameter", "model"],
    [{ type: "response.create", model: "m", input: "hi", temperature: 3 }, "decimal_above_max_value", "temperature"],
    [{ type: "response.create", model: "m", input: "hi", generate: 1 }, "invalid_type", "generate"],
    [{ type: "response.create", model: "m", input: "hi", background: true }, "unsupported_parameter", "background"],
    [
      { type: "response.create", model: "m", input: "hi", previous_response_id: "resp_no" },
      "previous_response_not_found",
      "previous_response_id",
    ],
  ];
  for (const [frame, code, param] of wrong) {
    client.send(frame);
    const [answer, ...rest] = await client.answer();
    assert.deepEqual(rest, []);
    assert.deepEqual([answer?.type, answer?.status, answer?.sequence_number], ["error", 400, 0]);
    assert.deepEqual([answer?.error?.code, answer?.error?.param], [code, param]);
    assert.deepEqual(Object.keys(answer?.error ?? {}), ["code", "message", "type", "param"]);
  }
  client.socket.send(Buffer.from("{}"));
  assert.equal((await client.answer())[0]?.error?.code, "invalid_json");
  client.create({ stream: false });
  assert.equal(textOf(await client.answer()), "hi");
});

test("a frame larger than the maximum body closes the connection with 1009", async (context) => {
  const client = await dial(context, await createBox(context, [], { limits: { maxBodyBytes: 1000 } }).listen());
  client.create({ input: "x".repeat(1000) });
  assert.equal((await client.closed).code, 1009);
});

test("at most eight frames wait behind the one that is being answered, and one more is refused in order", async (context) => {
  const release = Promise.withResolvers<void>();
  const box = createBox(context, async function* () {
    await release.promise;
    yield say("hi");
  });
  const client = await dial(context, await box.listen());
  for (let sent = 0; sent < 10; sent++) client.create();
  await client.flushed();
  assert.deepEqual(client.received, []);
  release.resolve();
  for (let answered = 0; answered < 9; answered++) assert.equal(textOf(await client.answer()), "hi");
  const [busy] = await client.answer();
  assert.deepEqual([busy?.status, busy?.error?.code], [429, "session_busy"]);
  assert.equal(box.adapter.turns.length, 9);
});

test("waiting frames may together be as long as one body", async (context) => {
  const release = Promise.withResolvers<void>();
  const script = async function* () {
    await release.promise;
    yield say("hi");
  };
  const box = createBox(context, script, { limits: { maxBodyBytes: 2_000 } });
  const client = await dial(context, await box.listen());
  for (let sent = 0; sent < 3; sent++) client.create({ input: "x".repeat(1_500) });
  await client.flushed();
  release.resolve();
  for (let answered = 0; answered < 2; answered++) assert.equal(textOf(await client.answer()), "hi");
  const [busy] = await client.answer();
  assert.deepEqual([busy?.status, busy?.error?.code], [429, "session_busy"]);
  client.create({ input: "x".repeat(1_500) });
  assert.equal(textOf(await client.answer()), "hi", "what was answered no longer waits");
});

test("the upgrade, every turn and every attempt to steer count against the token's rate", async (context) => {
  const box = createBox(context, [say("hi")], { limits: { rate: { requestsPerMinute: 1, burst: 2 } } });
  const address = await box.listen();
  const client = await dial(context, address);
  client.create();
  assert.equal(textOf(await client.answer()), "hi");
  client.create();
  const [refused] = await client.answer();
  assert.deepEqual([refused?.status, refused?.error?.code], [429, "rate_limit_exceeded"]);
  assert.match(client.received.at(-1) ?? "", /"headers":\{"retry-after":"60"\}/);
  client.send({ type: "response.steer", input: "more" });
  const { type, error } = await client.next();
  assert.deepEqual([type, error?.code], ["response.steer.failed", "rate_limit_exceeded"]);
  assert.equal((await refusalOf(address)).code, "rate_limit_exceeded");
});

test("an expired token starts and steers no more turns on a connection that it opened", async (context) => {
  let at = new Date("2030-01-01T00:00:00Z");
  const tokens = [toToken("sk-short", { expiresAt: new Date("2030-01-01T00:10:00Z") })];
  const address = await createBox(context, [say("hi")], { settings: { tokens }, now: () => at }).listen();
  const client = await dial(context, address, { authorization: "Bearer sk-short" });
  client.create();
  assert.equal(textOf(await client.answer()), "hi");
  at = new Date("2030-01-01T00:20:00Z");
  for (const [type, told] of [
    ["response.create", "error"],
    ["response.steer", "response.steer.failed"],
  ]) {
    client.create({ type });
    const refused = await client.next();
    assert.deepEqual([refused.type, refused.error?.code], [told, "invalid_api_key"]);
  }
});

test("a turn on a connection takes one of the turn slots, and releases it", async (context) => {
  const release = Promise.withResolvers<void>();
  const box = createBox(
    context,
    async function* () {
      await release.promise;
      yield say("hi");
    },
    { limits: { maxConcurrentTurns: 1 } },
  );
  const address = await box.listen();
  const [one, other] = [await dial(context, address), await dial(context, address)];
  one.create();
  while (box.adapter.turns.length === 0) await new Promise(setImmediate);
  other.create();
  assert.deepEqual((await other.answer())[0]?.error?.code, "overloaded");
  release.resolve();
  await one.answer();
  other.create();
  assert.equal(textOf(await other.answer()), "hi");
});

test("a connection that has reached its maximum age ends after the running response", async (context) => {
  const ended = Promise.withResolvers<void>();
  const box = createBox(
    context,
    async function* () {
      yield say("a");
      await ended.promise;
      yield say("b");
    },
    { settings: { webSocket: { ...on, maxMinutes: 0.002 } } },
  );
  const address = await box.listen();
  // This connection reaches its maximum age first.
  const busy = await dial(context, address);
  busy.create();
  busy.create();
  const idle = await dial(context, address);
  const notice = await idle.next();
  assert.deepEqual(
    [notice.type, notice.status, notice.error?.code],
    ["error", 400, "websocket_connection_limit_reached"],
  );
  assert.equal((await idle.closed).code, 1001);
  ended.resolve();
  assert.equal(textOf(await busy.answer()), "ab");
  assert.equal((await busy.next()).error?.code, "websocket_connection_limit_reached");
  assert.equal((await busy.closed).code, 1001);
});

test("a gateway that shuts down lets responses end, refuses waiting frames, and closes with 1001", async (context) => {
  const release = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const box = createBox(context, async function* () {
    yield say("a");
    started.resolve();
    await release.promise;
    yield say("b");
  });
  const address = await box.listen();
  const idle = await dial(context, address);
  const busy = await dial(context, address);
  for (let sent = 0; sent < 10; sent++) busy.create();
  await Promise.all([started.promise, busy.flushed()]);
  const closing = box.close();
  assert.equal((await idle.closed).code, 1001);
  assert.deepEqual(idle.received, []);
  release.resolve();
  assert.equal(textOf(await busy.answer()), "ab");
  for (let refused = 0; refused < 8; refused++) {
    const { status, error } = await busy.next();
    assert.deepEqual([status, error?.code], [503, "draining"]);
  }
  assert.equal((await busy.next()).error?.code, "session_busy", "a frame without room is still refused as such");
  assert.equal((await busy.closed).code, 1001);
  await closing;
});

test(
  "a client that does not answer the close frame does not delay a shutdown",
  { timeout: 10_000 },
  async (context) => {
    const box = createBox(context, [], { limits: { drainTimeoutMs: 15_000 } });
    const asleep = await dial(context, await box.listen());
    asleep.socket.pause();
    await box.close();
  },
);

test("a shutdown waits for a client that may not have read its answer", { timeout: 10_000 }, async (context) => {
  const box = createBox(context, [say("x".repeat(600_000))], { limits: { drainTimeoutMs: 15_000 } });
  const slow = await dial(context, await box.listen());
  slow.socket.pause();
  slow.create();
  while (!box.logged.some(({ message }) => message === "request")) await new Promise(setImmediate);
  const closing = box.close();
  await sleep(800);
  slow.socket.ping();
  await sleep(50);
  slow.socket.resume();
  assert.equal(textOf(await slow.answer()).length, 600_000);
  await closing;
});

test("waiting frames of a client that has sent a close frame are not answered", async (context) => {
  const release = Promise.withResolvers<void>();
  const box = createBox(context, async function* () {
    await release.promise;
    yield say("hi");
  });
  const address = await box.listen();
  const [leaving, other] = [await dial(context, address), await dial(context, address)];
  for (let sent = 0; sent < 2; sent++) leaving.create();
  await leaving.flushed();
  // It does not read the gateway's close frame, so that the connection has not ended yet.
  leaving.socket.pause();
  leaving.socket.close();
  await other.flushed();
  release.resolve();
  while (!box.logged.some(({ message }) => message === "request")) await new Promise(setImmediate);
  await other.flushed();
  assert.equal(box.adapter.turns.length, 1);
  leaving.socket.terminate();
});

test("a client that makes the gateway write, and does not read, is cut off", async (context) => {
  const box = createBox(context, [], { limits: { maxUnsentBytes: 1000 } });
  const client = await dial(context, await box.listen());
  client.socket.on("error", () => {}).pause();
  const steer = { type: "response.steer", input: "x".repeat(1_000_000) };
  for (let sent = 0; sent < 100 && client.socket.readyState === WebSocket.OPEN; sent++) {
    client.send(steer);
    await new Promise(setImmediate);
  }
  client.socket.resume();
  assert.equal((await client.closed).code, 1006);
});

test("a client that has not read what was sent gets no answer to its pings", async (context) => {
  // Less than nothing, so that every client is behind.
  const client = await dial(context, await createBox(context, [], { limits: { maxUnsentBytes: -1 } }).listen());
  let pongs = 0;
  client.socket.on("pong", () => (pongs += 1)).ping();
  client.send("{");
  assert.equal((await client.next()).error?.code, "invalid_json");
  assert.equal(pongs, 0);
  // The gateway would wait for it to read.
  client.socket.terminate();
});

test("a response that exceeds the drain timeout is cancelled, and its client is told", async (context) => {
  const box = createBox(
    context,
    async function* (_turn, signal) {
      yield say("a");
      await once(signal, "abort");
      signal.throwIfAborted();
    },
    { limits: { drainTimeoutMs: 20 } },
  );
  const client = await dial(context, await box.listen());
  client.create();
  while ((await client.next()).type !== "response.output_text.delta");
  const closing = box.close();
  const frames = await client.answer();
  assert.equal(frames.at(-1)?.response?.error?.code, "server_is_overloaded");
  assert.equal((await client.closed).code, 1001);
  await closing;
});

test("a client is pinged, and cut off when it does not answer", async (context) => {
  let at = Date.now();
  const box = createBox(context, [], { limits: { heartbeatMs: 10 }, now: () => new Date(at) });
  const address = await box.listen();
  const mute = new WebSocket(toSocketUrl(address), { headers: { authorization }, autoPong: false });
  context.after(() => mute.terminate());
  const lively = await dial(context, address);
  await Promise.all([once(mute, "ping"), once(lively.socket, "ping")]);
  for (let pings = 0; pings < 3; pings += 1) await once(lively.socket, "ping");
  assert.equal(mute.readyState, WebSocket.OPEN, "its time has not passed yet");
  at += 31_000;
  await once(mute, "ping");
  at += 30_000;
  const muted = once(mute, "close");
  for (let pings = 0; pings < 2; pings += 1) await once(lively.socket, "ping");
  assert.equal((await muted)[0], 1006);
});

test("a connection that has ended leaves no timer behind", async (context) => {
  const limits = { heartbeatMs: 54_321 };
  /** Of what a file may say, and of what a timer can wait. */
  const longest = 2_147_483_647;
  const box = createBox(context, [], { limits, settings: { webSocket: { ...on, maxMinutes: longest } } });
  const address = await box.listen();
  const started = [context.mock.method(globalThis, "setInterval"), context.mock.method(globalThis, "setTimeout")];
  const cleared = [context.mock.method(globalThis, "clearInterval"), context.mock.method(globalThis, "clearTimeout")];
  const client = await dial(context, address);
  client.socket.close();
  await client.closed;
  await box.close();
  const calls = started.flatMap(({ mock }) => mock.calls);
  const timers = calls.filter(({ arguments: [, ms] }) => ms === 54_321 || ms === longest).map(({ result }) => result);
  assert.equal(timers.length, 2);
  const over = new Set<unknown>(cleared.flatMap(({ mock }) => mock.calls.map(({ arguments: [timer] }) => timer)));
  for (const timer of timers) assert.ok(over.has(timer));
});

test("frames that arrive together are read one by one, so that others are answered in between", async (context) => {
  const client = await dial(context, await createBox(context, []).listen());
  let rounds = 0;
  let next = setImmediate(function count() {
    rounds += 1;
    next = setImmediate(count);
  });
  context.after(() => clearImmediate(next));
  const frames = 200;
  for (let sent = 0; sent < frames; sent += 1) client.send("{");
  while (client.received.length < frames) await client.next();
  assert.ok(rounds >= frames, `${frames} frames in ${rounds} rounds of the event loop`);
});
