/** The official client judges the objects, lists and errors of responses and conversations. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { APIError } from "openai";
import { repeatLast, shareGateway, token } from "../harness/house.ts";

const open = shareGateway();
const model = "m";

async function connect() {
  const { address, model: scripted } = await open();
  scripted.script = repeatLast;
  return new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 });
}

function withStatus(status: number) {
  return (thrown: unknown) => thrown instanceof APIError && thrown.status === status;
}

test("the official client creates, continues, retrieves and deletes a response", async () => {
  const client = await connect();
  const { responses } = client;
  const one = await responses.create({ model, input: "one" });
  assert.equal(one.output_text, "re: one");
  const { output_text: _, ...told } = one;
  const { output_text: __, ...again } = await responses.retrieve(one.id);
  assert.deepEqual(again, told);
  const stream = responses.stream({ model, input: "two", previous_response_id: one.id });
  assert.equal((await stream.finalResponse()).output_text, "re: two");
  const [asked] = await Array.fromAsync(responses.inputItems.list(one.id, { limit: 1 }));
  assert.deepEqual(asked?.type === "message" && asked.content, [{ type: "input_text", text: "one" }]);
  await responses.delete(one.id);
  await assert.rejects(responses.retrieve(one.id), withStatus(404));
  await assert.rejects(responses.create({ model, input: "three", previous_response_id: one.id }), withStatus(400));
});

test("the official client makes a conversation, has it answered, pages through it and deletes it", async () => {
  const client = await connect();
  const { conversations, responses } = client;
  const items = [{ role: "user" as const, content: "one" }];
  const { id, ...made } = await conversations.create({ metadata: { topic: "tea" }, items });
  assert.match(id, /^conv_/);
  const changed = await conversations.update(id, { metadata: { where: "here" } });
  assert.deepEqual(changed, { id, ...made, metadata: { where: "here" } });
  assert.deepEqual(await conversations.retrieve(id), changed);
  const spoken = await responses.create({ model, conversation: id, input: "two" });
  assert.equal(spoken.conversation?.id, id);
  const added = await conversations.items.create(id, { items: [{ role: "developer", content: "three" }] });
  const listed = await Array.fromAsync(conversations.items.list(id, { order: "asc", limit: 2 }));
  assert.deepEqual(
    listed.map((item) => item.type === "message" && item.role),
    ["user", "user", "assistant", "developer"],
  );
  assert.deepEqual(listed.at(-1), added.data[0]);
  const place = { conversation_id: id };
  const last = String(listed.at(-1)?.id);
  assert.deepEqual(await conversations.items.retrieve(last, place), listed.at(-1));
  assert.deepEqual(await conversations.items.delete(last, place), changed);
  await assert.rejects(conversations.items.retrieve(last, place), withStatus(404));
  assert.deepEqual(await conversations.delete(id), { id, object: "conversation.deleted", deleted: true });
  await assert.rejects(conversations.retrieve(id), withStatus(404));
});
