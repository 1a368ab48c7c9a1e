/** The whole response object. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../../src/core/delta.ts";
import { checkStream, type WireResponse } from "../grammar.ts";
import { about, play, protocol, seal } from "./script.ts";

const keys =
  "id object created_at status background completed_at error frequency_penalty incomplete_details instructions " +
  "max_output_tokens max_tool_calls model output parallel_tool_calls presence_penalty previous_response_id " +
  "prompt_cache_key reasoning safety_identifier service_tier store temperature text tool_choice tools top_logprobs " +
  "top_p truncation usage user metadata";

test("every key is present in the order of the live wire, with its default", async () => {
  const { whole } = await play([[{ type: "text", text: "Hello" }]]);
  const response = whole();
  assert.equal(Object.keys(response).join(" "), keys);
  assert.deepEqual(response, {
    id: "resp_ab12",
    object: "response",
    created_at: 1_700_000_000,
    status: "completed",
    background: false,
    completed_at: 1_700_000_009,
    error: null,
    frequency_penalty: 0,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    model: "some-model",
    output: [
      {
        id: "msg_ab120000",
        type: "message",
        status: "completed",
        content: [{ type: "output_text", annotations: [], logprobs: [], text: "Hello" }],
        role: "assistant",
      },
    ],
    parallel_tool_calls: true,
    presence_penalty: 0,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: "default",
    store: true,
    temperature: 1,
    text: { format: { type: "text" }, verbosity: "medium" },
    tool_choice: "auto",
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    truncation: "disabled",
    usage: null,
    user: null,
    metadata: {},
  });
});

test("what an adapter adds changes none of the keys that the gateway itself sends, whole or streamed", async () => {
  const text: Delta = { type: "text", text: "Hello" };
  const claimed = Object.fromEntries([...keys.split(" "), "conversation"].map((key) => [key, "not ours"]));
  const plain = await play([[text]]);
  for (const fields of [claimed, {}, { moderation: undefined }]) {
    const added = await play([[text, { type: "notes", notes: { extra: { dialect: "responses", fields } } }]]);
    assert.equal(added.stream, plain.stream);
    assert.deepEqual(added.whole(), plain.whole());
  }
});

test("settings of the request are repeated in the response", async () => {
  const tools = [
    { type: "function", name: "f", strict: null },
    { type: "custom", name: "c", description: null },
    { type: "namespace", name: "n", description: "d", tools: [] },
  ];
  const body = {
    instructions: "Be brief.",
    previous_response_id: "resp_before",
    max_output_tokens: 16,
    max_tool_calls: 1,
    parallel_tool_calls: false,
    presence_penalty: -2,
    frequency_penalty: 2,
    prompt_cache_key: "k",
    safety_identifier: "s",
    reasoning: { effort: "low", summary: "auto" },
    service_tier: "flex",
    store: false,
    temperature: 0,
    text: { format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: true }, verbosity: "low" },
    tool_choice: { type: "function", name: "f" },
    tools,
    top_logprobs: 3,
    top_p: 0.5,
    user: "someone",
    metadata: { a: "b" },
  };
  const { whole } = await play([[{ type: "notes", notes: { serviceTier: "flex" } }]], body);
  const response = whole();
  const repeated = Object.fromEntries(Object.keys(body).map((key) => [key, response[key]]));
  assert.deepEqual(repeated, {
    ...body,
    tools: [
      { type: "function", description: null, name: "f", parameters: null, strict: null },
      { type: "custom", name: "c" },
      tools[2],
    ],
  });
});

test("each text format is repeated as it was sent", async () => {
  const schema = { type: "json_schema", name: "n", schema: { type: "object" } };
  for (const [format, repeated] of [
    [{ type: "text" }, { type: "text" }],
    [{ type: "json_object" }, { type: "json_object" }],
    [schema, { ...schema, strict: null }],
  ]) {
    const { whole } = await play([[{ type: "text", text: "Hi" }]], { text: { format } });
    assert.deepEqual(whole()["text"], { format: repeated, verbosity: "medium" });
  }
});

test("what an upstream adds to the response itself is passed on, but no field of ours", async () => {
  const fields = { moderation: { flagged: false }, status: "odd" };
  const { whole } = await play([[{ type: "notes", notes: { extra: { dialect: "responses", fields } } }]]);
  const response = whole();
  assert.deepEqual([response["moderation"], response["status"]], [{ flagged: false }, "completed"]);
  const other = await play([[{ type: "notes", notes: { extra: { dialect: "chat", fields } } }]]);
  assert.equal("moderation" in other.whole(), false);
});

test("the requested service tier is sent first, and the used one at the end", async () => {
  const { stream, whole } = await play([[{ type: "notes", notes: { serviceTier: "scale" } }]], {
    service_tier: "priority",
  });
  assert.match(stream, /^event: response.created\n.*"service_tier":"priority"/);
  assert.equal(whole()["service_tier"], "scale");
});

test("a service tier that clients do not know is sent as the default one", async () => {
  for (const [served, sent] of [
    ["ultrafast", "ultrafast"],
    ["on_demand", "default"],
    ["constructor", "default"],
  ] as const) {
    const { stream, whole } = await play([[{ type: "notes", notes: { serviceTier: served } }]]);
    assert.equal(whole()["service_tier"], sent);
    assert.equal(checkStream(stream).response["service_tier"], sent);
  }
});

test("an answer in a session has the id of its conversation", () => {
  const { voice } = protocol.parse({ model: "m", input: "Hi" }, "default");
  const answer = {
    status: "completed",
    finish: "stop",
    items: [],
    usage: undefined,
    error: undefined,
    notes: {},
    endedAt: new Date(0),
    brokenOff: undefined,
    pieces: undefined,
  } as const;
  const response: WireResponse = JSON.parse(voice.whole({ ...about, session: "conv_1" }, answer));
  assert.deepEqual(response["conversation"], { id: "conv_1" });
});

test("sealed reasoning is sent only to a caller that asked for it, even if the adapter has sealed nothing", async () => {
  const item = { id: "rs_ab120000", type: "reasoning", status: "completed", summary: [] };
  const content = [{ type: "reasoning_text", text: "hm" }];
  const table = [
    [[{ type: "reasoning-seal", encrypted: "opaque" }], item, { text: "", encrypted: "opaque" }],
    [[{ type: "reasoning", text: "hm" }], { ...item, content }, { text: "hm" }],
    [
      [{ type: "reasoning", text: "So.", summary: 0 }],
      { ...item, summary: [{ type: "summary_text", text: "So." }] },
      { text: "" },
    ],
    [
      [
        { type: "reasoning", text: "hm" },
        { type: "reasoning-seal", encrypted: "opaque" },
      ],
      { ...item, content },
      { text: "hm", encrypted: "opaque" },
    ],
  ] as const satisfies readonly (readonly [readonly Delta[], object, object])[];
  for (const [deltas, hidden, carried] of table) {
    const shown = await play([deltas], { include: ["reasoning.encrypted_content"] });
    const encrypted_content = seal.seal(JSON.stringify(carried));
    assert.deepEqual(shown.whole().output, [{ ...hidden, encrypted_content }]);
    const added = checkStream(shown.stream).events.find(({ type }) => type === "response.output_item.added");
    assert.ok(!JSON.stringify(added).includes("encrypted_content"), "it is sealed when it is whole");
    assert.deepEqual((await play([deltas])).whole().output, [hidden]);
  }
});

test("a compaction is one sealed item, in the stream and in the object", async () => {
  const { stream, whole } = await play([[{ type: "compaction", summary: "We met." }]]);
  const { output } = whole();
  const encrypted_content = seal.seal('{"summary":"We met."}');
  assert.deepEqual(output, [{ id: "cmp_ab120000", type: "compaction", encrypted_content }]);
  assert.deepEqual(checkStream(stream).response.output, output);
});
