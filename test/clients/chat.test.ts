/** The official client's chat completions: whole, streamed, with tools, structured output and errors. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { openGateway, say, seenBy } from "../harness/house.ts";
import { answerInTurn, callWeather, connect, createClient, person, weather } from "./sdk.ts";

const model = "any";
const messages = [{ role: "user" as const, content: "hi" }];

test("chat: a completion is created", async () => {
  const { client, turns } = await connect(say("Good ", "day"));
  const completion = await client.chat.completions.create({ model, messages });
  assert.deepEqual(completion.choices[0]?.message.content, "Good day");
  assert.equal(completion.choices[0]?.finish_reason, "stop");
  assert.deepEqual([completion.model, completion.usage?.total_tokens], [model, 5]);
  assert.deepEqual(seenBy(turns()[0]), ["user: hi"]);
});

test("chat: a completion is streamed piece by piece, with its usage at the end", async () => {
  const { client } = await connect(say("one ", "two ", "three"));
  const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
  const pieces: string[] = [];
  stream.on("content", (piece) => void pieces.push(piece));
  const completion = await stream.finalChatCompletion();
  assert.deepEqual(pieces, ["one ", "two ", "three"]);
  assert.equal(completion.choices[0]?.message.content, "one two three");
  assert.equal((await stream.totalUsage()).completion_tokens, 2);
});

for (const stream of [false, true]) {
  test(`chat: runTools calls a function and tells the model its result, ${stream ? "streamed" : "whole"}`, async () => {
    const { client, turns } = await connect(callWeather("Athens"), say("It is sunny."));
    const { name, description, parameters } = weather;
    const run = (city: unknown) => `sunny in ${JSON.stringify(city)}`;
    const tool = {
      name,
      description,
      parameters: { ...parameters, required: ["city"] },
      parse: JSON.parse,
      function: run,
    };
    const tools = [{ type: "function" as const, function: tool }];
    const asked = { model, messages, tools };
    const runner = stream
      ? client.chat.completions.runTools({ ...asked, stream: true })
      : client.chat.completions.runTools(asked);
    assert.equal(await runner.finalContent(), "It is sunny.");
    assert.deepEqual(seenBy(turns()[1]), [
      "user: hi",
      'call call_Athens: get_weather {"city":"Athens"}',
      'output call_Athens: sunny in {"city":"Athens"}',
    ]);
  });
}

test("chat: parallel calls are streamed, their arguments in pieces", async () => {
  const rome = [
    { type: "tool-call" as const, index: 1, callId: "call_2", name: weather.name },
    ...['{"city"', ':"Ro', 'me"}'].map((text) => ({ type: "tool-arguments" as const, index: 1, text })),
  ];
  const { client } = await connect([...callWeather("Athens"), ...rome]);
  const tools = [{ type: "function" as const, function: weather }];
  const stream = client.chat.completions.stream({ model, messages, tools });
  let pieces = 0;
  stream.on("tool_calls.function.arguments.delta", () => void (pieces += 1));
  const { choices } = await stream.finalChatCompletion();
  assert.equal(choices[0]?.finish_reason, "tool_calls");
  const calls = choices[0]?.message.tool_calls ?? [];
  assert.deepEqual(
    calls.map((made) => made.type === "function" && JSON.parse(made.function.arguments)),
    [{ city: "Athens" }, { city: "Rome" }],
  );
  assert.ok(pieces > 2, `${pieces} pieces`);
});

test("chat: parse returns structured output, and the model gets its schema", async () => {
  const { client, turns } = await connect(say('{"name":"Ann",', '"age":7}'));
  const json_schema = { name: "person", schema: person, strict: true };
  const completion = await client.chat.completions.parse({
    model,
    messages,
    response_format: { type: "json_schema", json_schema },
  });
  assert.deepEqual(completion.choices[0]?.message.parsed, { name: "Ann", age: 7 });
  assert.match(JSON.stringify(turns()[0]?.settings.format), /"person".*"integer"/);
});

test("the models are listed, and each can be retrieved", async () => {
  const { client } = await connect();
  const models = await Array.fromAsync(client.models.list());
  assert.deepEqual(
    models.map(({ id, object }) => [id, object]),
    [["scripted", "model"]],
  );
  assert.equal((await client.models.retrieve("scripted")).id, "scripted");
  await assert.rejects(client.models.retrieve("nope"), OpenAI.NotFoundError);
});

test("errors arrive as the client's own classes, with code, field and the id of the request", async () => {
  const { client, address, model: scripted } = await connect();
  const { completions } = client.chat;
  const stranger = createClient(address, { apiKey: "sk-wrong" });
  const wrong = stranger.chat.completions.create({ model, messages });
  await assert.rejects(wrong, (thrown) => {
    return thrown instanceof OpenAI.AuthenticationError && thrown.code === "invalid_api_key";
  });
  await assert.rejects(completions.create({ model, messages, temperature: 3 }), (thrown) => {
    assert.ok(thrown instanceof OpenAI.BadRequestError);
    assert.equal(thrown.param, "temperature");
    assert.match(thrown.requestID ?? "", /./);
    return true;
  });
  await assert.rejects(client.post("/nope", { body: {} }), OpenAI.NotFoundError);
  scripted.script = async function* () {
    throw new Error("out of order");
  };
  await assert.rejects(completions.create({ model, messages }), (thrown) => {
    return thrown instanceof OpenAI.InternalServerError && thrown.status === 502 && thrown.code === "adapter_error";
  });
});

test("a stream that fails in its middle raises in the client, on both endpoints", async () => {
  const { client, model: scripted } = await connect();
  scripted.script = async function* () {
    yield say("one ");
    throw new Error("out of order");
  };
  await assert.rejects(client.chat.completions.stream({ model, messages }).finalChatCompletion(), OpenAI.APIError);
  await assert.rejects(client.responses.stream({ model, input: "hi" }).finalResponse(), OpenAI.APIError);
});

test("a client that stops a stream stops the model", async () => {
  const { client, model: scripted } = await connect();
  const stopped = Promise.withResolvers<void>();
  scripted.script = async function* (_, signal) {
    signal.addEventListener("abort", () => stopped.resolve());
    yield say("one ");
    await stopped.promise;
  };
  for await (const { choices } of await client.chat.completions.create({ model, messages, stream: true })) {
    if (choices[0]?.delta.content === "one ") break;
  }
  await stopped.promise;
});

test("a client that sends keys and retries a lost answer by itself adds one turn", async (context) => {
  class KeyedOpenAI extends OpenAI {
    override idempotencyHeader = "Idempotency-Key";
  }
  const gateway = await openGateway(context);
  gateway.model.script = answerInTurn();
  let lost = 0;
  const client = new KeyedOpenAI({
    baseURL: `${gateway.address}/v1`,
    apiKey: "sk-gateway-0123456789abcdef",
    defaultHeaders: { "X-Session-Id": "chat-1" },
    async fetch(url, options) {
      const answer = await fetch(url, options);
      if (lost++ > 0) return answer;
      await answer.text();
      // The client does not wait before it retries.
      return new Response("lost", { status: 502, headers: { "retry-after-ms": "0" } });
    },
  });
  await client.responses.create({ model, input: "one" });
  await client.responses.create({ model, input: "two" });
  assert.equal(lost, 3);
  assert.deepEqual(seenBy(gateway.model.turns.at(-1)), ["user: one", "assistant: Good day", "user: two"]);
  assert.equal(gateway.model.turns.length, 2);
});
