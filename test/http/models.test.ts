/** What `/v1/models` lists, and what it says about the endpoints. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startGateway, token as general } from "../gateway.ts";
import { createBox, say, toToken, token } from "../scripted.ts";

async function list(address: string, bearer: string) {
  const response = await fetch(`${address}/v1/models`, { headers: { authorization: `Bearer ${bearer}` } });
  const { data = [] } = (await response.json()) as { readonly data?: readonly { readonly id: string }[] };
  return { response, ids: data.map(({ id }) => id) };
}

test("an adapter that accepts any model is listed by its model, or by its own name, and answers to it", async (context) => {
  const agent = { type: "command", argv: ["echo", "{model}"], input: "none", env: ["PATH"] };
  const sessions = { store: "memory:" };
  const { address, talk } = await startGateway(context, { sessions, adapters: { agent } });
  assert.deepEqual((await list(address, general)).ids, ["agent"]);
  assert.equal(await (await talk({ model: "agent", content: "hi" })).text(), "agent");
  // Some clients send a type with every request, whether it has a body or not.
  const headers = { authorization: `Bearer ${general}`, "content-type": "text/plain" };
  const one = await fetch(`${address}/v1/models/agent`, { headers });
  assert.equal(one.status, 200);
  const chosen = await startGateway(context, { sessions, adapters: { agent: { ...agent, model: "opus" } } });
  assert.deepEqual((await list(chosen.address, general)).ids, ["opus"]);
});

test("a header of the list names the endpoints that are enabled and open to the token", async (context) => {
  const forChat = "sk-chat-0123456789";
  const tokens = [toToken(token), toToken(forChat, { opens: new Set(["chat"]) })];
  const both = await createBox(context, [say("hi")], { settings: { tokens } }).listen();
  const endpoints = { chat: false, responses: true };
  const one = await createBox(context, [say("hi")], { settings: { tokens, endpoints } }).listen();
  for (const [address, bearer, offered] of [
    [both, token, "/v1/chat/completions, /v1/responses"],
    [both, forChat, "/v1/chat/completions"],
    [one, token, "/v1/responses"],
    [one, forChat, ""],
  ] as const) {
    const { response } = await list(address, bearer);
    assert.deepEqual([response.status, response.headers.get("x-portico-endpoints")], [200, offered]);
  }
});

test("the header is sent even if the list is not available", async (context) => {
  const adapters = { away: { type: "openai", base_url: "http://127.0.0.1:9/v1" } };
  const { address } = await startGateway(context, { adapters, sessions: { store: "memory:" } });
  const { response } = await list(address, general);
  assert.deepEqual(
    [response.status, response.headers.get("x-portico-endpoints")],
    [502, "/v1/chat/completions, /v1/responses"],
  );
});
