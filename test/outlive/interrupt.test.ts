/** `response.interrupt` over a WebSocket: heard at once, the model let go, its words kept, and continued by their id. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { call, gate, openGateway, say, seenBy, shareGateway } from "../harness/house.ts";
import { beginEvents, chunk, startUpstream, writeEvent } from "../harness/upstream.ts";
import { type Client, dial, idOf, type ServerFrame, textOf } from "../harness/websocket.ts";
import { askWell, hold, look, type Telling } from "./outlive.ts";

const open = shareGateway({ limits: { drain_timeout_ms: 0 } });
const interrupt = { type: "response.interrupt" };

async function dialUp(context: TestContext, script: Telling) {
  const gateway = await open();
  gateway.model.script = script;
  return { ...gateway, client: await dial(context, gateway.address) };
}

/** Sends it, and sees that it is accepted while the response runs: long before so many pings are answered. */
async function interruptNow(client: Client): Promise<void> {
  client.send(interrupt);
  for (let pings = 0; pings < 300; pings++) {
    if (client.received.some((text) => text.includes('"response.interrupt.accepted"'))) return;
    await client.flushed();
  }
  assert.fail("The interrupt was not heard while the response ran.");
}

/** Interrupts when a text has been heard, and returns every frame of the response. */
async function interruptAfter(client: Client, text: string): Promise<readonly ServerFrame[]> {
  const heard: ServerFrame[] = [];
  while (textOf(heard) !== text) heard.push(await client.next());
  await interruptNow(client);
  return [...heard, ...(await client.answer())];
}

function typesOf(frames: readonly ServerFrame[]): readonly string[] {
  return frames.map(({ type }) => type);
}

/** The object of the last frame. */
function endOf(frames: readonly ServerFrame[]) {
  return frames.at(-1)!.response as unknown as {
    readonly id: string;
    readonly status: string;
    readonly error: null;
    readonly incomplete_details: { readonly reason: string };
    readonly output: readonly {
      readonly id: string;
      readonly status: string;
      readonly content: readonly { text: string }[];
    }[];
  };
}

for (const store of [true, false]) {
  test(`an interrupted response is accepted, its open item interrupted, and it ends as incomplete, store: ${store}`, async (context) => {
    const held = hold();
    const { client, address } = await dialUp(context, held.script);
    client.create({ store });
    const frames = await interruptAfter(client, "one");
    await held.aborted;
    assert.deepEqual(typesOf(frames).slice(-3), [
      "response.interrupt.accepted",
      "response.output_item.interrupted",
      "response.incomplete",
    ]);
    const { id, status, error, incomplete_details, output } = endOf(frames);
    assert.deepEqual([status, error, incomplete_details.reason], ["incomplete", null, "interrupted"]);
    assert.deepEqual([output.length, output[0]?.status, output[0]?.content[0]?.text], [1, "incomplete", "one"]);
    const found = await look(address, id);
    assert.deepEqual([found.status, found.body?.status], store ? [200, "incomplete"] : [404, undefined]);
  });

  test(`an interrupted response is continued by its id, and the model sees the words that were heard, store: ${store}`, async (context) => {
    const { client, model } = await dialUp(context, hold().script);
    client.create({ store });
    const previous_response_id = idOf(await interruptAfter(client, "one"));
    model.script = async function* () {
      yield say("go on");
    };
    client.create({ store, previous_response_id, input: "rather this" });
    const next = await client.answer();
    assert.deepEqual([next.at(-1)?.type, textOf(next)], ["response.completed", "go on"]);
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: hi", "assistant: one", "user: rather this"]);
  });
}

test("an interrupted response is continued over HTTP, too", async (context) => {
  const { client, address, model } = await dialUp(context, hold().script);
  client.create();
  const previous_response_id = idOf(await interruptAfter(client, "one"));
  model.script = [say("ok")];
  await askWell(address, { on: "responses", say: "rather this", more: { previous_response_id } });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: hi", "assistant: one", "user: rather this"]);
});

test("a response that is interrupted before its first word has no output, and no item is interrupted", async (context) => {
  const begun = gate();
  // oxlint-disable-next-line require-yield
  const { client } = await dialUp(context, async function* (_turn, signal) {
    begun.open();
    await once(signal, "abort");
    signal.throwIfAborted();
  });
  client.create();
  await begun.opened;
  await interruptNow(client);
  const types = typesOf(await client.answer()).filter((type) => !/\.(created|in_progress)$/.test(type));
  assert.deepEqual(types, ["response.interrupt.accepted", "response.incomplete"]);
  assert.match(client.received.at(-1)!, /"reason":"interrupted"/);
  assert.deepEqual(JSON.parse(client.received.at(-1)!).response.output, []);
});

test("of an interrupted response what was done stays done, and only the open item is interrupted", async (context) => {
  const { client } = await dialUp(context, async function* (_turn, signal) {
    yield [{ type: "reasoning", text: "Let me think." }];
    yield say("half");
    await once(signal, "abort");
    signal.throwIfAborted();
  });
  client.create();
  const frames = await interruptAfter(client, "Let me think.half");
  const count = (type: string) => typesOf(frames).filter((each) => each === type).length;
  assert.deepEqual([count("response.output_item.done"), count("response.output_item.interrupted")], [1, 1]);
  assert.deepEqual(
    endOf(frames).output.map(({ status }) => status),
    ["completed", "incomplete"],
  );
});

test("a call whose arguments were interrupted is never told as done", async (context) => {
  const { client } = await dialUp(context, async function* (_turn, signal) {
    yield call("call_1", "look", '{"ci');
    await once(signal, "abort");
    signal.throwIfAborted();
  });
  client.create({ tools: [{ type: "function", name: "look", parameters: {} }] });
  const frames = await interruptAfter(client, '{"ci');
  assert.equal(frames.at(-1)?.type, "response.incomplete");
  assert.ok(!typesOf(frames).some((type) => /output_item\.done|arguments\.done/.test(type)));
});

test("an interrupt does not wait behind the requests that do: they are answered next, in order", async (context) => {
  const held = hold();
  let isFirst = true;
  const { client } = await dialUp(context, async function* (...given) {
    if (isFirst) {
      isFirst = false;
      yield* held.script(...given);
    } else yield say("next");
  });
  for (let sent = 0; sent < 3; sent++) client.create();
  const frames = await interruptAfter(client, "one");
  assert.equal(frames.at(-1)?.type, "response.incomplete");
  for (let waiting = 0; waiting < 2; waiting++) assert.equal(textOf(await client.answer()), "next");
});

test("an interrupt ends one response, and not the next", async (context) => {
  const { client, model } = await dialUp(context, hold().script);
  client.create();
  await interruptAfter(client, "one");
  const held = hold();
  model.script = held.script;
  client.create();
  await held.begun;
  held.go();
  const next = await client.answer();
  assert.deepEqual([next.at(-1)?.type, textOf(next)], ["response.completed", "one two"]);
});

test("an interrupt on one connection leaves the responses of others alone", async (context) => {
  const held = hold();
  const { client, address } = await dialUp(context, held.script);
  const other = await dial(context, address);
  other.create();
  await held.begun;
  client.create();
  assert.equal((await interruptAfter(client, "one")).at(-1)?.type, "response.incomplete");
  held.go();
  assert.equal(textOf(await other.answer()), "one two");
});

test("an interrupt may name the response, and ends no other", async (context) => {
  const { client } = await dialUp(context, hold().script);
  client.create();
  const created = await client.next();
  client.send({ ...interrupt, response_id: "resp_other" });
  assert.equal((await client.answer()).at(-1)?.error?.param, "response_id");
  client.send({ ...interrupt, response_id: created.response?.id });
  assert.equal((await client.answer()).at(-1)?.type, "response.incomplete");
});

test("an interrupt where nothing runs is answered, and the connection stays usable", async (context) => {
  const { client } = await dialUp(context, async function* () {
    yield say("hi");
  });
  for (let times = 0; times < 2; times++) {
    client.send(interrupt);
    const [answer] = await client.answer();
    assert.deepEqual([answer?.type, typeof answer?.error?.code], ["error", "string"]);
    client.create();
    assert.equal(textOf(await client.answer()), "hi");
  }
});

test("an interrupt closes the connection to the model's server", async (context) => {
  const server = await startUpstream((_, response) => {
    beginEvents(response);
    for (const content of ["half", " a"]) writeEvent(response, chunk({ content }));
  });
  context.after(() => server.close());
  const adapters = { model: { type: "openai", base_url: `${server.url}/v1`, api_key: "sk-upstream" } };
  const { address } = await openGateway(context, { gateway: { adapters }, limits: { drain_timeout_ms: 0 } });
  const client = await dial(context, address);
  client.create();
  const heard: ServerFrame[] = [];
  while (textOf(heard) !== "half a") heard.push(await client.next());
  const closed = once(server.sockets[0]!, "close");
  await interruptNow(client);
  assert.equal((await client.answer()).at(-1)?.type, "response.incomplete");
  await closed;
});
