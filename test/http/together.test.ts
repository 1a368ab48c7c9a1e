/** Requests that arrive at the same time begin together, each in its own context. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { authorization, createBox, say } from "../scripted.ts";

/** Connections that are already open, so that what is written to them at once is also read at once. */
async function dial(context: TestContext, address: string, count: number): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(Number(new URL(address).port), "127.0.0.1"));
  context.after(() => sockets.forEach((socket) => socket.destroy()));
  await Promise.all(
    sockets.map((socket) =>
      once(
        socket.on("error", () => {}),
        "connect",
      ),
    ),
  );
  // The server accepts one connection in each round of the event loop.
  for (let round = 0; round <= count; round += 1) await new Promise(setImmediate);
  return sockets;
}

function ask(socket: Socket, words: string): void {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: words }] });
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nx-words: ${words}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

const names = ["a", "b", "c", "d"];

test("simultaneous requests take each step in parallel", async (context) => {
  const steps: string[] = [];
  const box = createBox(context, async function* ({ items }) {
    const [item] = items;
    const name = item?.type === "message" ? String(item.content) : "";
    for (const step of [1, 2, 3]) {
      steps.push(`${step}${name}`);
      await undefined;
    }
    yield say("hi");
  });
  const sockets = await dial(context, await box.listen(), names.length);
  sockets.forEach((socket, index) => ask(socket, names[index]!));
  await Promise.all(sockets.map((socket) => once(socket, "data")));
  assert.deepEqual(
    steps,
    [1, 2, 3].flatMap((step) => names.map((name) => `${step}${name}`)),
  );
});

test("each of several simultaneous requests keeps the async context of its arrival", async (context) => {
  const tracing = new AsyncLocalStorage<string>();
  const trace = (message: unknown) => {
    const { request } = message as { readonly request: { readonly headers: Readonly<Record<string, string>> } };
    tracing.enterWith(request.headers["x-words"] ?? "");
  };
  subscribe("http.server.request.start", trace);
  context.after(() => unsubscribe("http.server.request.start", trace));
  const seen: string[] = [];
  const box = createBox(context, async function* ({ items }) {
    const [item] = items;
    seen.push(`${item?.type === "message" ? String(item.content) : ""} in ${tracing.getStore()}`);
    yield say("hi");
  });
  const sockets = await dial(context, await box.listen(), names.length);
  sockets.forEach((socket, index) => ask(socket, names[index]!));
  await Promise.all(sockets.map((socket) => once(socket, "data")));
  assert.deepEqual(
    seen,
    names.map((name) => `${name} in ${name}`),
  );
});

test("requests whose clients disconnect while others begin are dropped, and leave no timer behind", async (context) => {
  const box = createBox(context, [say("hi")]);
  const sockets = await dial(context, await box.listen(), 200);
  const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const timers = countTimers();
  for (const socket of sockets) {
    ask(socket, "hi");
    socket.resetAndDestroy();
  }
  while (box.logged.length < sockets.length) await new Promise(setImmediate);
  for (let round = 0; round < 20; round += 1) await new Promise(setImmediate);
  assert.ok(box.adapter.turns.length < sockets.length, `${box.adapter.turns.length} turns were run`);
  assert.ok(countTimers() <= timers, `${countTimers() - timers} timers are left`);
});
