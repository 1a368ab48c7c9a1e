/**
 * Several choices for one question: requested from an upstream that supports them, returned side by side, and the first
 * continued.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { type Gateway, startGateway, token } from "./gateway.ts";
import { answerEvents, answerJson, beginEvents, type Script, startUpstream, writeEvent } from "./upstream.ts";

const model = "gpt-any";
const asked = [{ role: "user", content: "Name a colour." } as const];
const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
const call = { id: "call_1", type: "function", function: { name: "paint", arguments: '{"colour":"red"}' } } as const;
const whole = {
  choices: [
    { index: 0, message: { role: "assistant", content: "Blue." }, finish_reason: "stop" },
    { index: 1, message: { role: "assistant", content: "Gre" }, finish_reason: "length" },
    { index: 2, message: { role: "assistant", content: null, tool_calls: [call] }, finish_reason: "tool_calls" },
  ],
  usage,
};

function piece(index: number, delta: unknown, finish: string | null = null): unknown {
  return { choices: [{ index, delta, finish_reason: finish }] };
}

/** The same, as interleaved chunks. */
const chunks = [
  piece(0, { role: "assistant", content: "" }),
  piece(1, { role: "assistant", content: "" }),
  piece(2, { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "paint", arguments: "" } }] }),
  piece(1, { content: "Gr" }),
  piece(0, { content: "Blu" }),
  piece(2, { tool_calls: [{ index: 0, function: { arguments: '{"colour":' } }] }),
  piece(1, { content: "e" }),
  piece(1, {}, "length"),
  piece(2, { tool_calls: [{ index: 0, function: { arguments: '"red"}' } }] }),
  piece(0, { content: "e." }),
  piece(2, {}, "tool_calls"),
  piece(0, {}, "stop"),
  { choices: [], usage },
];

async function start(context: TestContext, script: Script, adapter: Record<string, unknown> = {}) {
  const upstream = await startUpstream(script);
  context.after(() => upstream.close());
  const gateway = await startGateway(context, {
    adapters: { upstream: { type: "openai", base_url: upstream.url, ...adapter } },
  });
  const client = new OpenAI({ baseURL: `${gateway.address}/v1`, apiKey: token, maxRetries: 0 });
  return { upstream, gateway, client };
}

/** What a client gets of each choice. */
function read({ choices }: OpenAI.ChatCompletion) {
  return choices.map(({ index, message, finish_reason: finish }) => {
    const calls = message.tool_calls?.map((each) => each.type === "function" && [each.id, each.function.arguments]);
    return [index, message.content, finish, calls];
  });
}

const all = [
  [0, "Blue.", "stop", undefined],
  [1, "Gre", "length", undefined],
  [2, null, "tool_calls", [["call_1", '{"colour":"red"}']]],
];

test("as many choices as requested are returned, whole, with their total usage", async (context) => {
  const { client, upstream } = await start(context, answerJson(whole));
  const completion = await client.chat.completions.create({ model, messages: asked, n: 3 });
  assert.deepEqual(read(completion), all);
  assert.equal(completion.usage?.completion_tokens, 7);
  assert.equal((upstream.received[0]?.json as { n: number } | undefined)?.n, 3);
});

test("choices are streamed as they arrive, each with its role, its text and one finish reason", async (context) => {
  const { client } = await start(context, answerEvents(...chunks));
  const told: string[] = [];
  const options = { stream: true, n: 3, stream_options: { include_usage: true } } as const;
  const finishes: unknown[] = [];
  for await (const { choices } of await client.chat.completions.create({ model, messages: asked, ...options })) {
    for (const { index, delta, finish_reason: finish } of choices) {
      if (delta.role !== undefined) told.push(`${index} ${delta.role}`);
      if (delta.content) told.push(`${index} ${delta.content}`);
      const written = delta.tool_calls?.[0]?.function?.arguments;
      if (written) told.push(`${index} ${written}`);
      if (finish !== null) finishes.push([index, finish]);
    }
  }
  assert.deepEqual(told, [
    "2 assistant",
    "1 assistant",
    "1 Gr",
    "0 assistant",
    "0 Blu",
    '2 {"colour":',
    "1 e",
    '2 "red"}',
    "0 e.",
  ]);
  assert.deepEqual(finishes, [
    [0, "stop"],
    [1, "length"],
    [2, "tool_calls"],
  ]);
});

test("the official client assembles a stream's choices into the same completion that it gets whole", async (context) => {
  const { client } = await start(context, answerEvents(...chunks));
  const stream = client.chat.completions.stream({ model, messages: asked, n: 3 });
  assert.deepEqual(read(await stream.finalChatCompletion()), all);
});

test("a session continues from the first choice, or from the one that its client shows", async (context) => {
  const { client, upstream } = await start(context, answerJson(whole));
  const create = (messages: OpenAI.ChatCompletionMessageParam[]) =>
    client.chat.completions.create({ model, messages, user: "ann", n: 3 }).withResponse();
  const lastSeen = () => {
    const seen = upstream.received.at(-1)?.json as { messages: { content: string }[] } | undefined;
    return seen?.messages.map(({ content }) => content);
  };
  await create([...asked]);
  const { response: delta } = await create([{ role: "user", content: "Why?" }]);
  assert.equal(delta.headers.get("x-portico-history"), "continued");
  assert.deepEqual(lastSeen(), ["Name a colour.", "Blue.", "Why?"]);
  const { response } = await create([
    ...asked,
    { role: "assistant", content: "Blue." },
    { role: "user", content: "Why?" },
    { role: "assistant", content: "Gre" },
    { role: "user", content: "Say on." },
  ]);
  assert.equal(response.headers.get("x-portico-history"), "forked");
  assert.deepEqual(lastSeen(), ["Name a colour.", "Blue.", "Why?", "Gre", "Say on."]);
});

async function post({ address }: Gateway, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model, messages: asked, ...body }),
  });
  return { status: response.status, text: await response.text() };
}

test("a repeated request gets all of its choices again, and cannot be resumed in the middle", async (context) => {
  const { gateway, upstream } = await start(context, answerJson(whole));
  const key = { "idempotency-key": "k-1" };
  const first = await post(gateway, { n: 3 }, key);
  assert.deepEqual(await post(gateway, { n: 3 }, key), first);
  assert.equal(JSON.parse(first.text).choices.length, 3);
  upstream.script = answerEvents(...chunks);
  const other = { "idempotency-key": "k-2" };
  const streamed = await post(gateway, { n: 3, stream: true }, other);
  const again = await post(gateway, { n: 3, stream: true }, other);
  assert.equal(upstream.received.length, 2);
  assert.deepEqual(joinWords(again.text), joinWords(streamed.text));
  const id = /^id: (.+)$/m.exec(streamed.text)?.[1] ?? assert.fail("the events have no ids");
  const resumed = await post(gateway, { n: 3, stream: true }, { ...other, "last-event-id": id });
  assert.equal(resumed.status, 400);
  assert.equal(JSON.parse(resumed.text).error.param, "Last-Event-ID");
});

/** The text of each choice. */
function joinWords(text: string): readonly string[] {
  const words = ["", "", ""];
  for (const [, line = ""] of text.matchAll(/^data: (\{.*)$/gm)) {
    for (const { index, delta } of JSON.parse(line).choices) {
      words[index] += (delta.content ?? "") + (delta.tool_calls?.[0]?.function?.arguments ?? "");
    }
  }
  return words;
}

test("an upstream's choices are passed on as they are, but never more than were requested", async (context) => {
  const { client } = await start(context, answerJson(whole));
  const two = await client.chat.completions.create({ model, messages: asked, n: 2 });
  assert.deepEqual(read(two), all.slice(0, 2));
  const one = await client.chat.completions.create({ model, messages: asked });
  assert.deepEqual(read(one), all.slice(0, 1));
});

test("a whole answer with fewer choices than requested says so", async (context) => {
  const { client, upstream } = await start(context, answerJson(whole));
  for (const [given, warning] of [
    [1, "n changed to 1"],
    [2, "n changed to 2"],
    [3, null],
  ] as const) {
    upstream.script = answerJson({ choices: whole.choices.slice(0, given), usage });
    const asking = client.chat.completions.create({ model, messages: asked, n: 3 });
    const { data, response } = await asking.withResponse();
    assert.deepEqual(read(data), all.slice(0, given));
    assert.equal(response.headers.get("x-portico-warning"), warning);
  }
});

test("a stream that is cut off while a choice is open has failed", async (context) => {
  const { gateway } = await start(context, (_, response) => {
    beginEvents(response);
    for (const each of [piece(0, { content: "Blue." }), piece(1, { content: "Gr" }), piece(0, {}, "stop")])
      writeEvent(response, each);
    response.end();
  });
  const { text } = await post(gateway, { n: 2, stream: true });
  const last = text.trim().split("\n\n").slice(-2);
  assert.equal(last[1], "data: [DONE]");
  assert.equal(JSON.parse(last[0]?.slice(6) ?? "").error.code, "adapter_protocol");
  assert.doesNotMatch(text, /finish_reason":"stop/);
});

test("an adapter with a single answer refuses several choices, and the error says what to do", async (context) => {
  const refused = async (adapter: Record<string, unknown>) => {
    const gateway = await startGateway(context, { adapters: { only: adapter } });
    const { status, text } = await post(gateway, { n: 2 });
    assert.equal(status, 400);
    const { code, param, message } = JSON.parse(text).error;
    assert.deepEqual([code, param], ["unsupported_parameter", "n"]);
    assert.match(message, /send the request once for each choice/);
  };
  await refused({ type: "echo" });
  await refused({ type: "openai", wire: "responses", base_url: "http://127.0.0.1:9" });
});
