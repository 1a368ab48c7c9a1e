/** How a streamed answer may end after its finish reason: as usual, by a lost connection, or not at all. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test, type TestContext } from "node:test";
import { createOpenai } from "./made.ts";
import type { Delta } from "../../src/core/delta.ts";
import { beginEvents, chunk, startUpstream, writeEvent } from "../upstream.ts";

const usage = { prompt_tokens: 1, completion_tokens: 3 };
const words: Delta = { type: "text", text: "all of it", logprobs: undefined };
const finish: Delta = { type: "finish", reason: "stop" };

const turn = {
  id: "resp_1",
  model: "m",
  items: [{ type: "message", role: "user", content: "Hello" }],
  settings: { tools: [] },
  stream: true,
} as const;

/**
 * An answer whose finish reason has arrived with the reader's first batch; the test decides what its server does then.
 */
async function begin(context: TestContext, options: { readonly idle_timeout_ms?: number } = {}) {
  const answered = Promise.withResolvers<ServerResponse>();
  const server = await startUpstream((_, response) => {
    beginEvents(response);
    const events = [chunk({ content: "all of it" }), chunk({}, "stop")];
    response.write(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
    answered.resolve(response);
  });
  const adapter = createOpenai({ base_url: server.url, ...options }, {});
  context.after(() => server.close());
  context.after(() => adapter.close?.());
  const caller = new AbortController();
  const stream = adapter.stream(turn, caller.signal)[Symbol.asyncIterator]();
  assert.deepEqual((await stream.next()).value, [words, finish]);
  return { stream, caller, response: await answered.promise };
}

/** All further deltas. */
async function rest(stream: AsyncIterator<readonly Delta[]>): Promise<readonly Delta[]> {
  const deltas: Delta[] = [];
  for (let next = await stream.next(); next.done !== true; next = await stream.next()) deltas.push(...next.value);
  return deltas;
}

test("a connection that is lost after the finish reason ends the answer", async (context) => {
  const { stream, response } = await begin(context);
  response.socket?.resetAndDestroy();
  assert.deepEqual(await rest(stream), []);
});

test("usage before a lost connection is emitted, and a truncated usage is ignored", async (context) => {
  const one = await begin(context);
  writeEvent(one.response, { choices: [], usage });
  const { value } = await one.stream.next();
  assert.equal(value?.[0]?.type, "usage");
  one.response.socket?.resetAndDestroy();
  assert.deepEqual(await rest(one.stream), []);

  for (const cut of ['data: {"choices":[],"usa', Buffer.of(0x64, 0xc3)]) {
    const { stream, response } = await begin(context);
    response.end(cut);
    assert.deepEqual(await rest(stream), []);
  }
});

test("text after a finish reason, or with it, must be completed, and a lost connection is then a failure", async (context) => {
  const { stream, response } = await begin(context);
  writeEvent(response, chunk({ content: " and more" }));
  assert.deepEqual((await stream.next()).value, [{ ...words, text: " and more" }]);
  response.socket?.resetAndDestroy();
  await assert.rejects(rest(stream), { code: "adapter_error" });
  const early = await begin(context);
  writeEvent(early.response, chunk({ content: " half" }, "stop"));
  await early.stream.next();
  early.response.socket?.resetAndDestroy();
  await assert.rejects(rest(early.stream), { code: "adapter_error" });
});

test("an error after the finish reason is an error, even without its last blank line", async (context) => {
  const { stream, response } = await begin(context);
  response.end('data: {"error":{"message":"Broken.","code":500}}');
  await assert.rejects(rest(stream), { code: "adapter_error", message: /Broken/ });
});

test("[DONE] is waited for at most five seconds", async (context) => {
  const { stream } = await begin(context);
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const ended = rest(stream);
  context.mock.timers.tick(5_000);
  assert.deepEqual(await ended, []);
});

test("[DONE] is waited for no longer than the idle timeout", async (context) => {
  const { stream } = await begin(context, { idle_timeout_ms: 30 });
  assert.deepEqual(await rest(stream), []);
});

test("a caller that disconnects after the finish reason gets client_closed", async (context) => {
  const { stream, caller } = await begin(context);
  const ended = assert.rejects(rest(stream), { code: "client_closed" });
  caller.abort();
  await ended;
});
