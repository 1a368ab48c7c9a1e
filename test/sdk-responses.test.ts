/** The official client's whole API of responses and conversations, with a model that supports only chat completions. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { startGateway, token } from "./gateway.ts";

const model = "gpt-any";

/** The model behind the gateway answers chat completions, and 404 to everything else. */
async function createClient(context: TestContext): Promise<OpenAI> {
  const upstream = await startGateway(context, {
    http: { port: 0, auth_token: token, endpoints: { compat_chat: true } },
    adapters: { echo: { type: "echo" } },
  });
  const { address } = await startGateway(context, {
    adapters: { upstream: { type: "openai", base_url: `${upstream.address}/v1`, api_key: token } },
  });
  return new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 });
}

function typesOf({ output }: Pick<Response, "output">): readonly string[] {
  return output.map(({ type }) => type);
}

test("a response is created, retrieved unchanged, and gone once deleted", async (context) => {
  const { responses } = await createClient(context);
  const made = await responses.create({ model, input: "Good day", metadata: { a: "b" }, user: "ann" });
  assert.deepEqual(await responses.retrieve(made.id), made);
  await responses.delete(made.id);
  await assert.rejects(responses.retrieve(made.id), OpenAI.NotFoundError);
  await assert.rejects(responses.delete(made.id), OpenAI.NotFoundError);
  await assert.rejects(
    responses.create({ model, input: "more", previous_response_id: made.id }),
    (error) => error instanceof OpenAI.BadRequestError && error.code === "previous_response_not_found",
  );
});

test("a response that is not stored cannot be retrieved", async (context) => {
  const { responses } = await createClient(context);
  const { id } = await responses.create({ model, input: "Good day", store: false });
  await assert.rejects(responses.retrieve(id), OpenAI.NotFoundError);
});

test("a stream is replayed from its beginning, and from after any of its events", async (context) => {
  const { responses } = await createClient(context);
  const told = await Array.fromAsync(await responses.create({ model, input: "one two three", stream: true }));
  const id = idOf(told);
  assert.deepEqual(await Array.fromAsync(await responses.retrieve(id, { stream: true })), told);
  for (const starting_after of told.keys()) {
    const rest = await responses.retrieve(id, { stream: true, starting_after });
    assert.deepEqual(await Array.fromAsync(rest), told.slice(starting_after + 1));
  }
  const followed = responses.stream({ response_id: id, starting_after: 3 });
  assert.equal((await followed.finalResponse()).output_text, "one two three");
});

test("a background response is queued, polled until it is done, and replayed as a stream", async (context) => {
  const { responses } = await createClient(context);
  let response = await responses.create({ model, input: "SLEEP 20\nGood day", background: true });
  assert.equal(response.status, "queued");
  assert.deepEqual(response.output, []);
  while (response.status === "queued" || response.status === "in_progress") {
    response = await responses.retrieve(response.id);
  }
  assert.equal(response.status, "completed");
  assert.equal(response.output_text, "Good day");
  const stream = await Array.fromAsync(await responses.retrieve(response.id, { stream: true }));
  assert.deepEqual(
    stream.slice(0, 3).map(({ type }) => type),
    ["response.created", "response.queued", "response.in_progress"],
  );
  assert.equal(idOf(stream), response.id);
});

test("a background response can be cancelled, even twice; any other cannot", async (context) => {
  const { responses } = await createClient(context);
  const { id } = await responses.create({ model, input: "SLEEP 60000\nGood day", background: true });
  const cancelled = await responses.cancel(id);
  assert.equal(cancelled.status, "cancelled");
  assert.deepEqual(await responses.cancel(id), cancelled);
  assert.deepEqual(await responses.retrieve(id), { ...cancelled, output_text: "" });
  const other = await responses.create({ model, input: "Good day" });
  await assert.rejects(responses.cancel(other.id), /Cannot cancel a synchronous response/);
});

test("the input of a response is listed, page by page", async (context) => {
  const { responses } = await createClient(context);
  const input = ["one", "two", "three"].map((content) => ({ role: "user" as const, content }));
  const { id } = await responses.create({ model, input });
  const texts: unknown[] = [];
  for await (const item of responses.inputItems.list(id, { limit: 1, order: "asc" })) {
    assert.ok(item.type === "message" && item.content[0]?.type === "input_text");
    texts.push(item.content[0].text);
  }
  assert.deepEqual(texts, ["one", "two", "three"]);
});

test("the tokens of a request are counted, including what it continues", async (context) => {
  const { responses } = await createClient(context);
  const short = await responses.inputTokens.count({ model, input: "Good day" });
  assert.equal(short.object, "response.input_tokens");
  const { id } = await responses.create({ model, input: "a long story ".repeat(20) });
  const long = await responses.inputTokens.count({ model, input: "Good day", previous_response_id: id });
  assert.ok(long.input_tokens > short.input_tokens + 50, `${short.input_tokens}, ${long.input_tokens}`);
});

test("a compacted conversation consists of the user's messages and a summary, and can be continued as input", async (context) => {
  const { responses } = await createClient(context);
  const { id } = await responses.create({ model, input: "my number is 7" });
  const compacted = await responses.compact({ model, previous_response_id: id });
  assert.equal(compacted.object, "response.compaction");
  assert.deepEqual(typesOf(compacted), ["message", "compaction"]);
  const input = [...(compacted.output as OpenAI.Responses.ResponseInput), { role: "user" as const, content: "go on" }];
  assert.equal((await responses.create({ model, input, store: false })).output_text, "go on");
});

test("a conversation beyond its threshold is compacted in the stream of the next answer, and goes on from there", async (context) => {
  const { responses } = await createClient(context);
  const context_management = [{ type: "compaction", compact_threshold: 1000 }];
  const { id: first } = await responses.create({ model, input: "my number is 7 ".repeat(200), context_management });
  const asked = { model, input: "which one?", context_management };
  const { data, response } = await responses
    .create({ ...asked, previous_response_id: first, stream: true })
    .withResponse();
  const told = await Array.fromAsync(data);
  const id = idOf(told);
  const end = told.at(-1);
  assert.ok(end?.type === "response.completed");
  assert.deepEqual(typesOf(end.response), ["compaction", "message"]);
  assert.deepEqual(
    [response.headers.get("x-portico-context"), response.headers.get("x-portico-warning")],
    ["2 items", null],
  );
  assert.deepEqual(await Array.fromAsync(await responses.retrieve(id, { stream: true })), told);
  assert.deepEqual((await responses.retrieve(id)).output, end.response.output);
  const next = responses.create({ ...asked, previous_response_id: id, stream: false });
  assert.equal((await next.withResponse()).response.headers.get("x-portico-context"), "4 items");
  assert.deepEqual(typesOf(await next), ["message"], "it is short again");
  const whole = await responses.create({ ...asked, previous_response_id: first, store: false });
  assert.deepEqual(typesOf(whole), ["compaction", "message"]);
  const resent = [...(whole.output as OpenAI.Responses.ResponseInput), { role: "user" as const, content: "and why?" }];
  const carried = responses.create({ model, input: resent, store: false });
  assert.equal((await carried.withResponse()).response.headers.get("x-portico-context"), "4 items");
  assert.equal((await carried).output_text, "and why?");
});

test("a conversation is created, changed, continued, listed and deleted", async (context) => {
  const { conversations, responses } = await createClient(context);
  const { id } = await conversations.create({ metadata: { topic: "tea" }, items: [{ role: "user", content: "one" }] });
  const changed = await conversations.update(id, { metadata: { topic: "coffee" } });
  assert.deepEqual(await conversations.retrieve(id), changed);
  const spoken = await responses.create({ model, conversation: id, input: "two" });
  assert.equal(spoken.conversation?.id, id);
  const added = await conversations.items.create(id, { items: [{ role: "developer", content: "three" }] });
  const listed = await Array.fromAsync(conversations.items.list(id, { order: "asc", limit: 2 }));
  assert.deepEqual(
    listed.map((item) => item.type === "message" && [item.role, textOf(item)]),
    [
      ["user", "one"],
      ["user", "two"],
      ["assistant", "two"],
      ["developer", "three"],
    ],
  );
  assert.deepEqual(listed.at(-1), added.data[0]);
  const last = listed.at(-1)?.id ?? "none";
  assert.deepEqual(await conversations.items.retrieve(last, { conversation_id: id }), listed.at(-1));
  assert.deepEqual(await conversations.items.delete(last, { conversation_id: id }), changed);
  await assert.rejects(conversations.items.retrieve(last, { conversation_id: id }), OpenAI.NotFoundError);
  assert.deepEqual(await conversations.delete(id), { id, object: "conversation.deleted", deleted: true });
  await assert.rejects(conversations.retrieve(id), OpenAI.NotFoundError);
  await assert.rejects(responses.retrieve(spoken.id), OpenAI.NotFoundError);
});

test("a connection carries several turns, and what it does not store can be continued only there", async (context) => {
  const client = await createClient(context);
  const socket = new ResponsesWS(client);
  context.after(() => socket.close());
  const failures: string[] = [];
  socket.on("error", (error) => failures.push(String(error)));
  const ask = async (fields: object): Promise<Response> => {
    const done = new Promise<Response>((resolve) =>
      socket.once("response.completed", ({ response }) => resolve(response)),
    );
    socket.send({ type: "response.create", model, store: false, ...fields });
    return done;
  };
  const first = await ask({ input: "CALL look {}", tools: [{ type: "function", name: "look", parameters: {} }] });
  const call = first.output[0];
  assert.ok(call?.type === "function_call");
  const output = { type: "function_call_output", call_id: call.call_id, output: "a cat" };
  const second = await ask({ input: [output], previous_response_id: first.id });
  assert.deepEqual(
    second.output.map((item) => item.type === "message" && textOf(item)),
    ["tool said: a cat"],
  );
  assert.deepEqual(failures, []);
  await assert.rejects(client.responses.create({ model, input: "more", previous_response_id: second.id }), /not found/);
});

function idOf(events: readonly ResponseStreamEvent[]): string {
  const last = events.at(-1);
  assert.ok(last?.type === "response.completed");
  return last.response.id;
}

function textOf({ content }: { readonly content: readonly object[] }): unknown {
  const [part] = content;
  return part !== undefined && "text" in part ? part.text : undefined;
}
