/** Tools in namespaces, as coding agents offer those of their servers, with models whose wire has no namespaces. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startGateway, token } from "../gateway.ts";
import { checkStream, type WireEvent, type WireItem, type WireResponse } from "../protocols/grammar.ts";
import { answerEvents, answerJson, chunk, type ScriptedUpstream, startUpstream } from "../upstream.ts";
import { dial } from "./websocket-client.ts";

const headers = { authorization: `Bearer ${token}` };
const parameters = { type: "object", properties: { city: { type: "string" } } };
const weather = {
  type: "namespace",
  name: "mcp__wx",
  description: "Tools in the mcp__wx namespace.",
  tools: [
    { type: "function", name: "get_weather", description: "Today's.", parameters, strict: false },
    { type: "function", name: "get_tides", parameters, strict: false },
  ],
};
const request = {
  model: "m",
  tools: [{ type: "function", name: "shell", parameters: { type: "object" }, strict: false }, weather],
};
const question = { type: "message", role: "user", content: "Is it raining in Oslo?" };
const output = { type: "function_call_output", call_id: "call_1", output: "It rains." };
const called = { name: "mcp__wx__get_weather", arguments: '{"city":"Oslo"}' };

/**
 * Calls a tool under the name that it was offered by; answers "done" when it has the output. Streamed or whole, as
 * requested.
 */
async function startModel(context: TestContext): Promise<ScriptedUpstream> {
  const call = { id: "call_1", type: "function", function: called };
  const pieces = [
    chunk({ role: "assistant", tool_calls: [{ index: 0, ...call, function: { ...called, arguments: "" } }] }),
    ...['{"city":', '"Oslo"}'].map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    chunk({}, "tool_calls"),
  ];
  const wholeOf = (message: object, finish_reason: string) =>
    answerJson({ id: "c", object: "chat.completion", choices: [{ index: 0, message, finish_reason }] });
  const calling = {
    streamed: answerEvents(...pieces),
    whole: wholeOf({ role: "assistant", content: null, tool_calls: [call] }, "tool_calls"),
  };
  const done = {
    streamed: answerEvents(chunk({ role: "assistant", content: "done" }), chunk({}, "stop")),
    whole: wholeOf({ role: "assistant", content: "done" }, "stop"),
  };
  const upstream = await startUpstream((received, response) => {
    const answer = received.text.includes('"role":"tool"') ? done : calling;
    return answer[received.text.includes('"stream":true') ? "streamed" : "whole"](received, response);
  });
  context.after(() => upstream.close());
  return upstream;
}

function toAdapter({ url }: ScriptedUpstream, more: object = {}) {
  return { adapters: { model: { type: "openai", base_url: `${url}/v1`, api_key: "sk-model", ...more } } };
}

/** What a client has received of one answer. */
interface Received {
  readonly response: WireResponse & { readonly id: string };
  readonly events: readonly WireEvent[];
}

type Ask = (fields: object) => Promise<Received>;

function overHttp(address: string): Ask {
  return async (fields) => {
    const answer = await fetch(`${address}/v1/responses`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ ...request, ...fields }),
    });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    assert.equal(answer.headers.get("x-portico-warning"), null);
    if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) {
      return { response: JSON.parse(text), events: [] };
    }
    return checkStream(text) as unknown as Received;
  };
}

async function overConnection(context: TestContext, address: string): Promise<Ask> {
  const client = await dial(context, address, headers);
  return async (fields) => {
    client.create({ ...request, ...fields });
    const events = (await client.answer()) as unknown as readonly WireEvent[];
    return { response: events.at(-1)!.response as Received["response"], events };
  };
}

/** Checks that the call has its own name and its namespace wherever the client can read it. */
function checkCall({ response, events }: Received): void {
  const sentItems = events.filter(({ item }) => item !== undefined).map(({ item }) => item);
  assert.deepEqual(
    [...sentItems, ...response.output].map(nameOf),
    events.length === 0 ? [inNamespace] : [inNamespace, inNamespace, inNamespace],
  );
  const { id: _, ...call } = response.output[0] as WireItem;
  assert.deepEqual(call, {
    type: "function_call",
    status: "completed",
    call_id: "call_1",
    ...called,
    name: "get_weather",
    namespace: "mcp__wx",
  });
  assert.deepEqual((response["tools"] as readonly unknown[])[1], weather);
}

const inNamespace = ["mcp__wx", "get_weather"];

function nameOf({ namespace, name }: WireItem): readonly unknown[] {
  return [namespace, name];
}

/** Checks that the model was offered plain functions, and in its second turn saw its own call unchanged. */
function checkAsked({ received }: ScriptedUpstream): void {
  const bodies = received.map(({ json }) => json as { readonly messages: readonly object[]; readonly tools: object[] });
  assert.equal(bodies.length, 2);
  for (const { tools } of bodies) {
    assert.deepEqual(tools.slice(1), [
      {
        type: "function",
        function: {
          name: "mcp__wx__get_weather",
          description: "Tools in the mcp__wx namespace.\n\nToday's.",
          parameters,
          strict: false,
        },
      },
      {
        type: "function",
        function: {
          name: "mcp__wx__get_tides",
          description: "Tools in the mcp__wx namespace.",
          parameters,
          strict: false,
        },
      },
    ]);
  }
  assert.deepEqual(bodies[1]?.messages.slice(1), [
    { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: called }] },
    { role: "tool", tool_call_id: "call_1", content: "It rains." },
  ]);
}

const ways = ["streamed over HTTP", "whole over HTTP", "over a connection"] as const;

for (const way of ways) {
  for (const store of [true, false]) {
    const continuation = store ? "and the stored response is continued" : "and the history is sent again";
    test(`a model that supports chat only calls a tool of a namespace, ${way}, ${continuation}`, async (context) => {
      const model = await startModel(context);
      const { address } = await startGateway(context, toAdapter(model));
      const send = way === "over a connection" ? await overConnection(context, address) : overHttp(address);
      const ask: Ask = (fields) => send({ store, stream: way === "streamed over HTTP", ...fields });

      const first = await ask({ input: [question] });
      checkCall(first);
      const again = [question, ...first.response.output, output];
      const second = await ask(store ? { input: [output], previous_response_id: first.response.id } : { input: again });
      assert.equal(second.response.output[0]?.content?.[0]?.["text"], "done");
      checkAsked(model);
    });
  }
}

test("a call of a tool in a namespace is stored, listed and replayed with its namespace", async (context) => {
  const model = await startModel(context);
  const { address } = await startGateway(context, toAdapter(model));
  const read = async (path: string) => (await fetch(`${address}/v1/responses/${path}`, { headers })).text();
  const first = await overHttp(address)({ stream: true, input: [question] });
  const { id } = first.response;
  assert.deepEqual(JSON.parse(await read(id)), first.response);
  const again = checkStream(await read(`${id}?stream=true`));
  assert.deepEqual(again.events, first.events);
  const shown = await overHttp(address)({ input: [question, ...first.response.output, output] });
  const { data } = JSON.parse(await read(`${shown.response.id}/input_items?order=asc`)) as { data: WireItem[] };
  assert.deepEqual(nameOf(data[1]!), inNamespace);
});

test("a choice of a tool in a namespace reaches a model without namespaces", async (context) => {
  const model = await startModel(context);
  const { address } = await startGateway(context, toAdapter(model));
  const forced = { type: "function", name: "get_weather", namespace: "mcp__wx" };
  const { response } = await overHttp(address)({ input: "rain?", tool_choice: forced });
  assert.deepEqual(response["tool_choice"], forced);
  const tools = [{ type: "function", name: "get_weather" }];
  await overHttp(address)({ input: "rain?", tool_choice: { type: "allowed_tools", mode: "required", tools } });
  const [one, other] = model.received.map(({ json }) => json as { tool_choice: unknown; tools: readonly object[] });
  assert.deepEqual(one?.tool_choice, { type: "function", function: { name: "mcp__wx__get_weather" } });
  assert.deepEqual([other?.tool_choice, other?.tools.length], ["required", 1]);
});

test("a model with namespaces is offered them unchanged, and its calls keep theirs", async (context) => {
  const item = { type: "function_call", id: "fc_1", status: "completed", call_id: "call_1", ...called };
  const call = { ...item, name: "get_weather", namespace: "mcp__wx" };
  const upstream = await startUpstream(
    answerEvents(
      { type: "response.output_item.added", output_index: 0, item: { ...call, arguments: "" } },
      { type: "response.function_call_arguments.delta", output_index: 0, delta: called.arguments },
      { type: "response.output_item.done", output_index: 0, item: call },
      { type: "response.completed", response: { status: "completed", output: [call] } },
    ),
  );
  context.after(() => upstream.close());
  const { address } = await startGateway(context, toAdapter(upstream, { wire: "responses" }));
  const ask = overHttp(address);
  const first = await ask({ stream: true, input: [question] });
  checkCall(first);
  await ask({ stream: true, input: [output], previous_response_id: first.response.id });
  const [one, other] = upstream.received.map(({ json }) => json as { tools: unknown[]; input: WireItem[] });
  assert.deepEqual(one?.tools[1], weather);
  assert.deepEqual(nameOf(other!.input[1]!), inNamespace);
});

test("the embedded model calls a tool of a namespace too", async (context) => {
  const { address } = await startGateway(context, { adapters: { echo: { type: "echo" } } });
  for (const stream of [true, false]) {
    const line = `CALL mcp__wx__get_weather {"city":"Oslo"}`;
    const { response } = await overHttp(address)({ stream, input: line });
    assert.deepEqual(response.output.map(nameOf), [inNamespace]);
    const { call_id } = response.output[0] as WireItem;
    const said = await overHttp(address)({
      stream,
      input: [{ ...output, call_id }],
      previous_response_id: response.id,
    });
    assert.equal(said.response.output[0]?.content?.[0]?.["text"], "tool said: It rains.");
  }
});
