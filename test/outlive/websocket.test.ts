/** Responses over a WebSocket: the same events as frames, one response at a time, and what a connection remembers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { authorization, call, openGateway, say, seenBy, shareGateway, token, usage } from "../harness/house.ts";
import { type Client, dial, idOf, type ServerFrame, textOf } from "../harness/websocket.ts";
import { askWell, eventsOf, failsAfter, hold, look, type Telling } from "./outlive.ts";

const tokens = ["ann", "bob"].map((name) => ({ name, token: `sk-${name}-0123456789` }));
const open = shareGateway({ http: { tokens }, limits: { drain_timeout_ms: 0 } });

/** Answers with how many items the model was shown. */
const count: Telling = async function* ({ items }) {
  yield [...say(`${items.length}`), { type: "usage", usage }];
};

async function dialUp(context: TestContext, script = count) {
  const gateway = await open();
  gateway.model.script = script;
  return { ...gateway, client: await dial(context, gateway.address) };
}

async function ask(client: Client, fields: object = {}): Promise<readonly ServerFrame[]> {
  client.create(fields);
  return client.answer();
}

/** What a request is answered: its text, or the code of its error. */
async function told(client: Client, fields: object = {}): Promise<string> {
  const frames = await ask(client, fields);
  return frames[0]?.error?.code ?? textOf(frames);
}

const lost = "previous_response_not_found";

/** Ids and times differ from one request to the next. */
function normalised(text: string): string {
  return text.replaceAll(/[0-9a-f]{20,}/g, "ID").replaceAll(/"(created|completed)_at":\d+/g, '"$1_at":0');
}

test("the frames of a response are the events of its stream, and the model sees the same", async (context) => {
  const gateway = await open();
  gateway.model.script = [say("Hel", "lo"), call("call_1", "look"), [{ type: "usage", usage }]];
  const more = { model: "m", tools: [{ type: "function", name: "look", parameters: {} }] };
  const { raw } = await askWell(gateway.address, { on: "responses", say: "hi", stream: true, more });
  const client = await dial(context, gateway.address);
  const frames = await ask(client, more);
  assert.deepEqual(
    frames.map((frame) => JSON.parse(normalised(JSON.stringify(frame)))),
    eventsOf(raw).map((event) => JSON.parse(normalised(JSON.stringify(event)))),
  );
  const [first, second] = gateway.model.turns.slice(-2).map(({ id: _id, ...turn }) => turn);
  assert.deepEqual(second, first);
});

test("requests on one connection are answered one after the other, in order", async (context) => {
  const [first, ...others] = [hold(), hold(), hold()];
  const waiting = [first, ...others];
  const { client, model } = await dialUp(context, (...given) => waiting.shift()!.script(...given));
  const asked = model.turns.length;
  for (const input of ["first", "second", "third"]) client.create({ input });
  await first.begun;
  await client.flushed();
  assert.equal(model.turns.length, asked + 1, "the others wait");
  for (const held of [first, ...others]) held.go();
  for (const input of ["first", "second", "third"]) {
    const frames = await client.answer();
    assert.deepEqual([frames[0]?.type, frames[0]?.sequence_number], ["response.created", 0]);
    assert.equal(textOf(frames), "one two");
    assert.equal(
      (await look((await open()).address, idOf(frames), "/input_items")).body.data[0].content[0].text,
      input,
    );
  }
});

test("a stored response is continued from any connection, and over HTTP", async (context) => {
  const { client, address, model } = await dialUp(context);
  const first = idOf(await ask(client));
  assert.equal(await told(await dial(context, address), { previous_response_id: first }), "3");
  await askWell(address, { on: "responses", say: "more", more: { previous_response_id: first } });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: hi", "assistant: 1", "user: more"]);
  assert.equal((await look(address, first)).body.status, "completed");
});

test("with store: false the last response is continued on its own connection, and on no other", async (context) => {
  const { client, address } = await dialUp(context);
  const first = idOf(await ask(client, { store: false }));
  const other = await dial(context, address);
  const [refused] = await ask(other, { store: false, previous_response_id: first });
  assert.deepEqual([refused?.status, refused?.error?.code, refused?.error?.param], [400, lost, "previous_response_id"]);
  assert.equal((await look(address, first)).status, 404);

  const second = await ask(client, { store: false, previous_response_id: first });
  assert.equal(textOf(second), "3");
  assert.equal(second.at(-1)?.response?.previous_response_id, first);
  assert.equal(await told(client, { store: false, previous_response_id: idOf(second) }), "5");
  assert.equal(await told(client, { store: false, previous_response_id: first }), lost, "only the last is remembered");
});

test("with store: false a tool loop goes on over its connection, sending only the outputs", async (context) => {
  const { client, model } = await dialUp(context, async function* ({ items }) {
    yield items.length > 1 ? say("done") : call("call_1", "look");
  });
  const tools = [{ type: "function", name: "look", parameters: {} }];
  const previous_response_id = idOf(await ask(client, { store: false, tools }));
  const input = [{ type: "function_call_output", call_id: "call_1", output: "tea" }];
  assert.equal(await told(client, { store: false, tools, previous_response_id, input }), "done");
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: hi", "call call_1: look {}", "output call_1: tea"]);
});

test("a stored response that follows one that is not is stored with the whole conversation", async (context) => {
  const { client, address, model } = await dialUp(context);
  const first = idOf(await ask(client, { store: false, input: "one" }));
  const second = idOf(await ask(client, { previous_response_id: first, input: "two" }));
  await ask(await dial(context, address), { previous_response_id: second, input: "three" });
  assert.deepEqual(seenBy(model.turns.at(-1)), [
    "user: one",
    "assistant: 1",
    "user: two",
    "assistant: 3",
    "user: three",
  ]);
});

for (const [how, script] of Object.entries({
  "before its first word": failsAfter(),
  "after some words": failsAfter("half"),
})) {
  test(`a continuation that fails ${how} makes its connection forget what it continued`, async (context) => {
    const { client, model } = await dialUp(context);
    const previous_response_id = idOf(await ask(client, { store: false }));
    model.script = script;
    const failed = await ask(client, { store: false, previous_response_id });
    assert.ok(["error", "response.failed"].includes(failed.at(-1)!.type));
    model.script = count;
    assert.equal(await told(client, { store: false, previous_response_id }), lost);
    assert.equal(await told(client, { store: false }), "1");
  });
}

test("a refused continuation makes its connection forget what it continued", async (context) => {
  const { client } = await dialUp(context);
  const previous_response_id = idOf(await ask(client, { store: false }));
  const input = [{ type: "function_call_output", call_id: "call_none", output: "?" }];
  assert.equal((await ask(client, { store: false, previous_response_id, input }))[0]?.status, 400);
  assert.equal(await told(client, { store: false, previous_response_id }), lost);
});

test("a failure after the first word is told by one end, and the connection stays open", async (context) => {
  const { client, model } = await dialUp(context, failsAfter("half"));
  const failed = await ask(client);
  const types = failed.map(({ type }) => type);
  // Clients take an error event for the end, and would read what follows as the answer to their next request.
  assert.deepEqual([types.at(-1), types.includes("error")], ["response.failed", false]);
  assert.equal(typeof failed.at(-1)?.response?.error?.code, "string");
  model.script = count;
  assert.equal(await told(client), "1");
});

for (const store of [false, true]) {
  test(`with generate: false a response is prepared without the model, and continued later, store: ${store}`, async (context) => {
    const { client, model } = await dialUp(context);
    const asked = model.turns.length;
    const ready = await ask(client, { store, generate: false, instructions: "Be brief.", input: "long" });
    assert.deepEqual([ready[0]?.type, ready.at(-1)?.type], ["response.created", "response.completed"]);
    assert.deepEqual(ready.at(-1)?.response?.output, []);
    assert.match(idOf(ready), /^resp_/);
    assert.equal(model.turns.length, asked);
    const answer = await ask(client, { store, previous_response_id: idOf(ready), input: "go" });
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: long", "user: go"]);
    assert.equal(answer.at(-1)?.response?.previous_response_id, idOf(ready));
    const again = await ask(client, { store, generate: false, previous_response_id: idOf(answer), input: [] });
    assert.equal(await told(client, { store, previous_response_id: idOf(again) }), "4");
  });
}

test("the upgrade's headers name the session and the owner of every request", async (context) => {
  const { address, model } = await dialUp(context);
  const [ann, bob] = await Promise.all(
    tokens.map(({ token: own }) => dial(context, address, { "x-api-key": own, "x-session-id": "one" })),
  );
  assert.equal(await told(ann!, { input: "first" }), "1");
  assert.equal(await told(ann!, { input: "second" }), "3");
  assert.equal(await told(bob!, { input: "first" }), "1");
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: first"]);
});

test("a client that disconnects stops its response, and its session does not move", async (context) => {
  const held = hold();
  const { address, model } = await dialUp(context, held.script);
  const headers = { authorization, "x-session-id": "left" };
  const client = await dial(context, address, headers);
  client.create({ input: "unheard" });
  await held.begun;
  client.socket.close();
  await held.aborted;
  model.script = count;
  assert.equal(await told(await dial(context, address, headers)), "1");
});

test("a client that reads nothing is cut off, and its response is stopped", async (context) => {
  const stopped = Promise.withResolvers<void>();
  let said = 0;
  const { address } = await openGateway(context, {
    limits: { stalled_client_timeout_ms: 100, drain_timeout_ms: 0 },
    async *script(_turn, signal) {
      signal.addEventListener("abort", () => stopped.resolve());
      for (; !signal.aborted; said++) yield say("x".repeat(256 * 1024));
    },
  });
  const client = await dial(context, address);
  client.socket.pause();
  client.create();
  await stopped.promise;
  // Else a model that never waits goes on until its text fits no memory.
  assert.ok(said < 500, `${said} deltas were taken`);
});

test("an idle connection is pinged", async (context) => {
  const { address } = await openGateway(context, { limits: { heartbeat_ms: 10 } });
  const { socket } = await dial(context, address);
  await once(socket, "ping");
});

test("the official client talks over a connection, and continues what is not stored", async (context) => {
  const { address } = await dialUp(context);
  const socket = new ResponsesWS(new OpenAI({ apiKey: token, baseURL: `${address}/v1` }));
  context.after(() => socket.close());
  let text = "";
  socket.on("response.output_text.delta", ({ delta }) => (text += delta));
  const failures: unknown[] = [];
  socket.on("error", (error) => failures.push(error));
  const completed = () =>
    new Promise<string>((resolve) => socket.once("response.completed", ({ response }) => resolve(response.id)));
  const first = completed();
  socket.send({ type: "response.create", model: "m", input: "hi", store: false });
  const previous_response_id = await first;
  const second = completed();
  socket.send({ type: "response.create", model: "m", input: "more", store: false, previous_response_id });
  await second;
  assert.deepEqual([text, failures], ["13", []]);
});
