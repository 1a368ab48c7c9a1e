/** How a gateway closes: what runs may finish, what is new is told to come back, and nobody holds it up. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send } from "node:http";
import { test } from "node:test";
import { begin, call, endpoints, paths, readAll, readEvents, toRequest } from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { gate, openGateway, operatorToken, say, type Script } from "../harness/house.ts";
import { chat, dial, eventually, head, hello, post, statusesOf } from "./raw.ts";

function holdOn() {
  const going = gate();
  const script: Script = async function* () {
    yield say("one ");
    await going.opened;
    yield say("two");
  };
  return { script, going };
}

/** A model that never ends by itself. */
const endless: Script = async function* (_turn, signal) {
  yield say("one ");
  await once(signal, "abort");
  throw signal.reason;
};

for (const on of endpoints) {
  for (const stream of [true, false]) {
    test(`${on}: a gateway that closes lets ${stream ? "a stream" : "a whole answer"} end`, async (context) => {
      const { script, going } = holdOn();
      const { address, close, model } = await openGateway(context, { script });
      const asking = begin(address, { on, say: "hi", stream });
      await eventually(() => model.turns.length > 0);
      const closing = close();
      going.open();
      const raw = await readAll(await asking);
      assert.match(raw, stream ? /one [^]*two[^]*\[DONE\]/ : /one two/);
      await closing;
    });

    test(`${on}: ${stream ? "a stream" : "a whole answer"} that still runs at drain_timeout_ms is told why it ends`, async (context) => {
      const { address, close, model } = await openGateway(context, {
        script: endless,
        limits: { drain_timeout_ms: 30 },
      });
      const asking = begin(address, { on, say: "hi", stream });
      await eventually(() => model.turns.length > 0);
      const heard = stream ? await asking : undefined;
      const closing = close();
      const response = heard ?? (await asking);
      const raw = await readAll(response);
      await closing;
      if (!stream) {
        assert.equal(response.statusCode, 503);
        assert.ok(Number(response.headers["retry-after"]) >= 1);
        assert.equal(JSON.parse(raw).error.code, "draining");
        return;
      }
      assert.match(raw, /"code":"draining"/);
      assert.equal(readEvents(raw).at(-1), "[DONE]");
      if (on === "responses") assert.equal(checkStream(raw).response.status, "failed");
    });
  }
}

test("while it closes, new connections are refused, and requests on open ones told to come back", async (context) => {
  const { script, going } = holdOn();
  const { address, close } = await openGateway(context, { script });
  const [asking, probing, idle] = [
    await dial(context, address),
    await dial(context, address),
    await dial(context, address),
  ];
  idle.socket.write(head("/v1/models", {}, "GET"));
  // Connections are accepted in their order.
  await idle.until(/"object":"list"/);
  const response = await begin(address, { on: "chat", say: "hi", stream: true });
  const closing = close();
  await assert.rejects(begin(address, { on: "chat", say: "hi" }));
  asking.socket.write(post(chat, hello));
  const heard = await asking.closed;
  assert.match(heard, /^HTTP\/1\.1 503 [^]*retry-after: \d+[^]*"code":"draining"/i);
  assert.match(heard, /^connection: close\r$/im);
  probing.socket.write("GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n");
  assert.deepEqual(statusesOf(await probing.closed), [503]);
  assert.deepEqual(statusesOf(await idle.closed), [200]);
  going.open();
  assert.match(await readAll(response), /one [^]*two[^]*\[DONE\]/);
  await closing;
});

test("a body that is arriving is waited for, and its connection closed while others still run", async (context) => {
  const { script, going } = holdOn();
  const { address, close, model } = await openGateway(context, { script });
  const running = await begin(address, { on: "chat", say: "hi", stream: true });
  model.script = [say("hi")];
  const { socket, until, closed } = await dial(context, address);
  socket.write(head(chat, { expect: "100-continue", "content-length": hello.length }));
  await until(/100 Continue/);
  const closing = close();
  socket.write(hello);
  assert.deepEqual(statusesOf(await closed), [100, 200]);
  going.open();
  assert.match(await readAll(running), /two[^]*\[DONE\]/);
  await closing;
});

test("a client that still sends its body at drain_timeout_ms is told why it is refused", async (context) => {
  const { address, close } = await openGateway(context, { limits: { drain_timeout_ms: 30 } });
  const { socket, until, closed } = await dial(context, address);
  socket.write(head(chat, { expect: "100-continue", "content-length": hello.length }));
  await until(/100 Continue/);
  socket.write(hello.slice(0, 5));
  const closing = close();
  assert.match(await closed, /HTTP\/1\.1 503 [^]*"code":"draining"/);
  await closing;
});

test("a client reads to the end what was written for it before the gateway closed", async (context) => {
  const long = "x".repeat(8 * 1024 * 1024);
  const { address, close } = await openGateway(context, { script: [say(long)] });
  const { socket, closed } = await dial(context, address);
  socket.write(post(chat, hello));
  await once(socket, "data");
  const closing = close();
  assert.ok((await closed).includes(long));
  await closing;
});

test("closing does not wait for connections without a request, half a head, or one that is idle", async (context) => {
  const { address, close } = await openGateway(context, { limits: { drain_timeout_ms: 600_000 } });
  for (const beginning of ["", "POST /v1/chat/comp"]) {
    const { socket } = await dial(context, address);
    socket.write(beginning);
  }
  const idle = await dial(context, address);
  idle.socket.write(post(chat, hello));
  await idle.until(/"choices"/);
  await close();
  await idle.closed;
});

test("closing does not wait for a reader that stands still", async (context) => {
  const script: Script = async function* (_turn, signal) {
    while (!signal.aborted) yield say("x".repeat(64 * 1024));
  };
  const { address, close, model } = await openGateway(context, { script, limits: { drain_timeout_ms: 30 } });
  const { socket } = await dial(context, address);
  socket.pause().write(post(paths.chat, toRequest({ on: "chat", say: "hi", stream: true }).body));
  await eventually(() => model.turns.length > 0);
  await close();
});

for (const [what, wish] of [
  ["a background turn", { on: "responses", say: "hi", more: { background: true } }],
  ["a keyed turn whose caller has left", { on: "responses", say: "hi", headers: { "idempotency-key": "k" } }],
] as const) {
  test(`a gateway that closes lets ${what} end`, async (context) => {
    const { script, going } = holdOn();
    const gateway = await openGateway(context, { script });
    const { body, ...request } = toRequest(wish);
    const sent = send(gateway.address + paths[wish.on], request).on("error", () => {});
    sent.end(body);
    await eventually(() => gateway.model.turns.length > 0);
    sent.destroy();
    const closing = gateway.close();
    // By then a turn that does not count as running has been interrupted.
    for (let refused = 0; refused < 50;) {
      const isOpen = await fetch(`${gateway.address}/healthz`).then(
        () => true,
        () => false,
      );
      if (!isOpen) refused += 1;
    }
    going.open();
    await closing;
    const again = await openGateway(context, { folder: gateway.folder });
    const archive = await call(again.address, "GET", "/operator/export", undefined, { token: operatorToken });
    assert.match(archive.raw, /"status":"completed"/);
    assert.match(archive.raw, /one two/);
  });
}

test("a background turn that still runs at drain_timeout_ms is interrupted", async (context) => {
  const gateway = await openGateway(context, { script: endless, limits: { drain_timeout_ms: 30 } });
  const { body } = await call(gateway.address, "POST", paths.responses, { model: "m", input: "hi", background: true });
  await eventually(() => gateway.model.turns.length > 0);
  await gateway.close();
  const again = await openGateway(context, { folder: gateway.folder });
  assert.equal((await call(again.address, "GET", `${paths.responses}/${body.id}`)).body.status, "failed");
});
