/** Several readers on one connection, each with a lane of its own. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { type Box, createBox, say } from "../scripted.ts";
import { dial, textOf } from "./websocket-client.ts";

/** A model that answers nobody before `release` is called. */
function createHeld(context: TestContext): { readonly box: Box; release(): void } {
  const held = Promise.withResolvers<void>();
  const script = async function* () {
    await held.promise;
    yield say("hi");
  };
  return { box: createBox(context, script), release: held.resolve };
}

test("a frame for which there is no room is refused in its lane, in its turn", async (context) => {
  const { box, release } = createHeld(context);
  const client = await dial(context, await box.listen());
  for (let lane = 0; lane < 12; lane++) client.create({ stream_id: `lane ${lane}` });
  await client.heardOut();
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

test("more refusals than may wait are told at once", async (context) => {
  const { box, release } = createHeld(context);
  const client = await dial(context, await box.listen());
  for (let sent = 0; sent < 500; sent++) client.create();
  const [busy] = await client.answer();
  assert.equal(busy?.error?.code, "session_busy");
  release();
  for (let answered = 1; answered < 500; answered++) await client.answer();
  assert.equal(box.adapter.turns.length, 9);
});

test("a frame that is refused unread is refused in its lane", async (context) => {
  const box = createBox(context, [say("hi")], { limits: { rate: { requestsPerMinute: 1, burst: 2 } } });
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
});

test("every lane that waits when the connection ends is told so", async (context) => {
  const { box, release } = createHeld(context);
  const client = await dial(context, await box.listen());
  client.create();
  for (const stream_id of ["a", "b"]) client.create({ stream_id });
  await client.heardOut();
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

test("a response that is being made cannot be steered: its client is told so at once, and its answers stay in their order", async (context) => {
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
  client.create({ input: 'What is "response.steer"?' });
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
