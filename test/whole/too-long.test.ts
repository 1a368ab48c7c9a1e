/** Conversations that are longer than a model's context window, over real sockets: who is asked again, and with what. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startGateway, token } from "../gateway.ts";
import { answerJson, type Received, type Script, type ScriptedUpstream, startUpstream } from "../upstream.ts";
import { type Heard, messagesOf, replyWith, tell } from "./talk.ts";

const words = (count: number) => Array.from({ length: count }, () => "word").join(" ");

/** A server whose model takes so many words, with the answer that the request allows, and answers with 30. */
function takes(tokens: number): Script {
  const answer = replyWith(() => ({ content: words(30) }));
  return (received, response) => {
    const input = countWords(received);
    const { max_tokens: output = 0 } = received.json as { readonly max_tokens?: number };
    if (input + output <= tokens) return answer(received, response);
    const sum = `${input + output} tokens (${input} in the messages, ${output} in the completion)`;
    const message = `This model's maximum context length is ${tokens} tokens. However, you requested ${sum}.`;
    return answerJson({ error: { message, type: "invalid_request_error", code: null } }, 400)(received, response);
  };
}

function countWords(received: Received): number {
  return messagesOf(received).reduce((count, { content }) => count + (content ?? "").split(" ").length, 0);
}

async function start(context: TestContext, script: Script): Promise<ScriptedUpstream> {
  const upstream = await startUpstream(script);
  context.after(() => upstream.close());
  return upstream;
}

function toAdapter({ url }: ScriptedUpstream, more: Record<string, unknown> = {}) {
  return { type: "openai", base_url: `${url}/v1`, retry: { base_ms: 1 }, ...more };
}

const ask = (address: string, more: Record<string, unknown> = {}): Promise<Heard> =>
  tell(address, { on: "chat", say: words(30), more: { user: "ann", ...more } });

test("a fallback that finds a session too long is asked again by itself, and shortens nothing for the first adapter", async (context) => {
  const large = await start(context, takes(10_000));
  const small = await start(context, takes(150));
  const { address } = await startGateway(context, {
    default_adapter: "large",
    adapters: { large: toAdapter(large, { fallback: ["small"], breaker: { failures: 0 } }), small: toAdapter(small) },
  });
  for (let turn = 0; turn < 3; turn++) await ask(address);
  large.script = answerJson({ error: { message: "out of order" } }, 500);
  const { headers } = await ask(address);
  assert.equal(headers.get("x-portico-tried"), Array(3).fill("large (adapter_error)").join(", "));
  assert.match(headers.get("x-portico-context") ?? "", /^\d items, \d left out$/);
  assert.equal(large.received.length, 3 + 3);
  assert.ok(small.received.length > 1);
  large.script = takes(10_000);
  assert.equal((await ask(address)).headers.get("x-portico-context"), "9 items");
});

test("a session loses no more than the answer that a request allows needs, and nothing if that alone is too long", async (context) => {
  const model = await start(context, takes(400));
  const { address } = await startGateway(context, { adapters: { model: toAdapter(model) } });
  for (let turn = 0; turn < 5; turn++) await ask(address);
  const { status, error } = await ask(address, { max_tokens: 400 });
  assert.equal(status, 400);
  assert.match(String(error?.["message"]), /\(330 in the messages, 400 in the completion\)/);
  assert.equal(model.received.length, 6, "it is asked once");
  const { headers } = await ask(address, { max_tokens: 200 });
  assert.equal(headers.get("x-portico-context"), "4 items, 7 left out");
  assert.equal(model.received.length, 8, "it is asked again once");
});

test("a conversation that has outgrown its model can still be compacted, and the model reads all of it", async (context) => {
  const model = await start(context, takes(400));
  const { address } = await startGateway(context, { adapters: { model: toAdapter(model) } });
  const input = Array.from({ length: 6 }, (_, index) => [
    { role: "user", content: `question-${index} ${words(60)}` },
    { role: "assistant", content: `answer-${index} ${words(60)}` },
  ]).flat();
  const response = await fetch(`${address}/v1/responses/compact`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "any", input }),
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("x-portico-context"), "12 items");
  const { output } = (await response.json()) as { readonly output: readonly { readonly type: string }[] };
  assert.deepEqual(
    output.map(({ type }) => type),
    [...Array<string>(6).fill("message"), "compaction"],
  );
  const read = model.received.filter((received) => countWords(received) <= 400).flatMap(messagesOf);
  const seen = read.map(({ content }) => content?.split(" ")[0]).filter((word) => word?.includes("-"));
  assert.deepEqual(
    seen,
    input.map(({ content }) => content.split(" ")[0]),
  );
});

test("a fallback is sent no more than its own window, whoever remembers the conversation", async (context) => {
  const large = await start(context, takes(10_000));
  const small = await start(context, takes(10_000));
  const { address } = await startGateway(context, {
    default_adapter: "large",
    adapters: {
      large: toAdapter(large, { fallback: ["small"], retry: { times: 0 } }),
      small: toAdapter(small, { context_window: 150 }),
    },
  });
  const messages = [1, 2, 3].flatMap(() => [
    { role: "user", content: words(30) },
    { role: "assistant", content: words(30) },
  ]);
  for (let turn = 0; turn < 3; turn++) await ask(address);
  large.script = answerJson({ error: { message: "out of order" } }, 500);
  await ask(address);
  await tell(address, { on: "chat", say: [...messages, { role: "user", content: words(30) }], more: { user: "bob" } });
  assert.equal(small.received.length, 2);
  for (const received of small.received) assert.ok(countWords(received) <= 150);
  const { headers } = await tell(address, { on: "chat", say: words(200), more: { user: "ann" } });
  assert.equal(headers.get("x-portico-context"), "1 items, 8 left out", "what is longer by itself is sent by itself");
  assert.deepEqual(small.received.slice(2).map(countWords), [200]);
});
