/** A stream from its first byte to its last: head, heartbeats, failures, and what happens when the caller leaves. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send } from "node:http";
import { test } from "node:test";
import {
  begin,
  endpoints,
  hear,
  paths,
  readAll,
  readEvents,
  tellWell,
  toRequest,
  withoutComments,
} from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { type Delta, gate, openGateway, say, type Script, shareGateway } from "../harness/house.ts";
import { dial, eventually, post } from "./raw.ts";

/** It beats often, so that a silent stream is soon heard of. */
const beating = shareGateway({ limits: { heartbeat_ms: 20 } });
const open = shareGateway();
const heartbeat = /^(: [^\n]*\n\n)+/;

function fail(code: string, more: object = {}): Error {
  return Object.assign(new Error("It broke."), { code, ...more });
}

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(`${on}: ${stream ? "a streamed" : "a whole"} answer has the headers that proxies, pages and people need`, async () => {
      const { address, model } = await open();
      model.script = [say("hi")];
      const ask = async () => (await tellWell(address, { on, say: "hi", stream })).headers;
      const [headers, others] = [await ask(), await ask()];
      assert.match(headers.get("openai-processing-ms") ?? "", /^\d+$/);
      assert.ok(headers.get("x-request-id"));
      assert.notEqual(headers.get("x-request-id"), others.get("x-request-id"));
      assert.match(
        headers.get("content-type") ?? "",
        stream ? /^text\/event-stream; charset=utf-8$/ : /^application\/json/,
      );
      if (!stream) return;
      const names = ["cache-control", "x-accel-buffering"];
      assert.deepEqual(
        names.map((name) => headers.get(name)),
        ["no-cache, no-transform", "no"],
      );
    });
  }

  test(`${on}: words reach the caller when the model says them, not at the end`, async () => {
    const { address, model } = await open();
    const later = gate();
    model.script = async function* () {
      yield say("first");
      await later.opened;
      yield say("second");
    };
    const response = await begin(address, { on, say: "hi", stream: true });
    await hear(response, "first");
    later.open();
    assert.match(await hear(response, "[DONE]"), /second/);
  });

  test(`${on}: a failure before the first word is a status, with the time to wait`, async () => {
    const { address, model } = await open();
    model.script = async function* () {
      yield [];
      throw fail("adapter_rate_limit", { retryAfterSeconds: 7 });
    };
    const response = await begin(address, { on, say: "hi", stream: true });
    assert.deepEqual([response.statusCode, response.headers["retry-after"]], [429, "7"]);
    const { error } = JSON.parse(await readAll(response));
    assert.deepEqual([error.type, error.param, error.code], ["rate_limit_error", null, "adapter_rate_limit"]);
  });

  test(`${on}: heartbeats come from the start, and a failure after one ends the stream as an event`, async () => {
    const { address, model } = await beating();
    const later = gate();
    model.script = async function* (): AsyncGenerator<readonly Delta[]> {
      await later.opened;
      throw fail("adapter_timeout");
    };
    const response = await begin(address, { on, say: "hi", stream: true });
    assert.equal(response.statusCode, 200);
    assert.ok(response.headers["x-portico-history"]);
    assert.match(await hear(response, "\n\n"), heartbeat);
    later.open();
    const raw = withoutComments(await hear(response, "[DONE]\n\n"));
    assert.match(raw, /"code":"adapter_timeout"/);
    assert.match(raw, /data: \[DONE\]\n\n$/);
    if (on === "responses") assert.equal(checkStream(raw).response.status, "failed");
  });

  test(`${on}: heartbeats come between the words too, and change nothing of the answer`, async () => {
    const { address, model } = await beating();
    const later = gate();
    model.script = async function* () {
      yield say("one ");
      await later.opened;
      yield say("two");
    };
    const response = await begin(address, { on, say: "hi", stream: true });
    const raw = readAll(response);
    await hear(response, "\n\n: ");
    later.open();
    assert.match(await raw, /one [^]*\n\n: [^]*two[^]*\[DONE\]\n\n$/);
  });

  test(`${on}: a failure after the first word ends the stream once`, async () => {
    const { address, model } = await open();
    model.script = async function* () {
      yield say("half");
      throw fail("adapter_error");
    };
    const response = await begin(address, { on, say: "hi", stream: true });
    assert.equal(response.statusCode, 200);
    const raw = await readAll(response);
    const [last = "", done] = readEvents(raw).slice(-2);
    assert.equal(done, "[DONE]");
    if (on === "chat") {
      assert.equal(JSON.parse(last).error.code, "adapter_error");
      assert.doesNotMatch(raw, /"finish_reason":"/);
    } else {
      assert.equal(checkStream(raw).response.status, "failed");
      assert.deepEqual(raw.match(/^event: (response\.(completed|failed|incomplete)|error)$/gm), [
        "event: error",
        "event: response.failed",
      ]);
    }
  });

  for (const stream of [true, false]) {
    const what = stream ? "a stream" : "a whole answer";
    test(`${on}: a caller who leaves ${what} stops the model, and is logged as 499`, async (context) => {
      const [started, stopped] = [gate(), gate()];
      const script: Script = async function* (_turn, signal) {
        signal.addEventListener("abort", stopped.open, { once: true });
        yield say("one");
        started.open();
        await once(signal, "abort");
        yield say("too late");
      };
      const { address, logged } = await openGateway(context, { script });
      const { body, ...request } = toRequest({ on, say: "hi", stream });
      const asking = send(address + paths[on], request);
      asking.on("error", () => {}).end(body);
      await started.opened;
      asking.destroy();
      await stopped.opened;
      await eventually(() => logged.length > 0);
      const [line] = logged;
      assert.deepEqual([line?.fields["status"], line?.fields["code"]], [499, "client_closed"]);
      assert.equal(logged.filter(({ level }) => level === "error").length, 0, "it is no failure of ours");
    });
  }

  test(`${on}: a caller who leaves before the first word stops the model`, async () => {
    const { address, model } = await open();
    const [started, stopped] = [gate(), gate()];
    model.script = async function* (_turn, signal) {
      started.open();
      await once(signal, "abort");
      stopped.open();
      yield say("too late");
    };
    const { socket } = await dial({ after: () => {} }, address);
    socket.write(post(paths[on], toRequest({ on, say: "hi", stream: true }).body));
    await started.opened;
    socket.destroy();
    await stopped.opened;
  });
}

test("who waits for its session hears heartbeats, and is then answered with what came before", async () => {
  const { address, model } = await beating();
  const first = gate();
  let turns = 0;
  model.script = async function* (): AsyncGenerator<readonly Delta[]> {
    if (turns++ === 0) await first.opened;
    yield say("done");
  };
  const more = { user: "waiting" };
  const asked = model.turns.length;
  const one = tellWell(address, { on: "chat", say: "one", more });
  await eventually(() => model.turns.length > asked);
  const two = await begin(address, { on: "responses", say: "two", stream: true, more });
  assert.equal(two.statusCode, 200);
  assert.match(await hear(two, "\n\n"), heartbeat);
  assert.equal(model.turns.length, asked + 1);
  first.open();
  assert.match(await hear(two, "[DONE]"), /response\.completed/);
  await one;
  assert.equal(model.turns.at(-1)?.items.length, 3);
});

test("each write of a stream ends with a whole event", async (context) => {
  const { address, model } = await open();
  model.script = [say("a", "b", "c"), say("d")];
  const { socket, closed } = await dial(context, address);
  const { body } = toRequest({ on: "responses", say: "hi", stream: true });
  socket.write(post(paths.responses, body, { connection: "close" }));
  // On the wire each write is a chunk, and only its frame has carriage returns.
  const chunks = [...(await closed).matchAll(/\r\n[0-9a-f]+\r\n([^\r]+)/g)].map(([, chunk = ""]) => chunk);
  assert.ok(chunks.length > 0);
  for (const chunk of chunks) assert.match(chunk, /\n\n$/);
});
