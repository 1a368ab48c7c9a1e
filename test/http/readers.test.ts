/** Slow readers: they pause the model, get everything if they read at all, and are cut when they stand still. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { begin, call, endpoints, paths, readAll, readEvents, toRequest } from "../harness/client.ts";
import { gate, type Gateway, openGateway, say, type Script } from "../harness/house.ts";
import { dial, eventually, head, post } from "./raw.ts";

const mebibyte = 1024 * 1024;
const piece = "x".repeat(64 * 1024);

/** A model that speaks until it is stopped; it counts what it has said. */
function speakOn() {
  const seen = { said: 0 };
  const ended = gate();
  const script: Script = async function* (_turn, signal) {
    try {
      for (; !signal.aborted; seen.said += piece.length) yield say(piece);
    } finally {
      ended.open();
    }
  };
  return { script, seen, ended: ended.opened };
}

/** A caller that sends a request, and reads nothing. */
async function stall(context: TestContext, address: string, bytes: string) {
  const line = await dial(context, address);
  line.socket.pause().write(bytes);
  return line;
}

function ask(on: "chat" | "responses", stream = true): string {
  return post(paths[on], toRequest({ on, say: "hi", stream }).body);
}

function untilLogged({ logged }: Gateway, status: number): Promise<void> {
  return eventually(() => logged.some(({ fields }) => fields["status"] === status));
}

for (const on of endpoints) {
  test(`${on}: a caller that reads nothing pauses the model, and is cut at stalled_client_timeout_ms`, async (context) => {
    const { script, seen, ended } = speakOn();
    const portico = await openGateway(context, { script, limits: { stalled_client_timeout_ms: 300 } });
    await stall(context, portico.address, ask(on));
    await ended;
    // Beside the mebibyte that it may hold there are the buffers of the loopback socket.
    assert.ok(seen.said < 16 * mebibyte, `${seen.said} bytes were said to a caller that reads none`);
    await untilLogged(portico, 499);
  });
}

test("a caller that pauses and then reads gets everything, and the model goes on", async (context) => {
  const pieces = 300;
  let said = 0;
  const script: Script = async function* () {
    for (; said < pieces; said++) yield say(piece);
  };
  const { address } = await openGateway(context, { script });
  const response = await begin(address, { on: "chat", say: "hi", stream: true });
  // It has stopped speaking when nothing was said in many rounds of the event loop.
  for (let before = -1; before !== said;) {
    before = said;
    for (let round = 0; round < 200; round++) await new Promise(setImmediate);
  }
  assert.ok(said < pieces, "it was paused");
  const raw = await readAll(response);
  assert.equal(raw.split(piece).length - 1, pieces);
  assert.equal(readEvents(raw).at(-1), "[DONE]");
});

test("a whole answer that nobody reads is cut as well", async (context) => {
  const script = [say("z".repeat(24 * mebibyte))];
  const portico = await openGateway(context, { script, limits: { stalled_client_timeout_ms: 200 } });
  await stall(context, portico.address, ask("chat", false));
  await untilLogged(portico, 499);
});

test("an answer of another route that nobody reads is cut as well", async (context) => {
  const portico = await openGateway(context, { limits: { stalled_client_timeout_ms: 200 } });
  const items = [{ type: "message", role: "user", content: "x".repeat(14 * mebibyte) }];
  const { body } = await call(portico.address, "POST", "/v1/conversations", { items });
  await stall(context, portico.address, head(`/v1/conversations/${body.id}/items`, {}, "GET"));
  await untilLogged(portico, 499);
});

/** A stream that is pipelined behind an answer which is not ready. */
async function streamBehind(context: TestContext) {
  const [ready, stopped] = [gate(), gate()];
  const seen = { said: 0 };
  const script: Script = async function* (turn, signal) {
    if (turn.model === "first") {
      await ready.opened;
      yield say("first");
      return;
    }
    try {
      for (; !signal.aborted && seen.said < 200; seen.said++) yield say(piece);
    } finally {
      stopped.open();
    }
  };
  const portico = await openGateway(context, { script });
  const of = (model: string) => {
    const isLast = model === "second";
    const { body } = toRequest({ on: "chat", say: "hi", stream: isLast, more: { model } });
    return post(paths.chat, body, isLast ? { connection: "close" } : {});
  };
  const line = await stall(context, portico.address, of("first") + of("second"));
  await eventually(() => seen.said >= 5);
  return { ...line, seen, ready, stopped: stopped.opened };
}

test("a stream behind an answer that is not ready waits for it as for a slow reader", async (context) => {
  const { socket, seen, ready, closed } = await streamBehind(context);
  for (let round = 0; round < 200; round++) await new Promise(setImmediate);
  assert.ok(seen.said < 100, `${seen.said} pieces are held`);
  socket.resume();
  ready.open();
  assert.match(await closed, /"first"[^]*"content":"xxx[^]*\[DONE\]/);
  assert.equal(seen.said, 200);
});

test("a stream behind another answer ends with its connection", async (context) => {
  const { socket, stopped } = await streamBehind(context);
  socket.destroy();
  await stopped;
});
