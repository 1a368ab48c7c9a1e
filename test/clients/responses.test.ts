/** The official client's responses: tools, structured output, background, replayed streams, and WebSocket. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { gate, say, seenBy } from "../harness/house.ts";
import { callWeather, connect, person, weather } from "./sdk.ts";

const model = "any";
const tools = [{ type: "function" as const, ...weather }];

test("responses: one is streamed, and its deltas are its text", async () => {
  const { client } = await connect(say("one ", "two ", "three"));
  const stream = client.responses.stream({ model, input: "hi" });
  let text = "";
  stream.on("response.output_text.delta", (event) => void (text += event.delta));
  const response = await stream.finalResponse();
  assert.deepEqual([text, response.output_text, response.status], ["one two three", "one two three", "completed"]);
  assert.equal(response.usage?.output_tokens, 2);
});

for (const stream of [false, true]) {
  test(`responses: a call, its output by previous_response_id, and the answer, ${stream ? "streamed" : "whole"}`, async () => {
    const { client, turns } = await connect(callWeather("Athens"), say("It is sunny."));
    const ask = async (body: OpenAI.Responses.ResponseCreateParamsNonStreaming): Promise<Response> =>
      stream ? client.responses.stream({ ...body, stream: true }).finalResponse() : client.responses.create(body);
    const first = await ask({ model, input: "hi", tools, tool_choice: "required" });
    const made = first.output.find((item) => item.type === "function_call");
    assert.deepEqual(JSON.parse(made?.arguments ?? ""), { city: "Athens" });
    const output = { type: "function_call_output" as const, call_id: made?.call_id ?? "", output: "sunny" };
    const second = await ask({ model, previous_response_id: first.id, input: [output], tools });
    assert.deepEqual([second.output_text, second.previous_response_id], ["It is sunny.", first.id]);
    assert.deepEqual(seenBy(turns()[1]).slice(1), [
      'call call_Athens: get_weather {"city":"Athens"}',
      "output call_Athens: sunny",
    ]);
  });
}

test("responses: parse returns structured output, and the model gets its schema", async () => {
  const { client, turns } = await connect(say('{"name":"Ann",', '"age":7}'));
  const format = { type: "json_schema" as const, name: "person", schema: person, strict: true };
  const response = await client.responses.parse({ model, input: "who?", text: { format } });
  assert.deepEqual(response.output_parsed, { name: "Ann", age: 7 });
  assert.match(JSON.stringify(turns()[0]?.settings.format), /"person".*"integer"/);
});

test("responses: reasoning stands before the answer, and a refusal is a part of its own", async () => {
  const { client } = await connect([
    { type: "reasoning", text: "Should I?", summary: 0 },
    { type: "refusal", text: "I will not" },
  ]);
  const { output } = await client.responses.create({ model, input: "hi", reasoning: { summary: "auto" } });
  assert.deepEqual(
    output.map((item) => (item.type === "message" ? item.content : item.type)),
    ["reasoning", [{ type: "refusal", refusal: "I will not" }]],
  );
});

test("responses: an answer that was cut at its limit is incomplete", async () => {
  const { client } = await connect([...say("one two"), { type: "finish", reason: "length" }]);
  const response = await client.responses.create({ model, input: "hi", max_output_tokens: 16 });
  assert.deepEqual([response.status, response.incomplete_details?.reason], ["incomplete", "max_output_tokens"]);
  assert.equal(response.output_text, "one two");
});

test("responses: a background response is queued, polled until it is done, and streamed again from any event on", async () => {
  const { client, model: scripted } = await connect();
  const { responses } = client;
  const released = gate();
  scripted.script = async function* () {
    await released.opened;
    for (const word of ["one ", "two ", "three"]) yield say(word);
  };
  let response = await responses.create({ model, input: "hi", background: true });
  assert.deepEqual([response.status, response.output], ["queued", []]);
  released.open();
  while (response.status === "queued" || response.status === "in_progress") {
    response = await responses.retrieve(response.id);
  }
  assert.equal(response.output_text, "one two three");
  const { id } = response;
  const told: ResponseStreamEvent[] = await Array.fromAsync(await responses.retrieve(id, { stream: true }));
  assert.deepEqual(
    told.slice(0, 3).map(({ type }) => type),
    ["response.created", "response.queued", "response.in_progress"],
  );
  for (const starting_after of [0, 3, told.length - 2]) {
    const rest = await responses.retrieve(id, { stream: true, starting_after });
    assert.deepEqual(await Array.fromAsync(rest), told.slice(starting_after + 1));
  }
  const followed = responses.stream({ response_id: id, starting_after: 3 });
  assert.equal((await followed.finalResponse()).output_text, "one two three");
});

test("responses: a background response can be cancelled, even twice; any other cannot", async () => {
  const { client, model: scripted } = await connect();
  const { script } = scripted;
  scripted.script = async function* (_, signal) {
    yield say("one ");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  const { id } = await client.responses.create({ model, input: "hi", background: true });
  const cancelled = await client.responses.cancel(id);
  assert.equal(cancelled.status, "cancelled");
  assert.deepEqual((await client.responses.cancel(id)).status, "cancelled");
  assert.deepEqual((await client.responses.retrieve(id)).status, "cancelled");
  scripted.script = script;
  const other = await client.responses.create({ model, input: "hi" });
  await assert.rejects(client.responses.cancel(other.id), /Cannot cancel a synchronous response/);
});

/** Asks over one WebSocket, request by request. */
function openSocket(context: TestContext, client: OpenAI) {
  const socket = new ResponsesWS(client);
  context.after(() => socket.close());
  return (fields: object): Promise<Response> =>
    new Promise((resolve, reject) => {
      socket.once("response.completed", ({ response }) => resolve(response));
      socket.once("error", reject);
      socket.send({ type: "response.create", model, store: false, ...fields });
    });
}

test("responses: a WebSocket carries several turns, and what it does not store is continued only there", async (context) => {
  const { client } = await connect(callWeather("Athens"), say("It is sunny."));
  const ask = openSocket(context, client);
  const first = await ask({ input: "hi", tools });
  const made = first.output[0];
  assert.ok(made?.type === "function_call");
  const output = { type: "function_call_output", call_id: made.call_id, output: "sunny" };
  const second = await ask({ input: [output], previous_response_id: first.id });
  assert.deepEqual(
    second.output
      .flatMap((item) => (item.type === "message" ? item.content : []))
      .map((part) => "text" in part && part.text),
    ["It is sunny."],
  );
  const elsewhere = client.responses.create({ model, input: "more", previous_response_id: second.id });
  await assert.rejects(elsewhere, (thrown) => {
    return thrown instanceof OpenAI.BadRequestError && thrown.code === "previous_response_not_found";
  });
});
