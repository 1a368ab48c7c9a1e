/** The official client calls functions in the form that preceded tools. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { type Gateway, startChain, startGateway, token } from "./gateway.ts";
import { answerJson, startUpstream } from "./upstream.ts";

type Message = OpenAI.Chat.ChatCompletionMessageParam;

const model = "gpt-any";
const weather = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const functions = [weather];
const question: Message = { role: "user", content: 'CALL get_weather {"city":"Athens"}' };

function toClient({ address }: Gateway): OpenAI {
  return new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 });
}

async function createClient(context: TestContext): Promise<OpenAI> {
  return toClient(await startChain(context));
}

for (const wire of ["chat", "responses"]) {
  test(`functions: one is called, run and answered with the wire '${wire}'`, async (context) =>
    runFunctions(toClient(await startChain(context, { wire }))));
}

test("functions: one is called, run and answered by an adapter without a wire", async (context) =>
  runFunctions(toClient(await startGateway(context, { adapters: { echo: { type: "echo" } } }))));

/** Two rounds, in which the resent history is matched. */
async function runFunctions(client: OpenAI): Promise<void> {
  const messages: Message[] = [question];
  const seen: unknown[] = [];
  const ask = async () => {
    const asked = { model, user: "ann", messages, functions, function_call: "auto" } as const;
    const { data, response } = await client.chat.completions.create(asked).withResponse();
    seen.push([response.headers.get("x-portico-history"), response.headers.get("x-portico-context")]);
    const [choice] = data.choices;
    assert.ok(choice);
    messages.push(choice.message);
    return choice;
  };
  for (const city of ["Athens", "Rome"]) {
    const { message, finish_reason } = await ask();
    assert.equal(finish_reason, "function_call");
    assert.equal(message.tool_calls, undefined);
    assert.deepEqual(message.function_call, { name: "get_weather", arguments: `{"city":"${city}"}` });
    messages.push({ role: "function", name: "get_weather", content: `${city} is sunny` });
    const told = await ask();
    assert.deepEqual([told.message.content, told.finish_reason], [`tool said: ${city} is sunny`, "stop"]);
    messages.push({ role: "user", content: 'CALL get_weather {"city":"Rome"}' });
  }
  assert.deepEqual(seen, [
    ["new", "1 items"],
    ["matched", "3 items"],
    ["matched", "5 items"],
    ["matched", "7 items"],
  ]);
}

test("functions: a call streams, its arguments in pieces", async (context) => {
  const client = await createClient(context);
  const asked = { model, messages: [question], functions, function_call: { name: "get_weather" } };
  const pieces: unknown[] = [];
  let finish: string | null | undefined;
  for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true })) {
    if (choices[0]?.delta.function_call) pieces.push(choices[0].delta.function_call);
    finish = choices[0]?.finish_reason ?? finish;
  }
  assert.deepEqual(pieces[0], { name: "get_weather", arguments: "" });
  assert.ok(pieces.length > 2, `${pieces.length} pieces`);
  assert.equal(finish, "function_call");
  const { choices } = await client.chat.completions.stream(asked).finalChatCompletion();
  assert.deepEqual(choices[0]?.message.function_call, { name: "get_weather", arguments: '{"city":"Athens"}' });
  assert.equal(choices[0]?.finish_reason, "function_call");
});

test("functions: 'none' prevents calls", async (context) => {
  const client = await createClient(context);
  const { choices } = await client.chat.completions.create({
    model,
    messages: [question],
    functions,
    function_call: "none",
  });
  assert.equal(choices[0]?.finish_reason, "stop");
  assert.equal(choices[0]?.message.function_call, undefined);
});

test("functions: a session that started with them continues with tools, and on the other endpoint", async (context) => {
  const client = await createClient(context);
  await client.chat.completions.create({ model, user: "ann", messages: [question], functions });
  const called = {
    id: "call_own",
    type: "function",
    function: { name: "get_weather", arguments: '{"city":"Athens"}' },
  };
  const { data, response } = await client.chat.completions
    .create({
      model,
      user: "ann",
      messages: [
        question,
        { role: "assistant", content: null, tool_calls: [called as OpenAI.Chat.ChatCompletionMessageToolCall] },
        { role: "tool", tool_call_id: "call_own", content: "sunny" },
      ],
      tools: [{ type: "function", function: weather }],
    })
    .withResponse();
  assert.equal(data.choices[0]?.message.content, "tool said: sunny");
  assert.equal(response.headers.get("x-portico-history"), "matched");
  const other = await client.responses
    .create({
      model,
      user: "ann",
      input: [
        question as OpenAI.Responses.EasyInputMessage,
        { type: "function_call", call_id: "c", name: "get_weather", arguments: '{"city": "Athens"}' },
        { type: "function_call_output", call_id: "c", output: "sunny" },
        { role: "assistant", content: "tool said: sunny" },
        { role: "user", content: "Thanks" },
      ],
    })
    .withResponse();
  assert.equal(other.data.output_text, "Thanks");
  assert.equal(other.response.headers.get("x-portico-history"), "matched");
  assert.equal(other.response.headers.get("x-portico-context"), "5 items");
});

test("functions: an upstream of the same dialect gets tools, never both", async (context) => {
  const message = { role: "assistant", content: "Hello" };
  const upstream = await startUpstream(answerJson({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
  context.after(() => upstream.close());
  const gateway = await startGateway(context, {
    adapters: { upstream: { type: "openai", base_url: `${upstream.url}/v1`, api_key: "sk-upstream" } },
  });
  await toClient(gateway).chat.completions.create({
    model,
    messages: [
      question,
      { role: "assistant", content: null, function_call: { name: "get_weather", arguments: "{}" } },
      { role: "function", name: "get_weather", content: "sunny" },
    ],
    functions,
    function_call: { name: "get_weather" },
    seed: 7,
  });
  const { messages, ...asked } = upstream.received[0]!.json as { messages: readonly Record<string, unknown>[] };
  assert.deepEqual(asked, {
    model,
    seed: 7,
    tools: [{ type: "function", function: weather }],
    tool_choice: { type: "function", function: { name: "get_weather" } },
    parallel_tool_calls: false,
  });
  const { tool_call_id: id } = messages[2] ?? {};
  assert.deepEqual(messages.slice(1), [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id, type: "function", function: { name: "get_weather", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: id, content: "sunny" },
  ]);
});
