/** The object of a response: every key of the live wire, null where absent, and what the request asked for, repeated. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Delta, say, shareGateway } from "../harness/house.ts";
import { normalise, playResponse } from "./play.ts";

const open = shareGateway();
const notes = (serviceTier: string): Delta => ({ type: "notes", notes: { serviceTier } });
const counts = { inputTokens: 7, cachedTokens: 2, outputTokens: 5, reasoningTokens: 1 };

test("every key is there, with its default", async () => {
  const { whole } = await playResponse(await open(), [say("Hello")]);
  const { created_at, completed_at } = whole;
  assert.ok(Math.abs(Number(created_at) - Date.now() / 1000) < 120);
  assert.ok(Number.isInteger(completed_at) && Number(completed_at) >= Number(created_at));
  assert.deepEqual(normalise(whole), {
    id: "resp",
    object: "response",
    created_at: 0,
    status: "completed",
    background: false,
    completed_at: 0,
    error: null,
    frequency_penalty: 0,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    model: "m",
    output: [
      {
        id: "msg",
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

test("what the request asked for is repeated, with every field of a function", async () => {
  const tools = [
    { type: "function", name: "f", strict: null },
    { type: "function", name: "g", description: "Does it.", parameters: { type: "object" }, strict: true },
    { type: "custom", name: "c" },
  ];
  const asked = {
    instructions: "Be brief.",
    max_output_tokens: 16,
    max_tool_calls: 1,
    parallel_tool_calls: false,
    presence_penalty: -2,
    frequency_penalty: 2,
    prompt_cache_key: "k",
    safety_identifier: "s",
    reasoning: { effort: "low", summary: "auto" },
    store: false,
    temperature: 0,
    text: { format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: true }, verbosity: "low" },
    tool_choice: { type: "function", name: "f" },
    top_logprobs: 3,
    top_p: 0.5,
    metadata: { a: "b" },
  };
  const { whole, response } = await playResponse(await open(), [say("{}")], { ...asked, tools });
  for (const object of [whole, response]) {
    assert.deepEqual(Object.fromEntries(Object.keys(asked).map((key) => [key, object[key]])), asked);
    assert.deepEqual(object["tools"], [
      { type: "function", name: "f", description: null, parameters: null, strict: null },
      tools[1],
      tools[2],
    ]);
  }
});

test("usage comes at the end, with its details", async () => {
  const counted = {
    input_tokens: 7,
    input_tokens_details: { cached_tokens: 2, cache_write_tokens: 0 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 1 },
    total_tokens: 12,
  };
  const gateway = await open();
  const { whole, events, response } = await playResponse(gateway, [[...say("a"), { type: "usage", usage: counts }]]);
  assert.deepEqual([whole["usage"], response["usage"], events[0]!.response["usage"]], [counted, counted, null]);
  const written: Delta = { type: "usage", usage: { ...counts, cacheWriteTokens: 4 } };
  const other = await playResponse(gateway, [[...say("a"), written]]);
  const details = (other.whole["usage"] as { input_tokens_details: object }).input_tokens_details;
  assert.deepEqual(details, { cached_tokens: 2, cache_write_tokens: 4 });
});

test("the requested service tier is sent first, and the one that served at the end", async () => {
  const gateway = await open();
  for (const [asked, first, served, last] of [
    [undefined, "auto", [], "default"],
    ["priority", "priority", [notes("scale")], "scale"],
    [undefined, "auto", [notes("on_demand")], "on_demand"],
  ] as const) {
    const { events, response, whole } = await playResponse(gateway, [[...served, ...say("a")]], {
      service_tier: asked,
    });
    const tiers = [events[0]!.response["service_tier"], response["service_tier"], whole["service_tier"]];
    assert.deepEqual(tiers, [first, last, last]);
  }
});

test("an answer that was cut off says why, and has no time of completion", async () => {
  for (const [reason, sent] of [
    ["length", "max_output_tokens"],
    ["content-filter", "content_filter"],
  ] as const) {
    const said: Delta[] = [{ type: "reasoning", text: "hm" }, ...say("Once"), { type: "finish", reason }];
    const { whole, events, response } = await playResponse(await open(), [said]);
    assert.equal(events.at(-1)!.type, "response.incomplete");
    for (const object of [whole, response]) {
      assert.deepEqual(object["incomplete_details"], { reason: sent });
      assert.deepEqual([object.status, object.error, object["completed_at"]], ["incomplete", null, null]);
      assert.deepEqual(
        object.output.map(({ type, status }) => [type, status]),
        [
          ["reasoning", "completed"],
          ["message", "incomplete"],
        ],
      );
    }
  }
});

test("an empty answer is completed, with no output", async () => {
  const { whole, events, response } = await playResponse(await open(), []);
  assert.deepEqual(
    events.map(({ type }) => type),
    ["response.created", "response.in_progress", "response.completed"],
  );
  for (const object of [whole, response]) assert.deepEqual([object.status, object.output], ["completed", []]);
});
