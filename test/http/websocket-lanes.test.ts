/** Several readers on one connection, each with a lane of its own. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Turn } from "../../src/core/turn.ts";
import { type Box, createBox, say } from "../scripted.ts";
import { dial, idOf, textOf } from "./websocket-client.ts";

/** A model that answers nothing before `release` is called. */
function createHeld(context: TestContext): { readonly box: Box; release(): void } {
  const held = Promise.withResolvers<void>();
  const script = async function* () {
    await held.promise;
    yield say("hi");
  };
  return { box: createBox(context, script), release: held.resolve };
}

test("a frame beyond the limit of waiting frames is refused in its lane, in order", async (context) => {
  const { box, release } = createHeld(context);
  const client = await dial(context, await box.listen());
  for (let lane = 0; lane < 12; lane++) client.create({ stream_id: `lane ${lane}` });
  await client.flushed();
  release();
  for (let lane = 0; lane < 12; lane++) {
    const answer = await client.answer();
    assert.equal(answer.at(-1)?.stream_id, `lane ${lane}`);
    if (lane < 9) assert.equal(textOf(answer), "hi");
    else assert.equal(answer[0]?.error?.code, "session_busy");
  }
  client.create();
  assert.equal(textOf(await client.answer()), "hi");
});

test("refusals are sent at once when too many of them wait", async (context) => {
  const { box, release } = createHeld(context);
  const client = await dial(context, await box.listen());
  for (let sent = 0; sent < 500; sent++) client.create();
  const [busy] = await client.answer();
  assert.equal(busy?.error?.code, "session_busy");
  await client.flushed();
  release();
  for (let answered = 1; answered < 500; answered++) await client.answer();
  assert.equal(box.adapter.turns.length, 9);
});

test("a frame that is refused unread is refused in its lane, and not parsed for that", async (context) => {
  const limits = { rate: { requestsPerMinute: 1, burst: 2 }, maxJsonDepth: 8 };
  const box = createBox(context, [say("hi")], { limits });
  const client = await dial(context, await box.listen());
  client.create();
  await client.answer();
  client.create({ stream_id: "a" });
  const [refused] = await client.answer();
  assert.deepEqual([refused?.error?.code, refused?.stream_id], ["rate_limit_exceeded", "a"]);
  client.create({ metadata: { stream_id: "b" } });
  assert.equal((await client.answer())[0]?.stream_id, undefined);
  client.send('{"stream_id":"c"');
  assert.equal((await client.answer())[0]?.stream_id, undefined);
  client.send(`{"stream_id": "\\u0064", "input": ${"[".repeat(9)}${"]".repeat(9)}}`);
  assert.equal((await client.answer())[0]?.stream_id, "d", "one that cannot be parsed");
  client.send('{"stream_id":"\\e"}');
  assert.equal((await client.answer())[0]?.stream_id, undefined);
});

test("every waiting lane is told when the connection ends", async (context) => {
  const { box, release } = createHeld(context);
  const client = await dial(context, await box.listen());
  client.create();
  for (const stream_id of ["a", "b"]) client.create({ stream_id });
  await client.flushed();
  const closing = box.close();
  release();
  assert.equal(textOf(await client.answer()), "hi");
  for (const lane of ["a", "b"]) {
    const [refused] = await client.answer();
    assert.deepEqual([refused?.error?.code, refused?.stream_id], ["draining", lane]);
  }
  assert.equal((await client.closed).code, 1001);
  await closing;
});

test("a running response cannot be steered: its client is told at once, and its answers stay in order", async (context) => {
  const held = Promise.withResolvers<void>();
  const box = createBox(context, async function* () {
    yield say("h");
    await held.promise;
    yield say("i");
  });
  const client = await dial(context, await box.listen());
  client.create({ stream_id: "a" });
  const { response } = await client.next();
  while ((await client.next()).type !== "response.output_text.delta");
  client.create({ input: "response.steer" });
  const steer = { previous_response_id: response?.id, input: "and this" };
  client.send({ type: "response.steer", ...steer });
  client.send({ type: "response.steer", ...steer, previous_response_id: "resp_other" });
  const { error, ...failed } = { ...(await client.next()) };
  assert.deepEqual(failed, { stream_id: "a", type: "response.steer.failed", steer, sequence_number: 0 });
  assert.deepEqual([error?.code, error?.type], ["steering_not_supported", "invalid_request_error"]);
  const other = await client.next();
  assert.deepEqual([other.type, other.stream_id], ["response.steer.failed", undefined]);
  held.resolve();
  assert.equal((await client.answer()).at(-1)?.stream_id, "a");
  assert.equal(textOf(await client.answer()), "hi");
  const lines = box.logged.map(({ fields }) => fields as Record<string, unknown>);
  const line = lines.find(({ method }) => method === "response.steer");
  assert.deepEqual([line?.["status"], line?.["code"]], [400, "unsupported_parameter"]);
});

test("an attempt to steer that is itself refused is told at once, too, and never as the answer to a request", async (context) => {
  const held = Promise.withResolvers<void>();
  const script = async function* () {
    yield say("h");
    await held.promise;
  };
  const box = createBox(context, script, { limits: { rate: { requestsPerMinute: 1, burst: 2 } } });
  const client = await dial(context, await box.listen());
  client.create({ stream_id: "a" });
  const { response } = await client.next();
  while ((await client.next()).type !== "response.output_text.delta");
  client.send({ type: "response.steer", previous_response_id: response?.id, input: "and this" });
  const { error, ...failed } = await client.next();
  assert.deepEqual(failed, {
    stream_id: "a",
    type: "response.steer.failed",
    steer: { previous_response_id: response?.id },
    sequence_number: 0,
  });
  assert.equal(error?.code, "rate_limit_exceeded");
  const [line] = box.logged.map(({ fields }) => fields as Record<string, unknown>).slice(-1);
  assert.deepEqual([line?.["method"], line?.["status"]], ["response.steer", 429]);
  held.resolve();
  assert.equal((await client.answer()).at(-1)?.type, "response.completed");
});

/** Answers with how many items the model was shown, and fails where the last one is "fail". */
async function* count({ items }: Turn) {
  if (JSON.stringify(items.at(-1)).includes("fail")) throw new GatewayError("adapter_error", "broke");
  yield say(`${items.length}`);
}

/** Sends a request in a lane that is not stored, and returns the answer's id and text. */
async function dialLanes(context: TestContext) {
  const client = await dial(context, await createBox(context, count).listen());
  return async (stream_id: string | undefined, previous_response_id?: string, fields: object = {}) => {
    client.create({ stream_id, previous_response_id, store: false, ...fields });
    const frames = await client.answer();
    return { id: idOf(frames), text: frames[0]?.error?.code ?? textOf(frames) };
  };
}

const lost = "previous_response_not_found";

test("each lane continues from its own last response that is not stored", async (context) => {
  const ask = await dialLanes(context);
  const [one, a, b] = [await ask(undefined), await ask("a"), await ask("b")];
  const [one2, a2, b2] = [await ask(undefined, one.id), await ask("a", a.id), await ask("b", b.id)];
  assert.deepEqual([one2.text, a2.text, b2.text], ["3", "3", "3"]);
  assert.equal((await ask("a", a.id)).text, lost, "only the last one of a lane is remembered");

  assert.equal((await ask("b", b2.id, { input: "fail" })).text, "adapter_error");
  assert.equal((await ask("b", b2.id)).text, lost, "a failed continuation makes its lane forget");
  assert.equal((await ask("a", a2.id)).text, "5");
  assert.equal((await ask(undefined, one2.id)).text, "5");
});

test("a lane may continue from another lane's response, which that lane can still continue", async (context) => {
  const ask = await dialLanes(context);
  const ready = await ask(undefined, undefined, { generate: false });
  const root = await ask("root", ready.id);
  assert.equal(root.text, "2");
  const [a, b] = [await ask("a", root.id), await ask("b", root.id)];
  assert.deepEqual([a.text, b.text, (await ask("root", root.id)).text], ["4", "4", "4"]);
  assert.deepEqual([(await ask("a", a.id)).text, (await ask("b", b.id)).text], ["6", "6"]);
});

test("a connection remembers a limited number of lanes, and no lane with a long name", async (context) => {
  const ask = await dialLanes(context);
  const first = await ask("first");
  const second = await ask("second");
  for (let lane = 0; lane < 14; lane++) await ask(`lane ${lane}`);
  const again = await ask("first", first.id);
  assert.equal(again.text, "3");
  await ask("one more");
  assert.equal((await ask("second", second.id)).text, lost, "it was unused for the longest time");
  const newest = await ask("first", again.id);
  assert.equal(newest.text, "5");
  for (let lane = 0; lane < 15; lane++) await ask(`lane ${lane}`);
  assert.equal((await ask("other", newest.id)).text, "7");
  assert.equal((await ask("first", newest.id)).text, "7", "a lane that another has continued was used, too");

  const long = await ask("x".repeat(257));
  await ask("y".repeat(257));
  assert.equal((await ask("x".repeat(257), long.id)).text, lost);
});
