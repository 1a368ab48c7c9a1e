/** How a request's body may come: its size, its encoding, its pieces, and what a sender learns when it is refused. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { call, tell, tellWell } from "../harness/client.ts";
import { headers, openGateway, seenBy, shareGateway } from "../harness/house.ts";
import { chat, dial, eventually, exchange, head, hello, post, statusesOf } from "./raw.ts";

const open = shareGateway();
const mebibyte = 1024 * 1024;
const close = { connection: "close" };

test("a body whose declared length is too large is refused with the key that allows more", async (context) => {
  const { address, model } = await openGateway(context, { limits: { max_body_bytes: 100 } });
  for (const on of ["chat", "responses"] as const) {
    const { status, error } = await tell(address, { on, say: "x".repeat(100) });
    assert.deepEqual([status, error?.["type"], error?.["code"]], [413, "invalid_request_error", "body_too_large"]);
    assert.match(String(error?.["message"]), /gateway\.http\.limits\.max_body_bytes/);
  }
  assert.equal(model.turns.length, 0);
});

test("a body may be exactly as large as allowed, with or without a declared length", async (context) => {
  const { address } = await openGateway(context, { limits: { max_body_bytes: hello.length } });
  for (const body of [hello, new Blob([hello]).stream()]) {
    const response = await fetch(address + chat, { method: "POST", headers, body, duplex: "half" } as RequestInit);
    assert.equal(response.status, 200, await response.text());
  }
});

test("a chunked body that becomes too large is refused before its end", async (context) => {
  const { address } = await openGateway(context, { limits: { max_body_bytes: 64 } });
  const begun = `${head(chat, { "transfer-encoding": "chunked" })}80\r\n${" ".repeat(128)}\r\n`;
  assert.match(await exchange(context, address, begun), /^HTTP\/1\.1 413 [^]*"code":"body_too_large"/);
});

for (const [what, target, headers, status] of [
  ["too large", chat, {}, 413],
  ["without a token", chat, { authorization: undefined }, 401],
  ["at an unknown path", "/v1/nope", {}, 404],
] as const) {
  test(`a sender that writes a whole long body before it reads sees why it was refused ${what}`, async (context) => {
    const { address } = await open();
    const length = 24 * mebibyte;
    const { socket, until } = await dial(context, address);
    socket.pause().write(head(target, { "content-length": length, ...headers }));
    const piece = Buffer.alloc(mebibyte, " ");
    for (let sent = 0; sent < length; sent += piece.length) {
      await new Promise<void>((resolve, reject) => {
        socket.write(piece, (error) => (error ? reject(error) : resolve()));
      });
    }
    socket.resume();
    assert.deepEqual(statusesOf(await until(/"code":/)), [status]);
  });
}

test("a POST without a length and without chunking is a 411", async (context) => {
  const { address } = await open();
  const heard = await exchange(context, address, head(chat, close));
  assert.match(heard, /^HTTP\/1\.1 411 [^]*"code":"length_required"/);
});

test("a POST to a route that needs no body may come without a length", async (context) => {
  const { address } = await open();
  for (const [target, status] of [
    ["/v1/conversations", 200],
    ["/v1/responses/resp_1/cancel", 404],
  ] as const) {
    const heard = await exchange(context, address, head(target, { ...close, "content-type": undefined }));
    assert.deepEqual(statusesOf(heard), [status], target);
  }
});

test("a body may come in many chunks, one byte each, through the middle of characters", async (context) => {
  const { address, model } = await open();
  const content = "grün und blau 🎈 ".repeat(200);
  const bytes = Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content }] }));
  const pieces = Array.from(bytes, (byte) => Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a]));
  const begun = Buffer.from(head(chat, { ...close, "transfer-encoding": "Chunked", "content-encoding": "Identity" }));
  const heard = await exchange(context, address, Buffer.concat([begun, ...pieces, Buffer.from("0\r\n\r\n")]));
  assert.deepEqual(statusesOf(heard), [200]);
  assert.deepEqual(seenBy(model.turns.at(-1)), [`user: ${content}`]);
});

test("a transfer coding other than chunked is a 415", async (context) => {
  const { address } = await open();
  const heard = await exchange(
    context,
    address,
    head(chat, { ...close, "transfer-encoding": "gzip, chunked" }) + "0\r\n\r\n",
  );
  assert.deepEqual(statusesOf(heard), [415]);
});

test("Expect: 100-continue is answered with 100 when the head is good, and the body is then read", async (context) => {
  const { address } = await open();
  const { socket, until, closed } = await dial(context, address);
  socket.write(head(chat, { ...close, expect: "100-continue", "content-length": hello.length }));
  assert.equal(await until(/\r\n\r\n/), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.write(hello);
  assert.deepEqual(statusesOf(await closed), [100, 200]);
});

for (const [what, target, length, more, status] of [
  ["no token", chat, 10, { authorization: undefined }, 401],
  ["too large a body", chat, 50 * mebibyte, {}, 413],
  ["an unknown path", "/v1/nope", 10, {}, 404],
  ["a compressed body", chat, 10, { "content-encoding": "gzip" }, 415],
] as const) {
  test(`Expect: 100-continue with ${what} is answered with ${status} alone`, async (context) => {
    const { address } = await open();
    const asked = head(target, { ...close, expect: "100-continue", "content-length": length, ...more });
    assert.deepEqual(statusesOf(await exchange(context, address, asked)), [status]);
  });
}

test("another Expect is ignored", async (context) => {
  const { address } = await open();
  const heard = await exchange(context, address, head("/v1/models", { ...close, expect: "bananas" }, "GET"));
  assert.deepEqual(statusesOf(heard), [200]);
});

test("bytes that are not UTF-8 are a 400", async () => {
  const { address } = await open();
  const body = Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xff]), Buffer.from(hello.slice(10))]);
  const response = await fetch(address + chat, { method: "POST", headers, body });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /UTF-8/);
});

test("a body that is refused once it is read leaves the connection usable", async (context) => {
  const { address } = await open();
  const heard = await exchange(context, address, post(chat, "{") + post(chat, hello, close));
  assert.deepEqual(statusesOf(heard), [400, 200]);
});

const many = 3_000_000;
for (const [what, body] of [
  ["truncated after megabytes", `{"model":"${"a".repeat(9 * mebibyte)}`],
  ["nothing but opening brackets", "[".repeat(many)],
  ["nothing but objects", `[${"{},".repeat(many)}{}]`],
] as const) {
  test(`another caller is answered while a hostile body is refused: ${what}`, async () => {
    const { address } = await open();
    const [refused, other] = await Promise.all([
      call(address, "POST", chat, body),
      tell(address, { on: "chat", say: "hi" }),
    ]);
    assert.ok([400, 413].includes(refused.status), refused.raw);
    assert.equal(other.status, 200);
  });
}

test("half a body takes no turn's place", async (context) => {
  const { address } = await openGateway(context, { limits: { max_concurrent_turns: 1 } });
  const halves = await Promise.all([dial(context, address), dial(context, address)]);
  const begun = head(chat, { ...close, expect: "100-continue", "content-length": hello.length });
  for (const { socket, until } of halves) {
    socket.write(begun);
    await until(/100 Continue/);
    socket.write(hello.slice(0, 5));
  }
  await tellWell(address, { on: "chat", say: "meanwhile" });
  for (const { socket, closed } of halves) {
    socket.write(hello.slice(5));
    assert.deepEqual(statusesOf(await closed), [100, 200]);
  }
});

test("a body that is left half-way is logged as 499, and nothing is asked", async (context) => {
  const { address, logged, model } = await openGateway(context);
  const { socket, until } = await dial(context, address);
  socket.write(head(chat, { expect: "100-continue", "content-length": 100 }));
  await until(/100 Continue/);
  socket.destroy();
  await once(socket, "close");
  await eventually(() => logged.length > 0);
  assert.deepEqual([logged[0]?.fields["status"], logged[0]?.fields["code"]], [499, "client_closed"]);
  assert.equal(model.turns.length, 0);
});
