/** The official client for Azure, whose only change is the endpoint. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI, { AzureOpenAI } from "openai";
import { startChain, token } from "./gateway.ts";

/** Null, because a developer's own OPENAI_BASE_URL would take the place of the endpoint. */
const common = { baseURL: null, apiVersion: "2025-04-01-preview", maxRetries: 0 };

async function createClient(context: TestContext, deployment?: string): Promise<AzureOpenAI> {
  const { address } = await startChain(context);
  return new AzureOpenAI({
    ...common,
    endpoint: address,
    apiKey: token,
    ...(deployment !== undefined && { deployment }),
  });
}

const messages = [{ role: "user" as const, content: "one two three" }];

test("azure: a chat is answered, whole and streamed, by the model that the deployment names", async (context) => {
  const client = await createClient(context, "team/fast model");
  const { model, choices } = await client.chat.completions.create({ model: "whatever", messages });
  assert.deepEqual([model, choices[0]?.message.content], ["team/fast model", "one two three"]);
  const stream = client.chat.completions.stream({ model: "whatever", messages });
  const completion = await stream.finalChatCompletion();
  assert.equal(completion.model, "team/fast model");
  assert.equal(completion.choices[0]?.message.content, "one two three");
});

test("azure: without a deployment the client uses the model as one", async (context) => {
  const client = await createClient(context);
  const { model, choices } = await client.chat.completions.create({ model: "gpt-any", messages });
  assert.deepEqual([model, choices[0]?.message.content], ["gpt-any", "one two three"]);
});

test("azure: a response is created, streamed, continued, retrieved, listed and deleted", async (context) => {
  const client = await createClient(context);
  const response = await client.responses.create({ model: "gpt-any", input: "Good day" });
  assert.deepEqual([response.model, response.output_text], ["gpt-any", "Good day"]);
  const asked = { model: "gpt-any", input: "And then?", previous_response_id: response.id };
  const next = await client.responses.stream(asked).finalResponse();
  assert.equal(next.output_text, "And then?");
  assert.equal((await client.responses.retrieve(next.id)).output_text, "And then?");
  assert.equal((await client.responses.inputItems.list(next.id)).data.length, 1);
  await client.responses.delete(next.id);
  await assert.rejects(client.responses.retrieve(next.id), OpenAI.NotFoundError);
  assert.deepEqual((await client.models.list()).data[0]?.object, "model");
});

test("azure: its newer address is served as well", async (context) => {
  const { address } = await startChain(context);
  const client = new OpenAI({ baseURL: `${address}/openai/v1`, apiKey: token, maxRetries: 0 });
  const { choices } = await client.chat.completions.create({ model: "gpt-any", messages });
  assert.equal(choices[0]?.message.content, "one two three");
  const response = await client.responses.create({ model: "gpt-any", input: "Good day" });
  assert.equal(response.output_text, "Good day");
  const { id } = await client.conversations.create({ items: [{ role: "user", content: "Hi" }] });
  assert.equal((await client.conversations.items.list(id)).data.length, 1);
});

test("azure: a wrong key is reported as such", async (context) => {
  const { address: endpoint } = await startChain(context);
  const client = new AzureOpenAI({ ...common, endpoint, apiKey: "sk-wrong" });
  await assert.rejects(client.chat.completions.create({ model: "gpt-any", messages }), OpenAI.AuthenticationError);
});
