/** What is not a request, or only nearly one: refused in the one shape of errors, and only where it belongs. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { call } from "../harness/client.ts";
import { authorization, openGateway, say, shareGateway } from "../harness/house.ts";
import { chat, dial, eventually, exchange, head, hello, helloStreamed, post, statusesOf } from "./raw.ts";

const open = shareGateway();
const close = { connection: "close" };
const long = "a".repeat(20_000);
const bare = (headers: string) => `GET /v1/models HTTP/1.1\r\nauthorization: ${authorization}\r\n${headers}\r\n`;

for (const [what, sent, status, code] of [
  ["what is not HTTP", "NONSENSE\r\n\r\n", 400, "malformed_http"],
  ["a TLS greeting", Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]), 400, "malformed_http"],
  [
    "headers that are too large",
    `GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: ${long}\r\n\r\n`,
    431,
    "headers_too_large",
  ],
  ["a URL that is too large", `GET /${long} HTTP/1.1\r\nhost: x\r\n\r\n`, 431, "headers_too_large"],
  ["a header without a colon", bare("host: x\r\nnonsense\r\n"), 400, "malformed_http"],
  ["two lengths", head(chat, { "content-length": 4, "Content-Length": 5 }) + hello, 400, "malformed_http"],
  [
    "a length beside chunking",
    head(chat, { "content-length": 4, "transfer-encoding": "chunked" }) + hello,
    400,
    "malformed_http",
  ],
  ["a request for a tunnel", "CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n", 400, "malformed_http"],
  ["a length that is no number", head(chat, { "content-length": "4x" }) + hello, 400, "malformed_http"],
] as const) {
  test(`${what} is answered with ${status}, and its connection closed`, async (context) => {
    const { address, logged } = await open();
    const heard = await exchange(context, address, sent);
    assert.deepEqual(statusesOf(heard), [status], heard);
    const [top = "", body = ""] = heard.split("\r\n\r\n");
    const requestId = /^x-request-id: (\S+)$/im.exec(top)?.[1];
    assert.ok(requestId);
    assert.match(top, /^content-type: application\/json/im);
    const { error } = JSON.parse(body) as { readonly error: Readonly<Record<string, unknown>> };
    assert.deepEqual([error["type"], error["param"], error["code"]], ["invalid_request_error", null, code]);
    const line = logged.findLast(({ fields }) => fields["requestId"] === requestId);
    assert.deepEqual([line?.fields["status"], line?.fields["code"]], [status, code]);
  });
}

test("a chunk without a size is a 400", async (context) => {
  const { address } = await open();
  const heard = await exchange(context, address, `${head(chat, { "transfer-encoding": "chunked" })}nonsense\r\n`);
  assert.match(heard, /^HTTP\/1\.1 400 [^]*"code":"malformed_http"/);
});

for (const [what, hosts] of [
  ["missing", ""],
  ["doubled", "host: a\r\nhost: b\r\n"],
  ["malformed", "host: a b\r\n"],
  ["malformed by a path", "host: example.com/v1\r\n"],
] as const) {
  test(`a Host that is ${what} is a 400`, async (context) => {
    const { address } = await open();
    const heard = await exchange(context, address, bare(`${hosts}connection: close\r\n`));
    assert.match(heard, /^HTTP\/1\.1 400 [^]*"code":"malformed_http"/);
  });
}

for (const host of ["localhost", "127.0.0.1:8600", "[::1]:8600", "ai.example.com", "xn--bcher-kva.example:443"]) {
  test(`the Host ${host} is accepted`, async (context) => {
    const { address } = await open();
    assert.deepEqual(
      statusesOf(await exchange(context, address, bare(`host: ${host}\r\nconnection: close\r\n`))),
      [200],
    );
  });
}

test("HTTP/1.0 needs no Host, and its connection is closed", async (context) => {
  const { address } = await open();
  const asked = `GET /v1/models HTTP/1.0\r\nauthorization: ${authorization}\r\n\r\n`;
  assert.match(await exchange(context, address, asked), /^HTTP\/1\.1 200 [^]*"object":"list"/);
});

test("a connection that was never used is closed without an answer or a line", async (context) => {
  const { address, logged } = await openGateway(context);
  const { socket, closed } = await dial(context, address);
  socket.end();
  assert.equal(await closed, "");
  assert.deepEqual(logged, []);
});

test("a client that still sends headers beyond the limit sees why it was refused", async (context) => {
  const { address } = await open();
  const { socket, closed } = await dial(context, address);
  socket.write(`GET / HTTP/1.1\r\nhost: x\r\nx-long: ${long}`);
  for (let time = 0; time < 20; time++) await new Promise((resolve) => socket.write(long, resolve));
  socket.end();
  assert.match(await closed, /^HTTP\/1\.1 431 /);
});

test("a refused connection is closed even if its client keeps its own side open", async (context) => {
  const { address } = await open();
  const socket = connect({ port: Number(new URL(address).port), host: "127.0.0.1", allowHalfOpen: true });
  context.after(() => socket.destroy());
  const closed = new Promise((resolve) => socket.on("error", () => {}).on("close", resolve));
  socket.resume().write("NONSENSE\r\n\r\n");
  await once(socket, "end");
  // Once the gateway has let go of it, what is written is answered with a reset.
  const push = setInterval(() => socket.write("x"), 20);
  context.after(() => clearInterval(push));
  await closed;
});

test("what is not HTTP behind a running answer ends it, but is not answered inside it", async (context) => {
  const { address } = await openGateway(context, {
    async *script(_turn, signal) {
      yield say("hi");
      await once(signal, "abort");
    },
  });
  const { socket, until, closed } = await dial(context, address);
  socket.write(post(chat, helloStreamed));
  await until(/"content":"hi"/);
  socket.write("NONSENSE\r\n\r\n");
  const heard = await closed;
  assert.deepEqual(statusesOf(heard), [200]);
  assert.doesNotMatch(heard, /malformed_http/);
});

test("pipelined requests are answered in their order", async (context) => {
  const { address } = await open();
  const told = Array.from({ length: 20 }, (_, at) => JSON.stringify({ ...JSON.parse(hello), model: `m${at}.` }));
  const heard = await exchange(
    context,
    address,
    told.map((body, at) => post(chat, body, at === 19 ? close : {})).join(""),
  );
  const models = [...heard.matchAll(/"model":"(m\d+)\."/g)].map(([, model]) => model);
  assert.deepEqual(
    models,
    Array.from(told, (_, at) => `m${at}`),
  );
});

test("only so many requests of one connection wait for their answers", async (context) => {
  const { address, model } = await openGateway(context, {
    async *script(_turn, signal) {
      await once(signal, "abort");
      yield say("too late");
    },
  });
  const { socket } = await dial(context, address);
  socket.write(post(chat, hello).repeat(500));
  await eventually(() => model.turns.length > 0);
  for (let before = -1; before !== model.turns.length;) {
    before = model.turns.length;
    for (let time = 0; time < 20; time++) await call(address, "GET", "/v1/models");
  }
  assert.ok(model.turns.length < 400, `${model.turns.length} turns run for one connection`);
});

test("an answer says how long its connection is kept, which is longer than proxies keep theirs", async (context) => {
  const { address } = await open();
  const { socket, until } = await dial(context, address);
  socket.write(head("/v1/models", {}, "GET"));
  const [, seconds] = /^keep-alive: timeout=(\d+)/im.exec(await until(/"object":"list"/)) ?? [];
  assert.ok(Number(seconds) > 120, `${seconds} seconds`);
});

test("an error to a good token leaves the connection open", async (context) => {
  const { address } = await open();
  const heard = await exchange(context, address, head("/v1/nope", {}, "GET") + head("/v1/models", close, "GET"));
  assert.deepEqual(statusesOf(heard), [404, 200]);
});
