/** What a model expects back in the next step of a tool loop is sent back, however the conversation continues. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startGateway, token } from "../gateway.ts";
import { type WireCall, type WireCompletion, type WireMessage, gatherChunks } from "../protocols/chunks.ts";
import { checkStream, type WireItem, type WireResponse } from "../protocols/grammar.ts";
import { answerEvents, answerJson, chunk, type Received, startUpstream } from "../upstream.ts";

type Fields = Readonly<Record<string, unknown>>;

const signature = { google: { thought_signature: "c2lnbmVk" } };
const called = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } };
const signed = { ...called, extra_content: signature };

const begun = { index: 0, ...called, function: { name: "weather", arguments: "" } };
const written = { index: 0, function: { arguments: '{"city":"Rome"}' } };

/** The pieces of the call, by the position of its signature. */
const streams: Readonly<Record<string, readonly Fields[]>> = {
  "with the first piece": [{ ...begun, extra_content: signature }, written],
  "with a later piece": [begun, { ...written, extra_content: signature }],
  "in a piece of its own": [begun, written, { index: 0, extra_content: signature }],
  "before the name": [{ index: 0, id: "call_1", extra_content: signature }, begun, written],
};

const thought = "Rome, so Italy.";

/** A model that reasons and calls a tool, and answers `done` when it has the output. */
async function startPair(context: TestContext, pieces = streams["with the first piece"], adapter: Fields = {}) {
  const upstream = await startUpstream((received, reply) => {
    const { messages, stream } = received.json as { readonly messages: readonly Fields[]; readonly stream?: boolean };
    const isAnswered = messages.at(-1)?.["role"] === "tool";
    const message = isAnswered
      ? { role: "assistant", content: "done" }
      : { role: "assistant", content: null, reasoning_content: thought, tool_calls: [signed] };
    const script =
      stream === true
        ? answerEvents(
            ...(isAnswered ? [chunk({ content: "done" })] : [chunk({ reasoning_content: thought })]),
            ...(isAnswered ? [] : (pieces ?? []).map((piece) => chunk({ tool_calls: [piece] }))),
            chunk({}, isAnswered ? "stop" : "tool_calls"),
          )
        : answerJson({ choices: [{ index: 0, message, finish_reason: isAnswered ? "stop" : "tool_calls" }] });
    return script(received, reply);
  });
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", base_url: `${upstream.url}/v1`, ...adapter } },
  });
  return { upstream, address };
}

async function get(address: string, path: string): Promise<{ readonly data: readonly Fields[] }> {
  const answer = await fetch(`${address}/v1/${path}`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 200);
  return (await answer.json()) as { readonly data: readonly Fields[] };
}

async function post(address: string, path: string, body: Fields): Promise<string> {
  const answer = await fetch(`${address}/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", ...body }),
  });
  assert.equal(answer.status, 200);
  return answer.text();
}

const question = { role: "user", content: "What is the weather in Rome?" };

/** The assistant's message as the model gets it in the second step. */
function sentBack({ json }: Received): WireMessage | undefined {
  const { messages } = json as { readonly messages: readonly WireMessage[] };
  return messages.find(({ role }) => role === "assistant");
}

function messagesTo({ json }: Received): readonly unknown[] {
  return (json as { readonly messages: readonly unknown[] }).messages;
}

for (const [where, pieces] of Object.entries(streams)) {
  test(`a signature ${where} of a call is sent to chat callers as it arrives, and stored with the call`, async (context) => {
    const { address, upstream } = await startPair(context, pieces);
    const stream = await post(address, "chat/completions", { messages: [question], stream: true, user: "ann" });
    const [call] = gatherChunks(stream).message.calls;
    assert.deepEqual(call?.added, { extra_content: signature });
    // A client that does not know the field shows the call without it.
    const shown = { role: "assistant", tool_calls: [called] };
    const output = { role: "tool", tool_call_id: "call_1", content: "Sunny." };
    await post(address, "chat/completions", { messages: [question, shown, output], user: "ann" });
    assert.deepEqual(sentBack(upstream.received.at(-1)!)?.tool_calls, [signed]);
  });
}

test("a call's signature is sent to a chat caller and back with what the caller resends", async (context) => {
  const { address, upstream } = await startPair(context);
  const completion: WireCompletion = JSON.parse(await post(address, "chat/completions", { messages: [question] }));
  const message = completion.choices[0]?.message;
  assert.deepEqual(message?.tool_calls as readonly WireCall[], [signed]);
  const output = { role: "tool", tool_call_id: "call_1", content: "Sunny." };
  await post(address, "chat/completions", { messages: [question, message, output] });
  assert.deepEqual(sentBack(upstream.received.at(-1)!)?.tool_calls, [signed]);
});

test("a call's signature is sent back when a response is continued, though its caller never sees it", async (context) => {
  const { address, upstream } = await startPair(context);
  for (const stream of [false, true]) {
    const answer = await post(address, "responses", { input: "Rome?", stream });
    const first: WireResponse = stream ? checkStream(answer).response : JSON.parse(answer);
    const call = first.output.find(({ type }) => type === "function_call");
    assert.ok(call && !("extra_content" in call));
    const output = { type: "function_call_output", call_id: "call_1", output: "Sunny." };
    await post(address, "responses", { input: [output], previous_response_id: first["id"] });
    assert.deepEqual(sentBack(upstream.received.at(-1)!)?.tool_calls, [signed]);
    const named = { type: "item_reference", id: call.id };
    await post(address, "responses", { input: [question, named, output] });
    assert.deepEqual(sentBack(upstream.received.at(-1)!)?.tool_calls, [signed]);
  }
});

test("reasoning is sent back with its call only if the operator enables it", async (context) => {
  const include = ["reasoning.encrypted_content"];
  for (const send_reasoning of [true, false]) {
    const { address, upstream } = await startPair(context, undefined, { send_reasoning });
    const first: WireResponse = JSON.parse(await post(address, "responses", { input: "Rome?", include }));
    const output = { type: "function_call_output", call_id: "call_1", output: "Sunny." };
    await post(address, "responses", { input: [output], previous_response_id: first["id"] });
    await post(address, "responses", { input: [question, ...first.output, output], store: false });
    for (const received of upstream.received.slice(-2)) {
      const sent = sentBack(received);
      assert.equal(sent?.reasoning_content, send_reasoning ? thought : undefined);
      assert.equal(sent?.tool_calls?.length, 1);
    }
  }
});

test("a chat caller's extras are sent back with what is remembered, in a session and without one", async (context) => {
  for (const send_reasoning of [true, false]) {
    for (const user of [undefined, "ann"]) {
      const { address, upstream } = await startPair(context, undefined, { send_reasoning });
      const asked = { user, include_reasoning: true };
      const first: WireCompletion = JSON.parse(
        await post(address, "chat/completions", { ...asked, messages: [question] }),
      );
      const message = first.choices[0]?.message;
      assert.equal(message?.reasoning_content, thought);
      const marked = [{ type: "text", text: "Sunny.", cache_control: { type: "ephemeral" } }];
      const output = { role: "tool", tool_call_id: "call_1", name: "weather", content: marked };
      // A client that does not know the signature shows the call without it; a session remembers it.
      const shown = { ...message, tool_calls: [user === undefined ? signed : called] };
      const history = [question, shown, output];
      await post(address, "chat/completions", { ...asked, messages: history });
      const sent = [
        question,
        { role: "assistant", content: null, reasoning_content: thought, tool_calls: [signed] },
        output,
      ];
      assert.deepEqual(messagesTo(upstream.received.at(-1)!), sent);
      const news = { role: "user", content: "And tomorrow?", name: "ann" };
      const done = { role: "assistant", content: "done" };
      await post(address, "chat/completions", { ...asked, messages: [...history, done, news] });
      assert.deepEqual(messagesTo(upstream.received.at(-1)!), [...sent, done, news]);
      // Marks are moved to the newest message.
      const unmarked = { ...output, content: "Sunny." };
      await post(address, "chat/completions", { ...asked, messages: [question, shown, unmarked, done, news] });
      assert.deepEqual(messagesTo(upstream.received.at(-1)!), [...sent.with(2, unmarked), done, news]);
    }
  }
});

test("every field of a call and its output in the responses protocol is passed on and sent back, whole and streamed", async (context) => {
  const call = {
    type: "function_call",
    id: "fc_1",
    status: "completed",
    call_id: "call_1",
    name: "get_weather",
    namespace: "mcp__wx",
    caller: { type: "direct" },
    arguments: "{}",
  };
  const { id: _id, status: _status, ...back } = call;
  const response = { id: "resp_1", object: "response", status: "completed", error: null, output: [call] };
  const upstream = await startUpstream((received, reply) => {
    const { stream } = received.json as { readonly stream?: boolean };
    const script =
      stream === true
        ? answerEvents(
            { type: "response.output_item.added", output_index: 0, item: { ...call, arguments: "" } },
            { type: "response.function_call_arguments.delta", output_index: 0, delta: "{}" },
            { type: "response.output_item.done", output_index: 0, item: call },
            { type: "response.completed", response },
          )
        : answerJson(response);
    return script(received, reply);
  });
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", wire: "responses", base_url: `${upstream.url}/v1` } },
  });
  const assertFields = (item: WireItem | undefined) =>
    assert.deepEqual([item?.["namespace"], item?.["caller"]], ["mcp__wx", { type: "direct" }]);
  const caller = { type: "program", caller_id: "prog_1" };
  const output = { type: "function_call_output", call_id: "call_1", output: "Sunny.", namespace: "mcp__wx", caller };
  for (const stream of [true, false]) {
    const answer = await post(address, "responses", { input: "hi", stream });
    const first: WireResponse = stream ? checkStream(answer).response : JSON.parse(answer);
    assertFields(first.output[0]);
    const told = stream ? checkStream(answer).events.filter(({ type }) => type.includes(".output_item.")) : [];
    for (const { item } of told) assertFields(item);
    const second: WireResponse = JSON.parse(
      await post(address, "responses", { input: [output], previous_response_id: first["id"] }),
    );
    await post(address, "responses", { input: [question, ...first.output, output], store: false });
    for (const { json } of upstream.received.slice(-2)) {
      const { input } = json as { readonly input: readonly Fields[] };
      assert.deepEqual(input.slice(1), [back, output]);
    }
    const { data } = await get(address, `responses/${String(second["id"])}/input_items`);
    const { id: _, ...listed } = data[0]!;
    assert.deepEqual(listed, { ...output, status: "completed" });
  }
});

const wav = { data: "AAAA", format: "wav" };
const mark = { prompt_cache_breakpoint: { mode: "explicit" } };

/** A message with every kind of part, each with fields that only its dialect knows. */
const marked = {
  chat: [
    { ...mark, type: "text", text: "Look" },
    { ...mark, type: "image_url", image_url: { url: "https://a.test/a.png" } },
    { ...mark, type: "input_audio", input_audio: wav },
    { ...mark, type: "file", file: { file_id: "file_1" } },
  ],
  responses: [
    { ...mark, type: "input_text", text: "Look" },
    { ...mark, type: "input_image", detail: "auto", image_url: "https://a.test/a.png" },
    { ...mark, type: "input_audio", input_audio: wav },
    { ...mark, type: "input_file", file_id: "file_1", detail: "low" },
  ],
} as const;

/** A model that answers `done`, on either wire. */
async function startModel(context: TestContext, wire: "chat" | "responses") {
  const said = {
    type: "message",
    role: "assistant",
    content: [{ type: "output_text", text: "done", annotations: [] }],
  };
  const upstream = await startUpstream(
    answerJson(
      wire === "chat"
        ? { choices: [{ index: 0, message: { role: "assistant", content: "done" }, finish_reason: "stop" }] }
        : { id: "resp_1", object: "response", status: "completed", error: null, output: [said] },
    ),
  );
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", wire, base_url: `${upstream.url}/v1` } },
  });
  const lastSent = () => upstream.received.at(-1)!.json as Readonly<Record<string, readonly Fields[]>>;
  return { address, lastSent };
}

test("every field of a content part reaches a model of its dialect, also from a session's memory", async (context) => {
  const chat = await startModel(context, "chat");
  const asked = { role: "user", content: marked.chat };
  const done = { role: "assistant", content: "done" };
  await post(chat.address, "chat/completions", { messages: [asked], user: "ann" });
  assert.deepEqual(chat.lastSent()["messages"], [asked]);
  await post(chat.address, "chat/completions", { messages: [{ role: "user", content: "And?" }], user: "ann" });
  assert.deepEqual(chat.lastSent()["messages"], [asked, done, { role: "user", content: "And?" }]);
  // Marks are moved to the newest message.
  const unmarked = { ...asked, content: marked.chat.map((part) => ({ ...part, prompt_cache_breakpoint: undefined })) };
  const shown = [unmarked, done, { role: "user", content: "And?" }, done, { role: "user", content: marked.chat }];
  await post(chat.address, "chat/completions", { messages: shown, user: "ann" });
  assert.deepEqual(chat.lastSent()["messages"], JSON.parse(JSON.stringify(shown)));

  const responses = await startModel(context, "responses");
  const input = [{ type: "message", role: "user", content: marked.responses }];
  const first: WireResponse = JSON.parse(await post(responses.address, "responses", { input }));
  assert.deepEqual(responses.lastSent()["input"], input);
  await post(responses.address, "responses", { input: "And?", previous_response_id: first["id"] });
  assert.deepEqual(responses.lastSent()["input"]?.[0], input[0]);
  const { data } = await get(responses.address, `responses/${String(first["id"])}/input_items`);
  assert.deepEqual(data[0]?.["content"], marked.responses);
});

test("fields of a content part that only its dialect knows are not sent in another", async (context) => {
  const { address, lastSent } = await startModel(context, "chat");
  await post(address, "responses", { input: [{ role: "user", content: marked.responses }] });
  const [message] = lastSent()["messages"] ?? [];
  assert.deepEqual(message?.["content"], [
    { type: "text", text: "Look" },
    { type: "image_url", image_url: { url: "https://a.test/a.png", detail: "auto" } },
    { type: "input_audio", input_audio: wav },
    { type: "file", file: { file_id: "file_1" } },
  ]);
});
