/** Clients that read a model's reasoning only as a summary see the reasoning of a chat completions model. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import type { ResponseReasoningItem } from "openai/resources/responses/responses";
import { startGateway, token } from "../gateway.ts";
import { dial } from "../http/websocket-client.ts";
import { checkStream, type WireResponse } from "../protocols/grammar.ts";
import { answerEvents, answerJson, chunk, startUpstream } from "../upstream.ts";

const thought = "Rome, so Italy.";
const summary = [{ type: "summary_text" as const, text: thought }];
const model = "m";
const reasoning = { summary: "auto" as const };
const include = ["reasoning.encrypted_content" as const];

async function start(context: TestContext, adapter: Readonly<Record<string, unknown>> = {}) {
  const upstream = await startUpstream((received, reply) => {
    const { stream } = received.json as { readonly stream?: boolean };
    const message = { role: "assistant", content: "Sunny.", reasoning_content: thought };
    const script =
      stream === true
        ? answerEvents(
            chunk({ reasoning_content: "Rome, " }),
            chunk({ reasoning_content: "so Italy." }),
            chunk({ content: "Sunny." }),
            chunk({}, "stop"),
          )
        : answerJson({ choices: [{ index: 0, message, finish_reason: "stop" }] });
    return script(received, reply);
  });
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", base_url: `${upstream.url}/v1`, ...adapter } },
  });
  const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 });
  return { upstream, address, responses: client.responses, conversations: client.conversations };
}

function thoughtOf({ output }: { readonly output: readonly unknown[] }): ResponseReasoningItem {
  return output[0] as ResponseReasoningItem;
}

test("the official client streams the model's reasoning, and finds it in the final response", async (context) => {
  const { responses } = await start(context);
  const stream = responses.stream({ model, input: "Weather?", reasoning });
  const deltas: string[] = [];
  stream.on("response.reasoning_summary_text.delta", ({ delta }) => deltas.push(delta));
  const final = await stream.finalResponse();
  assert.deepEqual(deltas, ["Rome, ", "so Italy."]);
  assert.deepEqual([thoughtOf(final).summary, thoughtOf(final).content], [summary, undefined]);
  assert.equal(final.output_text, "Sunny.");
});

test("a response has its summary in every form: whole, retrieved, in the background, by its key, over a connection", async (context) => {
  const { responses, address } = await start(context);
  const whole = await responses.create({ model, input: "Weather?", reasoning });
  assert.deepEqual(thoughtOf(whole).summary, summary);
  assert.deepEqual(await responses.retrieve(whole.id), whole);

  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const read = async (path: string, body?: object, more: object = {}): Promise<string> => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const answer = await fetch(`${address}/v1/responses${path}`, { headers: { ...headers, ...more }, ...init });
    // The events of a stream with a key have ids.
    return (await answer.text()).replaceAll(/^id: .*\n/gm, "");
  };
  const asked = { model, input: "Weather?", reasoning, stream: true };
  for (const store of [true, false]) {
    const key = { "idempotency-key": `once-${store}` };
    const told = await read("", { ...asked, store }, key);
    const { response } = checkStream(told);
    assert.deepEqual(thoughtOf(response).summary, summary);
    assert.equal(await read("", { ...asked, store }, key), told);
    if (!store) continue;
    assert.equal(await read(`/${response["id"]}?stream=true`), told);
    assert.deepEqual(JSON.parse(await read(`/${response["id"]}`)), response);
  }

  const promised: WireResponse = JSON.parse(await read("", { ...asked, stream: false, background: true }));
  const followed = await read(`/${promised["id"]}?stream=true`);
  assert.match(followed, /event: response.reasoning_summary_text.delta/);
  const made: WireResponse = JSON.parse(await read(`/${promised["id"]}`));
  assert.deepEqual([made.status, thoughtOf(made).summary], ["completed", summary]);

  const connection = await dial(context, address, headers);
  connection.create({ model, input: "Weather?", reasoning, store: false });
  const frames = await connection.answer();
  assert.ok(frames.some(({ type }) => type === "response.reasoning_summary_text.delta"));
  assert.deepEqual(thoughtOf(frames.at(-1)?.response ?? { output: [] }).summary, summary);
});

test("reasoning that a caller sends back reaches the model once, sealed or not, and is listed as it was sent", async (context) => {
  const { responses, upstream } = await start(context, { send_reasoning: true });
  const question = { role: "user" as const, content: "Weather?" };
  for (const extras of [{ include }, {}]) {
    const first = await responses.create({ model, input: [question], reasoning, store: false, ...extras });
    assert.equal(thoughtOf(first).encrypted_content !== undefined, "include" in extras);
    const input = [question, ...(first.output as OpenAI.Responses.ResponseInput), question];
    const { id } = await responses.create({ model, input, reasoning });
    const { messages } = upstream.received.at(-1)!.json as { readonly messages: readonly object[] };
    assert.deepEqual(messages[1], { role: "assistant", content: "Sunny.", reasoning_content: thought });
    const listed = await Array.fromAsync(responses.inputItems.list(id, { order: "asc" }));
    const { type, summary: told } = listed[1] as ResponseReasoningItem;
    assert.deepEqual([type, told, "content" in (listed[1] ?? {})], ["reasoning", summary, false]);
  }
});

test("what the model emitted is stored: a later turn and the conversation's items have the text itself", async (context) => {
  const { responses, conversations, upstream } = await start(context, { send_reasoning: true });
  const conversation = (await conversations.create()).id;
  await responses.create({ model, input: "Weather?", reasoning, conversation });
  await responses.create({ model, input: "Sure?", conversation });
  const { messages } = upstream.received.at(-1)!.json as { readonly messages: readonly object[] };
  assert.deepEqual(messages[1], { role: "assistant", content: "Sunny.", reasoning_content: thought });
  const listed = await Array.fromAsync(conversations.items.list(conversation, { order: "asc" }));
  const stored = listed[1] as ResponseReasoningItem;
  assert.deepEqual([stored.content, stored.summary], [[{ type: "reasoning_text", text: thought }], []]);
});
