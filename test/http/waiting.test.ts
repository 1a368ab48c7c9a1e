/**
 * Clients that keep the gateway waiting. What they wait for is no key, so the clocks start when this file is loaded, and
 * the other files of the process run meanwhile.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type Scope, shareGateway } from "../harness/house.ts";
import { chat, dial, exchange, head, hello, statusesOf } from "./raw.ts";

/** The sockets are closed with their gateway. */
const scope: Scope = { after: () => {} };
const opened = shareGateway()();

async function send(bytes: string): Promise<string> {
  const { address } = await opened;
  return exchange(scope, address, bytes);
}

/** A body in four parts; all of it takes longer than the gateway waits for one. */
async function drip(): Promise<string> {
  const { address } = await opened;
  const { socket, closed } = await dial(scope, address);
  socket.write(head(chat, { connection: "close", "content-length": hello.length }));
  for (const [from, to] of [
    [0, 5],
    [5, 10],
    [10, hello.length],
  ]) {
    await pause(12_000);
    socket.write(hello.slice(from, to));
  }
  return closed;
}

const answers = {
  headers: send("GET /healthz HTTP/1.1\r\nhost: x\r\n"),
  body: send(`${head(chat, { "content-length": 100 })}{"model"`),
  drip: drip(),
};

test("headers that do not arrive are a 408", { timeout: 120_000 }, async () => {
  assert.match(await answers.headers, /^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
});

test("a body that stops arriving is a 408", { timeout: 120_000 }, async () => {
  assert.match(await answers.body, /^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
});

test("a body that keeps arriving, however slowly, is read", { timeout: 120_000 }, async () => {
  assert.deepEqual(statusesOf(await answers.drip), [200]);
});
