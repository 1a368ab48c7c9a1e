/** Fields in which a chat server signs its model's reasoning are sent to callers, remembered, and sent back. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { gatherPieces } from "../../src/adapters/openai/chat/pieces.ts";
import { startGateway, token } from "../gateway.ts";
import { gatherChunks, type WireCompletion } from "../protocols/chunks.ts";
import { checkStream, type WireResponse } from "../protocols/grammar.ts";
import { answerEvents, answerJson, chunk, type ScriptedUpstream, startUpstream } from "../upstream.ts";

type Fields = Readonly<Record<string, unknown>>;

const called = { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } };
const piece = { type: "reasoning.text", format: "anthropic-claude-v1", index: 0 };
const details = [{ ...piece, text: "Rome, so Italy.", signature: "c2lnbmVk" }];
const sealed = [{ type: "reasoning.encrypted", data: "AAAA", id: "call_1", index: 0 }];
const google = { google: { thought_signature: "c2lnbmVk" } };

interface Scene {
  /** The fields as they are sent back. */
  readonly back: Fields;
  readonly whole: Fields;
  readonly pieces: readonly Fields[];
}

const calling = { tool_calls: [{ index: 0, ...called }] };

const scenes: Readonly<Record<string, Scene>> = {
  "beside readable reasoning": {
    back: { reasoning_details: details },
    whole: { reasoning: "Rome, so Italy.", reasoning_details: details },
    pieces: [
      { reasoning: "Rome, ", reasoning_details: [{ ...piece, text: "Rome, " }] },
      { reasoning: "so Italy.", reasoning_details: [{ ...piece, text: "so Italy." }] },
      { reasoning_details: [{ ...piece, signature: "c2lnbmVk" }] },
      calling,
    ],
  },
  "after the call": {
    back: { reasoning_details: details },
    whole: { reasoning: "Rome, so Italy.", reasoning_details: details },
    pieces: [
      { reasoning: "Rome, so Italy.", reasoning_details: [{ ...piece, text: "Rome, so Italy." }] },
      calling,
      { reasoning_details: [{ ...piece, signature: "c2lnbmVk" }] },
    ],
  },
  "alone, and only with the call": {
    back: { reasoning_details: sealed },
    whole: { reasoning_details: sealed },
    pieces: [{ ...calling, reasoning_details: sealed }],
  },
  "in the field of another server": {
    back: { extra_content: google },
    whole: { extra_content: google },
    pieces: [calling, { extra_content: google }],
  },
};

async function startModel(context: TestContext, { whole, pieces }: Scene): Promise<ScriptedUpstream> {
  const upstream = await startUpstream((received, reply) => {
    const { messages, stream } = received.json as { readonly messages: readonly Fields[]; readonly stream?: boolean };
    const done = { role: "assistant", content: "done" };
    if (messages.at(-1)?.["role"] !== "user") {
      const events = answerEvents(chunk(done), chunk({}, "stop"));
      return (stream === true ? events : answerJson({ choices: [{ message: done, finish_reason: "stop" }] }))(
        received,
        reply,
      );
    }
    const message = { role: "assistant", content: null, ...whole, tool_calls: [called] };
    const events = answerEvents(...pieces.map((delta) => chunk(delta)), chunk({}, "tool_calls"));
    return (stream === true ? events : answerJson({ choices: [{ message, finish_reason: "tool_calls" }] }))(
      received,
      reply,
    );
  });
  context.after(() => upstream.close());
  return upstream;
}

const toAdapter = ({ url }: ScriptedUpstream, path = "/v1") => ({ type: "openai", base_url: `${url}${path}` });

async function startPair(context: TestContext, scene: Scene) {
  const upstream = await startModel(context, scene);
  const { address } = await startGateway(context, { adapters: { model: toAdapter(upstream) } });
  return { upstream, address };
}

async function post(address: string, path: string, body: Fields): Promise<string> {
  const answer = await fetch(`${address}/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", ...body }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return text;
}

function lastAssistant({ received }: ScriptedUpstream): Fields | undefined {
  const { messages } = received.at(-1)!.json as { readonly messages: readonly Fields[] };
  return messages.find(({ role }) => role === "assistant");
}

const question = { role: "user", content: "What is the weather in Rome?" };
const output = { role: "tool", tool_call_id: "call_1", content: "Sunny." };

for (const [where, scene] of Object.entries(scenes)) {
  const sent = { role: "assistant", content: null, tool_calls: [called], ...scene.back };

  test(`a signature ${where} is sent back in a session, though its caller does not show it`, async (context) => {
    const { address, upstream } = await startPair(context, scene);
    for (const [user, stream] of Object.entries({ ann: false, bob: true })) {
      await post(address, "chat/completions", { messages: [question], stream, user });
      await post(address, "chat/completions", { messages: [output], stream, user });
      assert.deepEqual(lastAssistant(upstream), sent, "only what is new");
      const shown = { role: "assistant", content: "", tool_calls: [called] };
      const answer = await post(address, "chat/completions", { messages: [question, shown, output], user });
      assert.deepEqual(lastAssistant(upstream), sent, "the history");
      assert.ok(!answer.includes("c2lnbmVk"));
    }
  });

  test(`a signature ${where} is sent to a chat caller who asks for reasoning, and back if it is shown`, async (context) => {
    const { address, upstream } = await startPair(context, scene);
    for (const user of [undefined, "ann"]) {
      const asked = { user, include_reasoning: true };
      const first: WireCompletion = JSON.parse(
        await post(address, "chat/completions", { ...asked, messages: [question] }),
      );
      const message = first.choices[0]?.message as unknown as Fields;
      for (const [key, value] of Object.entries(scene.back)) assert.deepEqual(message[key], value);
      await post(address, "chat/completions", { ...asked, messages: [question, message, output] });
      for (const [key, value] of Object.entries(scene.back)) assert.deepEqual(lastAssistant(upstream)?.[key], value);
    }
    const streamed = await post(address, "chat/completions", {
      messages: [question],
      stream: true,
      include_reasoning: true,
    });
    const joined = gatherPieces();
    joined.add(gatherChunks(streamed).message.added);
    assert.deepEqual(joined.toFields(), scene.back);
    const hidden = await post(address, "chat/completions", { messages: [question], stream: true });
    assert.deepEqual(gatherChunks(hidden).message.added, {});
  });

  test(`a signature ${where} is sent back when a response is continued, and with sealed reasoning`, async (context) => {
    const { address, upstream } = await startPair(context, scene);
    for (const stream of [false, true]) {
      const answer = await post(address, "responses", {
        input: "Rome?",
        stream,
        include: ["reasoning.encrypted_content"],
      });
      assert.ok(!answer.includes("c2lnbmVk") && !answer.includes("AAAA"));
      const first: WireResponse = stream ? checkStream(answer).response : JSON.parse(answer);
      const given = { type: "function_call_output", call_id: "call_1", output: "Sunny." };
      await post(address, "responses", { input: [given], previous_response_id: first["id"] });
      assert.deepEqual(lastAssistant(upstream), sent, "continued");
      await post(address, "responses", { input: [question, ...first.output, given], store: false });
      assert.deepEqual(lastAssistant(upstream), sent, "sealed");
    }
  });
}

test("a caller's own form of a signature counts more than what is remembered of it", async (context) => {
  const { address, upstream } = await startPair(context, scenes["beside readable reasoning"]!);
  await post(address, "chat/completions", { messages: [question], user: "ann" });
  const shown = { role: "assistant", content: null, tool_calls: [called], reasoning_details: sealed };
  await post(address, "chat/completions", { messages: [question, shown, output], user: "ann" });
  assert.deepEqual(lastAssistant(upstream), shown);
});

test("what one server's model signed is sent to no other server, which may refuse it, but still to the first", async (context) => {
  const scene = scenes["beside readable reasoning"]!;
  const [upstream, other] = [await startModel(context, scene), await startModel(context, scene)];
  const adapters = {
    model: toAdapter(upstream),
    again: toAdapter(upstream, "/v1/"),
    behind: toAdapter(upstream, "/other/v1"),
    other: toAdapter(other),
  };
  const models = { again: "again", behind: "behind", other: "other" };
  const { address } = await startGateway(context, { default_adapter: "model", models, adapters });
  const user = "ann";
  await post(address, "chat/completions", { messages: [question], user });
  await post(address, "chat/completions", { messages: [output], user, model: "other" });
  assert.deepEqual(lastAssistant(other), { role: "assistant", content: null, tool_calls: [called] });
  await post(address, "chat/completions", { messages: [output], user, model: "behind" });
  assert.deepEqual(lastAssistant(upstream), { role: "assistant", content: null, tool_calls: [called] });
  await post(address, "chat/completions", { messages: [output], user, model: "again" });
  assert.deepEqual(lastAssistant(upstream)?.["reasoning_details"], details);
});
