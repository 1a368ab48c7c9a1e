/** What a chat completions body may contain, and what the model is then shown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seenBy, shareGateway } from "../harness/house.ts";
import { ask, plain } from "./shown.ts";

const open = shareGateway();
const user = (content: unknown) => [{ role: "user", content }];
const called = { id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } };

test("every role is read, in its place", async () => {
  const turn = await ask(await open(), "chat", {}, [
    { role: "system", content: "Be brief." },
    {
      role: "developer",
      content: [
        { type: "text", text: "Be " },
        { type: "text", text: "kind." },
      ],
    },
    { role: "user", content: "Hi", name: "ann" },
    { role: "assistant", content: "Hello" },
    { role: "user", content: "Weather?" },
    { role: "assistant", content: null, tool_calls: [called] },
    { role: "tool", tool_call_id: "c", content: [{ type: "text", text: "sunny" }] },
  ]);
  assert.deepEqual(seenBy(turn), [
    "system: Be brief.",
    "developer: Be kind.",
    "user: Hi",
    "assistant: Hello",
    "user: Weather?",
    'call c: f {"a":1}',
    "output c: sunny",
  ]);
});

test("null and empty fields count as absent", async () => {
  const gateway = await open();
  const names =
    "audio frequency_penalty function_call functions include_reasoning logit_bias logprobs max_completion_tokens " +
    "max_tokens metadata modalities n parallel_tool_calls prediction presence_penalty prompt_cache_key reasoning " +
    "reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options " +
    "temperature tool_choice tools top_logprobs top_p user verbosity web_search_options";
  const nulls = Object.fromEntries(names.split(" ").map((name) => [name, null]));
  const bare = await ask(gateway, "chat", {});
  for (const empty of [nulls, { user: "", tools: [], logit_bias: {} }, { functions: [] }]) {
    const turn = await ask(gateway, "chat", empty);
    assert.deepEqual(plain(turn.settings), plain(bare.settings));
  }
  const turn = await ask(gateway, "chat", {}, [
    { role: "user", content: "Hi", name: null },
    { role: "assistant", content: "Hello", refusal: null, tool_calls: null, function_call: null, name: "" },
    { role: "assistant", content: "So.", refusal: "", tool_calls: [], annotations: [] },
    { role: "user", content: "And?" },
  ]);
  assert.deepEqual(
    seenBy(turn).filter((line) => line.startsWith("call")),
    [],
  );
  assert.match(seenBy(turn).join("\n"), /^user: Hi\nassistant: Hello[^]*So\.\nuser: And\?$/);
});

test("texts, images, files, sounds and refusals are read", async () => {
  const turn = await ask(await open(), "chat", {}, [
    ...user([
      { type: "text", text: "Look" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AA", detail: "low" } },
      { type: "image_url", image_url: { url: "https://example.com/a.png" } },
      { type: "file", file: { file_data: "data:application/pdf;base64,AA", filename: "a.pdf" } },
      { type: "file", file: { file_id: "file_1", file_data: null } },
      { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
    ]),
    { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
    ...user("Please"),
    { role: "assistant", content: null, refusal: "Never." },
    ...user("Oh"),
  ]);
  const contents = turn.items.map((item) => (item.type === "message" ? plain(item.content) : item.type));
  assert.deepEqual(contents, [
    [
      { type: "text", text: "Look" },
      { type: "image", url: "data:image/png;base64,AA", detail: "low" },
      { type: "image", url: "https://example.com/a.png" },
      { type: "file", data: "data:application/pdf;base64,AA", name: "a.pdf" },
      { type: "file", fileId: "file_1" },
      { type: "audio", data: "AA", format: "wav" },
    ],
    [{ type: "refusal", text: "No." }],
    "Please",
    [{ type: "refusal", text: "Never." }],
    "Oh",
  ]);
});

test("a message with text and calls is text and calls, and an output finds its call", async () => {
  const turn = await ask(await open(), "chat", {}, [
    ...user("Go"),
    {
      role: "assistant",
      content: "Now I look.",
      tool_calls: [called, { id: "d", type: "custom", custom: { name: "patch", input: "*** Begin" } }],
    },
    { role: "tool", tool_call_id: "d", content: "done" },
    { role: "tool", tool_call_id: "c", content: "sunny" },
  ]);
  assert.deepEqual(seenBy(turn).toSorted(), [
    "assistant: Now I look.",
    'call c: f {"a":1}',
    "call d: patch *** Begin",
    "output c: sunny",
    "output d: done",
    "user: Go",
  ]);
  const kinds = turn.items.flatMap((item) => ("kind" in item ? [`${item.type} ${item.callId} ${item.kind}`] : []));
  assert.deepEqual(kinds.toSorted(), [
    "tool-call c function",
    "tool-call d custom",
    "tool-output c function",
    "tool-output d custom",
  ]);
});

test("empty content beside calls is no message, and empty arguments are an empty object", async () => {
  const gateway = await open();
  for (const content of [null, "", [], undefined]) {
    const turn = await ask(gateway, "chat", {}, [
      ...user("Go"),
      { role: "assistant", content, tool_calls: [{ ...called, function: { name: "f", arguments: "" } }] },
      { role: "tool", tool_call_id: "c", content: "1" },
    ]);
    assert.match(seenBy(turn).join("\n"), /^user: Go\ncall c: f (\{\})?\noutput c: 1$/);
  }
});
