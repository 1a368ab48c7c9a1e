/** What a responses body may contain, and what the model is then shown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seenBy, shareGateway } from "../harness/house.ts";
import { ask, plain } from "./shown.ts";

const open = shareGateway();
const call = { type: "function_call", call_id: "c", name: "f", arguments: '{"a":1}' };

test("a text is a user's message, and items without a type are messages", async () => {
  const gateway = await open();
  assert.deepEqual(seenBy(await ask(gateway, "responses", {}, "Hi")), ["user: Hi"]);
  const turn = await ask(gateway, "responses", { instructions: "Rhyme." }, [
    { role: "developer", content: "Be brief." },
    { role: "system", content: "Be kind." },
    { role: "user", content: [{ type: "input_text", text: "Hi" }], type: null },
    {
      type: "message",
      id: "msg_1",
      status: "completed",
      role: "assistant",
      phase: "commentary",
      content: [{ type: "output_text", text: "Hello", annotations: [], logprobs: [], parsed: null }],
    },
    { role: "user", content: "And?" },
  ]);
  assert.deepEqual(seenBy(turn), [
    "instructions: Rhyme.",
    "developer: Be brief.",
    "system: Be kind.",
    "user: Hi",
    "assistant: Hello",
    "user: And?",
  ]);
});

test("null and empty fields count as absent, as LlamaIndex and LangChain send them", async () => {
  const gateway = await open();
  const names =
    "instructions previous_response_id conversation user store stream metadata temperature top_p presence_penalty " +
    "frequency_penalty max_output_tokens max_tool_calls top_logprobs parallel_tool_calls truncation text reasoning " +
    "service_tier include tools tool_choice background prompt safety_identifier prompt_cache_key stream_options";
  const nulls = Object.fromEntries(names.split(" ").map((name) => [name, null]));
  const empty = { user: "", instructions: "", reasoning: {}, text: {}, include: [], tools: [], metadata: {} };
  const bare = await ask(gateway, "responses", {});
  for (const more of [nulls, empty]) {
    assert.deepEqual(plain((await ask(gateway, "responses", more)).settings), plain(bare.settings));
  }
});

test("images, files and sounds are read, in messages and in the outputs of tools", async () => {
  const parts = [
    { type: "input_image", image_url: "data:image/png;base64,AA", detail: "low" },
    { type: "input_image", file_id: "file_1" },
    { type: "input_file", file_data: "data:application/pdf;base64,AA", filename: "a.pdf" },
    { type: "input_file", file_url: "https://example.com/a.pdf" },
    { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
  ];
  const expected = [
    { type: "image", url: "data:image/png;base64,AA", detail: "low" },
    { type: "image", fileId: "file_1" },
    { type: "file", data: "data:application/pdf;base64,AA", name: "a.pdf" },
    { type: "file", url: "https://example.com/a.pdf" },
    { type: "audio", data: "AA", format: "wav" },
  ];
  const turn = await ask(await open(), "responses", {}, [
    { role: "user", content: parts },
    call,
    { type: "function_call_output", call_id: "c", output: parts.slice(0, 2) },
  ]);
  const [asked, , told] = turn.items;
  assert.ok(asked?.type === "message" && told?.type === "tool-output");
  assert.deepEqual([plain(asked.content), plain(told.output)], [expected, expected.slice(0, 2)]);
});

test("calls, their outputs and reasoning are read as items", async () => {
  const turn = await ask(await open(), "responses", {}, [
    { role: "user", content: "Go" },
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "A" }], content: null },
    { ...call, id: "fc_1", status: "completed" },
    { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "sunny" }] },
    { type: "custom_tool_call", call_id: "d", name: "patch", input: "*** Begin" },
    { type: "custom_tool_call_output", call_id: "d", output: "done", id: "ctco_1" },
  ]);
  assert.deepEqual(seenBy(turn), [
    "user: Go",
    "reasoning: A",
    'call c: f {"a":1}',
    "output c: sunny",
    "call d: patch *** Begin",
    "output d: done",
  ]);
});

test("of several calls with one id each output answers the one before it", async () => {
  const output = { type: "function_call_output", call_id: "c", output: "1" };
  const turn = await ask(await open(), "responses", {}, [
    { role: "user", content: "Go" },
    call,
    output,
    { ...call, name: "g" },
    { ...output, output: "2" },
  ]);
  const ids = turn.items.flatMap((item) => ("callId" in item ? [item.callId] : []));
  assert.deepEqual([ids[0] === ids[1], ids[2] === ids[3]], [true, true]);
  assert.deepEqual(
    seenBy(turn).map((line) => line.replace(/^(call|output) \S+/, "$1")),
    ["user: Go", 'call f {"a":1}', "output 1", 'call g {"a":1}', "output 2"],
  );
});
