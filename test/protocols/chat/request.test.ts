/** What a chat completions body may contain, and how it is read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../../src/core/item.ts";
import type { Ask, Format, Settings, ToolChoice } from "../../../src/core/turn.ts";
import { protocol } from "./script.ts";

const messages = [{ role: "user", content: "Hi" }];

function ask(body: object): Ask {
  const { pathOf: _pathOf, ...asked } = protocol.parse({ model: "m", messages, ...body }, "default").ask;
  return asked;
}

/** The items of a message list, without absent fields. */
function read(...list: readonly object[]): Item[] {
  return JSON.parse(JSON.stringify(ask({ messages: list }).items));
}

const called = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const tool = { type: "function", function: { name: "f" } };
const schema = { type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } };

test("model and messages are enough, and a turn is stored only when it belongs to a session", () => {
  const { settings, items, ...rest } = ask({});
  assert.deepEqual(rest, { model: "m", itemsParam: "messages", stream: false, user: undefined, keep: "in-session" });
  assert.deepEqual(JSON.parse(JSON.stringify(items)), [{ type: "message", role: "user", content: "Hi" }]);
  assert.deepEqual(JSON.parse(JSON.stringify(settings)), {
    tools: [],
    native: { dialect: "chat", fields: {}, demands: [], offers: [] },
  });
  assert.deepEqual([ask({ store: true }).keep, ask({ store: false }).keep], ["yes", "no"]);
});

test("settings that only this dialect supports are listed: those that the answer depends on, and mere offers", () => {
  const cases = [
    [{ n: 2 }, ["n"], []],
    [{ logit_bias: { "50256": -100 }, prediction: { type: "content" } }, ["logit_bias"], ["prediction"]],
    [{ n: 1, logit_bias: {}, web_search_options: {} }, [], ["web_search_options"]],
    [{ logit_bias: [] }, [], []],
    [{ max_output_tokens: 5 }, ["max_output_tokens"], []],
    [{ moderation: { model: "omni-moderation-latest" } }, ["moderation"], []],
    [{ max_output_tokens: null }, [], []],
    [{ n: null, logit_bias: null, web_search_options: null, prediction: null, context_management: [] }, [], []],
  ] as const;
  for (const [body, demanded, offered] of cases) {
    const { demands = [], offers } = ask(body).settings.native ?? {};
    assert.deepEqual([demands.map(({ param }) => param), offers], [demanded, offered]);
  }
});

test("null means absent everywhere, and an empty user means none", () => {
  const optional =
    "audio frequency_penalty function_call functions include_reasoning logit_bias logprobs max_completion_tokens " +
    "max_tokens metadata modalities n parallel_tool_calls prediction presence_penalty prompt_cache_key reasoning " +
    "reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options " +
    "temperature tool_choice tools top_logprobs top_p user verbosity web_search_options";
  const nulls = Object.fromEntries(optional.split(" ").map((key) => [key, null]));
  assert.deepEqual(ask(nulls), ask({}));
  assert.deepEqual(ask({ user: "" }), ask({}));
  const bare = { role: "assistant", content: "Hello" };
  const padded = { ...bare, name: null, refusal: null, tool_calls: null, function_call: null, audio: null };
  assert.deepEqual(read(padded), read(bare));
  assert.deepEqual(read({ ...bare, name: "", refusal: "", tool_calls: [], annotations: [], parsed: {} }), read(bare));
});

test("every role is read, and names and unknown fields stay with their message", () => {
  assert.deepEqual(
    read(
      { role: "system", content: "Be brief." },
      { role: "developer", content: [{ type: "text", text: "Be kind." }] },
      { role: "user", content: "Hi", name: "ann" },
      { role: "assistant", content: "Hello", reasoning_content: "hm" },
      { role: "assistant", content: null },
    ),
    [
      { type: "message", role: "system", content: "Be brief." },
      { type: "message", role: "developer", content: [{ type: "text", text: "Be kind." }] },
      { type: "message", role: "user", content: "Hi", name: "ann" },
      {
        type: "message",
        role: "assistant",
        content: "Hello",
        extra: { dialect: "chat", fields: { reasoning_content: "hm" } },
      },
      { type: "message", role: "assistant", content: "" },
    ],
  );
});

test("texts, images, files, sounds, refusals and unknown parts are read, with all their fields", () => {
  const chat = (fields: object) => ({ dialect: "chat", fields });
  const unknown = { type: "hologram", depth: 3 };
  const [message] = read({
    role: "user",
    content: [
      { type: "text", text: "Look", cache_control: { type: "ephemeral" }, annotations: null },
      { type: "image_url", image_url: { url: "data:image/png;base64,AA", detail: "low", format: "png" }, uuid: "u" },
      { type: "file", file: { file_data: "data:application/pdf;base64,AA", filename: "a.pdf", format: "pdf" } },
      { type: "file", file: { file_id: "file_1", file_data: null } },
      { type: "input_audio", input_audio: { data: "AA", format: "wav", rate: 8_000 } },
      { type: "refusal", refusal: "No.", cache_control: { type: "ephemeral" } },
      unknown,
      { type: "constructor" },
    ],
  });
  assert.ok(message?.type === "message");
  assert.deepEqual(message.content, [
    { type: "text", text: "Look", extra: { dialect: "chat", fields: { cache_control: { type: "ephemeral" } } } },
    {
      type: "image",
      url: "data:image/png;base64,AA",
      detail: "low",
      extra: chat({ uuid: "u", image_url: { format: "png" } }),
    },
    { type: "file", data: "data:application/pdf;base64,AA", name: "a.pdf", extra: chat({ file: { format: "pdf" } }) },
    { type: "file", fileId: "file_1" },
    { type: "audio", data: "AA", format: "wav", extra: chat({ input_audio: { rate: 8_000 } }) },
    { type: "refusal", text: "No.", extra: { dialect: "chat", fields: { cache_control: { type: "ephemeral" } } } },
    { type: "other", extra: { dialect: "chat", fields: unknown } },
    { type: "other", extra: { dialect: "chat", fields: { type: "constructor" } } },
  ]);
});

test("a refusal is a part of the assistant's message", () => {
  assert.deepEqual(read({ role: "assistant", content: null, refusal: "No." }), [
    { type: "message", role: "assistant", content: [{ type: "refusal", text: "No." }] },
  ]);
  assert.deepEqual(read({ role: "assistant", content: "Well", refusal: "no." }), [
    {
      type: "message",
      role: "assistant",
      content: [
        { type: "text", text: "Well" },
        { type: "refusal", text: "no." },
      ],
    },
  ]);
});

test("a message with text and calls becomes several items, and an output has the kind of its call", () => {
  const signature = { google: { thought_signature: "s" } };
  assert.deepEqual(
    read(
      { role: "assistant", content: null, tool_calls: [{ ...called, index: 0, extra_content: signature }] },
      { role: "tool", tool_call_id: "c", content: [{ type: "text", text: "sunny" }] },
      {
        role: "assistant",
        content: "Now I edit.",
        tool_calls: [{ id: "d", type: "custom", custom: { name: "patch", input: "*** Begin" } }],
      },
      { role: "tool", tool_call_id: "d", content: "done" },
      { role: "tool", tool_call_id: "called before", content: "late" },
    ),
    [
      {
        type: "tool-call",
        kind: "function",
        callId: "c",
        name: "f",
        arguments: "{}",
        extra: { dialect: "chat", fields: { extra_content: signature } },
      },
      { type: "tool-output", kind: "function", callId: "c", output: [{ type: "text", text: "sunny" }] },
      { type: "message", role: "assistant", content: "Now I edit." },
      { type: "tool-call", kind: "custom", callId: "d", name: "patch", arguments: "*** Begin" },
      { type: "tool-output", kind: "custom", callId: "d", output: "done" },
      { type: "tool-output", kind: "function", callId: "called before", output: "late" },
    ],
  );
});

test("extra fields of a message with calls are kept on a message without text, and those of an output on it", () => {
  const marked = [{ type: "text", text: "sunny", cache_control: { type: "ephemeral" } }];
  assert.deepEqual(
    read(
      { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [called] },
      { role: "tool", tool_call_id: "c", content: marked, name: "f", trace: 7, status: null },
      { role: "assistant", content: null, name: "ann", tool_calls: [{ ...called, id: "d" }] },
      { role: "tool", tool_call_id: "d", content: "done" },
    ).filter(({ type }) => type !== "tool-call"),
    [
      {
        type: "message",
        role: "assistant",
        content: "",
        extra: { dialect: "chat", fields: { reasoning_content: "hm" } },
      },
      {
        type: "tool-output",
        kind: "function",
        callId: "c",
        output: [
          { type: "text", text: "sunny", extra: { dialect: "chat", fields: { cache_control: { type: "ephemeral" } } } },
        ],
        extra: { dialect: "chat", fields: { name: "f", trace: 7 } },
      },
      { type: "message", role: "assistant", content: "", name: "ann" },
      { type: "tool-output", kind: "function", callId: "d", output: "done" },
    ],
  );
});

test("empty content next to calls is no message", () => {
  for (const content of [null, "", []]) {
    assert.deepEqual(read({ role: "assistant", content, tool_calls: [called] }), [
      { type: "tool-call", kind: "function", callId: "c", name: "f", arguments: "{}" },
    ]);
  }
});

test("settings are read in a dialect-independent form, and kept in the caller's own", () => {
  const body = {
    temperature: 0.5,
    top_p: 0.9,
    presence_penalty: 1,
    frequency_penalty: -1,
    seed: -7,
    stop: "END",
    max_tokens: 100,
    logprobs: true,
    top_logprobs: 3,
    parallel_tool_calls: false,
    response_format: schema,
    reasoning_effort: "high",
    verbosity: "low",
    service_tier: "flex",
    n: 1,
    store: true,
    metadata: { a: "b" },
    logit_bias: { "50256": -100 },
    prediction: { type: "content", content: "x" },
    modalities: ["text"],
    web_search_options: {},
    prompt_cache_key: "k",
    safety_identifier: "s",
    never_heard_of: { a: 1 },
  };
  const own = { user: "u", stream: true, stream_options: { include_usage: true }, nothing: null };
  const { settings, stream, user } = ask({ ...body, ...own });
  assert.deepEqual([stream, user], [true, "u"]);
  assert.deepEqual([settings.native?.dialect, settings.native?.fields], ["chat", body]);
  assert.deepEqual(JSON.parse(JSON.stringify({ ...settings, native: undefined })), {
    tools: [],
    temperature: 0.5,
    topP: 0.9,
    presencePenalty: 1,
    frequencyPenalty: -1,
    seed: -7,
    stop: ["END"],
    maxOutputTokens: 100,
    choices: 1,
    topLogprobs: 3,
    parallelToolCalls: false,
    format: { type: "schema", name: "n", schema: { type: "object" } },
    reasoningEffort: "high",
    verbosity: "low",
    serviceTier: "flex",
  });
});

test("a seed may have 64 bits, as many clients choose it at random", () => {
  for (const text of ["9223372036854774784", "-9223372036854775808"]) {
    assert.equal(ask({ seed: JSON.parse(text) }).settings.seed, Number(text));
  }
});

test("the newer name of the token limit wins over the older one", () => {
  assert.equal(ask({ max_tokens: 5, max_completion_tokens: 9 }).settings.maxOutputTokens, 9);
});

function top(body: object): number | undefined {
  return ask(body).settings.topLogprobs;
}

test("log probabilities are requested without alternatives, with some, or not at all", () => {
  assert.deepEqual(
    [top({ logprobs: true }), top({ logprobs: false, top_logprobs: 0 }), top({})],
    [0, undefined, undefined],
  );
});

function format(response_format: unknown): Format | undefined {
  return ask({ response_format }).settings.format;
}

test("up to four stop sequences and sixteen labels are accepted", () => {
  const stop = ["a", "b", "c", "d"];
  assert.deepEqual(ask({ stop, metadata: { ...Array(16).fill("x") } }).settings.stop, stop);
});

test("the format of the answer is text, any JSON, or JSON by a schema", () => {
  assert.deepEqual(format({ type: "text" }), { type: "text" });
  assert.deepEqual(format({ type: "json_object" }), { type: "json" });
  assert.deepEqual(format({ type: "json_schema", json_schema: { name: "n", strict: true, schema: { $ref: "#" } } }), {
    type: "schema",
    name: "n",
    description: undefined,
    schema: { $ref: "#" },
    strict: true,
  });
});

test("functions, custom tools and tools of the dialect are read", () => {
  const grammar = { type: "grammar", grammar: { syntax: "lark", definition: "start: /.+/" } };
  const parameters = { $schema: "s", type: "object" };
  const { settings } = ask({
    tools: [
      { type: "function", function: { name: "f", description: null, parameters, strict: null } },
      { type: "custom", custom: { name: "patch", description: "Edits files.", format: grammar } },
      { type: "web_search", size: 3 },
    ],
  });
  assert.deepEqual(settings.tools, [
    { type: "function", name: "f", description: undefined, parameters, strict: undefined },
    { type: "custom", name: "patch", description: "Edits files.", format: grammar },
    { type: "other", extra: { dialect: "chat", fields: { type: "web_search", size: 3 } } },
  ]);
});

function settingsWith(choice: unknown): Settings {
  return ask({ tools: [tool, { type: "custom", custom: { name: "c" } }], tool_choice: choice }).settings;
}

function choose(choice: unknown): ToolChoice | undefined {
  return settingsWith(choice).toolChoice;
}

test("a tool choice is a word, a tool, several tools, or something of the dialect", () => {
  for (const type of ["auto", "none"]) assert.deepEqual(ask({ tool_choice: type }).settings.toolChoice, { type });
  assert.deepEqual(choose("required"), { type: "required" });
  assert.deepEqual(choose({ type: "auto" }), { type: "auto" });
  assert.deepEqual(choose(tool), { type: "tool", name: "f" });
  assert.deepEqual(choose({ type: "custom", custom: { name: "c" } }), { type: "tool", name: "c" });
  const allowed = [tool, { type: "custom", name: "c" }, { type: "web_search" }];
  const choice = { type: "allowed_tools", allowed_tools: { mode: "required", tools: allowed } };
  assert.deepEqual(choose(choice), { type: "required" });
  assert.deepEqual(settingsWith(choice).allowedTools, ["f", "c"]);
  assert.deepEqual(choose({ type: "web_search" }), {
    type: "other",
    extra: { dialect: "chat", fields: { type: "web_search" } },
  });
});

test("a field named __proto__ is read like any other", () => {
  const [sent] = JSON.parse('[{"role":"user","content":"Hi","__proto__":{"role":"system"}}]') as object[];
  const body = JSON.parse('{"model":"m","messages":[],"__proto__":{"stream":true}}') as object;
  const { items, settings, stream } = protocol.parse(Object.assign(body, { messages: [sent] }), "default").ask;
  const [item] = items;
  assert.ok(item?.type === "message");
  assert.equal(JSON.stringify(item.extra?.fields), '{"__proto__":{"role":"system"}}');
  assert.equal(JSON.stringify(settings.native?.fields), '{"__proto__":{"stream":true}}');
  for (const fields of [item.extra?.fields, settings.native?.fields]) {
    assert.equal(Object.getPrototypeOf(fields), Object.prototype);
  }
  assert.equal(stream, false);
});
