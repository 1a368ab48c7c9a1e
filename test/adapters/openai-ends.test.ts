/** How a streamed answer may end behind its finish: in the usual way, by a loss, or not at all. */
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

/** An answer that has said its finish when the reader has its first batch; `goOn` is what its server does then. */
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

/** What is told from now on. */
async function rest(stream: AsyncIterator<readonly Delta[]>): Promise<readonly Delta[]> {
  const deltas: Delta[] = [];
  for (let next = await stream.next(); next.done !== true; next = await stream.next()) deltas.push(...next.value);
  return deltas;
}

test("a connection that is lost behind the finish is the end of the answer", async (context) => {
  const { stream, response } = await begin(context);
  response.socket?.resetAndDestroy();
  assert.deepEqual(await rest(stream), []);
});

test("the usage is heard before the connection is lost, and half a usage is none", async (context) => {
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

test("words behind a finish, or with it, are waited for, and their loss is a failure", async (context) => {
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

test("an error behind the finish is an error, even where the last blank line is missing", async (context) => {
  const { stream, response } = await begin(context);
  response.end('data: {"error":{"message":"Broken.","code":500}}');
  await assert.rejects(rest(stream), { code: "adapter_error", message: /Broken/ });
});

test("[DONE] is waited for, but not for long", async (context) => {
  const { stream } = await begin(context);
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const ended = rest(stream);
  context.mock.timers.tick(5_000);
  assert.deepEqual(await ended, []);
});

test("an idle limit that is shorter than that counts for it too", async (context) => {
  const { stream } = await begin(context, { idle_timeout_ms: 30 });
  assert.deepEqual(await rest(stream), []);
});

test("a caller who leaves behind the finish has left", async (context) => {
  const { stream, caller } = await begin(context);
  const ended = assert.rejects(rest(stream), { code: "client_closed" });
  caller.abort();
  await ended;
});
