/**
 * A coding agent's long requests, over HTTP and over a WebSocket connection, to a model that supports chat completions
 * only.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startGateway, token } from "../gateway.ts";
import { readStream, type WireEvent, type WireItem } from "../protocols/grammar.ts";
import { answerEvents, chunk, type ScriptedUpstream, startUpstream } from "../upstream.ts";
import { dial, type ServerFrame } from "./websocket-client.ts";

const headers = { authorization: `Bearer ${token}` };

const functionCall = { id: "call_f", type: "function", function: { name: "shell", arguments: '{"command":"ls"}' } };
const customCall = { id: "call_c", type: "custom", custom: { name: "apply_patch", input: "*** Begin Patch" } };
const counted = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };

/** Reasons and calls two tools; answers "done" when it has their outputs. */
async function startModel(context: TestContext): Promise<ScriptedUpstream> {
  const calls = [functionCall, customCall].map((call, index) => ({ index, ...call }));
  const called = answerEvents(
    chunk({ role: "assistant", reasoning_content: "I must look." }),
    chunk({ tool_calls: calls }),
    chunk({}, "tool_calls"),
    { choices: [], usage: counted },
  );
  const done = answerEvents(chunk({ role: "assistant", content: "done" }), chunk({}, "stop"), {
    choices: [],
    usage: counted,
  });
  const upstream = await startUpstream((received, response) =>
    (received.text.includes('"role":"tool"') ? done : called)(received, response),
  );
  context.after(() => upstream.close());
  return upstream;
}

const request = {
  model: "agent-model",
  instructions: "You are an agent. ".repeat(1_500),
  tools: [
    { type: "function", name: "shell", description: "runs", strict: false, parameters: { type: "object" } },
    { type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark", definition: "start: /.+/" } },
    {
      type: "namespace",
      name: "browser",
      description: "d",
      tools: [{ type: "function", name: "open", parameters: {} }],
    },
    { type: "tool_search", execution: "client", description: "d", parameters: {} },
    { type: "web_search", external_web_access: false },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { effort: "medium", summary: "auto" },
  store: false,
  stream: true,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "thread",
  text: { verbosity: "low" },
  client_metadata: { "x-installation": "i" },
};
const question = [
  { type: "message", role: "developer", content: [{ type: "input_text", text: "rules ".repeat(2_500) }] },
  { type: "message", role: "user", content: [{ type: "input_text", text: "fix it" }] },
];
const outputs = [
  { type: "function_call_output", call_id: "call_f", output: '{"output":"a.ts"}' },
  { type: "custom_tool_call_output", call_id: "call_c", output: [{ type: "input_text", text: "patched" }] },
];

test("an agent's request with tools of every kind is answered over HTTP, and its next one sends everything back", async (context) => {
  const model = await startModel(context);
  const { address } = await startGateway(context, toAdapter(model));
  const ask = async (input: readonly object[]) => {
    const body = JSON.stringify({ ...request, input });
    assert.ok(body.length > 40_000);
    const answer = await fetch(`${address}/v1/responses`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body,
    });
    const warning = answer.headers.get("x-portico-warning");
    assert.equal(warning, "tool web_search left out");
    return readStream(await answer.text());
  };
  const items = itemsOf(await ask(question));
  checkCalls(items);
  const end = await ask([...question, ...items.map(toCarried), ...outputs]);
  assert.deepEqual(end.at(-1)?.response["usage"], usage);
  checkAsked(model);
});

test("the same requests are answered over a prepared connection, each sending only what is new", async (context) => {
  const model = await startModel(context);
  const { address } = await startGateway(context, toAdapter(model));
  const client = await dial(context, address, headers);
  const ask = async (fields: object): Promise<readonly ServerFrame[]> => {
    client.create({ ...request, ...fields });
    return client.answer();
  };
  const ready = await ask({ generate: false, input: [] });
  assert.equal(ready.at(-1)?.type, "response.completed");
  assert.equal(model.received.length, 0);
  const called = await ask({ input: question, previous_response_id: ready.at(-1)?.response?.id });
  checkCalls(itemsOf(called as unknown as readonly WireEvent[]));
  const end = await ask({ input: outputs, previous_response_id: called.at(-1)?.response?.id });
  assert.deepEqual(end.at(-1)?.response?.usage, usage);
  checkAsked(model);
});

function toAdapter({ url }: ScriptedUpstream) {
  return { adapters: { model: { type: "openai", base_url: `${url}/v1`, api_key: "sk-model" } } };
}

/** Agents read the items of an answer from the events that complete them. */
function itemsOf(events: readonly WireEvent[]): readonly WireItem[] {
  return events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
}

function checkCalls(items: readonly WireItem[]): void {
  assert.deepEqual(
    items.map(({ type, call_id, name, arguments: written, input }) => [type, call_id, name, written ?? input]),
    [
      ["reasoning", undefined, undefined, undefined],
      ["function_call", "call_f", "shell", '{"command":"ls"}'],
      ["custom_tool_call", "call_c", "apply_patch", "*** Begin Patch"],
    ],
  );
  assert.match(String(items[0]?.["encrypted_content"]), /^portico2\./);
}

/** What is not stored has no id to send back; reasoning is sent back sealed, without its text. */
function toCarried({ id: _id, status: _status, ...item }: WireItem): object {
  return item.type === "reasoning" ? { ...item, content: null } : item;
}

/**
 * Checks that the model was asked twice, the second time with its calls and their outputs, and was offered only
 * supported tools.
 */
function checkAsked({ received }: ScriptedUpstream): void {
  const bodies = received.map(({ json }) => json as { readonly messages: readonly object[]; readonly tools: object[] });
  assert.equal(bodies.length, 2);
  const [first, second] = bodies;
  assert.deepEqual(second?.messages.slice(0, 3), first?.messages);
  assert.deepEqual(second?.messages.slice(3), [
    { role: "assistant", content: null, tool_calls: [functionCall, customCall] },
    { role: "tool", tool_call_id: "call_f", content: '{"output":"a.ts"}' },
    { role: "tool", tool_call_id: "call_c", content: "patched" },
  ]);
  for (const { tools } of bodies) {
    assert.deepEqual(
      tools.map((tool) => "type" in tool && tool.type),
      ["function", "custom", "function", "function"],
    );
  }
}

const usage = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 14,
};
