/** Conversations and their items: made, read, changed, listed and deleted, and answered by responses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, tell } from "../harness/client.ts";
import { gate, say, seenBy } from "../harness/house.ts";
import { ask, fetchBody, listTexts, refuse, shareTalk } from "./aids.ts";

const open = shareTalk();

const user = (content: string) => ({ role: "user", content });

async function create(address: string, ...items: readonly object[]): Promise<string> {
  return (await fetchBody(address, "POST", "/v1/conversations", { items })).id;
}

for (const stream of [false, true]) {
  test(`a response in a conversation sees its items and adds its own, ${stream ? "streamed" : "whole"}`, async () => {
    const { address, seen } = await open();
    const id = await create(address, { role: "system", content: "Be brief." }, user("one"));
    const more = { conversation: stream ? { id } : id };
    const first = await tell(address, { on: "responses", say: "two", stream, more });
    assert.deepEqual(seen(), ["system: Be brief.", "user: one", "user: two"]);
    const told = await fetchBody(address, "GET", `/v1/responses/${first.id}`);
    assert.deepEqual(told.conversation, { id });
    assert.equal(first.headers.get("x-portico-session"), id);
    assert.deepEqual(await listTexts(address, id), ["Be brief.", "one", "two", "re: two"]);
    const { data } = await fetchBody(address, "GET", `/v1/conversations/${id}/items`);
    assert.deepEqual(data[0], told.output[0]);
    const asked = await fetchBody(address, "GET", `/v1/responses/${first.id}/input_items`);
    assert.deepEqual(asked.data, [data[1]]);
    await ask(address, "three", { conversation: id });
    assert.deepEqual(seen(), ["system: Be brief.", "user: one", "user: two", "assistant: re: two", "user: three"]);
  });
}

test("the session of a chat is a conversation too, under the id in its header", async () => {
  const { address, seen } = await open();
  const headers = { "x-session-id": "kitchen" };
  const { headers: told } = await tell(address, { on: "chat", say: "hi", headers });
  const id = told.get("x-portico-session")!;
  await fetchBody(address, "POST", `/v1/conversations/${id}/items`, { items: [user("and then")] });
  assert.deepEqual(await listTexts(address, id), ["hi", "re: hi", "and then"]);
  await tell(address, { on: "chat", say: "what?", headers });
  assert.deepEqual(seen(), ["user: hi", "assistant: re: hi", "user: and then", "user: what?"]);
});

test("an item that was deleted is shown to the model no more, and its neighbours stay", async () => {
  const { address, seen } = await open();
  const id = await create(address, user("one"), user("two"), user("three"));
  const { data } = await fetchBody(address, "GET", `/v1/conversations/${id}/items?order=asc`);
  await Promise.all(data.slice(0, 2).map((item: { id: string }) => deleteItem(address, id, item.id)));
  await ask(address, "four", { conversation: id });
  assert.deepEqual(seen(), ["user: three", "user: four"]);
  const meant = { model: "m", input: [{ type: "item_reference", id: data[0].id }] };
  assert.equal((await refuse(address, "POST", "/v1/responses", meant))[0], 404);
});

function deleteItem(address: string, conversation: string, item: string): Promise<unknown> {
  return fetchBody(address, "DELETE", `/v1/conversations/${conversation}/items/${item}`);
}

test("an item of an answer can be deleted, and the response shows its other items unchanged", async () => {
  const { address } = await open([
    [
      { type: "reasoning", text: "hm" },
      ...say("Let me look."),
      { type: "tool-call", index: 0, callId: "c1", name: "look" },
      { type: "tool-arguments", index: 0, text: "{}" },
    ],
  ]);
  const id = await create(address);
  const { id: response, output } = await ask(address, "hi", { conversation: id });
  await deleteItem(address, id, output[1].id);
  const left = await fetchBody(address, "GET", `/v1/responses/${response}`);
  assert.deepEqual(left.output, [output[0], output[2]]);
});

test("a call and its output can be deleted one after the other, and the conversation goes on", async () => {
  const { address, model } = await open();
  const made = { type: "function_call", call_id: "c1", name: "f", arguments: "{}" };
  const given = { type: "function_call_output", call_id: "c1", output: "ok" };
  const id = await create(address, user("one"), made, given);
  const { data } = await fetchBody(address, "GET", `/v1/conversations/${id}/items?order=asc`);
  await deleteItem(address, id, data[1].id);
  await ask(address, "two", { conversation: id });
  await deleteItem(address, id, data[2].id);
  await ask(address, "three", { conversation: id });
  const lines = ["user: one", "user: two", "assistant: re: two", "user: three"];
  assert.deepEqual(model.turns.slice(-2).map(seenBy), [lines.slice(0, 2), lines]);
});

test("items added while a response is made come after it, and those added at once are all there", async () => {
  const { address, model } = await open();
  const [begun, released] = [gate(), gate()];
  model.script = async function* () {
    begun.open();
    await released.opened;
    yield say("Hello");
  };
  const id = await create(address);
  const answered = ask(address, "question", { conversation: id });
  await begun.opened;
  const numbers = ["0", "1", "2", "3", "4", "5"];
  const path = `/v1/conversations/${id}/items`;
  const added = numbers.map((text) => fetchBody(address, "POST", path, { items: [user(text)] }));
  await fetchBody(address, "GET", `/v1/conversations/${id}`);
  released.open();
  await Promise.all([answered, ...added]);
  const texts = await listTexts(address, id);
  assert.deepEqual([texts.slice(0, 2), texts.slice(2).toSorted()], [["question", "Hello"], numbers]);
});

test("responses asked for at once in one conversation are answered one after another", async () => {
  const { address } = await open();
  const { id } = await fetchBody(address, "POST", "/v1/conversations");
  await Promise.all(["a", "b", "c"].map((text) => ask(address, text, { conversation: id })));
  const texts = await listTexts(address, id);
  const asked = texts.filter((_, index) => index % 2 === 0);
  assert.deepEqual(asked.toSorted(), ["a", "b", "c"]);
  assert.deepEqual(
    texts,
    asked.flatMap((text) => [text, `re: ${text}`]),
  );
});

test("a conversation takes its turns and items with it when it is deleted", async () => {
  const { address } = await open();
  const id = await create(address, user("one"));
  const { id: response, output } = await ask(address, "two", { conversation: id });
  await fetchBody(address, "DELETE", `/v1/conversations/${id}`);
  assert.equal((await refuse(address, "GET", `/v1/responses/${response}`))[0], 404);
  assert.equal((await refuse(address, "GET", `/v1/conversations/${id}/items`))[0], 404);
  const refer = { model: "m", input: [{ type: "item_reference", id: output[0].id }] };
  assert.equal((await refuse(address, "POST", "/v1/responses", refer))[0], 404);
  const onward = { model: "m", input: "three", conversation: id };
  assert.deepEqual(await refuse(address, "POST", "/v1/responses", onward), [404, "not_found", "conversation"]);
});

test("a conversation that is deleted while it is answered stays deleted, and its caller is told", async () => {
  const { address, model } = await open();
  const id = await create(address, user("one"));
  model.script = async function* () {
    yield say("half");
    await fetchBody(address, "DELETE", `/v1/conversations/${id}`);
    yield say(" and half");
  };
  const heard = await tell(address, { on: "responses", say: "two", stream: true, more: { conversation: id } });
  assert.notEqual(heard.error, undefined);
  assert.equal((await refuse(address, "GET", `/v1/conversations/${id}`))[0], 404);
  const onward = { model: "m", input: "three", previous_response_id: heard.id };
  assert.equal((await refuse(address, "POST", "/v1/responses", onward))[1], "previous_response_not_found");
});

test("an output that is added without its call is refused, and adds nothing", async () => {
  const { address } = await open();
  const id = await create(address, user("hi"));
  const items = [user("more"), { type: "function_call_output", call_id: "c", output: "" }];
  const refused = await refuse(address, "POST", `/v1/conversations/${id}/items`, { items });
  assert.deepEqual(refused, [400, "tool_call_mismatch", "items"]);
  assert.deepEqual(await listTexts(address, id), ["hi"]);
});

test("an item of one conversation is not found in another of the same owner", async () => {
  const { address } = await open();
  const [one, other] = [await create(address, user("hi")), await create(address, user("hi"))];
  const { first_id } = await fetchBody(address, "GET", `/v1/conversations/${other}/items`);
  for (const method of ["GET", "DELETE"]) {
    const [status, code] = await refuse(address, method, `/v1/conversations/${one}/items/${first_id}`);
    assert.deepEqual([status, code], [404, "not_found"]);
  }
  assert.equal((await call(address, "GET", `/v1/conversations/${other}/items/${first_id}`)).status, 200);
});
