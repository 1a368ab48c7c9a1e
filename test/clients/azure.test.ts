/** The official client for Azure, whose only change is the endpoint. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { AzureOpenAI } from "openai";
import { say, token } from "../harness/house.ts";
import { connect, createClient } from "./sdk.ts";

const messages = [{ role: "user" as const, content: "hi" }];

async function connectAzure(more: { readonly deployment?: string; readonly apiKey?: string } = {}) {
  const connected = await connect(say("Good ", "day"));
  // Null, because a developer's own OPENAI_BASE_URL would take the place of the endpoint.
  const common = { baseURL: null, endpoint: connected.address, apiVersion: "2025-04-01-preview", maxRetries: 0 };
  return { ...connected, azure: new AzureOpenAI({ ...common, apiKey: token, ...more }) };
}

test("azure: a chat is answered, whole and streamed, by the model that the deployment names", async () => {
  const { azure } = await connectAzure({ deployment: "team/fast model" });
  const { model, choices } = await azure.chat.completions.create({ model: "whatever", messages });
  assert.deepEqual([model, choices[0]?.message.content], ["team/fast model", "Good day"]);
  const streamed = await azure.chat.completions.stream({ model: "whatever", messages }).finalChatCompletion();
  assert.deepEqual([streamed.model, streamed.choices[0]?.message.content], ["team/fast model", "Good day"]);
});

test("azure: without a deployment the client uses the model as one", async () => {
  const { azure } = await connectAzure();
  const { model, choices } = await azure.chat.completions.create({ model: "gpt-any", messages });
  assert.deepEqual([model, choices[0]?.message.content], ["gpt-any", "Good day"]);
});

test("azure: a response is created, continued, retrieved, listed and deleted", async () => {
  const { azure } = await connectAzure();
  const { id } = await azure.responses.create({ model: "gpt-any", input: "one" });
  const next = await azure.responses
    .stream({ model: "gpt-any", input: "two", previous_response_id: id })
    .finalResponse();
  assert.equal(next.output_text, "Good day");
  assert.equal((await azure.responses.retrieve(next.id)).output_text, "Good day");
  assert.equal((await azure.responses.inputItems.list(next.id)).data.length, 1);
  await azure.responses.delete(next.id);
  await assert.rejects(azure.responses.retrieve(next.id), OpenAI.NotFoundError);
  assert.deepEqual((await azure.models.list()).data[0]?.object, "model");
});

test("azure: its newer address, which any client can use, is served as well", async () => {
  const { address } = await connectAzure();
  const client = createClient(address, { baseURL: `${address}/openai/v1` });
  const { choices } = await client.chat.completions.create({ model: "gpt-any", messages });
  assert.equal(choices[0]?.message.content, "Good day");
  assert.equal((await client.responses.create({ model: "gpt-any", input: "one" })).output_text, "Good day");
  const { id } = await client.conversations.create({ items: messages });
  assert.equal((await client.conversations.items.list(id)).data.length, 1);
});

test("azure: a wrong key is reported as such", async () => {
  const { azure } = await connectAzure({ apiKey: "sk-wrong" });
  await assert.rejects(azure.chat.completions.create({ model: "gpt-any", messages }), OpenAI.AuthenticationError);
});
