/** The HTTP server without a gateway: what a route returns, sends or throws, as a client gets it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { suite, test, type TestContext } from "node:test";
import type { HttpReply } from "../../src/http/reply.ts";
import { createServer, type HttpServer, type ServerParts } from "../../src/http/server.ts";

type Route = (reply: HttpReply) => unknown;

const json = "application/json; charset=utf-8";

suite("an answer", { concurrency: true }, () => {
  const rows: readonly [what: string, route: Route, status: number, headers: Record<string, string>, body: string][] = [
    ["of an object is JSON", () => ({ a: "ü" }), 200, { "content-type": json, "content-length": "10" }, '{"a":"ü"}'],
    ["of text has its length in bytes", () => "ü", 200, { "content-length": "2" }, "ü"],
    ["of bytes is sent as they are", () => Buffer.from("ü"), 200, { "content-length": "2" }, "ü"],
    [
      "without a body says so",
      (reply) => reply.code(307).header("location", "x").send(),
      307,
      { location: "x", "content-length": "0" },
      "",
    ],
    [
      "sent by the route is not sent again",
      (reply) => void reply.code(201).send("once"),
      201,
      { "content-length": "4" },
      "once",
    ],
    [
      "keeps the content type that it is given",
      (reply) => reply.header("content-type", "a/b").send({}),
      200,
      { "content-type": "a/b" },
      "{}",
    ],
    [
      "streams in pieces",
      (reply) => reply.header("x-a", "b").send(Readable.from(["one", "two"])),
      200,
      { "x-a": "b", "transfer-encoding": "chunked" },
      "onetwo",
    ],
    ["that fails is told by a status", () => Promise.reject(new Error("no")), 418, {}, "no"],
    ["whose stream fails before its first piece, too", (reply) => reply.send(Readable.from(failing())), 418, {}, "no"],
    ["that was refused as it was to be sent, too", () => "refuse me", 418, {}, "refused"],
    ["whose head cannot be sent, too", (reply) => reply.code(1).send("x"), 418, {}, "Invalid status code: 1"],
  ];
  for (const [what, route, status, headers, body] of rows) {
    test(what, async (context) => {
      const { address, cut } = await listen(context, route);
      const answer = await fetch(address, { redirect: "manual" });
      assert.equal(answer.status, status);
      for (const [name, value] of Object.entries(headers)) assert.equal(answer.headers.get(name), value, name);
      assert.equal(await answer.text(), body);
      assert.deepEqual(cut, []);
    });
  }

  test("to HEAD has the head alone", async (context) => {
    const { address } = await listen(context, () => "body");
    const answer = await fetch(address, { method: "HEAD" });
    assert.deepEqual([answer.headers.get("content-length"), await answer.text()], ["4", ""]);
  });

  test("that may have no body has no length", async (context) => {
    const { address } = await listen(context, (reply) => reply.code(304).send());
    const answer = await fetch(address);
    assert.deepEqual([answer.status, answer.headers.get("content-length")], [304, null]);
  });

  test("whose stream fails later is cut off", async (context) => {
    const { address } = await listen(context, (reply) => reply.send(Readable.from(failing("begun"))));
    await assert.rejects((await fetch(address)).text(), { message: "terminated" });
  });

  test("whose caller leaves closes its stream", async (context) => {
    const stream = new Readable({ read() {} });
    const { port } = await listen(context, (reply) => reply.send(stream));
    const client = connect(port, "127.0.0.1");
    client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.push("begun");
    await once(client, "data");
    client.destroy();
    await once(stream, "close");
  });

  test("whose caller has left already closes its stream, too", async (context) => {
    const stream = new Readable({ read() {} });
    const { port } = await listen(context, async (reply) => {
      client.destroy();
      await once(reply.raw, "close");
      return reply.send(stream);
    });
    const client = connect(port, "127.0.0.1");
    client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await once(stream, "close");
  });

  test("that cannot be found is cut off", async (context) => {
    const { address } = await listen(
      context,
      () => "",
      () => assert.fail("a bug"),
    );
    await assert.rejects(fetch(address), { message: "fetch failed" });
  });

  test("that somebody else writes is left to them; what fails then is reported, and ends it", async (context) => {
    const { address, cut } = await listen(context, (reply) => {
      reply.handOver();
      reply.raw.write("begun");
      throw new Error("a bug");
    });
    await assert.rejects((await fetch(address)).text(), { message: "terminated" });
    assert.deepEqual(cut, ["a bug"]);
  });
});

test("a server that closes lets answers end, and their connections with them", async (context) => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const { promise: may, resolve: goOn } = Promise.withResolvers<void>();
  const { app, port } = await listen(context, async () => {
    ask();
    await may;
    return "first";
  });
  const client = connect(port, "127.0.0.1");
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await asked;
  const closed = app.close();
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  goOn();
  assert.match(await text(client), /first[^]*connection: close[^]*first/i);
  await closed;
});

test("an address that is taken is an error, and one that stands for all of them is told as one that leads here", async (context) => {
  const { port } = await listen(context, () => "");
  const parts = { newRequestId: () => "req_1", headersTimeoutMs: 1_000 } as ServerParts;
  await assert.rejects(createServer(parts).listen({ host: "127.0.0.1", port }), { code: "EADDRINUSE" });
  const everywhere = createServer(parts);
  assert.match(await everywhere.listen({ host: "0.0.0.0", port: 0 }), /^http:\/\/127\.0\.0\.1:\d+$/);
  await everywhere.close();
});

async function* failing(...pieces: readonly string[]): AsyncGenerator<string, void, void> {
  yield* pieces;
  throw new Error("no");
}

interface Listening {
  readonly app: HttpServer;
  readonly address: string;
  readonly port: number;
  /** What failed when it was too late to tell. */
  readonly cut: readonly string[];
}

/** A server with one route, which tells what fails by the status 418. */
async function listen(context: TestContext, route: Route, receive = toNothing): Promise<Listening> {
  const cut: string[] = [];
  const app = createServer({
    headersTimeoutMs: 60_000,
    newRequestId: () => "req_1",
    isUpgrade: () => false,
    receive,
    answer: async (_request, reply) => route(reply),
    beforeSend(_reply, sent) {
      if (sent === "refuse me") throw new Error("refused");
    },
    fail: (thrown, reply) => void reply.code(418).send((thrown as Error).message),
    cut(thrown, { raw }) {
      cut.push((thrown as Error).message);
      raw.destroy();
    },
    refused() {},
  });
  const address = await app.listen({ host: "127.0.0.1", port: 0 });
  context.after(() => {
    app.server.closeAllConnections();
    return app.close();
  });
  return { app, address, port: (app.server.address() as AddressInfo).port, cut };
}

const toNothing: ServerParts["receive"] = () => ({ terms: {} as never, route: undefined, params: {} });
