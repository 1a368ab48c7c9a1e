/** Requests that a client sends on one connection without waiting for their answers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { suite, test, type TestContext } from "node:test";
import type { HttpLimits } from "../../src/http/settings.ts";
import { authorization, createBox, say } from "../scripted.ts";

/** Sends so many requests of about a kilobyte at once; returns how many were answered before the connection was cut. */
async function pipeline(context: TestContext, count: number, limits: Partial<HttpLimits> = {}): Promise<number> {
  const address = await createBox(context, [], { limits }).listen();
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  socket.write(`GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: ${"x".repeat(1000)}\r\n\r\n`.repeat(count));
  let received = "";
  const countAnswers = () => received.split("HTTP/1.1 200 OK").length - 1;
  await new Promise<void>((resolve) => {
    socket.on("error", () => {}).on("close", () => resolve());
    socket.on("data", (bytes) => {
      received += String(bytes);
      if (countAnswers() === count) resolve();
    });
  });
  return countAnswers();
}

/** A stream of so many long pieces, sent behind an answer that is not ready before `ready` is called. */
async function streamBehind(context: TestContext, pieces: number, limits: Partial<HttpLimits>) {
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  context.after(() => ready.resolve());
  const seen = { said: 0 };
  let asked = 0;
  async function* script() {
    if (asked++ === 0) await ready.promise;
    else {
      try {
        for (; seen.said < pieces; seen.said++) yield say("x".repeat(10_000));
      } finally {
        ended.resolve();
      }
    }
    yield say("end");
  }
  const address = await createBox(context, script, { limits }).listen();
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }] });
  const head = `host: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n\r\n${body}`.repeat(2));
  while (seen.said < 5) await new Promise(setImmediate);
  return { socket, seen, ready: ready.resolve, ended: ended.promise };
}

suite("a stream behind an answer that is not ready", () => {
  test("waits for it as for a slow reader", async (context) => {
    const { socket, seen, ready } = await streamBehind(context, 200, { maxUnsentBytes: 100_000 });
    for (let hop = 0; hop < 100; hop++) await new Promise(setImmediate);
    assert.ok(seen.said < 100, `${seen.said} pieces are held`);
    let received = "";
    socket.on("data", (bytes) => void (received += String(bytes)));
    ready();
    while (received.split("[DONE]").length < 3) await once(socket, "data");
    assert.equal(seen.said, 200);
  });

  test("is cut if nobody reads it when its time has come", async (context) => {
    const limits = { maxUnsentBytes: 100_000, stalledClientTimeoutMs: 100 };
    const { seen, ready, ended } = await streamBehind(context, 10_000, limits);
    ready();
    await ended;
    assert.ok(seen.said < 10_000);
  });

  test("ends with its connection", async (context) => {
    const { socket, ended } = await streamBehind(context, 200, { maxUnsentBytes: 100_000 });
    socket.destroy();
    await ended;
  });
});

test("pipelined requests are all answered", async (context) => {
  assert.equal(await pipeline(context, 20), 20);
});

test("a connection on which requests never end is cut, so that nobody waits for them", async (context) => {
  assert.ok((await pipeline(context, 2_000)) < 1_000);
  assert.ok((await pipeline(context, 40, { maxPipelinedRequests: 10 })) < 20);
});
