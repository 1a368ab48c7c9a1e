/** What the openai adapter sends to its upstream, exactly. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { writeRequest } from "../../src/adapters/openai/chat/request.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Extra, Item } from "../../src/core/item.ts";
import type { Settings, Turn } from "../../src/core/turn.ts";

const hello: Item = { type: "message", role: "user", content: "Hello" };

function asked(items: readonly Item[], settings: Partial<Settings> = {}, stream = false): unknown {
  const turn: Turn = { id: "resp_1", model: "model-1", items, settings: { tools: [], ...settings }, stream };
  return JSON.parse(writeRequest(turn).toString());
}

function messages(...items: readonly Item[]): readonly unknown[] {
  return (asked(items) as { messages: unknown[] }).messages;
}

test("a plain turn is sent as its model and messages only", () => {
  assert.deepEqual(asked([hello]), { model: "model-1", messages: [{ role: "user", content: "Hello" }] });
});

test("a streamed turn asks for its usage too", () => {
  assert.deepEqual(asked([hello], {}, true), {
    model: "model-1",
    messages: [{ role: "user", content: "Hello" }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("the fields of a chat caller are sent unchanged, with the adapter's model and without the user", () => {
  const fields = { temperature: 0.5, logit_bias: { 5: 1 }, model: "other", user: "someone", stream_options: {} };
  assert.deepEqual(asked([hello], { temperature: 1, native: { dialect: "chat", fields } }), {
    temperature: 0.5,
    logit_bias: { 5: 1 },
    model: "model-1",
    messages: [{ role: "user", content: "Hello" }],
  });
});

test("fields that ask the upstream to store or to continue a conversation are not sent", () => {
  const labels = { metadata: { a: "b" }, prompt_cache_retention: "24h" };
  const plain = { model: "model-1", messages: [{ role: "user", content: "Hello" }] };
  const memory = { background: false, conversation: "conv_1", previous_response_id: "resp_0" };
  const askedWith = (fields: Record<string, unknown>) => asked([hello], { native: { dialect: "chat", fields } });
  assert.deepEqual(askedWith({ ...labels, ...memory, store: false }), { ...plain, ...labels });
  // Live servers accept labels only together with store.
  assert.deepEqual(askedWith({ ...labels, store: true }), { ...plain, prompt_cache_retention: "24h" });
});

test("the settings of a responses caller are written as chat fields", () => {
  const settings: Settings = {
    instructions: "Be brief.",
    native: { dialect: "responses", fields: { truncation: "auto" } },
    tools: [
      { type: "function", name: "add", description: "Adds.", parameters: { type: "object" }, strict: true },
      { type: "custom", name: "shell", format: { type: "grammar", syntax: "lark", definition: "start: X" } },
      { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } },
      { type: "other", extra: { dialect: "chat", fields: { type: "native_tool" } } },
    ],
    toolChoice: { type: "tool", name: "shell" },
    parallelToolCalls: false,
    format: { type: "schema", name: "sum", schema: { type: "object" }, strict: true },
    temperature: 0,
    topP: 0.9,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    seed: 7,
    stop: ["END"],
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
    seed: 7,
    stop: ["END"],
    max_completion_tokens: 100,
    logprobs: true,
    top_logprobs: 2,
    reasoning_effort: "low",
    verbosity: "high",
    service_tier: "flex",
    tools: [
      {
        type: "function",
        function: { name: "add", description: "Adds.", parameters: { type: "object" }, strict: true },
      },
      {
        type: "custom",
        custom: { name: "shell", format: { type: "grammar", grammar: { syntax: "lark", definition: "start: X" } } },
      },
      { type: "native_tool" },
    ],
    tool_choice: { type: "custom", custom: { name: "shell" } },
    parallel_tool_calls: false,
    response_format: { type: "json_schema", json_schema: { name: "sum", schema: { type: "object" }, strict: true } },
    model: "model-1",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello" },
    ],
  });
});

test("log probabilities are requested without alternatives, and a format that is no grammar is unchanged", () => {
  const format = { type: "text" };
  const written = asked([hello], { topLogprobs: 0, tools: [{ type: "custom", name: "shell", format }] });
  assert.deepEqual(written, {
    model: "model-1",
    messages: [{ role: "user", content: "Hello" }],
    logprobs: true,
    tools: [{ type: "custom", custom: { name: "shell", format } }],
  });
});

test("tool choice and parallel calls are not sent without tools", () => {
  const settings = { toolChoice: { type: "auto" }, parallelToolCalls: true, format: { type: "json" } } as const;
  assert.deepEqual(asked([hello], settings), {
    model: "model-1",
    messages: [{ role: "user", content: "Hello" }],
    response_format: { type: "json_object" },
  });
});

test("reasoning, text and calls of one assistant turn are one message", () => {
  assert.deepEqual(
    messages(
      { type: "message", role: "developer", content: "Rules", name: "boss" },
      hello,
      { type: "reasoning", summary: ["hm"], text: "" },
      { type: "message", role: "assistant", content: "I look it up." },
      { type: "tool-call", kind: "function", callId: "call_1", name: "add", arguments: '{"a":1}' },
      { type: "reasoning", summary: [], text: "and" },
      { type: "tool-call", kind: "custom", callId: "call_2", name: "shell", arguments: "ls -l" },
      { type: "tool-output", kind: "function", callId: "call_1", output: "2" },
      { type: "tool-output", kind: "custom", callId: "call_2", output: [{ type: "text", text: "a file" }] },
      { type: "tool-call", kind: "function", callId: "call_3", name: "add", arguments: "{}" },
      { type: "tool-output", kind: "function", callId: "call_3", output: "3" },
      { type: "message", role: "assistant", content: "It is 2." },
    ),
    [
      { role: "system", content: "Rules", name: "boss" },
      { role: "user", content: "Hello" },
      {
        role: "assistant",
        content: "I look it up.",
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "add", arguments: '{"a":1}' } },
          { id: "call_2", type: "custom", custom: { name: "shell", input: "ls -l" } },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "2" },
      { role: "tool", tool_call_id: "call_2", content: "a file" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_3", type: "function", function: { name: "add", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "call_3", content: "3" },
      { role: "assistant", content: "It is 2." },
    ],
  );
});

test("text between a call and its output joins the call's message; separate texts stay separate", () => {
  assert.deepEqual(
    messages(
      { type: "message", role: "assistant", content: "One." },
      { type: "message", role: "assistant", content: "Two." },
      { type: "tool-call", kind: "function", callId: "call_1", name: "add", arguments: "{}" },
      { type: "message", role: "assistant", content: "Three." },
      {
        type: "message",
        role: "assistant",
        content: [
          { type: "text", text: "Four." },
          { type: "refusal", text: "No." },
        ],
      },
      { type: "tool-output", kind: "function", callId: "call_1", output: "2" },
    ),
    [
      { role: "assistant", content: "One." },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Two." },
          { type: "text", text: "Three." },
          { type: "text", text: "Four." },
          { type: "refusal", refusal: "No." },
        ],
        tool_calls: [{ id: "call_1", type: "function", function: { name: "add", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "2" },
    ],
  );
});

test("a message without text adds its fields to the adjacent calls' message, and no content", () => {
  const call = { type: "tool-call", kind: "function", callId: "call_1", name: "add", arguments: "{}" } as const;
  const silent: Item = {
    type: "message",
    role: "assistant",
    content: "",
    name: "ann",
    extra: { dialect: "chat", fields: { reasoning_content: "hm" } },
  };
  const called = {
    role: "assistant",
    content: null,
    name: "ann",
    reasoning_content: "hm",
    tool_calls: [{ id: "call_1", type: "function", function: { name: "add", arguments: "{}" } }],
  };
  const output = { type: "tool-output", kind: "function", callId: "call_1", output: "2" } as const;
  const given = { role: "tool", tool_call_id: "call_1", content: "2" };
  assert.deepEqual(messages(silent, call, output), [called, given]);
  assert.deepEqual(messages(call, silent, output), [called, given]);
  assert.deepEqual(messages(call, { ...silent, content: "Now." }, output), [{ ...called, content: "Now." }, given]);
});

test("the last of several signatures of one message is sent, unless the caller shows its own", () => {
  const signed = (signature: string): Item => ({
    type: "reasoning",
    summary: [],
    text: "",
    extra: { dialect: "chat", fields: { reasoning_opaque: signature } },
  });
  const call: Item = { type: "tool-call", kind: "function", callId: "call_1", name: "add", arguments: "{}" };
  const tool_calls = [{ id: "call_1", type: "function", function: { name: "add", arguments: "{}" } }];
  assert.deepEqual(messages(signed("a"), call, signed("b")), [
    { role: "assistant", content: null, tool_calls, reasoning_opaque: "b" },
  ]);
  const shown: Item = {
    type: "message",
    role: "assistant",
    content: "Yes.",
    extra: { dialect: "chat", fields: { reasoning_opaque: "own" } },
  };
  const own = [{ role: "assistant", content: "Yes.", tool_calls, reasoning_opaque: "own" }];
  assert.deepEqual(messages(signed("a"), shown, call, signed("b")), own);
  assert.deepEqual(messages(signed("a"), call, shown, signed("b")), own);
});

test("reasoning is sent once, in the caller's own field where it has one", () => {
  const thought: Item = { type: "reasoning", summary: [], text: "hm" };
  const call: Item = { type: "tool-call", kind: "function", callId: "call_1", name: "add", arguments: "{}" };
  const shown = (fields: Record<string, unknown>): Item => ({
    type: "message",
    role: "assistant",
    content: "",
    extra: { dialect: "chat", fields },
  });
  const reasoningSent = (...items: Item[]): unknown => {
    const turn: Turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream: false };
    const body = JSON.parse(writeRequest(turn, { sendsReasoning: true }).toString()) as {
      messages: Record<string, unknown>[];
    };
    const { reasoning_content, reasoning } = body.messages[0] ?? {};
    return [reasoning_content, reasoning];
  };
  const own = shown({ reasoning_content: "hm, indeed" });
  assert.deepEqual(reasoningSent(thought, { type: "message", role: "assistant", content: "2" }), ["hm", undefined]);
  assert.deepEqual(reasoningSent(own, thought, call), ["hm, indeed", undefined]);
  assert.deepEqual(reasoningSent(thought, own, thought, call), ["hm, indeed", undefined]);
  assert.deepEqual(reasoningSent(call, thought, own), ["hm, indeed", undefined]);
  assert.deepEqual(reasoningSent(shown({ reasoning: "so" }), thought, call), [undefined, "so"]);
  for (const fields of [{ reasoning_content: "" }, { other: 1 }]) {
    assert.deepEqual(reasoningSent(shown(fields), thought, call), ["hm", undefined]);
  }
});

test("extra fields of a tool message and of its texts are sent, unless they are of another dialect", () => {
  const call: Item = { type: "tool-call", kind: "function", callId: "call_1", name: "add", arguments: "{}" };
  const given = (dialect: "chat" | "responses"): Item => ({
    type: "tool-output",
    kind: "function",
    callId: "call_1",
    output: [{ type: "text", text: "2", extra: { dialect, fields: { cache_control: { type: "ephemeral" } } } }],
    extra: { dialect, fields: { name: "add" } },
  });
  assert.deepEqual(messages(call, given("chat")).at(-1), {
    role: "tool",
    tool_call_id: "call_1",
    name: "add",
    content: [{ type: "text", text: "2", cache_control: { type: "ephemeral" } }],
  });
  assert.deepEqual(messages(call, given("responses")).at(-1), { role: "tool", tool_call_id: "call_1", content: "2" });
});

test("every kind of content part is sent, with its extra fields", () => {
  const added = (fields: Extra["fields"]): Extra => ({ dialect: "chat", fields });
  assert.deepEqual(
    messages(
      {
        type: "message",
        role: "user",
        content: [
          { type: "text", text: "Look", extra: { dialect: "chat", fields: { cache_control: { type: "ephemeral" } } } },
          {
            type: "image",
            url: "data:image/png;base64,AA==",
            detail: "low",
            extra: added({ cache_control: {}, image_url: { format: "png" } }),
          },
          { type: "audio", data: "AA==", format: "wav", extra: added({ mark: 1, input_audio: { rate: 8_000 } }) },
          {
            type: "file",
            data: "data:application/pdf;base64,AA==",
            name: "a.pdf",
            extra: added({ cache_control: {}, file: { pages: 2 } }),
          },
          { type: "file", fileId: "file-1" },
          { type: "image", fileId: "file-2" },
          { type: "other", extra: { dialect: "chat", fields: { type: "video_url", video_url: { url: "v" } } } },
        ],
        extra: { dialect: "chat", fields: { custom_field: 1 } },
      },
      {
        type: "message",
        role: "assistant",
        content: [{ type: "refusal", text: "No.", extra: { dialect: "chat", fields: { cache_control: {} } } }],
        extra: { dialect: "responses", fields: { phase: "final" } },
      },
      { type: "message", role: "user", content: [{ type: "text", text: "Why?" }] },
    ),
    [
      {
        custom_field: 1,
        role: "user",
        content: [
          { cache_control: { type: "ephemeral" }, type: "text", text: "Look" },
          {
            cache_control: {},
            type: "image_url",
            image_url: { format: "png", url: "data:image/png;base64,AA==", detail: "low" },
          },
          { mark: 1, type: "input_audio", input_audio: { rate: 8_000, data: "AA==", format: "wav" } },
          {
            cache_control: {},
            type: "file",
            file: { pages: 2, file_data: "data:application/pdf;base64,AA==", filename: "a.pdf" },
          },
          { type: "file", file: { file_id: "file-1" } },
          { type: "file", file: { file_id: "file-2" } },
          { type: "video_url", video_url: { url: "v" } },
        ],
      },
      { role: "assistant", content: [{ cache_control: {}, type: "refusal", refusal: "No." }] },
      { role: "user", content: "Why?" },
    ],
  );
});

test("an image in a tool's output is sent in a user message after the last output", () => {
  assert.deepEqual(
    messages(
      { type: "tool-call", kind: "function", callId: "call_1", name: "look", arguments: "{}" },
      { type: "tool-call", kind: "function", callId: "call_2", name: "look", arguments: "{}" },
      {
        type: "tool-output",
        kind: "function",
        callId: "call_1",
        output: [
          { type: "text", text: "one" },
          { type: "text", text: "two" },
          { type: "image", url: "https://example.com/a.png" },
        ],
      },
      { type: "tool-output", kind: "function", callId: "call_2", output: "none" },
      hello,
    ).slice(1),
    [
      {
        role: "tool",
        tool_call_id: "call_1",
        content: [
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ],
      },
      { role: "tool", tool_call_id: "call_2", content: "none" },
      {
        role: "user",
        content: [
          { type: "text", text: "Output of tool call call_1:" },
          { type: "image_url", image_url: { url: "https://example.com/a.png" } },
        ],
      },
      { role: "user", content: "Hello" },
    ],
  );
});

test("a file given by URL, which chat cannot express, is refused", () => {
  const file: Item = { type: "message", role: "user", content: [{ type: "file", url: "https://example.com/a.pdf" }] };
  assert.throws(
    () => messages(file),
    (thrown) => thrown instanceof GatewayError && thrown.code === "unsupported_parameter",
  );
});

function isRefusal(param: string | null, message: RegExp) {
  return (thrown: unknown) => {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    assert.equal(thrown.code, "unsupported_parameter");
    assert.equal(thrown.param, param);
    assert.match(thrown.message, message);
    return true;
  };
}

test("a content part of another dialect is refused with its type", () => {
  const screenshot = {
    type: "other",
    extra: { dialect: "responses", fields: { type: "computer_screenshot" } },
  } as const;
  const parts = [{ type: "text", text: "Look" }, screenshot] as const;
  const refused = isRefusal(null, /'computer_screenshot'/);
  assert.throws(() => messages({ type: "message", role: "user", content: [screenshot] }), refused);
  assert.throws(() => messages({ type: "message", role: "user", content: parts }), refused);
  assert.throws(() => messages({ type: "tool-output", kind: "function", callId: "call_1", output: parts }), refused);
});

const hosted = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } } as const;
const add = { type: "function", name: "add" } as const;

test("hosted tools of another dialect that are only offered are left out", () => {
  const plain = asked([hello]);
  assert.deepEqual(asked([hello], { tools: [hosted] }), plain);
  for (const type of ["auto", "none"] as const) {
    assert.deepEqual(asked([hello], { tools: [hosted], toolChoice: { type } }), plain);
  }
  assert.deepEqual(asked([hello], { tools: [hosted, add], toolChoice: { type: "required" } }), {
    ...(plain as object),
    tools: [{ type: "function", function: { name: "add" } }],
    tool_choice: "required",
  });
});

test("a tool choice that cannot be fulfilled is refused", () => {
  const required = isRefusal("tool_choice", /requires a call/);
  const named = isRefusal("tool_choice", /'web_search'/);
  for (const tools of [[hosted], [hosted, add]]) {
    assert.throws(() => asked([hello], { tools, toolChoice: hosted }), named);
  }
  assert.throws(() => asked([hello], { tools: [hosted], toolChoice: { type: "required" } }), required);
  assert.throws(() => asked([hello], { toolChoice: { type: "required" } }), required);
});

test("a tool's output may have more images than a function can take arguments", () => {
  const image = { type: "image", url: "u" } as const;
  const output = Array.from({ length: 250_000 }, () => image);
  const [, shown] = messages({ type: "tool-output", kind: "function", callId: "call_1", output });
  assert.equal((shown as { content: unknown[] }).content.length, 250_001);
});

test("cache keys and the safety identifier of a responses caller are sent too", () => {
  const common = { prompt_cache_key: "k", prompt_cache_retention: "24h", safety_identifier: "s" };
  assert.deepEqual(asked([hello], { native: { dialect: "responses", fields: { ...common, user: "u" } } }), {
    ...common,
    model: "model-1",
    messages: messages(hello),
  });
});
