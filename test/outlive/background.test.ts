/** A background turn is acknowledged, goes on alone, and can be polled, cancelled and deleted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, type Wish } from "../harness/client.ts";
import { makeFolder, openGateway, repeatLast, say, seenBy, shareGateway } from "../harness/house.ts";
import {
  ask,
  askForRoom,
  askWell,
  cancel,
  ended,
  eventsOf,
  failsAfter,
  hold,
  idIn,
  keyed,
  look,
  promise,
  remove,
  type Telling,
  textIn,
} from "./outlive.ts";

const open = shareGateway({ limits: { drain_timeout_ms: 0 } });

test("a background turn is queued, then in progress, then completed", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const id = await promise(address);
  await held.begun;
  const running = (await look(address, id)).body;
  assert.deepEqual([running.status, running.background, running.completed_at], ["in_progress", true, null]);
  const input = (await look(address, `${id}/input_items`)).body;
  held.go();
  const { status, background, output, error } = await ended(address, id);
  assert.deepEqual([status, background, error], ["completed", true, null]);
  assert.equal(output[0].content[0].text, "one two");
  assert.equal(input.data[0].content[0].text, "hi");
  assert.deepEqual((await look(address, `${id}/input_items`)).body, input);
});

test("a background turn that waits for its session is queued until the one before has ended, and then continues it", async () => {
  const { address, model } = await open();
  const [first, second] = [hold(), hold()];
  const asked = model.turns.length;
  model.script = (...given) => (model.turns.length === asked + 1 ? first : second).script(...given);
  const one = await promise(address, { user: "line" });
  await first.begun;
  const two = await promise(address, { user: "line" }, { say: "more" });
  assert.equal((await look(address, two)).body.status, "queued");
  assert.equal(model.turns.length, asked + 1);
  first.go();
  await second.begun;
  assert.equal((await look(address, two)).body.status, "in_progress");
  second.go();
  assert.deepEqual(
    [(await ended(address, one)).status, (await ended(address, two)).status],
    ["completed", "completed"],
  );
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: hi", "assistant: one two", "user: more"]);
});

test("a background turn has its place in the line of its session before it is acknowledged", async () => {
  const { address, model } = await open();
  const first = hold();
  const asked = model.turns.length;
  model.script = (...given) => (model.turns.length === asked + 1 ? first.script : repeat)(...given);
  await promise(address, { user: "places" }, { say: "1" });
  const ids = [];
  for (const word of ["2", "3"]) ids.push(await promise(address, { user: "places" }, { say: word }));
  const last = askWell(address, { on: "chat", say: "4", more: { user: "places" } });
  first.go();
  await last;
  assert.deepEqual(seenBy(model.turns.at(-1)), [
    "user: 1",
    "assistant: one two",
    "user: 2",
    "assistant: re: 2",
    "user: 3",
    "assistant: re: 3",
    "user: 4",
  ]);
});

test("a background turn that finds the line of its session full is refused instead of acknowledged", async (context) => {
  const held = hold();
  const { address, model } = await openGateway(context, { script: held.script, limits: { max_queued_per_thread: 1 } });
  const one = await promise(address, { user: "ann" });
  const two = await promise(address, { user: "ann" });
  const refused = await ask(address, { on: "responses", say: "hi", more: { background: true, user: "ann" } });
  assert.deepEqual(
    [refused.status, refused.body.error.type, refused.body.error.code],
    [429, "rate_limit_error", "session_busy"],
  );
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  held.go();
  for (const id of [one, two]) assert.equal((await ended(address, id)).status, "completed");
  assert.equal(model.turns.length, 2);
});

test("a background turn may be streamed by its own request, and queued is its second event", async () => {
  const { address, model } = await open();
  model.script = [say("Good"), say(" day")];
  const { raw } = await askWell(address, { on: "responses", say: "hi", stream: true, more: { background: true } });
  const events = eventsOf(raw);
  assert.deepEqual(
    events.slice(0, 3).map(({ type }) => type),
    ["response.created", "response.queued", "response.in_progress"],
  );
  assert.deepEqual(
    events.map(({ sequence_number }) => sequence_number),
    events.map((_, index) => index),
  );
  assert.deepEqual(
    events
      .filter(({ type }) => /^response\.(queued|in_progress|completed)$/.test(type))
      .map(({ response }) => response.status),
    ["queued", "in_progress", "completed"],
  );
});

for (const stream of [false, true]) {
  test(`a background turn with store: false is refused, stream: ${stream}`, async () => {
    const { address, model } = await open();
    const asked = model.turns.length;
    const more = { background: true, store: false };
    const { status, body } = await ask(address, { on: "responses", say: "hi", stream, more });
    assert.deepEqual([status, body.error.type], [400, "invalid_request_error"]);
    assert.match(body.error.message, /background.*store|store.*background/is);
    assert.equal(model.turns.length, asked);
  });
}

for (const [what, more] of Object.entries({
  "an unknown response": { previous_response_id: "resp_none" },
  "an unknown conversation": { conversation: "conv_none" },
})) {
  test(`a background turn that continues ${what} is refused, not acknowledged`, async () => {
    const { address } = await open();
    const { status, body } = await ask(address, { on: "responses", say: "hi", more: { background: true, ...more } });
    assert.equal(status, "conversation" in more ? 404 : 400);
    assert.equal(body.error.code, "conversation" in more ? "not_found" : "previous_response_not_found");
  });
}

test("a completed background turn is continued by its id, and with its session", async () => {
  const { address, model } = await open();
  model.script = [say("yes")];
  const id = await promise(address, { user: "goes on" });
  await ended(address, id);
  for (const more of [{ previous_response_id: id }, { user: "goes on" }]) {
    await askWell(address, { on: "responses", say: "next", more: { ...more, store: false } });
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: hi", "assistant: yes", "user: next"]);
  }
});

for (const [when, words] of [
  ["before its first word", []],
  ["after its first word", ["half"]],
] as const) {
  test(`a background turn that fails ${when} is failed, and its session is as it was`, async () => {
    const { address, model } = await open();
    model.script = failsAfter(...words);
    const id = await promise(address, { user: `fails ${when}` });
    const { status, error, output } = await ended(address, id);
    assert.deepEqual([status, typeof error.code, output.length], ["failed", "string", words.length]);
    assert.ok(error.message);
    model.script = [say("ok")];
    await askWell(address, { on: "responses", say: "next", more: { user: `fails ${when}` } });
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: next"]);
    const named = await ask(address, { on: "responses", say: "next", more: { previous_response_id: id } });
    assert.equal(named.body.error.code, "previous_response_not_found");
  });
}

test("a background turn that is cancelled releases the model, stays cancelled, and is in no session", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const id = await promise(address, { user: "cancels" });
  await held.begun;
  for (const times of [1, 2]) {
    const { status, body } = await cancel(address, id);
    assert.deepEqual([status, body.id, body.status, times], [200, id, "cancelled", times]);
  }
  await held.aborted;
  assert.equal((await ended(address, id)).status, "cancelled");
  model.script = [say("ok")];
  await askWell(address, { on: "responses", say: "next", more: { user: "cancels" } });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: next"]);
  const named = await ask(address, { on: "responses", say: "next", more: { previous_response_id: id } });
  assert.equal(named.body.error.code, "previous_response_not_found");
});

test("a background turn that is cancelled while it waits for its session never reaches the model", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const asked = model.turns.length;
  const first = await promise(address, { user: "waits" });
  await held.begun;
  const second = await promise(address, { user: "waits" });
  assert.equal((await cancel(address, second)).body.status, "cancelled");
  held.go();
  assert.equal((await ended(address, first)).status, "completed");
  assert.equal((await ended(address, second)).status, "cancelled");
  assert.equal(model.turns.length, asked + 1);
});

test("whoever follows a background turn that is cancelled is told its end, once", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const id = await promise(address);
  await held.begun;
  const following = look(address, id, "?stream=true");
  await cancel(address, id);
  const { raw } = await following;
  const ends = eventsOf(raw).filter(({ type }) => /^response\.(completed|incomplete|failed|cancelled)$/.test(type));
  assert.deepEqual(ends, eventsOf(raw).slice(-1));
  assert.match(raw, /data: \[DONE\]\n\n$/);
});

test("a completed background turn does not change when it is cancelled", async () => {
  const { address, model } = await open();
  model.script = [say("done")];
  const id = await promise(address);
  const before = await ended(address, id);
  const { status, body } = await cancel(address, id);
  assert.deepEqual([status, body], [200, before]);
});

test("a foreground turn cannot be cancelled, and an unknown one is not found", async () => {
  const { address, model } = await open();
  model.script = [say("done")];
  const { body } = await askWell(address, { on: "responses", say: "hi" });
  const refused = await cancel(address, body.id);
  assert.deepEqual([refused.status, refused.body.error.message], [400, "Cannot cancel a synchronous response."]);
  assert.equal((await look(address, body.id)).body.status, "completed");
  assert.equal((await cancel(address, `resp_${"0".repeat(48)}`)).status, 404);
});

test("a background turn that is deleted while it runs is stopped, and stays deleted", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const id = await promise(address, { user: "deletes" });
  await held.begun;
  assert.deepEqual((await remove(address, id)).body, { id, object: "response", deleted: true });
  await held.aborted;
  for (const again of [await look(address, id), await look(address, id, "?stream=true"), await remove(address, id)]) {
    assert.equal(again.status, 404);
  }
  model.script = [say("ok")];
  await askWell(address, { on: "responses", say: "next", more: { user: "deletes" } });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: next"]);
});

test("a background turn whose session is deleted while it runs does not come back", async () => {
  const { address, model } = await open();
  model.script = [say("ok")];
  const before = await askWell(address, { on: "chat", say: "before", more: { user: "erased" } });
  const held = hold();
  model.script = held.script;
  const id = await promise(address, { user: "erased" });
  await held.begun;
  const following = look(address, id, "?stream=true");
  const session = before.headers.get("x-portico-session");
  assert.equal((await call(address, "DELETE", `/v1/conversations/${session}`)).status, 200);
  held.go();
  await following;
  assert.equal((await look(address, id)).status, 404);
  model.script = [say("ok")];
  await askWell(address, { on: "responses", say: "next", more: { user: "erased" } });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: next"]);
  assert.equal((await look(address, id)).status, 404);
});

test("a background turn above max_background_turns is refused, also with a key, and there is room when one has ended", async (context) => {
  const held = hold();
  const { address } = await openGateway(context, {
    script: held.script,
    gateway: { sessions: { max_background_turns: 1 } },
  });
  const id = await promise(address);
  const wanted: Wish = { on: "responses", say: "hi", more: { background: true } };
  for (const one of [wanted, keyed(wanted, "k")]) {
    const refused = await ask(address, one);
    assert.deepEqual(
      [refused.status, refused.body.error.type, refused.body.error.code],
      [503, "api_error", "overloaded"],
    );
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
  }
  const wish = { on: "chat", say: "hi" } as const;
  const foreground = askWell(address, wish);
  held.go();
  assert.equal(textIn(wish, await foreground), "one two");
  await ended(address, id);
  assert.equal((await ended(address, idIn(await askForRoom(address, keyed(wanted, "k"))))).status, "completed");
});

test("a background turn counts as one of its token's turns until it ends", async (context) => {
  const held = hold();
  const tokens = [{ name: "ann", token: "sk-ann-0123456789", limits: { max_concurrent_turns: 1 } }];
  const { address } = await openGateway(context, { script: held.script, http: { tokens } });
  const wish = { on: "responses", say: "hi", token: "sk-ann-0123456789" } as const;
  const background = { ...wish, more: { background: true } };
  const id = idIn(await askWell(address, background));
  for (const one of [background, wish]) {
    const refused = await ask(address, one);
    assert.deepEqual([refused.status, refused.body.error.code], [429, "rate_limit_exceeded"]);
  }
  held.go();
  const { raw } = await call(address, "GET", `/v1/responses/${id}?stream=true`, undefined, wish);
  assert.match(raw, /event: response.completed/);
  assert.equal((await askForRoom(address, wish)).status, 200);
});

test("a stopping gateway lets a background turn end within its drain time, and it is found afterwards", async (context) => {
  const folder = makeFolder(context);
  const held = hold();
  const before = await openGateway(context, { folder, script: held.script });
  const id = await promise(before.address);
  await held.begun;
  const closing = before.close();
  held.go();
  await closing;
  const { address } = await openGateway(context, { folder });
  const { status, output } = (await look(address, id)).body;
  assert.deepEqual([status, output[0].content[0].text], ["completed", "one two"]);
});

test("turns that a gateway left running are told as failed by the next one on its folder, and are in no session", async (context) => {
  const folder = makeFolder(context);
  const held = hold();
  const before = await openGateway(context, { folder, script: held.script, limits: { drain_timeout_ms: 0 } });
  const running = await promise(before.address, { user: "ann" });
  await held.begun;
  const waiting = await promise(before.address, { user: "ann" });
  await before.close();
  await held.aborted;
  const { address, model } = await openGateway(context, { folder });
  for (const id of [running, waiting]) {
    const { status, error } = await ended(address, id);
    assert.deepEqual([status, error.code], ["failed", "server_error"]);
    const { raw } = await look(address, id, "?stream=true");
    assert.equal(eventsOf(raw).at(-1)?.type, "response.failed");
    assert.equal((await cancel(address, id)).body.status, "failed");
  }
  await askWell(address, { on: "chat", say: "next", more: { user: "ann" } });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: next"]);
});

const repeat = repeatLast as Telling;
