/** How a door closes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClosingParts, prepareClosing } from "../../src/http/closing.ts";

test("at the drain timeout running turns are cancelled, and a second later all that remains is cut", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const done: string[] = [];
  const note = (what: string) => () => void done.push(what);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const parts = {
    app: { server: { closeAllConnections: note("connections cut") } },
    listener: { close: () => closed },
    cutSilent() {},
    gateway: { close: async () => note("live turns ended")() },
    turns: { drain: note("draining"), abort: note("turns cancelled") },
    arrivals: { abort: note("bodies refused") },
    sockets: { retire: note("WebSockets retired"), cut: note("WebSockets cut") },
  };
  const closing = prepareClosing(parts as unknown as ClosingParts)(5_000);
  context.mock.timers.tick(4_999);
  assert.deepEqual(done.splice(0), ["draining", "WebSockets retired"]);
  context.mock.timers.tick(1);
  while (done.length < 3) await new Promise(setImmediate);
  assert.deepEqual(done.splice(0), ["bodies refused", "live turns ended", "turns cancelled"]);
  context.mock.timers.tick(1_000);
  assert.deepEqual(done, ["connections cut", "WebSockets cut"]);
  resolve();
  await closing;
});
