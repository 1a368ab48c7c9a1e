import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { Socket } from "node:net";
import { test } from "node:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { WebSocket } from "ws";
import { GatewayError } from "../../src/core/errors.ts";
import type { Turn } from "../../src/core/turn.ts";
import { createFrameWriter } from "../../src/http/websocket/writer.ts";
import { authorization, createBox, readEvents, say, token, toToken, usage } from "../scripted.ts";
import { dial, idOf, type ServerFrame, textOf } from "./websocket-client.ts";

/** Answers with how many items the model was shown. */
async function* count({ items }: Turn) {
  yield [...say(`${items.length}`), { type: "usage", usage } as const];
}

function typesOf(frames: readonly ServerFrame[]): readonly string[] {
  return frames.map(({ type }) => type);
}

/** Ids and times differ from one request to the next. */
function normalised(text: string): string {
  return text.replaceAll(/[0-9a-f]{48}/g, "ID").replaceAll(/"(created|completed)_at":\d+/g, '"$1_at":0');
}

test("the frames of a response are exactly the events of its stream", async (context) => {
  const script = [say("Hel", "lo"), [{ type: "tool-call", index: 0, callId: "call_1", name: "look" } as const]];
  const box = createBox(context, script);
  const address = await box.listen();
  const headers = { authorization, traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" };
  const body = { model: "m", input: "hi", tools: [{ type: "function", name: "look", parameters: {} }] };
  const streamed = await fetch(`${address}/v1/responses`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const events = readEvents(await streamed.text()).filter((event) => event !== "[DONE]");

  const client = await dial(context, address, headers);
  client.create(body);
  const frames = await client.answer();
  assert.deepEqual(client.received.map(normalised), events.map(normalised));
  assert.deepEqual(
    frames.map((frame) => frame.sequence_number),
    frames.map((_, index) => index),
  );
  const [first, second] = box.adapter.turns.map(({ id: _id, ...turn }) => turn);
  assert.deepEqual(second, first, "the model gets the same");
});

test("requests on one connection are answered one after the other, in order", async (context) => {
  let running = 0;
  const box = createBox(context, async function* ({ items }) {
    assert.equal(++running, 1);
    yield say(`answer to ${JSON.stringify(items.at(-1))}`);
    await new Promise(setImmediate);
    running--;
  });
  const client = await dial(context, await box.listen());
  client.create({ input: "first" });
  client.create({ input: "second" });
  client.create({ input: "third" });
  const [first, second, third] = [await client.answer(), await client.answer(), await client.answer()];
  assert.match(textOf(first), /first/);
  assert.match(textOf(second), /second/);
  assert.match(textOf(third), /third/);
  assert.equal(typesOf(second)[0], "response.created");
  assert.equal(second[0]?.sequence_number, 0);
});

test("a stored response can be continued from anywhere", async (context) => {
  const address = await createBox(context, count).listen();
  const one = await dial(context, address);
  one.create();
  const previous_response_id = idOf(await one.answer());
  const other = await dial(context, address);
  other.create({ previous_response_id });
  assert.equal(textOf(await other.answer()), "3");
});

test("a response that is not stored can be continued on its own connection only", async (context) => {
  const address = await createBox(context, count).listen();
  const client = await dial(context, address);
  client.create({ store: false });
  const first = idOf(await client.answer());
  const other = await dial(context, address);
  other.create({ store: false, previous_response_id: first });
  const [refused] = await other.answer();
  assert.equal(refused?.error?.code, "previous_response_not_found");
  assert.equal(refused?.error?.param, "previous_response_id");

  client.create({ store: false, previous_response_id: first });
  const second = await client.answer();
  assert.equal(textOf(second), "3");
  assert.equal(second.at(-1)?.response?.previous_response_id, first);
  client.create({ store: false, previous_response_id: first });
  assert.equal(
    (await client.answer())[0]?.error?.code,
    "previous_response_not_found",
    "only the last one is remembered",
  );
  client.create({ store: false, previous_response_id: idOf(second) });
  assert.equal(textOf(await client.answer()), "5");
});

test("a response that is not stored is forgotten when another one is prepared", async (context) => {
  const client = await dial(context, await createBox(context, count).listen());
  client.create();
  const stored = idOf(await client.answer());
  client.create({ store: false });
  const forgotten = idOf(await client.answer());
  client.create({ store: false, generate: false, previous_response_id: stored, input: "and" });
  const ready = idOf(await client.answer());
  client.create({ store: false, previous_response_id: forgotten });
  assert.equal((await client.answer())[0]?.error?.code, "previous_response_not_found");
  client.create({ store: false, previous_response_id: ready });
  assert.equal(textOf(await client.answer()), "4");
  client.create({ store: false, previous_response_id: ready });
  assert.equal((await client.answer())[0]?.error?.code, "previous_response_not_found");
});

test("a stored response may follow one that is not: it is stored with the whole conversation", async (context) => {
  const address = await createBox(context, count).listen();
  const client = await dial(context, address);
  client.create({ store: false });
  client.create({ previous_response_id: idOf(await client.answer()) });
  const stored = idOf(await client.answer());
  const other = await dial(context, address);
  other.create({ previous_response_id: stored });
  assert.equal(textOf(await other.answer()), "5");
});

for (const store of [false, true]) {
  test(`a question that is repeated with the output of a tool reaches the model once, though its response was not stored; store: ${store}`, async (context) => {
    const box = createBox(context, async function* (turn) {
      if (turn.items.length > 1) yield* count(turn);
      else yield [{ type: "tool-call", index: 0, callId: "call_1", name: "look" } as const];
    });
    const client = await dial(context, await box.listen());
    const question = { role: "user", content: "hi" };
    const output = { type: "function_call_output", call_id: "call_1", output: "tea" };
    client.create({ store: false, input: [question] });
    client.create({ store, previous_response_id: idOf(await client.answer()), input: [question, output] });
    assert.equal(textOf(await client.answer()), "3");
  });
}

test("what a stored response brings along of one that is not stored counts among its messages", async (context) => {
  const client = await dial(context, await createBox(context, count, { maxItems: 2 }).listen());
  client.create({ store: false });
  client.create({ previous_response_id: idOf(await client.answer()) });
  const [refused] = await client.answer();
  assert.equal(refused?.error?.code, "too_many_messages");
});

test("a stored response may follow a compaction that is not stored: the model sees only the compaction", async (context) => {
  const box = createBox(context, count);
  const client = await dial(context, await box.listen());
  const ask = async (fields: object) => {
    client.create(fields);
    return idOf(await client.answer());
  };
  const first = await ask({ store: false });
  const short = await ask({ store: false, previous_response_id: first, input: [{ type: "compaction_trigger" }] });
  const next = await ask({ store: false, previous_response_id: short });
  await ask({ previous_response_id: next });
  assert.deepEqual(
    box.adapter.turns.at(-1)?.items.map(({ type }) => type),
    ["compaction", "message", "message", "message"],
  );
});

test("a failed continuation makes the connection forget what it continued", async (context) => {
  const box = createBox(context, async function* (turn) {
    if (turn.items.length === 3) throw new GatewayError("adapter_error", "broke");
    yield* count(turn);
  });
  const client = await dial(context, await box.listen());
  client.create({ store: false });
  const previous_response_id = idOf(await client.answer());
  client.create({ store: false, previous_response_id });
  const [failed] = await client.answer();
  assert.equal(failed?.status, 502);
  assert.equal(failed?.error?.code, "adapter_error");
  client.create({ store: false, previous_response_id });
  assert.equal((await client.answer())[0]?.error?.code, "previous_response_not_found");
});

test("a conversation longer than the maximum body is not remembered", async (context) => {
  const address = await createBox(context, count, { limits: { maxBodyBytes: 2000 } }).listen();
  const client = await dial(context, address);
  client.create({ store: false, input: "x".repeat(1200) });
  client.create({ store: false, input: "x".repeat(1200), previous_response_id: idOf(await client.answer()) });
  const second = await client.answer();
  assert.equal(textOf(second), "3");
  client.create({ store: false, previous_response_id: idOf(second) });
  assert.equal((await client.answer())[0]?.error?.code, "previous_response_not_found");

  for (let count = 0; count < 2; count++) {
    client.create({ store: false, input: "x".repeat(1200) });
    client.create({ store: false, previous_response_id: idOf(await client.answer()) });
    assert.equal(textOf(await client.answer()), "3", "an earlier one takes no room");
  }

  client.create({ store: false });
  await client.answer();
  client.create({ store: false, input: "x".repeat(1200) });
  client.create({ store: false, input: "x".repeat(1200), previous_response_id: idOf(await client.answer()) });
  client.create({ store: false, previous_response_id: idOf(await client.answer()) });
  assert.equal((await client.answer())[0]?.error?.code, "previous_response_not_found", "another one is as long");

  client.create({ generate: false, input: "x".repeat(1200) });
  client.create({ generate: false, input: "x".repeat(1200), previous_response_id: idOf(await client.answer()) });
  client.create({ previous_response_id: idOf(await client.answer()) });
  assert.equal((await client.answer())[0]?.error?.code, "previous_response_not_found");
  client.create({ store: false, generate: false });
  client.create({ store: false, previous_response_id: idOf(await client.answer()) });
  assert.equal(textOf(await client.answer()), "2", "what was forgotten takes no room");
});

test("a request with generate: false is prepared without the model, and continued later", async (context) => {
  const box = createBox(context, count);
  const address = await box.listen();
  const client = await dial(context, address);
  client.create({ store: false, generate: false, input: [{ role: "user", content: "long" }] });
  const ready = await client.answer();
  assert.equal(typesOf(ready)[0], "response.created");
  assert.equal(ready.at(-1)?.type, "response.completed");
  assert.deepEqual(ready.at(-1)?.response?.output, []);
  assert.equal(ready.at(-1)?.response?.usage?.total_tokens, 0);
  assert.equal(box.adapter.turns.length, 0);

  client.create({ store: false, previous_response_id: idOf(ready) });
  const answer = await client.answer();
  assert.equal(textOf(answer), "2");
  assert.equal(answer.at(-1)?.response?.previous_response_id, idOf(ready));
  client.create({ store: false, generate: false, previous_response_id: idOf(answer), input: [] });
  client.create({ store: false, previous_response_id: idOf(await client.answer()) });
  assert.equal(textOf(await client.answer()), "4");
  client.create({ store: false, generate: false, instructions: "Be brief.", input: undefined });
  assert.equal((await client.answer()).at(-1)?.type, "response.completed");
  const native = box.adapter.turns[0]?.settings.native?.fields ?? {};
  assert.deepEqual([native["type"], native["generate"]], [undefined, undefined]);

  const other = await dial(context, address);
  other.create({ generate: false, previous_response_id: idOf(ready) });
  assert.equal((await other.answer())[0]?.error?.code, "previous_response_not_found");

  const headers = { authorization, "content-type": "application/json" };
  const made = await fetch(`${address}/v1/conversations`, { method: "POST", headers, body: "{}" });
  const { id: conversation } = (await made.json()) as { readonly id: string };
  other.create({ generate: false, conversation: `${conversation.slice(0, -1)}x` });
  assert.equal((await other.answer())[0]?.error?.code, "not_found");
  other.create({ generate: false, conversation, truncation: "auto" });
  other.create({ generate: false, previous_response_id: idOf(await other.answer()) });
  assert.match(other.received.at(-1) ?? "", /"truncation":"auto"/);
  other.create({ previous_response_id: idOf(await other.answer()) });
  assert.equal(textOf(await other.answer()), "3", "what was prepared step by step is complete");
  other.create({ conversation });
  assert.equal(textOf(await other.answer()), "5", "and continues its conversation");
});

test("a failure after the start is reported by the end of the response only, and the connection stays open", async (context) => {
  let asked = 0;
  const box = createBox(context, async function* () {
    yield say("half");
    if (asked++ === 0) throw new GatewayError("adapter_error", "broke");
  });
  const client = await dial(context, await box.listen());
  client.create();
  const failed = await client.answer();
  // Clients take an error event for the end, and would read what follows as the answer to their next request.
  assert.deepEqual(typesOf(failed).slice(-2), ["response.output_text.delta", "response.failed"]);
  assert.equal(failed.at(-1)?.response?.error?.code, "server_error");
  assert.deepEqual(
    failed.map((frame) => frame.sequence_number),
    failed.map((_, index) => index),
  );
  client.create();
  assert.equal((await client.answer()).at(-1)?.type, "response.completed");
  const lines = box.logged.map(({ fields }) => fields as Record<string, unknown>);
  const line = lines.find(({ method }) => method === "response.create");
  assert.deepEqual([line?.["status"], line?.["code"]], [200, "adapter_error"]);
});

test("a failure is reported at once, however long a number its response contains", async (context) => {
  const box = createBox(context, async function* () {
    yield say("half");
    throw new GatewayError("adapter_error", "broke");
  });
  const client = await dial(context, await box.listen());
  const since = performance.now();
  client.create({ instructions: "1".repeat(50_000) });
  assert.equal((await client.answer()).at(-1)?.type, "response.failed");
  assert.ok(performance.now() - since < 2_000);
});

test("a client that disconnects cancels its turn at once", async (context) => {
  const gone = Promise.withResolvers<number>();
  const box = createBox(context, async function* (_turn, signal) {
    yield say("first");
    await once(signal, "abort");
    gone.resolve(performance.now());
  });
  const client = await dial(context, await box.listen());
  client.create();
  while ((await client.next()).type !== "response.output_text.delta");
  const left = performance.now();
  client.socket.close();
  assert.ok((await gone.promise) - left < 100);
  while (box.logged.length < 2) await new Promise(setImmediate);
  const lines = box.logged.map(({ fields }) => fields as Record<string, unknown>);
  const line = lines.find(({ method }) => method === "response.create");
  assert.deepEqual([line?.["status"], line?.["code"]], [499, "client_closed"]);
});

test("a client that reads slowly pauses the model", async (context) => {
  let batches = 0;
  const paused = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  const box = createBox(
    context,
    async function* (_turn, signal) {
      for (; batches < 300; batches++) {
        // A batch waits this long only when the client's buffers are full.
        const timer = setTimeout(paused.resolve, 200);
        yield say("x".repeat(64 * 1024));
        clearTimeout(timer);
      }
      finished.resolve();
      await once(signal, "abort");
    },
    { limits: { maxUnsentBytes: 256 * 1024 } },
  );
  const client = await dial(context, await box.listen());
  client.socket.pause();
  client.create();
  await paused.promise;
  assert.ok(batches < 250, `the model was asked for ${batches} batches`);
  client.socket.resume();
  await finished.promise;
  client.socket.terminate();
});

test("a client that was slow and has caught up may be idle for any time", async (context) => {
  const emitted = Promise.withResolvers<void>();
  const script = async function* () {
    yield say("x".repeat(1024 * 1024));
    emitted.resolve();
  };
  const box = createBox(context, script, { limits: { stalledClientTimeoutMs: 54_321 } });
  const client = await dial(context, await box.listen());
  const timed = context.mock.method(Socket.prototype, "setTimeout");
  client.socket.pause();
  client.create();
  const isTimed = (wanted: number) => timed.mock.calls.some(({ arguments: [ms] }) => ms === wanted);
  while (!isTimed(54_321)) await new Promise(setImmediate);
  assert.ok(!isTimed(0));
  client.socket.resume();
  await emitted.promise;
  await client.answer();
  while (!isTimed(0)) await new Promise(setImmediate);
});

test("a client is waited for each time it falls behind, and not once it is gone", async () => {
  let take = () => {};
  const client = Object.assign(new EventEmitter(), {
    readyState: WebSocket.OPEN as number,
    OPEN: WebSocket.OPEN,
    bufferedAmount: 0,
    send(frame: string, taken: () => void) {
      client.bufferedAmount += frame.length;
      take = () => {
        client.bufferedAmount = 0;
        taken();
      };
    },
  });
  const times: number[] = [];
  const wire = Object.assign(new EventEmitter(), {
    cork() {},
    uncork() {},
    setTimeout: (ms: number) => times.push(ms),
  });
  const limits = { maxUnsentBytes: 5, stalledClientTimeoutMs: 100 };
  const writer = createFrameWriter(client as unknown as WebSocket, wire as unknown as Socket, limits);
  assert.equal(writer.write(["short"]), undefined);
  for (let time = 0; time < 2; time++) {
    const waiting = writer.write(["too long"]);
    assert.equal(writer.isFull, true);
    let isTaken = false;
    void waiting?.then(() => (isTaken = true));
    await new Promise(setImmediate);
    assert.equal(isTaken, false);
    take();
    await waiting;
  }
  assert.deepEqual(times, [100, 0, 100, 0]);
  const last = [writer.write(["too long"]), writer.write(["too long"])];
  client.readyState = WebSocket.CLOSED;
  client.emit("close");
  await Promise.all(last);
  assert.equal(writer.write(["too long"]), undefined);
});

test("a client that reads nothing is cut off, and its turn is cancelled", async (context) => {
  const gone = Promise.withResolvers<void>();
  const box = createBox(
    context,
    async function* (_turn, signal) {
      signal.addEventListener("abort", () => gone.resolve());
      for (;;) yield say("x".repeat(64 * 1024));
    },
    { limits: { maxUnsentBytes: 64 * 1024, stalledClientTimeoutMs: 100 } },
  );
  const client = await dial(context, await box.listen());
  client.socket.pause();
  client.create();
  await gone.promise;
});

test("every turn and every connection is logged in one line", async (context) => {
  const box = createBox(context, [say("hi")]);
  const client = await dial(context, await box.listen());
  client.create();
  await client.answer();
  client.send("{");
  await client.answer();
  client.socket.close();
  await client.closed;
  await box.close();
  const lines = box.logged.map(({ fields }) => fields as Record<string, unknown>);
  assert.deepEqual(
    lines.map(({ method, path, status, owner, model, code }) => [method, path, status, owner, model, code]),
    [
      ["response.create", "/v1/responses", 200, "default", "m", undefined],
      ["response.create", "/v1/responses", 400, "default", undefined, "invalid_json"],
      ["GET", "/v1/responses", 101, "default", undefined, undefined],
    ],
  );
  assert.equal(lines[0]?.["requestId"], lines[2]?.["requestId"]);
});

test("the sessions of a token are its own over WebSocket too", async (context) => {
  const tokens = [toToken("sk-alpha", { owner: "alpha" }), toToken("sk-beta", { owner: "beta" })];
  const address = await createBox(context, count, { settings: { tokens } }).listen();
  const alpha = await dial(context, address, { "x-api-key": "sk-alpha", "x-session-id": "s" });
  alpha.create();
  assert.equal(textOf(await alpha.answer()), "1");
  alpha.create();
  assert.equal(textOf(await alpha.answer()), "3", "the header of the upgrade names the session of every turn");
  const beta = await dial(context, address, { "x-api-key": "sk-beta", "x-session-id": "s" });
  beta.create();
  assert.equal(textOf(await beta.answer()), "1");
});

test("the lane that a client names is repeated in every event", async (context) => {
  const client = await dial(context, await createBox(context, [say("hi")]).listen());
  client.create({ stream_id: 'lane "1"' });
  for (const frame of await client.answer()) assert.equal(frame.stream_id, 'lane "1"');
  client.create({ stream_id: "two", temperature: 3 });
  assert.equal((await client.answer())[0]?.stream_id, "two");
});

test("the official client works over a connection without changes", async (context) => {
  const address = await createBox(context, count).listen();
  const socket = new ResponsesWS(new OpenAI({ apiKey: token, baseURL: `${address}/v1` }));
  context.after(() => socket.close());
  let text = "";
  socket.on("response.output_text.delta", ({ delta }) => (text += delta));
  const failures: unknown[] = [];
  socket.on("error", (error) => failures.push(error));
  const first = new Promise<string>((resolve) => {
    socket.once("response.completed", ({ response }) => resolve(response.id));
  });
  socket.send({ type: "response.create", model: "m", input: "hi", store: false });
  const previous_response_id = await first;
  const second = new Promise((resolve) => socket.once("response.completed", resolve));
  socket.send({ type: "response.create", model: "m", input: "more", store: false, previous_response_id });
  await second;
  assert.equal(text, "13");
  assert.deepEqual(failures, []);
});
