import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI, { APIError } from "openai";
import { checkStream } from "../protocols/grammar.ts";
import { authorization, type Box, type BoxOptions, createBox, say, type Script, token } from "../scripted.ts";

const hello: Script = [[...say("Hello"), { type: "finish", reason: "stop" }]];

async function open(
  context: TestContext,
  script = hello,
  options: BoxOptions = {},
): Promise<{ box: Box; base: string; client: OpenAI }> {
  const box = createBox(context, script, options);
  const base = await box.listen();
  return { box, base, client: new OpenAI({ baseURL: `${base}/v1`, apiKey: token, maxRetries: 0 }) };
}

/** The fields of a body that the tests read. */
interface Body {
  readonly id: string;
  readonly first_id: string;
  readonly metadata: object;
  readonly error: { readonly message: string; readonly param: string | null; readonly code: string };
}

async function call(base: string, method: string, path: string, body?: unknown, bearer = authorization) {
  const response = await fetch(`${base}${path}`, {
    method,
    headers: { authorization: bearer, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

function statusOf(status: number) {
  return (thrown: unknown) => thrown instanceof APIError && thrown.status === status;
}

test("the official client creates, reads, changes and deletes a conversation", async (context) => {
  const { client } = await open(context);
  const made = await client.conversations.create({ metadata: { topic: "tea" } });
  assert.match(made.id, /^conv_/);
  assert.equal(made.object, "conversation");
  assert.deepEqual(await client.conversations.retrieve(made.id), made);
  const updated = await client.conversations.update(made.id, { metadata: { topic: "coffee" } });
  assert.deepEqual(updated, { ...made, metadata: { topic: "coffee" } });
  assert.deepEqual((await client.conversations.update(made.id, { metadata: null })).metadata, {});
  assert.deepEqual(await client.conversations.delete(made.id), {
    id: made.id,
    object: "conversation.deleted",
    deleted: true,
  });
  await assert.rejects(client.conversations.retrieve(made.id), statusOf(404));
  await assert.rejects(client.conversations.delete(made.id), statusOf(404));
});

test("the official client adds, lists, reads and deletes items", async (context) => {
  const { client } = await open(context);
  const { id } = await client.conversations.create({ items: [{ role: "user", content: "one" }] });
  const added = await client.conversations.items.create(id, {
    items: [
      { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "ok" },
    ],
  });
  assert.deepEqual(
    added.data.map(({ type }) => type),
    ["function_call", "function_call_output"],
  );
  assert.equal(added.first_id, added.data[0]?.id);
  const listed = await Array.fromAsync(client.conversations.items.list(id, { limit: 1, order: "asc" }));
  assert.deepEqual(
    listed.map(({ type }) => type),
    ["message", "function_call", "function_call_output"],
  );
  assert.deepEqual(listed.slice(1), added.data);
  const newest = await client.conversations.items.list(id, { include: ["reasoning.encrypted_content"] });
  assert.deepEqual(newest.data, listed.toReversed());
  const itemId = listed[0]?.id ?? "";
  const place = { conversation_id: id };
  assert.deepEqual(await client.conversations.items.retrieve(itemId, place), listed[0]);
  assert.equal((await client.conversations.items.delete(itemId, place)).id, id);
  await assert.rejects(client.conversations.items.retrieve(itemId, place), statusOf(404));
  await assert.rejects(client.conversations.items.delete(itemId, place), statusOf(404));
  assert.deepEqual(await Array.fromAsync(client.conversations.items.list(id, { order: "asc" })), added.data);
});

test("all items can be deleted while they are being listed, page by page", async (context) => {
  const { client } = await open(context);
  const items = ["one", "two", "three", "four", "five"].map((content) => ({ role: "user" as const, content }));
  const { id } = await client.conversations.create({ items });
  for await (const item of client.conversations.items.list(id, { limit: 2 })) {
    await client.conversations.items.delete(item.id ?? "", { conversation_id: id });
  }
  assert.deepEqual((await client.conversations.items.list(id)).data, []);
});

test("a response in a conversation sees its items and adds its own", async (context) => {
  const { client, box } = await open(context);
  const { id } = await client.conversations.create({
    items: [
      { role: "system", content: "be brief" },
      { role: "user", content: "one" },
    ],
  });
  const response = await client.responses.create({ model: "m", input: "two", conversation: id });
  assert.equal(response.conversation?.id, id);
  assert.deepEqual(
    box.adapter.turns[0]?.items.map((item) => item.type === "message" && item.content),
    ["be brief", "one", "two"],
  );
  const listed = await Array.fromAsync(client.conversations.items.list(id, { order: "asc" }));
  assert.deepEqual(
    listed.map((item) => item.type === "message" && item.role),
    ["system", "user", "user", "assistant"],
  );
  assert.equal(listed.at(-1)?.id, response.output[0]?.id);
  const input = await Array.fromAsync(client.responses.inputItems.list(response.id));
  assert.deepEqual(
    input.map((item) => item.id),
    [listed[2]?.id],
  );
});

test("a response whose item was deleted shows its other items under their ids", async (context) => {
  const { client, base } = await open(context, [
    [
      { type: "reasoning", text: "hm" },
      ...say("Let me", " look."),
      { type: "tool-call", index: 0, callId: "c1", name: "look" },
      { type: "tool-arguments", index: 0, text: '{"far"' },
      { type: "finish", reason: "length" },
    ],
  ]);
  const { id: conversation_id } = await client.conversations.create();
  const first = await client.responses.create({ model: "m", input: "hi", conversation: conversation_id });
  const [reasoning, , call] = first.output;
  assert.equal(call?.type === "function_call" && call.status, "incomplete");
  await client.conversations.items.delete(first.output[1]?.id ?? "", { conversation_id });
  assert.deepEqual((await client.responses.retrieve(first.id)).output, [reasoning, call]);
  const url = `${base}/v1/responses/${first.id}?stream=true`;
  const streamed = await (await fetch(url, { headers: { authorization } })).text();
  assert.deepEqual(checkStream(streamed).response.output, [reasoning, call]);
  const gathered = await client.responses.stream({ response_id: first.id }).finalResponse();
  assert.deepEqual(
    gathered.output.map(({ id }) => id),
    [reasoning?.id, call?.id],
  );
  const behind = await fetch(`${url}&starting_after=2`, { headers: { authorization } });
  assert.equal(((await behind.json()) as Body).error.code, "events_expired");
});

test("reasoning that was complete when the model was cut off is listed as complete", async (context) => {
  const { client } = await open(context, [
    [
      { type: "reasoning", text: "hm" },
      { type: "reasoning-seal", encrypted: "sealed" },
      { type: "finish", reason: "length" },
    ],
  ]);
  const { id: conversation } = await client.conversations.create();
  const response = await client.responses.create({ model: "m", input: "hi", conversation });
  assert.equal(response.status, "incomplete");
  const [newest] = await Array.fromAsync(client.conversations.items.list(conversation));
  assert.deepEqual(newest, response.output[0]);
});

test("a message that was complete when the model was cut off is listed as its response lists it", async (context) => {
  const { client } = await open(context, [
    [...say("All said."), { type: "message-end" }, { type: "finish", reason: "length" }],
  ]);
  const { id: conversation } = await client.conversations.create();
  const response = await client.responses.create({ model: "m", input: "hi", conversation });
  const [newest] = await Array.fromAsync(client.conversations.items.list(conversation));
  assert.equal(newest?.type === "message" && newest.status, "completed");
  assert.deepEqual([newest, response.status], [response.output[0], "incomplete"]);
});

test("the session of a chat with a user is a conversation under the id in its header", async (context) => {
  const { client } = await open(context);
  const { response } = await client.chat.completions
    .create({ model: "m", messages: [{ role: "user", content: "hi" }], user: "u" })
    .withResponse();
  const id = response.headers.get("x-portico-session") ?? "";
  const listed = await Array.fromAsync(client.conversations.items.list(id, { order: "asc" }));
  assert.deepEqual(
    listed.map((item) => item.type === "message" && item.role),
    ["user", "assistant"],
  );
});

test("the input items of a response are listed newest first, in pages", async (context) => {
  const { client } = await open(context);
  const input = ["one", "two", "three"].map((content) => ({ role: "user" as const, content }));
  const { id } = await client.responses.create({ model: "m", input });
  const page = await client.responses.inputItems.list(id, { limit: 2 });
  assert.equal(page.has_more, true);
  const all = await Array.fromAsync(client.responses.inputItems.list(id, { limit: 2 }));
  assert.deepEqual(
    all.map((item) => item.type === "message" && item.content),
    ["three", "two", "one"].map((text) => [{ type: "input_text", text }]),
  );
  const ascending = await Array.fromAsync(client.responses.inputItems.list(id, { order: "asc" }));
  assert.deepEqual(ascending, all.toReversed());
  await assert.rejects(client.responses.inputItems.list("resp_unknown"), statusOf(404));
});

test("a conversation can be created without a body", async (context) => {
  const { base } = await open(context);
  const { status, body } = await call(base, "POST", "/v1/conversations");
  assert.equal(status, 200);
  assert.deepEqual(body.metadata, {});
  const list = await call(base, "GET", `/v1/conversations/${body.id}/items`);
  assert.deepEqual(list.body, { object: "list", data: [], first_id: "", last_id: "", has_more: false });
});

test("an item of another conversation of the same owner is not found", async (context) => {
  const { base } = await open(context);
  const items = [{ role: "user", content: "hi" }];
  const one = await call(base, "POST", "/v1/conversations", { items });
  const other = await call(base, "POST", "/v1/conversations", { items });
  const { body: list } = await call(base, "GET", `/v1/conversations/${other.body.id}/items`);
  const path = `/v1/conversations/${one.body.id}/items/${list.first_id}`;
  for (const method of ["GET", "DELETE"]) {
    const { status, body } = await call(base, method, path);
    assert.equal(status, 404);
    assert.equal(body.error.code, "not_found");
  }
});

test("a wrong request is refused with the name of the field", async (context) => {
  const { base } = await open(context, hello, { maxItems: 2 });
  const { body: made } = await call(base, "POST", "/v1/conversations", {});
  const path = `/v1/conversations/${made.id}`;
  const item = { role: "user", content: "hi" };
  const wrong: readonly (readonly [method: string, path: string, body: unknown, param: string])[] = [
    ["GET", "/v1/conversations/resp_1", undefined, "conversation_id"],
    ["POST", "/v1/conversations", { metadata: "x" }, "metadata"],
    ["POST", "/v1/conversations", { metadata: { a: 1 } }, "metadata.a"],
    ["POST", "/v1/conversations", { items: "x" }, "items"],
    ["POST", "/v1/conversations", { items: [{ role: "nobody", content: "" }] }, "items[0].role"],
    ["POST", "/v1/conversations", { items: [item, item, item] }, "items"],
    ["POST", path, {}, "metadata"],
    ["POST", `${path}/items`, {}, "items"],
    ["POST", `${path}/items`, { items: [{ type: "function_call_output", call_id: "c", output: "" }] }, "items"],
    ["GET", `${path}/items?limit=0`, undefined, "limit"],
    ["GET", `${path}/items?order=up`, undefined, "order"],
  ];
  for (const [method, url, sent, param] of wrong) {
    const { status, body } = await call(base, method, url, sent);
    assert.equal(status, 400, url);
    assert.equal(body.error.param, param);
  }
  const unknown = await call(base, "GET", `${path}/items?after=msg_1`);
  assert.deepEqual([unknown.status, unknown.body.error.param], [404, "after"]);
});

test("other methods are refused with the allowed ones", async (context) => {
  const { base } = await open(context);
  const response = await fetch(`${base}/v1/conversations/conv_1/items`, {
    method: "DELETE",
    headers: { authorization },
  });
  assert.equal(response.status, 405);
  assert.equal(response.headers.get("allow"), "GET, POST");
});

test("conversations are disabled without the responses endpoint", async (context) => {
  const { base } = await open(context, hello, { settings: { endpoints: { chat: true, responses: false } } });
  const { status, body } = await call(base, "POST", "/v1/conversations", {});
  assert.deepEqual([status, body.error.code], [404, "endpoint_disabled"]);
});
