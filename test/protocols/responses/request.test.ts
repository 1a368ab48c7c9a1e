/** What a create body may contain, and how a wrong one is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Ask, Settings, ToolChoice } from "../../../src/core/turn.ts";
import { protocol, seal } from "./script.ts";

function ask(body: object): Ask {
  const { pathOf: _pathOf, ...asked } = protocol.parse({ model: "m", input: "Hi", ...body }, "default").ask;
  return asked;
}

const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
const tool = { type: "function", name: "f" };
const user = (content: unknown) => ({ input: [{ role: "user", content }] });
const compacting = (entry: object) => ({
  context_management: [{ type: "compaction" }, { type: "compaction", ...entry }],
});

/** The wrong part of the body, the path in the error, the code, and a part of the message. */
const refused: readonly (readonly [body: unknown, param: string | null, code: string, message: string])[] = [
  [null, null, "invalid_type", "must be a JSON object, but it is null"],
  [[], null, "invalid_type", "must be a JSON object, but it is an array"],
  ["Hi", null, "invalid_type", "must be a JSON object, but it is a string"],
  [{ input: "Hi", model: undefined }, "model", "missing_required_parameter", "Missing required parameter: 'model'."],
  [{ model: null }, "model", "missing_required_parameter", "'model'"],
  [{ model: "" }, "model", "empty_string", "empty string"],
  [{ model: 5 }, "model", "invalid_type", "expected a string, but got an integer"],
  [
    { input: undefined },
    "input",
    "missing_required_parameter",
    "'input', 'previous_response_id', 'conversation' or 'prompt'",
  ],
  [
    { input: null, messages: [{ role: "user", content: "Hi" }] },
    "input",
    "missing_required_parameter",
    "Missing required parameter: 'input'. A request with 'messages' goes to /v1/chat/completions.",
  ],
  [{ input: null }, "input", "missing_required_parameter", "Missing required parameter: 'input'."],
  [{ input: 5 }, "input", "invalid_type", "expected a string or an array, but got an integer"],
  [{ input: {} }, "input", "invalid_type", "expected a string or an array, but got an object"],
  [{ input: [123] }, "input[0]", "invalid_type", "expected an object, but got an integer"],
  [{ input: [{}] }, "input[0].role", "missing_required_parameter", "'input[0].role'"],
  [{ input: [{ role: 1, content: "" }] }, "input[0].role", "invalid_type", "expected a string"],
  [{ input: [{ role: "tool", content: "" }] }, "input[0].role", "invalid_value", "'user', 'assistant', 'system'"],
  [{ input: [{ role: "user" }] }, "input[0].content", "missing_required_parameter", "'input[0].content'"],
  [user(null), "input[0].content", "missing_required_parameter", "'input[0].content'"],
  [user(5), "input[0].content", "invalid_type", "expected a string or an array"],
  [user(["Hi"]), "input[0].content[0]", "invalid_type", "expected an object, but got a string"],
  [user([{ text: "Hi" }]), "input[0].content[0].type", "missing_required_parameter", "content[0].type"],
  [user([{ type: "input_text" }]), "input[0].content[0].text", "missing_required_parameter", "content[0].text"],
  [user([{ type: "input_text", text: 1 }]), "input[0].content[0].text", "invalid_type", "expected a string"],
  [user([{ type: "input_image" }]), "input[0].content[0].image_url", "missing_required_parameter", "image_url"],
  [
    user([{ type: "input_image", image_url: { url: "u" } }]),
    "input[0].content[0].image_url",
    "invalid_type",
    "expected a string, but got an object",
  ],
  [user([{ type: "input_file" }]), "input[0].content[0].file_id", "missing_required_parameter", "file_id"],
  [user([{ type: "input_audio" }]), "input[0].content[0].input_audio", "missing_required_parameter", "input_audio"],
  [user([{ type: "refusal" }]), "input[0].content[0].refusal", "missing_required_parameter", "refusal"],
  [{ input: [{ role: "assistant", content: "Hi", phase: 7 }] }, "input[0].phase", "invalid_type", "expected a string"],
  [{ input: [{ ...call, id: 7 }] }, "input[0].id", "invalid_type", "expected a string, but got an integer"],
  [{ input: [{ ...call, status: {} }] }, "input[0].status", "invalid_type", "expected a string, but got an object"],
  [{ input: [{ type: "mcp_call", id: [] }] }, "input[0].id", "invalid_type", "expected a string, but got an array"],
  [
    user([{ type: "output_text", text: "Hi", logprobs: "x" }]),
    "input[0].content[0].logprobs",
    "invalid_type",
    "expected an array",
  ],
  [{ prompt: "p" }, "prompt", "invalid_type", "expected an object"],
  [{ stream_options: true }, "stream_options", "invalid_type", "expected an object"],
  [
    { stream_options: { include_obfuscation: "no" } },
    "stream_options.include_obfuscation",
    "invalid_type",
    "expected a boolean",
  ],
  [{ input: [{ name: "f" }] }, "input[0].role", "missing_required_parameter", "'input[0].role'"],
  [{ input: [{ type: "" }] }, "input[0].type", "empty_string", "empty string"],
  [
    { input: [{ type: "compaction" }] },
    "input[0].encrypted_content",
    "missing_required_parameter",
    "encrypted_content",
  ],
  [
    { input: [{ type: "compaction_trigger" }, { role: "user", content: "Hi" }] },
    "input[0].type",
    "invalid_value",
    "must be the last item",
  ],
  [
    { input: [{ type: "compaction_trigger" }, { type: "compaction_trigger" }] },
    "input[0].type",
    "invalid_value",
    "must be the last item",
  ],
  [{ input: [{ type: 7 }] }, "input[0].type", "invalid_type", "expected a string"],
  [{ context_management: {} }, "context_management", "invalid_type", "expected an array"],
  [{ context_management: ["compaction"] }, "context_management[0]", "invalid_type", "expected an object"],
  [{ context_management: [{}] }, "context_management[0].type", "missing_required_parameter", "type"],
  [{ context_management: [{ type: "" }] }, "context_management[0].type", "empty_string", "type"],
  [{ context_management: [{ type: 7 }] }, "context_management[0].type", "invalid_type", "a string"],
  [
    compacting({ compact_threshold: 999 }),
    "context_management[1].compact_threshold",
    "integer_below_min_value",
    "1000",
  ],
  [compacting({ compact_threshold: "1k" }), "context_management[1].compact_threshold", "invalid_type", "an integer"],
  [{ input: [{ ...call, call_id: null }] }, "input[0].call_id", "missing_required_parameter", "input[0].call_id"],
  [{ input: [{ ...call, name: "" }] }, "input[0].name", "empty_string", "empty string"],
  [{ input: [{ ...call, arguments: {} }] }, "input[0].arguments", "invalid_type", "expected a string"],
  [
    { input: [call, { type: "function_call_output", call_id: "c" }] },
    "input[1].output",
    "missing_required_parameter",
    "input[1].output",
  ],
  [
    { input: [{ type: "function_call_output", call_id: "c", output: 4 }] },
    "input[0].output",
    "invalid_type",
    "expected a string or an array",
  ],
  [{ input: [{ type: "reasoning", summary: "s" }] }, "input[0].summary", "invalid_type", "expected an array"],
  [{ input: [{ type: "reasoning", summary: [{}] }] }, "input[0].summary[0].text", "missing_required_parameter", "text"],
  [{ instructions: 5 }, "instructions", "invalid_type", "expected a string"],
  [{ previous_response_id: 5 }, "previous_response_id", "invalid_type", "expected a string"],
  [{ conversation: "session_1" }, "conversation", "invalid_value", "begins with 'conv'"],
  [{ conversation: 7 }, "conversation", "invalid_type", "expected a string or an object"],
  [{ conversation: {} }, "conversation.id", "missing_required_parameter", "conversation.id"],
  [
    { conversation: { id: "conv_1" }, previous_response_id: "resp_1" },
    "previous_response_id",
    "mutually_exclusive",
    "'previous_response_id' and 'conversation'",
  ],
  [{ background: true, store: false }, "background", "invalid_value", "requires 'store'"],
  [{ background: "no" }, "background", "invalid_type", "expected a boolean"],
  [{ user: 5 }, "user", "invalid_type", "expected a string"],
  [{ store: "yes" }, "store", "invalid_type", "expected a boolean"],
  [{ stream: 1 }, "stream", "invalid_type", "expected a boolean"],
  [{ temperature: -1 }, "temperature", "decimal_below_min_value", "Expected a value >= 0, but got -1 instead."],
  [{ temperature: 2.1 }, "temperature", "decimal_above_max_value", "Expected a value <= 2, but got 2.1 instead."],
  [{ temperature: "1" }, "temperature", "invalid_type", "expected a decimal, but got a string"],
  [{ top_p: 1.5 }, "top_p", "decimal_above_max_value", "<= 1"],
  [{ presence_penalty: 3 }, "presence_penalty", "decimal_above_max_value", "<= 2"],
  [{ frequency_penalty: -3 }, "frequency_penalty", "decimal_below_min_value", ">= -2"],
  [{ max_output_tokens: 15 }, "max_output_tokens", "integer_below_min_value", ">= 16"],
  [{ max_output_tokens: 16.5 }, "max_output_tokens", "invalid_type", "expected an integer"],
  [{ max_tool_calls: 0 }, "max_tool_calls", "integer_below_min_value", ">= 1"],
  [{ top_logprobs: 21 }, "top_logprobs", "integer_above_max_value", "<= 20"],
  [{ parallel_tool_calls: "true" }, "parallel_tool_calls", "invalid_type", "expected a boolean"],
  [{ truncation: "middle" }, "truncation", "invalid_value", "'auto', 'disabled'"],
  [{ include: "all" }, "include", "invalid_type", "expected an array"],
  [{ include: [1] }, "include[0]", "invalid_type", "expected a string"],
  [{ metadata: { a: 1 } }, "metadata.a", "invalid_type", "expected a string"],
  [{ metadata: { ...Array(17).fill("x") } }, "metadata", "too_many_properties", "at most 16 properties, but got 17"],
  [{ metadata: [] }, "metadata", "invalid_type", "expected an object"],
  [{ metadata: { a: "x".repeat(513) } }, "metadata.a", "string_too_long", "at most 512"],
  [{ metadata: { a: "😀".repeat(513) } }, "metadata.a", "string_too_long", "at most 512 characters, but got 513"],
  [{ text: "json" }, "text", "invalid_type", "expected an object"],
  [{ text: { format: {} } }, "text.format.type", "missing_required_parameter", "text.format.type"],
  [{ text: { format: { type: "xml" } } }, "text.format.type", "invalid_value", "'json_schema'"],
  [{ text: { format: { type: "json_schema", schema: {} } } }, "text.format.name", "missing_required_parameter", "name"],
  [
    { text: { format: { type: "json_schema", name: "n" } } },
    "text.format.schema",
    "missing_required_parameter",
    "text.format.schema",
  ],
  [{ reasoning: "high" }, "reasoning", "invalid_type", "expected an object"],
  [{ reasoning: { effort: 3 } }, "reasoning.effort", "invalid_type", "expected a string"],
  [{ tools: {} }, "tools", "invalid_type", "expected an array"],
  [{ tools: [5] }, "tools[0]", "invalid_type", "expected an object"],
  [{ tools: [{ name: "f" }] }, "tools[0].type", "missing_required_parameter", "tools[0].type"],
  [{ tools: [{ type: "function", function: tool }] }, "tools[0].name", "missing_required_parameter", "tools[0].name"],
  [{ tools: [{ ...tool, parameters: "{}" }] }, "tools[0].parameters", "invalid_type", "expected an object"],
  [{ tools: [{ ...tool, strict: "yes" }] }, "tools[0].strict", "invalid_type", "expected a boolean"],
  [{ tool_choice: "any" }, "tool_choice", "invalid_value", "'auto', 'none', 'required'"],
  [{ tool_choice: 5 }, "tool_choice", "invalid_type", "expected an object"],
  [{ tool_choice: { type: "function", name: "g" }, tools: [tool] }, "tool_choice", "invalid_value", "'g' not found"],
  [{ tool_choice: { type: "custom", name: "f" }, tools: [tool] }, "tool_choice", "invalid_value", "'f' not found"],
  [{ tool_choice: { type: "function" }, tools: [tool] }, "tool_choice.name", "missing_required_parameter", "name"],
  [{ tool_choice: { type: "allowed_tools" } }, "tool_choice.tools", "missing_required_parameter", "tool_choice.tools"],
  [
    { tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "g" }] }, tools: [tool] },
    "tool_choice",
    "invalid_value",
    "'g' not found",
  ],
];

test("a wrong body is refused with status 400, the field and the remedy", () => {
  for (const [body, param, code, message] of refused) {
    const whole = body !== null && typeof body === "object" && !Array.isArray(body);
    const sent = whole ? { model: "m", input: "Hi", ...body } : body;
    const shown = JSON.stringify(body);
    assert.throws(
      () => protocol.parse(sent, "default"),
      (error) => {
        assert.ok(error instanceof GatewayError, shown);
        assert.equal(error.status, 400, shown);
        assert.equal(error.param, param, shown);
        assert.equal(error.wireCode, code, shown);
        assert.ok(error.message.includes(message), `${shown}: ${error.message}`);
        return true;
      },
      shown,
    );
  }
});

test("a string is read as a user message, and everything else has its default", () => {
  const { settings, ...rest } = ask({});
  assert.deepEqual(rest, {
    model: "m",
    items: [{ type: "message", role: "user", content: "Hi" }],
    itemsParam: "input",
    needsOutputs: true,
    stream: false,
    previousId: undefined,
    conversationId: undefined,
    user: undefined,
    keep: "yes",
    background: false,
    truncation: undefined,
  });
  assert.deepEqual(settings.tools, []);
  assert.deepEqual(settings.native, { dialect: "responses", fields: {}, demands: [], offers: [] });
});

test("null means absent everywhere, and so do empty texts", () => {
  const optional =
    "instructions previous_response_id conversation user store stream metadata temperature top_p presence_penalty " +
    "frequency_penalty max_output_tokens max_tool_calls top_logprobs parallel_tool_calls truncation text reasoning " +
    "service_tier include tools tool_choice background prompt safety_identifier prompt_cache_key stream_options";
  const nulls = Object.fromEntries(optional.split(" ").map((key) => [key, null]));
  assert.deepEqual(ask(nulls), ask({}));
  const empty = ask({ user: "", instructions: "", reasoning: {}, text: {}, include: [], tools: [] });
  assert.deepEqual(
    { ...empty, settings: { ...empty.settings, native: undefined } },
    { ...ask({}), settings: { ...ask({}).settings, native: undefined } },
  );
});

test("settings that only this dialect supports are listed: those that the answer depends on, and mere offers", () => {
  const moderation = { model: "omni-moderation-latest" };
  const prompted = ask({
    prompt: { id: "p" },
    moderation,
    context_management: [{ type: "compaction" }],
    prediction: 1,
  });
  const { demands = [], offers } = prompted.settings.native ?? {};
  assert.deepEqual([demands.map(({ param }) => param), offers], [["prompt", "moderation"], ["context_management"]]);
  const chats = ask({ response_format: { type: "json_object" }, max_tokens: 5, max_completion_tokens: 5 });
  assert.deepEqual(
    chats.settings.native?.demands?.map(({ param }) => param),
    ["response_format", "max_tokens", "max_completion_tokens"],
  );
  assert.deepEqual(ask({ response_format: { type: "text" } }).settings.native?.demands, []);
  const { native } = ask({ prompt: null, context_management: null, max_tokens: null }).settings;
  assert.deepEqual(native, { dialect: "responses", fields: {}, demands: [], offers: [] });
});

test("a conversation is to be compacted beyond the lowest threshold, if any is given", () => {
  const param = "context_management";
  const [limit, other] = [
    { type: "compaction", compact_threshold: 1000 },
    { type: "compaction", compact_threshold: null },
  ];
  assert.deepEqual(ask({ [param]: [{ ...limit, compact_threshold: 2000 }, other, limit] }).compactsBeyond, {
    param,
    tokens: 1000,
  });
  assert.deepEqual(ask({ [param]: [other] }).compactsBeyond, { param });
  for (const none of [null, []]) {
    const { compactsBeyond, settings } = ask({ [param]: none });
    assert.deepEqual([compactsBeyond, settings.native?.offers], [undefined, []]);
  }
  const pruning = { type: "pruning", compact_threshold: 1 };
  for (const [entries, compactsBeyond] of [
    [[pruning], undefined],
    [[pruning, limit], { tokens: 1000 }],
  ] as const) {
    const read = ask({ [param]: entries });
    assert.deepEqual(read.compactsBeyond, compactsBeyond);
    const { fields, offers } = read.settings.native ?? {};
    assert.deepEqual([fields, offers], [{ [param]: entries }, [param]], "another kind is for those that know it");
  }
});

test("items without a type are messages, and extra fields of this dialect are kept", () => {
  const { items } = ask({
    input: [
      { role: "developer", content: "Be brief." },
      { role: "user", content: [{ type: "input_text", text: "Hi" }], type: null },
      {
        type: "message",
        id: "msg_1",
        status: "completed",
        role: "assistant",
        phase: "commentary",
        content: [
          { type: "output_text", text: "Hello", annotations: [], logprobs: [], parsed: { greeting: true } },
          { type: "refusal", refusal: "No.", policy: "p1" },
        ],
      },
    ],
  });
  assert.deepEqual(items, [
    { type: "message", role: "developer", content: "Be brief.", extra: undefined },
    { type: "message", role: "user", content: [{ type: "text", text: "Hi", extra: undefined }], extra: undefined },
    {
      type: "message",
      role: "assistant",
      content: [
        { type: "text", text: "Hello", extra: undefined },
        { type: "refusal", text: "No.", extra: { dialect: "responses", fields: { policy: "p1" } } },
      ],
      extra: { dialect: "responses", fields: { phase: "commentary" } },
    },
  ]);
});

test("images, files, sounds and unknown parts are read", () => {
  const citation = { type: "url_citation", url: "u" };
  const unknown = { type: "hologram", depth: 3 };
  const [message] = ask(
    user([
      { type: "input_image", image_url: "data:image/png;base64,AA", detail: "low" },
      { type: "input_image", file_id: "file_1" },
      { type: "input_file", file_data: "data:application/pdf;base64,AA", filename: "a.pdf" },
      { type: "input_file", file_url: "https://example.com/a.pdf" },
      { type: "input_audio", input_audio: { data: "AA", format: "wav", rate: 8_000 } },
      { type: "text", text: "cited", annotations: [citation] },
      unknown,
    ]),
  ).items;
  assert.ok(message?.type === "message");
  assert.deepEqual(JSON.parse(JSON.stringify(message.content)), [
    { type: "image", url: "data:image/png;base64,AA", detail: "low" },
    { type: "image", fileId: "file_1" },
    { type: "file", data: "data:application/pdf;base64,AA", name: "a.pdf" },
    { type: "file", url: "https://example.com/a.pdf" },
    {
      type: "audio",
      data: "AA",
      format: "wav",
      extra: { dialect: "responses", fields: { input_audio: { rate: 8_000 } } },
    },
    { type: "text", text: "cited", annotations: [{ type: "url_citation", fields: { url: "u" } }] },
    { type: "other", extra: { dialect: "responses", fields: unknown } },
  ]);
});

test("calls, their outputs and reasoning are read as items", () => {
  const { items } = ask({
    input: [
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "A" }],
        content: [
          { type: "reasoning_text", text: "b" },
          { type: "reasoning_text", text: "c" },
        ],
        encrypted_content: "opaque",
      },
      { type: "reasoning", summary: null, content: null, encrypted_content: null },
      { ...call, id: "fc_1", status: "completed", namespace: "n", parsed_arguments: {} },
      { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "sunny" }] },
      { type: "custom_tool_call", call_id: "d", name: "patch", input: "*** Begin" },
      { type: "custom_tool_call_output", call_id: "d", output: "done", id: "ctco_1", caller: { type: "direct" } },
    ],
  });
  assert.deepEqual(items, [
    { type: "reasoning", summary: ["A"], text: "bc", encrypted: "opaque" },
    { type: "reasoning", summary: [], text: "", encrypted: undefined },
    {
      type: "tool-call",
      kind: "function",
      callId: "c",
      name: "f",
      group: "n",
      arguments: "{}",
      extra: undefined,
    },
    {
      type: "tool-output",
      kind: "function",
      callId: "c",
      output: [{ type: "text", text: "sunny", extra: undefined }],
      extra: undefined,
    },
    { type: "tool-call", kind: "custom", callId: "d", name: "patch", arguments: "*** Begin", extra: undefined },
    {
      type: "tool-output",
      kind: "custom",
      callId: "d",
      output: "done",
      extra: { dialect: "responses", fields: { caller: { type: "direct" } } },
    },
  ]);
});

test("items of unknown types are kept for an adapter that knows them", () => {
  const input = [
    { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
    { type: "mcp_list_tools", id: "mcpl_1", server_label: "s", tools: [] },
    { type: "toString", id: "x", role: "user" },
  ];
  assert.deepEqual(
    ask({ input }).items,
    input.map((fields) => ({ type: "other", extra: { dialect: "responses", fields } })),
  );
});

test("the output of a hosted call names it by its call id, or as its type does", () => {
  const outputs = [
    { type: "computer_call_output", id: "o", call_id: "c", output: {} },
    { type: "mcp_approval_response", id: "o", approval_request_id: "c", approve: true },
    { type: "local_shell_call_output", id: "c", output: "{}" },
    { type: "local_shell_call_output", id: "o", call_id: "c", output: "{}" },
  ];
  for (const item of ask({ input: outputs }).items) {
    assert.deepEqual("exchange" in item && item.exchange, { side: "tools", id: "c" });
  }
});

test("reasoning that the gateway sealed is opened, whatever text the item shows", () => {
  const sealed = (content: object) => seal.seal(JSON.stringify(content));
  const { items } = ask({
    input: [
      { type: "reasoning", summary: [{ type: "summary_text", text: "A" }], encrypted_content: sealed({ text: "b" }) },
      { type: "reasoning", summary: [], encrypted_content: sealed({ text: "", encrypted: "opaque" }) },
      {
        type: "reasoning",
        summary: [],
        content: [{ type: "reasoning_text", text: "no" }],
        encrypted_content: sealed({ text: "b", encrypted: "opaque" }),
      },
    ],
  });
  assert.deepEqual(items, [
    { type: "reasoning", summary: ["A"], text: "b", encrypted: undefined },
    { type: "reasoning", summary: [], text: "", encrypted: "opaque" },
    { type: "reasoning", summary: [], text: "b", encrypted: "opaque" },
  ]);
});

test("sealed content of another kind is not read as reasoning", () => {
  for (const other of ["We met.", '{"summary":"We met."}', "{}", "[1]", '{"text":1}']) {
    const encrypted = seal.seal(other);
    const { items } = ask({ input: [{ type: "reasoning", summary: [], encrypted_content: encrypted }] });
    assert.deepEqual(items, [{ type: "reasoning", summary: [], text: "", encrypted }]);
  }
});

test("sealed content of another kind is not read as a compaction", () => {
  for (const other of ["We met.", '{"text":"b","encrypted":"opaque"}', "[1]", '{"summary":1}']) {
    const encrypted = seal.seal(other);
    const { items } = ask({ input: [{ type: "compaction", encrypted_content: encrypted }] });
    assert.deepEqual(items, [{ type: "compaction", summary: "", encrypted }]);
  }
});

test("an item reference may come without its type, and with null for the fields of a message", () => {
  const input = [
    { type: "item_reference", id: "msg_1" },
    { id: "msg_2" },
    { id: "msg_3", type: null, role: null, content: null },
  ];
  assert.deepEqual(
    ask({ input }).items,
    input.map(({ id }) => ({ type: "reference", id })),
  );
  for (const field of [{ role: "user" }, { content: "Hi" }])
    assert.throws(() => ask({ input: [{ id: "msg_1", ...field }] }), /Missing required parameter: 'input\[0\]\.\w+'/);
});

test("the length of metadata is counted in characters, not in UTF-16 code units", () => {
  const metadata = { ["😀".repeat(64)]: "😀".repeat(512) };
  const { voice } = protocol.parse({ model: "m", input: "Hi", metadata }, "default");
  assert.deepEqual(JSON.parse(voice.memo?.() ?? "").metadata, metadata);
});

test("a compaction that the gateway sealed is opened, and any other is left for the adapter", () => {
  const { items } = ask({
    input: [
      { type: "compaction", id: "cmp_1", encrypted_content: seal.seal('{"summary":"We met."}') },
      { type: "compaction", id: null, encrypted_content: "opaque" },
    ],
  });
  assert.deepEqual(items, [
    { type: "compaction", summary: "We met." },
    { type: "compaction", summary: "", encrypted: "opaque" },
  ]);
});

test("content that was sealed for another owner or by an earlier version is refused with its path", () => {
  const foreign = protocol.sealOf("someone else");
  for (const encrypted_content of [
    foreign.seal('{"text":"b"}'),
    foreign.seal('{"summary":"We met."}'),
    `${seal.seal('{"text":"b"}').slice(0, -4)}AAAA`,
    "portico1.AAAA",
  ]) {
    for (const type of ["reasoning", "compaction"]) {
      const input = [
        { role: "user", content: "Hi" },
        { type, summary: [], encrypted_content },
      ];
      assert.throws(() => ask({ input }), {
        code: "invalid_value",
        wireCode: "invalid_encrypted_content",
        param: "input[1].encrypted_content",
      });
    }
  }
});

test("an input that ends with a compaction trigger asks for a compaction", () => {
  const { items, compacts } = ask({ input: [{ role: "user", content: "Hi" }, { type: "compaction_trigger" }] });
  assert.deepEqual(items, [{ type: "message", role: "user", content: "Hi", extra: undefined }]);
  assert.equal(compacts, true);
  assert.equal(ask({}).compacts, undefined);
});

test("a request that continues a response may come without input", () => {
  const { items, previousId, keep } = ask({ input: null, previous_response_id: "resp_1", store: false });
  assert.deepEqual({ items, previousId, keep }, { items: [], previousId: "resp_1", keep: "no" });
});

test("settings are read in a dialect-independent form, and kept in the caller's own", () => {
  const body = {
    temperature: 0.5,
    top_p: 0.9,
    max_output_tokens: 100,
    parallel_tool_calls: false,
    text: { format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: null }, verbosity: "low" },
    reasoning: { effort: "high", summary: "auto" },
    service_tier: "flex",
    include: ["message.output_text.logprobs"],
    truncation: "auto",
    never_heard_of: { a: 1 },
  };
  const own = { user: "u", instructions: "i", stream: true, store: true, previous_response_id: "resp_1" };
  const { settings, stream, user } = ask({ ...body, ...own });
  assert.deepEqual([stream, user, settings.instructions], [true, "u", "i"]);
  assert.equal(settings.temperature, 0.5);
  assert.equal(settings.topP, 0.9);
  assert.equal(settings.maxOutputTokens, 100);
  assert.equal(settings.parallelToolCalls, false);
  assert.deepEqual(settings.format, {
    type: "schema",
    name: "n",
    description: undefined,
    schema: { type: "object" },
    strict: undefined,
  });
  assert.deepEqual(
    [settings.verbosity, settings.reasoningEffort, settings.reasoningSummary, settings.serviceTier],
    ["low", "high", "auto", "flex"],
  );
  assert.equal(settings.topLogprobs, 0);
  assert.deepEqual(settings.native, { dialect: "responses", fields: body, demands: [], offers: [] });
});

test("log probabilities are requested without alternatives, with some, or not at all", () => {
  const include = ["message.output_text.logprobs"];
  const top = (body: object) => ask(body).settings.topLogprobs;
  assert.deepEqual([top({ include }), top({ include, top_logprobs: 0 }), top({ top_logprobs: 2 })], [0, 0, 2]);
  assert.deepEqual([top({ top_logprobs: 0 }), top({})], [undefined, undefined]);
});

test("tools of a coding agent are read: functions, custom tools, and types of the dialect", () => {
  const grammar = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
  const namespace = { type: "namespace", name: "browser", description: "d", tools: [tool] };
  const { settings } = ask({
    tools: [
      { ...tool, description: null, parameters: { $schema: "s", type: "object" }, strict: null },
      { type: "custom", name: "apply_patch", description: "Edits files.", format: grammar },
      namespace,
      { type: "web_search" },
    ],
    client_metadata: { id: "x" },
    include: ["reasoning.encrypted_content"],
  });
  assert.deepEqual(settings.tools, [
    {
      type: "function",
      name: "f",
      description: undefined,
      parameters: { $schema: "s", type: "object" },
      strict: undefined,
    },
    { type: "custom", name: "apply_patch", description: "Edits files.", format: grammar },
    {
      type: "other",
      name: "namespace browser",
      group: {
        name: "browser",
        description: "d",
        tools: [{ ...tool, description: undefined, parameters: undefined, strict: undefined }],
      },
      extra: { dialect: "responses", fields: namespace },
    },
    { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } },
  ]);
});

function settingsWith(choice: unknown): Settings {
  const servers = ["wiki", "mail"].map((server_label) => ({ type: "mcp", server_label }));
  const tools = [tool, { type: "custom", name: "c" }, { type: "web_search" }, ...servers];
  return ask({ tools, tool_choice: choice }).settings;
}

function choose(choice: unknown): ToolChoice | undefined {
  return settingsWith(choice).toolChoice;
}

test("a tool choice is a word, a tool, several tools, or something of the dialect", () => {
  for (const type of ["auto", "none", "required"]) {
    assert.deepEqual(choose(type), { type });
    assert.deepEqual(choose({ type }), { type });
  }
  assert.deepEqual(choose({ type: "function", name: "f" }), { type: "tool", name: "f" });
  assert.deepEqual(choose({ type: "custom", name: "c" }), { type: "tool", name: "c" });
  const allowed = [{ type: "function", name: "f" }, { type: "custom", name: "c" }, { type: "web_search" }];
  const choice = { type: "allowed_tools", mode: "required", tools: allowed };
  assert.deepEqual(choose(choice), { type: "required" });
  assert.deepEqual(choose({ ...choice, mode: undefined }), { type: "auto" });
  assert.deepEqual(settingsWith(choice).allowedTools, ["f", "c", "web_search"]);
  assert.deepEqual(choose({ type: "file_search" }), {
    type: "other",
    extra: { dialect: "responses", fields: { type: "file_search" } },
  });
});

test("a namespace within a namespace is not offered, and stays in the fields of the outer one", () => {
  const inner = { type: "namespace", name: "inner", tools: [{ type: "function", name: "deep" }] };
  const outer = { type: "namespace", name: "outer", tools: [{ type: "function", name: "f" }, inner] };
  const [tool] = ask({ tools: [outer] }).settings.tools;
  assert.ok(tool?.type === "other");
  assert.deepEqual(tool.extra.fields, outer);
  assert.deepEqual(
    tool.group?.tools.map(({ type, ...each }) => [type, "name" in each, "group" in each]),
    [
      ["function", true, false],
      ["other", false, false],
    ],
  );
});

test("a tool in a namespace is chosen by both names, or by its own name if that is unique", () => {
  const files = { type: "namespace", name: "files", tools: [tool, { type: "custom", name: "patch" }] };
  const mail = { type: "namespace", name: "mail", tools: [tool, { type: "function", name: "send" }] };
  const settings = (tool_choice: object) => ask({ tools: [files, mail], tool_choice }).settings;
  const pick = (tool_choice: object) => settings(tool_choice).toolChoice;
  const named = { type: "function", name: "f", namespace: "mail" };
  assert.deepEqual(pick(named), { type: "tool", name: "mail f" });
  assert.deepEqual(pick({ type: "custom", name: "patch" }), { type: "tool", name: "files patch" });
  const tools = [named, { type: "function", name: "send" }, { type: "namespace", name: "files" }];
  const allowed = ["mail f", "mail send", "namespace files"];
  assert.deepEqual(settings({ type: "allowed_tools", tools }).allowedTools, allowed);
  const both = { code: "invalid_value", param: "tool_choice.namespace", message: /Several namespaces .* 'f'/ };
  assert.throws(() => pick({ type: "function", name: "f" }), both);
  const unknown = { code: "invalid_value", param: "tool_choice" };
  assert.throws(() => pick({ ...named, namespace: "web" }), { ...unknown, message: /'web f' not found/ });
  assert.throws(() => pick({ type: "custom", name: "send" }), unknown);
  assert.throws(() => ask({ tools: [{ ...mail, tools: [{ type: "function" }] }] }), {
    code: "missing_required_parameter",
    param: "tools[0].tools[0].name",
  });
  const alone = ask({ tools: [tool, mail], tool_choice: { type: "function", name: "f" } });
  assert.deepEqual(alone.settings.toolChoice, { type: "tool", name: "f" });
});

test("an allowed server is identified by its label, and one without a label means all of its type", () => {
  const allow = (...tools: readonly object[]) => settingsWith({ type: "allowed_tools", tools }).allowedTools;
  assert.deepEqual(allow({ type: "mcp", server_label: "mail" }), ["mcp mail"]);
  assert.deepEqual(allow({ type: "mcp" }), ["mcp wiki", "mcp mail"]);
  const unknown = { code: "invalid_value", param: "tool_choice" };
  assert.throws(() => allow({ type: "mcp", server_label: "files" }), { ...unknown, message: /'mcp files' not found/ });
  assert.throws(() => allow({ type: "image_generation" }), unknown);
});
