/** What the openai adapter sends to its upstream on the responses wire, exactly. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { writeRequest } from "../../src/adapters/openai/responses/request.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import type { Remark } from "../../src/core/ports.ts";
import type { Settings, Turn } from "../../src/core/turn.ts";

const hello: Item = { type: "message", role: "user", content: "Hello" };
const helloWritten = { type: "message", role: "user", content: "Hello" };

function asked(items: readonly Item[], settings: Partial<Settings> = {}, stream = false, remarks: Remark[] = []) {
  const turn: Turn = { id: "resp_1", model: "model-1", items, settings: { tools: [], ...settings }, stream };
  return JSON.parse(writeRequest(turn, (remark) => remarks.push(remark)).toString()) as Record<string, unknown>;
}

function input(...items: readonly Item[]): unknown {
  return asked(items)["input"];
}

test("a plain turn is sent as its model and input, with store: false", () => {
  assert.deepEqual(asked([hello]), { model: "model-1", input: [helloWritten], store: false });
  assert.deepEqual(asked([hello], { instructions: "Be brief." }, true), {
    model: "model-1",
    instructions: "Be brief.",
    input: [helloWritten],
    store: false,
    stream: true,
  });
});

test("the fields of a responses caller are sent unchanged, except those that the gateway handles", () => {
  const passed = {
    temperature: 0.5,
    max_tool_calls: 3,
    truncation: "auto",
    metadata: { a: "b" },
    prompt: { id: "pmpt_1", variables: { city: "Paris" } },
    prompt_cache_key: "key",
    tools: [{ type: "web_search" }, { type: "function", name: "add", parameters: null, strict: null }],
    tool_choice: { type: "web_search" },
    text: { format: { type: "json_object" } },
    include: ["web_search_call.action.sources"],
    stream_options: { include_obfuscation: false },
  };
  const ours = {
    model: "other",
    user: "someone",
    store: true,
    background: true,
    conversation: "conv_1",
    previous_response_id: "resp_0",
    instructions: "Old.",
  };
  const native = { dialect: "responses", fields: { ...passed, ...ours } } as const;
  const written = { ...passed, model: "model-1", input: [helloWritten], store: false };
  assert.deepEqual(asked([hello], { temperature: 1, native }, true), { ...written, stream: true });
  const { stream_options: _, ...unstreamed } = written;
  assert.deepEqual(asked([hello], { native }), unstreamed);
});

test("the settings of a chat caller are written as responses fields", () => {
  const settings: Settings = {
    instructions: "Be brief.",
    native: { dialect: "chat", fields: { logit_bias: {} } },
    tools: [
      { type: "function", name: "add", description: "Adds.", parameters: { type: "object" }, strict: true },
      { type: "function", name: "now" },
      {
        type: "custom",
        name: "shell",
        format: { type: "grammar", grammar: { syntax: "lark", definition: "start: X" } },
      },
      { type: "custom", name: "note" },
      { type: "other", extra: { dialect: "chat", fields: { type: "native_tool" } } },
      { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } },
    ],
    toolChoice: { type: "tool", name: "shell" },
    parallelToolCalls: false,
    format: { type: "schema", name: "sum", schema: { type: "object" }, strict: true },
    temperature: 0,
    topP: 0.9,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    maxOutputTokens: 100,
    topLogprobs: 2,
    reasoningEffort: "low",
    reasoningSummary: "auto",
    verbosity: "high",
    serviceTier: "flex",
  };
  assert.deepEqual(asked([hello], settings), {
    temperature: 0,
    top_p: 0.9,
    presence_penalty: 0.1,
    frequency_penalty: 0.2,
    max_output_tokens: 100,
    top_logprobs: 2,
    reasoning: { effort: "low", summary: "auto" },
    text: {
      format: { type: "json_schema", name: "sum", schema: { type: "object" }, strict: true },
      verbosity: "high",
    },
    service_tier: "flex",
    tools: [
      { type: "function", name: "add", description: "Adds.", parameters: { type: "object" }, strict: true },
      { type: "function", name: "now", parameters: { type: "object", properties: {} }, strict: false },
      { type: "custom", name: "shell", format: { type: "grammar", syntax: "lark", definition: "start: X" } },
      { type: "custom", name: "note" },
      { type: "web_search" },
    ],
    tool_choice: { type: "custom", name: "shell" },
    parallel_tool_calls: false,
    include: ["message.output_text.logprobs", "reasoning.encrypted_content"],
    model: "model-1",
    instructions: "Be brief.",
    input: [helloWritten],
    store: false,
  });
});

test("log probabilities are requested without alternatives, and each setting without its companion", () => {
  const { include, top_logprobs, text } = asked([hello], { topLogprobs: 0, verbosity: "low" });
  assert.deepEqual([include, top_logprobs], [["message.output_text.logprobs"], undefined]);
  assert.deepEqual(text, { verbosity: "low" });
  assert.deepEqual(asked([hello], { format: { type: "json" } })["text"], { format: { type: "json_object" } });
  assert.deepEqual(asked([hello], { reasoningEffort: "low" })["reasoning"], { effort: "low" });
  assert.deepEqual(asked([hello], { reasoningSummary: "auto" })["reasoning"], { summary: "auto" });
});

test("a tool choice is written by name, and one that cannot be fulfilled is refused", () => {
  const tools = [
    { type: "function", name: "add" },
    { type: "custom", name: "shell" },
  ] as const;
  const choice = (toolChoice: Settings["toolChoice"]) => asked([hello], { tools, toolChoice })["tool_choice"];
  assert.equal(choice({ type: "required" }), "required");
  assert.deepEqual(choice({ type: "tool", name: "add" }), { type: "function", name: "add" });
  assert.deepEqual(choice({ type: "tool", name: "shell" }), { type: "custom", name: "shell" });
  const search = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } } as const;
  assert.deepEqual(choice(search), { type: "web_search" });
  const foreign = { type: "other", extra: { dialect: "chat", fields: { type: "native_tool" } } } as const;
  assert.throws(() => choice(foreign), { code: "unsupported_parameter", param: "tool_choice" });
  assert.throws(() => asked([hello], { toolChoice: { type: "required" } }), { param: "tool_choice" });
  assert.equal(asked([hello], { toolChoice: { type: "auto" }, parallelToolCalls: true })["tool_choice"], undefined);
});

test("cache keys and the safety identifier of a chat caller are sent too", () => {
  const common = { prompt_cache_key: "k", prompt_cache_retention: "24h", safety_identifier: "s" };
  const written = asked([hello], { native: { dialect: "chat", fields: { ...common, user: "u" } } });
  assert.deepEqual({ ...written, ...common }, written);
  assert.equal(written["user"], undefined);
});

test("stop sequences, which this wire lacks, are refused; a seed is left out and reported", () => {
  assert.throws(
    () => asked([hello], { stop: ["END"] }),
    (thrown) => thrown instanceof GatewayError && thrown.param === "stop" && thrown.status === 400,
  );
  const remarks: Remark[] = [];
  assert.equal(asked([hello], { seed: 7, stop: [] }, false, remarks)["seed"], undefined);
  assert.deepEqual(remarks, [{ type: "left-out", what: "seed" }]);
});

test("a limit below the wire's minimum is raised to it, and reported under the caller's field name", () => {
  const remarks: Remark[] = [];
  const fields = { max_completion_tokens: 15 };
  assert.equal(asked([hello], { maxOutputTokens: 1 }, false, remarks)["max_output_tokens"], 16);
  const native = { dialect: "chat", fields } as const;
  assert.equal(asked([hello], { maxOutputTokens: 15, native }, false, remarks)["max_output_tokens"], 16);
  assert.equal(asked([hello], { maxOutputTokens: 17 }, false, remarks)["max_output_tokens"], 17);
  assert.deepEqual(remarks, [
    { type: "changed", what: "max_tokens", to: "16" },
    { type: "changed", what: "max_completion_tokens", to: "16" },
  ]);
});

test("sealed reasoning is requested only where there may be reasoning", () => {
  const sealed = ["reasoning.encrypted_content"];
  assert.equal(asked([hello])["include"], undefined);
  assert.equal(asked([hello], { reasoningEffort: "none" })["include"], undefined);
  assert.deepEqual(asked([hello], { reasoningEffort: "low" })["include"], sealed);
  assert.deepEqual(asked([hello], { reasoningSummary: "auto" })["include"], sealed);
  const thought: Item = { type: "reasoning", summary: [], text: "", encrypted: "sealed" };
  assert.deepEqual(asked([hello, thought])["include"], sealed);
  const others: Item[] = [
    { type: "reasoning", summary: [], text: "hm" },
    { type: "compaction", summary: "", encrypted: "sealed" },
  ];
  for (const other of others) assert.equal(asked([hello, other])["include"], undefined, other.type);
  const native = { dialect: "responses", fields: { include: sealed } } as const;
  assert.deepEqual(asked([hello], { native, reasoningEffort: "low" })["include"], sealed);
});

test("reasoning, calls and outputs are sent item by item", () => {
  assert.deepEqual(
    input(
      { type: "message", role: "developer", content: "Rules", name: "boss" },
      { type: "reasoning", summary: ["One.", "Two."], text: "raw", encrypted: "sealed" },
      { type: "reasoning", summary: ["One."], text: "raw" },
      { type: "reasoning", summary: ["One."], text: "" },
      { type: "reasoning", summary: [], text: "" },
      { type: "tool-call", kind: "function", callId: "call_1", name: "add", arguments: '{"a":1}' },
      { type: "tool-call", kind: "custom", callId: "call_2", name: "shell", arguments: "ls" },
      { type: "tool-output", kind: "function", callId: "call_1", output: "2" },
      {
        type: "tool-output",
        kind: "custom",
        callId: "call_2",
        output: [
          { type: "text", text: "a file" },
          { type: "image", url: "https://example.com/a.png" },
        ],
      },
    ),
    [
      { type: "message", role: "developer", content: "Rules" },
      {
        type: "reasoning",
        summary: [
          { type: "summary_text", text: "One." },
          { type: "summary_text", text: "Two." },
        ],
        encrypted_content: "sealed",
      },
      {
        type: "reasoning",
        summary: [{ type: "summary_text", text: "One." }],
        content: [{ type: "reasoning_text", text: "raw" }],
      },
      { type: "reasoning", summary: [{ type: "summary_text", text: "One." }] },
      { type: "function_call", call_id: "call_1", name: "add", arguments: '{"a":1}' },
      { type: "custom_tool_call", call_id: "call_2", name: "shell", input: "ls" },
      { type: "function_call_output", call_id: "call_1", output: "2" },
      {
        type: "custom_tool_call_output",
        call_id: "call_2",
        output: [
          { type: "input_text", text: "a file" },
          { type: "input_image", image_url: "https://example.com/a.png" },
        ],
      },
    ],
  );
});

test("every kind of content part is sent, and extra fields of this dialect without ids and states", () => {
  assert.deepEqual(
    input(
      {
        type: "message",
        role: "user",
        content: [
          { type: "text", text: "Look", extra: { dialect: "chat", fields: { cache_control: {} } } },
          { type: "image", fileId: "file-1", detail: "low" },
          {
            type: "audio",
            data: "AA==",
            format: "wav",
            extra: { dialect: "responses", fields: { input_audio: { rate: 8 } } },
          },
          { type: "file", url: "https://example.com/a.pdf", name: "a.pdf" },
          { type: "file", data: "data:application/pdf;base64,AA==" },
          { type: "refusal", text: "No." },
          { type: "other", extra: { dialect: "responses", fields: { type: "computer_screenshot" } } },
        ],
      },
      {
        type: "message",
        role: "assistant",
        content: [
          { type: "text", text: "Yes.", annotations: [{ type: "x", fields: {} }] },
          { type: "refusal", text: "No.", extra: { dialect: "responses", fields: { policy: "p1" } } },
        ],
        extra: { dialect: "responses", fields: { phase: "commentary", id: "msg_1", status: "completed" } },
      },
      {
        type: "tool-call",
        kind: "function",
        callId: "call_1",
        name: "add",
        group: "math",
        arguments: "{}",
        extra: { dialect: "responses", fields: { caller: "main", id: "fc_1" } },
      },
    ),
    [
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "Look" },
          { type: "input_image", file_id: "file-1", detail: "low" },
          { type: "input_audio", input_audio: { rate: 8, data: "AA==", format: "wav" } },
          { type: "input_file", file_url: "https://example.com/a.pdf", filename: "a.pdf" },
          { type: "input_file", file_data: "data:application/pdf;base64,AA==" },
          { type: "input_text", text: "No." },
          { type: "computer_screenshot" },
        ],
      },
      {
        phase: "commentary",
        type: "message",
        role: "assistant",
        content: [
          { annotations: [{ type: "x" }], type: "output_text", text: "Yes." },
          { policy: "p1", type: "refusal", refusal: "No." },
        ],
      },
      { caller: "main", namespace: "math", type: "function_call", call_id: "call_1", name: "add", arguments: "{}" },
    ],
  );
  const video = { type: "other", extra: { dialect: "chat", fields: { type: "video_url" } } } as const;
  assert.throws(() => input({ type: "message", role: "user", content: [video] }), /'video_url'/);
});

test("a compaction is sent sealed when only its maker can read it, and otherwise as text", () => {
  const asText = { type: "message", role: "user", content: "Summary of the conversation so far:\nWe met." };
  assert.deepEqual(
    input(
      { type: "compaction", summary: "", encrypted: "sealed" },
      { type: "compaction", summary: "We met.", encrypted: "sealed" },
      { type: "compaction", summary: "We met." },
    ),
    [{ type: "compaction", encrypted_content: "sealed" }, asText, asText],
  );
});

test("tool searches and their outputs are written as the wire's own items", () => {
  const extra = { dialect: "responses", fields: { tools: [{ type: "function", name: "f" }] } } as const;
  const call = { type: "tool-call", kind: "search", callId: "c", name: "tool_search" } as const;
  const client = { call_id: "c", execution: "client" };
  assert.deepEqual(
    input(
      { ...call, arguments: '{"query":"f"}' },
      { type: "tool-output", kind: "search", callId: "c", output: "[]", tools: [], extra },
      { ...call, arguments: "no JSON" },
      { type: "tool-output", kind: "search", callId: "c", output: "[]" },
    ),
    [
      { type: "tool_search_call", ...client, arguments: { query: "f" } },
      { type: "tool_search_output", ...client, ...extra.fields },
      { type: "tool_search_call", ...client, arguments: {} },
      { type: "tool_search_output", ...client, tools: [] },
    ],
  );
});
