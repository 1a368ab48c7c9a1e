/** Requests that a client sends on one connection without waiting for their answers. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { createBox } from "../scripted.ts";

/** Sends so many requests of about a kilobyte at once; returns how many were answered before the connection was cut. */
async function pipeline(context: TestContext, count: number): Promise<number> {
  const address = await createBox(context, []).listen();
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  socket.write(`GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: ${"x".repeat(1000)}\r\n\r\n`.repeat(count));
  let received = "";
  const countAnswers = () => received.split("HTTP/1.1 200 OK").length - 1;
  await new Promise<void>((resolve) => {
    socket.on("error", () => resolve());
    socket.on("data", (bytes) => {
      received += String(bytes);
      if (countAnswers() === count) resolve();
    });
  });
  return countAnswers();
}

test("pipelined requests are all answered", async (context) => {
  assert.equal(await pipeline(context, 20), 20);
});

test("a connection on which requests never end is cut, so that nobody waits for them", async (context) => {
  assert.ok((await pipeline(context, 2_000)) < 1_000);
});
