/** Function calling as it was before tools: the same calls in the older words, whatever answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { call, say, seenBy, shareGateway, token } from "../harness/house.ts";
import { ask, assertSettings } from "./shown.ts";

const open = shareGateway();
const weather = { name: "weather", description: "Of a city", parameters: { type: "object", properties: {} } };
const functions = [weather, { name: "time" }];
const question = { role: "user", content: "Athens?" };
const called = (name: string, written = "{}") => ({
  role: "assistant",
  content: null,
  function_call: { name, arguments: written },
});

test("functions and function_call are tools and a tool choice, of which one is called at a time", async () => {
  const gateway = await open();
  const tools = functions.map((one) => ({ type: "function", ...one }));
  for (const [function_call, toolChoice] of [
    [{ name: "weather" }, { type: "tool", name: "weather" }],
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    [null, undefined],
  ] as const) {
    const turn = await ask(gateway, "chat", { functions, function_call });
    assertSettings(turn, { tools, toolChoice, parallelToolCalls: false });
  }
});

test("an output belongs to the newest call of its function's name, and no call without an id shares one", async () => {
  const turn = await ask(await open(), "chat", { functions }, [
    question,
    called("weather", '{"city":"Athens"}'),
    { role: "function", name: "weather", content: "sunny" },
    called("weather", '{"city":"Rome"}'),
    { role: "function", name: "weather", content: "rainy" },
  ]);
  const ids = turn.items.flatMap((item) => ("callId" in item ? [item.callId] : []));
  assert.deepEqual([ids[0] === ids[1], ids[2] === ids[3], ids[0] === ids[2]], [true, true, false]);
  assert.deepEqual(
    seenBy(turn).map((line) => line.replace(/call_\w+/, "ID")),
    [
      "user: Athens?",
      'call ID: weather {"city":"Athens"}',
      "output ID: sunny",
      'call ID: weather {"city":"Rome"}',
      "output ID: rainy",
    ],
  );
});

test("the official client calls, runs and is answered, whole and streamed", async () => {
  const { address, model } = await open();
  model.script = async function* ({ items }) {
    yield items.some(({ type }) => type === "tool-output") ? say("It is sunny.") : call("c", "weather", '{"city":"A"}');
  };
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 });
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: "user", content: "Athens?" }];
  const first = await client.chat.completions.create({ model: "m", user: "ann", messages, functions });
  const message = first.choices[0]!.message;
  assert.deepEqual(message.function_call, { name: "weather", arguments: '{"city":"A"}' });
  assert.deepEqual(
    [message.content, message.tool_calls, first.choices[0]!.finish_reason],
    [null, undefined, "function_call"],
  );
  const streamed = client.chat.completions.stream({ model: "m", messages, functions });
  assert.deepEqual((await streamed.finalChatCompletion()).choices[0]!.message.function_call, message.function_call);
  const told = [...messages, message, { role: "function" as const, name: "weather", content: "sunny" }];
  const second = await client.chat.completions.create({ model: "m", user: "ann", messages: told, functions });
  assert.deepEqual([second.choices[0]!.message.content, second.choices[0]!.finish_reason], ["It is sunny.", "stop"]);
  assert.equal(model.turns.at(-1)!.items.length, 3);
});
