/** Arriving bodies: they take no turn slot, are limited together, and are waited for when the gateway stops. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { suite, test, type TestContext } from "node:test";
import type { GatewayError } from "../../src/core/errors.ts";
import { createArrivals } from "../../src/http/arrivals.ts";
import { authorization, createBox, say, toToken, token } from "../scripted.ts";
import { dial, textOf } from "./websocket-client.ts";
import { collectGarbage } from "../garbage.ts";
import { standStill } from "../still.ts";

const hello = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
const json = { "content-type": "application/json" };

function post(address: string, bearer = token, body = hello): Promise<Response> {
  const headers = { ...json, authorization: `Bearer ${bearer}` };
  return fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body });
}

/** A request on a bare socket, of which only the beginning is sent. */
function begin(context: TestContext, address: string, beginning: string, length = hello.length): Begun {
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  let received = "";
  socket.on("data", (chunk) => (received += chunk)).on("error", () => {});
  const answered = once(socket, "data").then(() => received);
  const head = `host: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\nconnection: close\r\n`;
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${head}content-length: ${length}\r\n\r\n${beginning}`);
  return { socket, answered, closed: once(socket, "close").then(() => received) };
}

interface Begun {
  readonly socket: Socket;
  /** The first data received. */
  readonly answered: Promise<string>;
  /** All data received. */
  readonly closed: Promise<string>;
}

/** A token that counts the requests that it has admitted. */
function createWatchedToken() {
  const opens = new Set(["chat", "responses"] as const);
  const has = opens.has.bind(opens);
  const seen = { requests: 0 };
  let news = Promise.withResolvers<void>();
  opens.has = (endpoint) => {
    seen.requests++;
    news.resolve();
    news = Promise.withResolvers();
    return has(endpoint);
  };
  return {
    settings: { tokens: [toToken(token, { opens })] },
    async admitted(wanted: number): Promise<void> {
      while (seen.requests < wanted) await news.promise;
      // What follows in the same step is done too.
      await new Promise(setImmediate);
    },
  };
}

suite("arriving bodies", () => {
  test("a body takes a turn slot only when it is complete", async (context) => {
    const { settings, admitted } = createWatchedToken();
    const address = await createBox(context, [say("hi")], { settings, limits: { maxConcurrentTurns: 1 } }).listen();
    const half = begin(context, address, hello.slice(0, 5));
    const others = [begin(context, address, ""), begin(context, address, "{")];
    await admitted(3);
    assert.equal((await post(address)).status, 200);
    half.socket.write(hello.slice(5));
    assert.match(await half.closed, /^HTTP\/1\.1 200 /);
    for (const { socket } of others) socket.destroy();
  });

  test("a body that arrived while the gateway itself was blocked is read", async (context) => {
    const { settings, admitted } = createWatchedToken();
    const limits = { bodyIdleTimeoutMs: 500 };
    const address = await createBox(context, [say("hi")], { settings, limits }).listen();
    const half = begin(context, address, hello.slice(0, 5));
    await admitted(1);
    half.socket.write(hello.slice(5));
    standStill(2 * limits.bodyIdleTimeoutMs);
    assert.match(await half.closed, /^HTTP\/1\.1 200 /);
  });

  test("a body is released when it is read, however long its answer takes", async (context) => {
    const going = Promise.withResolvers<void>();
    context.after(() => going.resolve());
    const script = async function* () {
      yield say("hi");
      await going.promise;
    };
    const bytes = 2_000_000;
    const address = await createBox(context, script, { limits: { maxBodyBytes: 2 * bytes } }).listen();
    const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "x".repeat(bytes) }] });
    const before = collectGarbage().arrayBuffers;
    for (let count = 0; count < 8; count++) {
      assert.match(await begin(context, address, body, body.length).answered, /^HTTP\/1\.1 200 /);
    }
    const held = collectGarbage().arrayBuffers - before;
    assert.ok(held < 2 * bytes, `${held} bytes are held`);
  });

  test("a request without a free turn slot is refused before its body is read", async (context) => {
    const going = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const script = async function* () {
      begun.resolve();
      await going.promise;
      yield say("hi");
    };
    const address = await createBox(context, script, { limits: { maxConcurrentTurns: 1 } }).listen();
    const first = post(address);
    await begun.promise;
    assert.match(await begin(context, address, "").closed, /^HTTP\/1\.1 503 [^]*max_concurrent_turns/);
    going.resolve();
    assert.equal((await first).status, 200);
  });

  test("of bodies that exceed max_arriving_bytes together one is refused, and the other is accepted", async (context) => {
    const address = await createBox(context, [say("hi")], { limits: { maxArrivingBytes: 300_000 } }).listen();
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x".repeat(200_000) }] });
    const bodies = [0, 1].map(() => begin(context, address, body.slice(0, -10), body.length));
    const refusal = await Promise.race(bodies.map(({ answered }) => answered));
    assert.match(refusal, /^HTTP\/1\.1 503 [^]*retry-after: 1\r\n/);
    for (const { socket } of bodies) if (!socket.destroyed) socket.write(body.slice(-10));
    const answers = await Promise.all(bodies.map(({ closed }) => closed));
    assert.deepEqual(answers.map((answer) => answer.slice(9, 12)).toSorted(), ["200", "503"]);
    assert.match(answers.join(), /"code":"overloaded"/);
    assert.match(answers.join(), /gateway\.http\.limits\.max_arriving_bytes/);
    assert.equal((await post(address, token, body)).status, 200, "bodies that were read or refused no longer count");
  });

  test("a slow body is not refused because of bodies that were read or abandoned meanwhile", async (context) => {
    const { settings, admitted } = createWatchedToken();
    const box = createBox(context, [say("hi")], { settings, limits: { maxArrivingBytes: 300_000 } });
    const address = await box.listen();
    const slow = begin(context, address, hello.slice(0, 5));
    await admitted(1);
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x".repeat(200_000) }] });
    const left = begin(context, address, body.slice(0, -10), body.length);
    await once(left.socket, "drain");
    left.socket.destroy();
    while (box.logged.length === 0) await new Promise(setImmediate);
    assert.match(JSON.stringify(box.logged), /"status":499[^]*"client_closed"/);
    assert.equal((await post(address, token, body)).status, 200);
    assert.equal((await post(address, token, body)).status, 200);
    slow.socket.write(hello.slice(5));
    assert.match(await slow.closed, /^HTTP\/1\.1 200 /);
  });

  test("the idle timeout of a body restarts with each chunk, and ends with the body", async (context) => {
    const { settings, admitted } = createWatchedToken();
    const limits = { bodyIdleTimeoutMs: 54_321 };
    const address = await createBox(context, [say("hi")], { settings, limits }).listen();
    const started = context.mock.method(globalThis, "setTimeout");
    const cleared = context.mock.method(globalThis, "clearTimeout");
    const half = begin(context, address, "");
    await admitted(1);
    const timer = started.mock.calls.find(({ arguments: [, delay] }) => delay === 54_321)?.result;
    assert.ok(timer);
    const refreshed = context.mock.method(timer, "refresh");
    half.socket.write(hello);
    assert.match(await half.closed, /^HTTP\/1\.1 200 /);
    assert.equal(refreshed.mock.callCount(), 1);
    assert.ok(cleared.mock.calls.some(({ arguments: [which] }) => which === timer));
  });

  test("a body in one-byte chunks is read correctly", async (context) => {
    const box = createBox(context, [say("hi")]);
    const socket = connect(Number(new URL(await box.listen()).port), "127.0.0.1");
    context.after(() => socket.destroy());
    const content = "grün und blau ".repeat(2_000);
    const bytes = Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content }] }));
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\n` +
        "transfer-encoding: chunked\r\n\r\n",
    );
    const pieces = Array.from(bytes, (byte) =>
      Buffer.concat([Buffer.from("1\r\n"), Buffer.of(byte), Buffer.from("\r\n")]),
    );
    socket.write(Buffer.concat([...pieces, Buffer.from("0\r\n\r\n")]));
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.match(String(answer), /^HTTP\/1\.1 200 /);
    assert.match(JSON.stringify(box.adapter.turns[0]?.items), new RegExp(`"${content}"`));
  });

  test("an incomplete WebSocket frame counts too, and its connection is closed with 1013", async (context) => {
    const address = await createBox(context, [say("hi")], { limits: { maxArrivingBytes: 300_000 } }).listen();
    const [slow, quick, idle] = [
      await dial(context, address),
      await dial(context, address),
      await dial(context, address),
    ];
    await idle.flushed();
    slow.create({ input: "x".repeat(200_000) });
    assert.equal(textOf(await slow.answer()), "hi");
    slow.socket.send("x".repeat(200_000), { fin: false });
    slow.socket.once("error", () => {});
    // The frames of one connection are processed in order, and so is the pong.
    slow.socket.ping();
    await once(slow.socket, "pong");
    const body = JSON.stringify({ type: "response.create", model: "m", input: "x".repeat(400_000) });
    quick.socket.send(body.slice(0, 200_000), { fin: false });
    quick.socket.send(body.slice(200_000), { fin: true });
    assert.equal(textOf(await quick.answer()), "hi");
    assert.deepEqual(await slow.closed, { code: 1013, reason: "overloaded" });
    idle.create();
    assert.equal(textOf(await idle.answer()), "hi", "what was only a ping does not count");
  });

  test("complete frames no longer count, however many there were", async (context) => {
    const limits = { maxArrivingBytes: 300_000 };
    const address = await createBox(context, [say("hi")], { limits }).listen();
    const clients = [await dial(context, address), await dial(context, address)];
    for (const client of [...clients, ...clients]) {
      client.create({ input: "x".repeat(200_000) });
      const answer = await Promise.race([client.answer(), client.closed.then(() => [])]);
      assert.equal(textOf(answer), "hi");
    }
    const [partial, whole] = clients;
    const body = JSON.stringify({ type: "response.create", model: "m", input: "x".repeat(100_000) });
    partial?.socket.send(body.slice(0, -1), { fin: false });
    partial?.socket.ping();
    await once(partial!.socket, "pong");
    whole?.create({ input: "x".repeat(100_000) });
    assert.equal(textOf((await whole?.answer()) ?? []), "hi");
    partial?.socket.send(body.slice(-1), { fin: true });
    assert.equal(textOf((await partial?.answer()) ?? []), "hi");
  });

  test("a connection that is closed as overloaded is gone, whether its client answers or not", async (context) => {
    const settings = { webSocket: { enabled: true, maxConnections: 2, maxMinutes: 60 } };
    const limits = { maxArrivingBytes: 300_000 };
    const address = await createBox(context, [say("hi")], { settings, limits }).listen();
    const [slow, quick] = [await dial(context, address), await dial(context, address)];
    slow.socket.send("x".repeat(200_000), { fin: false });
    slow.socket.ping();
    await once(slow.socket, "pong");
    slow.socket.pause();
    quick.socket.send("x".repeat(200_000), { fin: false });
    const dialled = () => dial(context, address).catch(() => undefined);
    while ((await dialled()) === undefined);
  });
});

suite("a gateway that stops", () => {
  test("waits for an arriving body, and answers it", async (context) => {
    const { settings, admitted } = createWatchedToken();
    const box = createBox(context, [say("hi")], { settings });
    const half = begin(context, await box.listen(), hello.slice(0, 5));
    await admitted(1);
    const closing = box.close();
    half.socket.write(hello.slice(5));
    assert.match(await half.closed, /^HTTP\/1\.1 200 /);
    await closing;
  });

  test("answers a client that is still sending at the drain timeout with draining", async (context) => {
    const { settings, admitted } = createWatchedToken();
    const box = createBox(context, [say("hi")], { settings, limits: { drainTimeoutMs: 20 } });
    const half = begin(context, await box.listen(), hello.slice(0, 5));
    await admitted(1);
    const closing = box.close();
    assert.match(await half.closed, /^HTTP\/1\.1 503 [^]*"code":"draining"/);
    await closing;
  });
});

test("a token's limit of turns is shared by all tokens with its name", async (context) => {
  const going = Promise.withResolvers<void>();
  const own = { owner: "app", maxConcurrentTurns: 1 };
  const tokens = [toToken("sk-old", own), toToken("sk-new", own), toToken(token)];
  const box = createBox(
    context,
    async function* () {
      yield say("a");
      await going.promise;
      yield say("b");
    },
    { settings: { tokens } },
  );
  const address = await box.listen();
  const streamed = hello.replace("{", '{"stream":true,');
  const first = await post(address, "sk-old", streamed);
  const second = await post(address, "sk-new", streamed);
  assert.deepEqual([second.status, second.headers.get("retry-after")], [429, "1"]);
  assert.match(await second.text(), /This token may have 1 turns running.*"code":"rate_limit_exceeded"/);
  const client = await dial(context, address, { authorization: "Bearer sk-new" });
  client.create();
  assert.equal((await client.answer())[0]?.error?.code, "rate_limit_exceeded");
  const other = await post(address, token, streamed);
  assert.equal(other.status, 200);
  going.resolve();
  for (const answer of [first, other]) assert.match(await answer.text(), /\[DONE\]/);
  const third = await post(address, "sk-new", streamed);
  assert.match(await third.text(), /\[DONE\]/);
});

test("the body that has been idle longest is refused first, and each is counted once", () => {
  let most = 100;
  const arrivals = createArrivals(() => most);
  const given: string[] = [];
  const open = (name: string) => arrivals.begin("ann", ({ code }: GatewayError) => given.push(`${name} ${code}`));
  const [first, second, third] = [open("first"), open("second"), open("third")];
  first.hold(40);
  second.hold(40);
  first.hold(50);
  third.hold(40);
  assert.deepEqual(given, ["second overloaded"]);
  second.hold(1_000);
  second.end();
  third.end();
  third.end();
  const fourth = open("fourth");
  fourth.hold(50);
  assert.deepEqual(given, ["second overloaded"], "bodies that ended no longer count, and are not subtracted twice");
  most = 60;
  fourth.hold(51);
  assert.deepEqual(given.splice(0), ["second overloaded", "first overloaded"]);
  fourth.hold(1_000);
  assert.deepEqual(given, [], "a single body always fits");
});

test("the owner that sends the most gives way first, however quick it is, and a newcomer to nobody", () => {
  const arrivals = createArrivals(() => 100);
  const given: string[] = [];
  const open = (owner: string, name = owner) => arrivals.begin(owner, () => given.push(name));
  const [slow, ...quick] = [open("ben"), open("ann", "ann 1"), open("ann", "ann 2"), open("ann", "ann 3")];
  slow?.hold(20);
  for (const body of quick) body.hold(25);
  for (const body of quick) body.hold(26);
  assert.deepEqual(given, []);
  open("new").hold(10);
  assert.deepEqual(given, ["ann 1"]);
  slow?.hold(60);
  assert.deepEqual(given, ["ann 1", "ben"], "whoever has come to send the most");
  slow?.end();
  quick[1]?.hold(74);
  assert.deepEqual(given, ["ann 1", "ben", "ann 3"]);
});
