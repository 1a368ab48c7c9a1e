/** Connections that were answered on the bare socket are closed, even if the client never ends its own side. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { suite, test, type TestContext } from "node:test";
import { createServer } from "../../src/http/server.ts";

const requests = [
  { name: "a request that is not HTTP", sent: "NONSENSE\r\n\r\n", status: 400 },
  { name: "a CONNECT request", sent: "CONNECT x:1 HTTP/1.1\r\nhost: x:1\r\n\r\n", status: 400 },
  { name: "too many headers", sent: `GET / HTTP/1.1\r\nx-long: ${"a".repeat(20_000)}\r\n\r\n`, status: 431 },
  { name: "headers without an end", sent: "GET / HTTP/1.1\r\n", status: 408, headersTimeoutMs: 50 },
];

suite("a connection that was answered on the bare socket", { concurrency: true }, () => {
  test(
    "is not cut off while its client still sends, before the client has read the answer",
    { timeout: 20_000 },
    async (context) => {
      const { app, client } = await connectTo(context);
      client.write(`GET / HTTP/1.1\r\nx-long: ${"a".repeat(20_000)}`);
      await once(app.server, "clientError");
      client.write("a".repeat(20_000));
      const [, socket] = await once(app.server, "clientError");
      assert.equal(socket.destroyed, false);
      client.end("a".repeat(20_000));
      const [answer] = await once(client, "data");
      assert.match(String(answer), /^HTTP\/1\.1 431 /);
      await once(client, "close");
    },
  );

  for (const { name, sent, status, headersTimeoutMs } of requests) {
    test(`is closed after ${name}, even if its client keeps it open`, { timeout: 20_000 }, async (context) => {
      const { app, client } = await connectTo(context, headersTimeoutMs);
      const [socket] = await once(app.server, "connection");
      const closed = once(socket, "close");
      client.write(sent);
      const [answer] = await once(client, "data");
      assert.match(String(answer), new RegExp(`^HTTP/1\\.1 ${status} `));
      await closed;
    });
  }
});

test("headers that had arrived before the gateway was busy for longer than their time-out are read", async (context) => {
  const headersTimeoutMs = 200;
  const { app, client } = await connectTo(context, headersTimeoutMs);
  await Promise.all([once(app.server, "connection"), once(client, "connect")]);
  client.write("GET / HTTP/1.1\r\n");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, headersTimeoutMs + 50);
  const [answer] = await once(client, "data");
  assert.match(String(answer), /^HTTP\/1\.1 408 /);
});

/** A server without a gateway, and a client that decides itself when to end its side. */
async function connectTo(context: TestContext, headersTimeoutMs = 60_000) {
  const app = createServer({
    headersTimeoutMs,
    newRequestId: () => "req_1",
    isUpgrade: () => false,
    receive: () => assert.fail("no request may get this far"),
    answer: async () => {},
    beforeSend() {},
    fail() {},
    cut() {},
    refused() {},
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as AddressInfo;
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  context.after(() => {
    client.destroy();
    return app.close();
  });
  return { app, client };
}
