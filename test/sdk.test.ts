import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { startChain, startGateway, token } from "./gateway.ts";

/** The official client, whose only change is the base URL. */
async function createClient(context: TestContext): Promise<OpenAI> {
  const { address } = await startChain(context);
  return new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 });
}

const model = "gpt-any";
const weather = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 } },
    required: ["city", "days"],
    additionalProperties: false,
  },
  strict: true,
} as const;
const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
} as const;

test("chat: create", async (context) => {
  const client = await createClient(context);
  const completion = await client.chat.completions.create({
    model,
    messages: [{ role: "user", content: "Good day to you" }],
  });
  assert.equal(completion.choices[0]?.message.content, "Good day to you");
  assert.equal(completion.choices[0]?.finish_reason, "stop");
  assert.equal(completion.model, model);
  assert.equal(completion.usage?.completion_tokens, 4);
});

test("chat: stream, with usage at its end", async (context) => {
  const client = await createClient(context);
  const stream = client.chat.completions.stream({
    model,
    messages: [{ role: "user", content: "one two three" }],
    stream_options: { include_usage: true },
  });
  const pieces: string[] = [];
  stream.on("content", (piece) => void pieces.push(piece));
  const completion = await stream.finalChatCompletion();
  assert.deepEqual(pieces, ["one ", "two ", "three"]);
  assert.equal(completion.choices[0]?.message.content, "one two three");
  assert.equal((await stream.totalUsage()).completion_tokens, 3);
});

test("chat: a tool is called, run and answered", async (context) => {
  const client = await createClient(context);
  const runner = client.chat.completions.runTools({
    model,
    messages: [{ role: "user", content: 'CALL get_weather {"city":"Athens","days":2}' }],
    tools: [
      {
        type: "function",
        function: {
          name: weather.name,
          description: weather.description,
          parameters: weather.parameters as unknown as Record<string, unknown>,
          parse: (text: string) => JSON.parse(text) as { city: string; days: number },
          function: ({ city, days }: { city: string; days: number }) => `${city} sunny for ${days}`,
        },
      },
    ],
  });
  assert.equal(await runner.finalContent(), "tool said: Athens sunny for 2");
});

test("chat: parallel tool calls stream with their arguments in pieces", async (context) => {
  const client = await createClient(context);
  const stream = client.chat.completions.stream({
    model,
    messages: [
      {
        role: "user",
        content: 'CALL get_weather {"city":"Athens","days":2}\nCALL get_weather {"city":"Rome","days":3}',
      },
    ],
    tools: [{ type: "function", function: weather }],
  });
  let pieces = 0;
  stream.on("tool_calls.function.arguments.delta", () => void pieces++);
  const { choices } = await stream.finalChatCompletion();
  assert.equal(choices[0]?.finish_reason, "tool_calls");
  const calls = choices[0]?.message.tool_calls ?? [];
  assert.deepEqual(
    calls.map((call) => call.type === "function" && [call.function.name, JSON.parse(call.function.arguments)]),
    [
      ["get_weather", { city: "Athens", days: 2 }],
      ["get_weather", { city: "Rome", days: 3 }],
    ],
  );
  assert.ok(pieces > 2, `${pieces} pieces`);
});

test("chat: parse returns structured output that satisfies its schema", async (context) => {
  const client = await createClient(context);
  const completion = await client.chat.completions.parse({
    model,
    messages: [{ role: "user", content: "who?" }],
    response_format: { type: "json_schema", json_schema: { name: "person", schema: person, strict: true } },
  });
  const parsed = completion.choices[0]?.message.parsed as { name: unknown; age: unknown } | null | undefined;
  assert.equal(typeof parsed?.name, "string");
  assert.ok(Number.isInteger(parsed?.age));
});

test("responses: create", async (context) => {
  const client = await createClient(context);
  const response = await client.responses.create({ model, input: "Good day", metadata: { a: "b" } });
  assert.equal(response.output_text, "Good day");
  assert.equal(response.status, "completed");
  assert.deepEqual(response.metadata, { a: "b" });
  assert.equal(response.usage?.output_tokens, 2);
});

test("responses: stream", async (context) => {
  const client = await createClient(context);
  const stream = client.responses.stream({ model, input: "one two three" });
  let text = "";
  stream.on("response.output_text.delta", (event) => void (text += event.delta));
  const response = await stream.finalResponse();
  assert.equal(text, "one two three");
  assert.equal(response.output_text, "one two three");
});

test("responses: a tool call, its output by previous_response_id, and the answer", async (context) => {
  const client = await createClient(context);
  const tools = [{ type: "function" as const, ...weather }];
  const first = await client.responses.create({
    model,
    input: "weather city=Athens days=2",
    tools,
    tool_choice: "required",
  });
  const call = first.output.find((item) => item.type === "function_call");
  assert.ok(call);
  assert.deepEqual(JSON.parse(call.arguments), { city: "Athens", days: 2 });
  const second = await client.responses.create({
    model,
    previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }],
    tools,
  });
  assert.equal(second.output_text, "tool said: sunny");
  assert.equal(second.previous_response_id, first.id);
});

test("responses: streamed tool calls", async (context) => {
  const client = await createClient(context);
  const stream = client.responses.stream({
    model,
    input: 'CALL get_weather {"city":"Oslo","days":1}',
    tools: [{ type: "function", ...weather }],
  });
  const response = await stream.finalResponse();
  const call = response.output.find((item) => item.type === "function_call");
  assert.deepEqual(call?.parsed_arguments, { city: "Oslo", days: 1 });
});

test("responses: parse returns structured output", async (context) => {
  const client = await createClient(context);
  const response = await client.responses.parse({
    model,
    input: "who?",
    text: { format: { type: "json_schema", name: "person", schema: person, strict: true } },
  });
  const parsed = response.output_parsed as { name: unknown; age: unknown } | null;
  assert.equal(typeof parsed?.name, "string");
  assert.ok(Number.isInteger(parsed?.age));
});

test("responses: reasoning comes before the answer", async (context) => {
  const client = await createClient(context);
  const response = await client.responses.create({ model, input: "why", reasoning: { effort: "high" } });
  assert.deepEqual(
    response.output.map((item) => item.type),
    ["reasoning", "message"],
  );
});

test("responses: a refusal is its own part", async (context) => {
  const client = await createClient(context);
  const response = await client.responses.create({ model, input: "REFUSE I will not" });
  const message = response.output.find((item) => item.type === "message");
  assert.deepEqual(message?.content, [{ type: "refusal", refusal: "I will not" }]);
});

test("responses: an answer cut at max_output_tokens is incomplete", async (context) => {
  const client = await createClient(context);
  const response = await client.responses.create({ model, input: "word ".repeat(40), max_output_tokens: 16 });
  assert.equal(response.status, "incomplete");
  assert.equal(response.incomplete_details?.reason, "max_output_tokens");
  assert.equal(response.output_text.trim().split(" ").length, 16);
});

test("the models are listed and each can be retrieved", async (context) => {
  const client = await createClient(context);
  const models = await Array.fromAsync(client.models.list());
  assert.deepEqual(
    models.map(({ id }) => id),
    ["echo"],
  );
  assert.equal((await client.models.retrieve("echo")).id, "echo");
  await assert.rejects(client.models.retrieve("nope"), OpenAI.NotFoundError);
});

test("errors arrive as the client's own error classes", async (context) => {
  const { address } = await startChain(context);
  const good = { baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 };
  const client = new OpenAI(good);
  const messages = [{ role: "user" as const, content: "hi" }];
  await assert.rejects(
    new OpenAI({ ...good, apiKey: "wrong" }).chat.completions.create({ model, messages }),
    (error) => {
      assert.ok(error instanceof OpenAI.AuthenticationError);
      assert.equal(error.code, "invalid_api_key");
      return true;
    },
  );
  await assert.rejects(client.chat.completions.create({ model, messages, temperature: 3 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, "temperature");
    assert.match(error.requestID ?? "", /^req_/);
    return true;
  });
  await assert.rejects(client.responses.create({ model, input: "hi", previous_response_id: "resp_no" }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.code, "previous_response_not_found");
    return true;
  });
  await assert.rejects(client.post("/nope", { body: {} }), OpenAI.NotFoundError);
  await assert.rejects(
    client.chat.completions.create({ model, messages: [{ role: "user", content: "FAIL before" }] }),
    (error) => {
      assert.ok(error instanceof OpenAI.InternalServerError);
      assert.equal(error.status, 502);
      return true;
    },
  );
});

test("a stream that fails raises in the client, on both endpoints", async (context) => {
  const client = await createClient(context);
  const content = "FAIL after 2\none two three four";
  const chat = client.chat.completions.stream({ model, messages: [{ role: "user", content }] });
  await assert.rejects(chat.finalChatCompletion(), OpenAI.APIError);
  const responses = client.responses.stream({ model, input: content });
  await assert.rejects(responses.finalResponse(), OpenAI.APIError);
});

test("an upstream that refuses the gateway's key is reported as the gateway's fault, without the key", async (context) => {
  const upstream = await startGateway(context, { adapters: { echo: { type: "echo" } } });
  const { address } = await startGateway(context, {
    adapters: { upstream: { type: "openai", base_url: `${upstream.address}/v1`, api_key: "sk-wrong-and-secret" } },
  });
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 });
  await assert.rejects(
    client.chat.completions.create({ model, messages: [{ role: "user", content: "hi" }] }),
    (error) => {
      assert.ok(error instanceof OpenAI.APIError);
      assert.equal(error.status, 502);
      assert.equal(error.code, "adapter_refused");
      assert.doesNotMatch(error.message, /sk-wrong-and-secret/);
      return true;
    },
  );
});

test("a client that sends keys is answered once if an answer is lost and it retries by itself", async (context) => {
  const { address } = await startGateway(context, { adapters: { echo: { type: "echo" } } });
  for (const [Client, items] of [
    [OpenAI, 5],
    [KeyedOpenAI, 3],
  ] as const) {
    let isLost = false;
    const client = new Client({
      baseURL: `${address}/v1`,
      apiKey: token,
      defaultHeaders: { "X-Session-Id": Client.name },
      async fetch(url, options) {
        const answer = await fetch(url, options);
        if (isLost) return answer;
        isLost = true;
        await answer.text();
        // The client does not wait before it retries.
        return new Response("lost", { status: 502, headers: { "retry-after-ms": "0" } });
      },
    });
    const ask = (input: string) => client.responses.create({ model, input }).withResponse();
    assert.equal((await ask("one")).data.output_text, "one");
    assert.equal((await ask("two")).response.headers.get("x-portico-context"), `${items} items`);
  }
});

class KeyedOpenAI extends OpenAI {
  override idempotencyHeader = "Idempotency-Key";
}
