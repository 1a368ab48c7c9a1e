/** Items that change settings for the rest of a conversation, with a model that supports chat only. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { startGateway, token } from "../gateway.ts";
import { answerJson, startUpstream } from "../upstream.ts";

const format = {
  type: "json_schema",
  name: "city",
  schema: { type: "object", properties: { city: { type: "string" } } },
} as const;
const update = (fields: object) => ({ type: "configuration_update" as const, ...fields });
const say = (content: string) => ({ role: "user" as const, content });

/** A gateway in front of a model that always gives the same answer. */
async function startBoth(context: TestContext) {
  const message = { role: "assistant", content: "{}" };
  const upstream = await startUpstream(
    answerJson({ id: "c", choices: [{ index: 0, message, finish_reason: "stop" }] }),
  );
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", base_url: `${upstream.url}/v1`, api_key: "sk-model" } },
  });
  return { upstream, address };
}

test("a configuration update overrides requests until another replaces it, and is not sent as a message", async (context) => {
  const { upstream, address } = await startBoth(context);
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: token });
  const request = { model: "m", reasoning: { effort: "medium" } } as const;

  const input = [update({ reasoning: { effort: "low" }, text: { format } }), say("one")];
  const { data: first, response } = await client.responses.create({ ...request, input }).withResponse();
  assert.equal(response.headers.get("x-portico-warning"), null);
  const second = await client.responses.create({ ...request, input: "two", previous_response_id: first.id });
  const changed = [update({ text: { format: { type: "text" as const } } }), say("three")];
  await client.responses.create({ ...request, input: changed, previous_response_id: second.id });
  await client.responses.create({ ...request, input: "apart" });

  const seen = upstream.received.map(({ json }) => json as Readonly<Record<string, unknown>>);
  const wanted = {
    type: "json_schema",
    json_schema: { name: format.name, schema: format.schema },
  };
  assert.deepEqual(
    seen.map((body) => [body["reasoning_effort"], body["response_format"]]),
    [
      ["low", wanted],
      ["low", wanted],
      ["low", undefined],
      ["medium", undefined],
    ],
  );
  const { messages } = seen[2] as { messages: readonly { role: string }[] };
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant", "user", "assistant", "user"],
  );
  const items = await client.responses.inputItems.list(first.id, { order: "asc" });
  assert.deepEqual(
    items.data.map(({ type }) => type),
    ["configuration_update", "message"],
  );
});

test("in a session configuration updates and instructions do not affect each other, and updates accumulate", async (context) => {
  const { upstream, address } = await startBoth(context);
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: token, defaultHeaders: { "x-session-id": "s" } });
  const system = (content: string) => ({ role: "system" as const, content });
  const json = update({ text: { format: { type: "json_object" as const } } });
  const requests = [
    { input: [system("old"), say("one")] },
    { input: [update({ reasoning: { effort: "low" } }), say("two")] },
    { input: [json, say("three")] },
    { input: [system("new"), say("four")] },
    { input: [update({ reasoning: { effort: "high" } }), say("five")] },
    { instructions: "once", input: "six" },
    { input: "seven" },
  ];
  for (const request of requests) await client.responses.create({ model: "m", ...request });

  type Body = { messages: { role: string; content: string }[]; reasoning_effort?: string; response_format?: object };
  const seen = upstream.received.map(({ json: body }) => body as Body);
  assert.deepEqual(
    seen.map((body) => [
      body.messages.filter(({ role }) => role === "system").map(({ content }) => content),
      body.reasoning_effort,
      body.response_format,
    ]),
    [
      [["old"], undefined, undefined],
      [["old"], "low", undefined],
      [["old"], "low", { type: "json_object" }],
      [["new"], "low", { type: "json_object" }],
      [["new"], "high", { type: "json_object" }],
      [["once"], "high", { type: "json_object" }],
      [["new"], "high", { type: "json_object" }],
    ],
  );
});

test("a repeated first question with other settings continues its conversation", async (context) => {
  const { address } = await startGateway(context, {});
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: token, defaultHeaders: { "x-session-id": "s" } });
  const ask = async (...items: OpenAI.Responses.ResponseInputItem[]) => {
    const { response } = await client.responses.create({ model: "echo", input: [...items, say("one")] }).withResponse();
    return response.headers.get("x-portico-history");
  };
  assert.equal(await ask({ role: "system", content: "short" }), "new");
  assert.equal(await ask(update({ reasoning: { effort: "low" as const } })), "continued");
});

test("an invalid configuration update is refused with its path", async (context) => {
  const { address } = await startGateway(context, {});
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: token });
  const wrong = [
    [update({ reasoning: { effort: 3 } }), "input[0].reasoning.effort"],
    [update({ text: { format: { type: "xml" } } }), "input[0].text.format.type"],
  ] as const;
  for (const [item, param] of wrong) {
    const refused = client.responses.create({ model: "echo", input: [item as never, say("hi")] });
    await assert.rejects(refused, { status: 400, param });
  }
});
