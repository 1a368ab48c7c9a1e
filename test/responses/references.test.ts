/** Item references: an item is meant by its id, wherever it was made, and the model sees the item itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, tell } from "../harness/client.ts";
import { call as calls, repeatLast } from "../harness/house.ts";
import { ask, fetchBody, listTexts, refuse, shareTalk } from "./aids.ts";

const open = shareTalk();
const refer = (id: string) => ({ type: "item_reference", id });
const user = (content: string) => ({ role: "user", content });

test("items of earlier questions and answers can be meant by their ids, with or without a type", async () => {
  const { address, seen } = await open();
  const one = await ask(address, "one");
  const { first_id: asked } = await fetchBody(address, "GET", `/v1/responses/${one.id}/input_items`);
  await ask(address, [refer(asked), { id: one.output[0].id }, user("two")]);
  assert.deepEqual(seen(), ["user: one", "assistant: re: one", "user: two"]);
});

test("a call that is meant by its id is shown before its output", async () => {
  const { address, model, seen } = await open([
    [{ type: "reasoning", text: "hm" }, ...calls("c1", "look", '{"far":true}')],
  ]);
  const { output } = await ask(address, "look");
  model.script = repeatLast;
  const given = { type: "function_call_output", call_id: "c1", output: "seen" };
  await ask(address, [user("look"), ...output.map(({ id }: { id: string }) => refer(id)), given], { store: false });
  assert.deepEqual(seen(), ["user: look", "reasoning: hm", 'call c1: look {"far":true}', "output c1: seen"]);
});

test("items of a chat's turns can be meant too", async () => {
  const { address, seen } = await open();
  const { headers } = await tell(address, { on: "chat", say: "tea?", headers: { "x-session-id": "chat" } });
  const path = `/v1/conversations/${headers.get("x-portico-session")}/items?order=asc`;
  const { first_id, last_id } = await fetchBody(address, "GET", path);
  await ask(address, [refer(first_id), refer(last_id), user("and?")]);
  assert.deepEqual(seen(), ["user: tea?", "assistant: re: tea?", "user: and?"]);
});

test("items of a conversation can be meant, and a meant item becomes one of another conversation", async () => {
  const { address, seen } = await open();
  const { id } = await fetchBody(address, "POST", "/v1/conversations", { items: [user("one"), user("two")] });
  const { data } = await fetchBody(address, "GET", `/v1/conversations/${id}/items?order=asc`);
  await ask(address, [refer(data[1].id), refer(data[0].id)]);
  assert.deepEqual(seen(), ["user: two", "user: one"]);
  const copy = await fetchBody(address, "POST", "/v1/conversations", { items: [refer(data[1].id)] });
  assert.deepEqual(await listTexts(address, copy.id), ["two"]);
  await fetchBody(address, "DELETE", `/v1/conversations/${id}`);
  assert.deepEqual(await listTexts(address, copy.id), ["two"]);
});

test("an item that was meant is kept with the turn, so that it is there when the turn is continued", async () => {
  const { address, seen } = await open();
  const one = await ask(address, "one");
  const two = await ask(address, [refer(one.output[0].id), user("two")]);
  await fetchBody(address, "DELETE", `/v1/responses/${one.id}`);
  await ask(address, "three", { previous_response_id: two.id });
  assert.deepEqual(seen(), ["assistant: re: one", "user: two", "assistant: re: two", "user: three"]);
});

test("an item that names nothing is refused, in the words of its place, and the model is not asked", async () => {
  const { address, model } = await open();
  const { id } = await fetchBody(address, "POST", "/v1/conversations", { items: [user("one")] });
  const unstored = await ask(address, "hi", { store: false });
  const asked = model.turns.length;
  for (const unknown of ["msg_unknown", unstored.output[0].id, "rs_", unstored.id]) {
    const input = [user("hi"), refer(unknown)];
    const refused = await refuse(address, "POST", "/v1/responses", { model: "m", input });
    assert.deepEqual(refused, [404, "not_found", "input[1]"], unknown);
    const added = await refuse(address, "POST", `/v1/conversations/${id}/items`, { items: input });
    assert.deepEqual(added, [404, "not_found", "items[1]"], unknown);
  }
  assert.equal(model.turns.length, asked);
  assert.deepEqual(await listTexts(address, id), ["one"]);
});

test("a small request cannot grow beyond what a body may be by meaning one long item again and again", async () => {
  const { address, model } = await open();
  const { id } = await ask(address, "x".repeat(1024 * 1024), { max_output_tokens: 16 });
  const { first_id } = await fetchBody(address, "GET", `/v1/responses/${id}/input_items`);
  const asked = model.turns.length;
  const input = Array.from({ length: 200 }, () => refer(first_id));
  const { status, body } = await call(address, "POST", "/v1/responses", { model: "m", input });
  assert.deepEqual([status, body.error.code], [413, "body_too_large"]);
  assert.equal(model.turns.length, asked);
});
