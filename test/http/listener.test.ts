/** A listener at every address of `localhost`, which on many machines has two. */
import assert from "node:assert/strict";
import dns from "node:dns";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { suite, test, type TestContext } from "node:test";
import { makeFolder } from "../gateway.ts";
import { authorization, createBox, say, type Script } from "../scripted.ts";

/** These stand for the addresses of two families, of which a machine may have only one. */
const addresses = ["127.0.0.1", "127.0.0.2"];
const skip = process.platform === "darwin" && "macOS has only the first";

suite("a gateway that listens on localhost", { skip }, () => {
  for (const host of addresses) {
    test(`serves ${host} like any address`, async (context) => {
      const { port } = await listen(context, [say("hi")]);
      assert.match(
        await exchange(host, port, "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        /^HTTP\/1\.1 200 /,
      );
      assert.match(await exchange(host, port, "CONNECT x:1 HTTP/1.1\r\nhost: x:1\r\n\r\n"), /"code":"malformed_http"/);
      const refused = await exchange(
        host,
        port,
        `${head(0)}connection: close\r\nexpect: 100-continue\r\nauthorization: Bearer no\r\n\r\n`,
      );
      assert.match(refused, /^HTTP\/1\.1 401 /);
    });

    test(`tells the reader of a stream at ${host} why it ends when the gateway stops`, async (context) => {
      const { box, port } = await listen(context, endless);
      const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }], stream: true });
      const socket = connect(port, host);
      socket.write(`${head(body.length)}authorization: ${authorization}\r\n\r\n${body}`);
      await once(socket, "readable");
      const closing = box.close();
      assert.match(await text(socket), /"content":"hi"[^]*"code":"draining"[^]*data: \[DONE\]/);
      await closing;
    });
  }

  test("does not start if another program has its port at one of the addresses", async (context) => {
    const { port } = await listen(context, [say("hi")], ["127.0.0.2"]);
    await assert.rejects(listen(context, [say("hi")], addresses, port), { code: "EADDRINUSE", syscall: "listen" });
  });

  test("listens once at an address that the machine's list of hosts names twice", async (context) => {
    const { port } = await listen(context, [say("hi")], ["127.0.0.1", "127.0.0.1"]);
    assert.match(
      await exchange("127.0.0.1", port, "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
      /^HTTP\/1\.1 200 /,
    );
  });

  test("does without an address that the machine does not have", async (context) => {
    const { port } = await listen(context, [say("hi")], ["127.0.0.1", "192.0.2.1"]);
    assert.match(
      await exchange("127.0.0.1", port, "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
      /^HTTP\/1\.1 200 /,
    );
  });
});

test("a unix socket whose path cannot be looked at is reported as an address at which nothing can listen", async (context) => {
  const folder = makeFolder(context);
  symlinkSync("loop", join(folder, "loop"));
  const box = createBox(context, [], { settings: { bind: `unix:${join(folder, "loop/door.sock")}` } });
  await assert.rejects(box.listen(), { syscall: "listen" });
});

async function* endless(_turn: unknown, signal: AbortSignal) {
  yield say("hi");
  await once(signal, "abort");
}

async function listen(context: TestContext, script: Script, known = addresses, port = 0) {
  context.mock.method(dns.promises, "lookup", async () => known.map((address) => ({ address, family: 4 })));
  const box = createBox(context, script, { settings: { bind: "localhost", port }, limits: { drainTimeoutMs: 0 } });
  return { box, port: Number(new URL(await box.listen()).port) };
}

async function exchange(host: string, port: number, request: string): Promise<string> {
  const socket = connect(port, host);
  socket.write(request);
  return text(socket);
}

function head(length: number): string {
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n`;
}
