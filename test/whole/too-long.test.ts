/** Conversations that are longer than a model's context window, over real sockets: who is asked again, and with what. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startGateway } from "../gateway.ts";
import { answerJson, type Received, type Script, type ScriptedUpstream, startUpstream } from "../upstream.ts";
import { type Heard, messagesOf, replyWith, tellWell } from "./talk.ts";

const words = (count: number) => Array.from({ length: count }, () => "word").join(" ");

/** A server whose model takes so many words, and answers with 30. */
function takes(tokens: number): Script {
  const answer = replyWith(() => ({ content: words(30) }));
  const message = "Your input exceeds the context window of this model.";
  const refuse = answerJson({ error: { message, type: "invalid_request_error", code: null } }, 400);
  return (received, response) => (countWords(received) <= tokens ? answer : refuse)(received, response);
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

const ask = (address: string): Promise<Heard> =>
  tellWell(address, { on: "chat", say: words(30), more: { user: "ann" } });

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
  const asked = small.received.length;
  await ask(address);
  assert.equal(small.received.length, asked + 1, "it is known what the fallback takes");
  large.script = takes(10_000);
  assert.equal((await ask(address)).headers.get("x-portico-context"), "11 items");
});
