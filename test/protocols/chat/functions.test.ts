/** Function calling as it was before tools: how it is read, and how a call is sent to a caller that uses it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Delta } from "../../../src/core/delta.ts";
import type { Item } from "../../../src/core/item.ts";
import { readChunks, type WireCall } from "../chunks.ts";
import { batches } from "../deltas.ts";
import { play, protocol } from "./script.ts";

const user = { role: "user", content: "Hi" };
const described = { name: "f", description: "It does.", parameters: { type: "object", properties: {} } };
const functions = [described, { name: "g" }];
const called = (name: string, written = "{}") => ({
  role: "assistant",
  content: null,
  function_call: { name, arguments: written },
});
const given = (name: string, content: string | null) => ({ role: "function", name, content });

function parse(body: object) {
  return protocol.parse({ model: "m", messages: [user], ...body }, "default").ask;
}

/** The items of a message list, without absent fields. */
function read(...messages: readonly object[]): Item[] {
  return JSON.parse(JSON.stringify(parse({ messages }).items));
}

function idsOf(items: readonly Item[]): readonly string[] {
  return items.flatMap((item) => (item.type === "tool-call" || item.type === "tool-output" ? [item.callId] : []));
}

test("functions are read as tools of which one is called at a time, and sent to a chat model as tools", () => {
  const { settings } = parse({ functions, function_call: { name: "f" }, temperature: 0 });
  assert.deepEqual(JSON.parse(JSON.stringify(settings.tools)), [
    { type: "function", ...described },
    { type: "function", name: "g" },
  ]);
  assert.deepEqual(settings.toolChoice, { type: "tool", name: "f" });
  assert.equal(settings.parallelToolCalls, false);
  assert.deepEqual(settings.native?.fields, {
    temperature: 0,
    tools: functions.map((one) => ({ type: "function", function: one })),
    tool_choice: { type: "function", function: { name: "f" } },
    parallel_tool_calls: false,
  });
});

test("function_call is read as tool_choice, and empty or null fields count as absent", () => {
  for (const word of ["auto", "none"] as const) {
    assert.deepEqual(parse({ functions, function_call: word }).settings.toolChoice, { type: word });
  }
  const { settings } = parse({ functions, function_call: null, tools: null, tool_choice: null });
  assert.equal(settings.toolChoice, undefined);
  assert.deepEqual(Object.keys(settings.native?.fields ?? {}), ["tools", "parallel_tool_calls"]);
  assert.deepEqual(parse({ functions: [] }).settings, parse({}).settings);
});

test("calls without ids get ids, and an output belongs to the newest call of its function's name", () => {
  const items = read(user, called("f"), given("f", "1"), called("f"), given("f", null));
  const [one, , two] = idsOf(items);
  assert.notEqual(one, two);
  assert.deepEqual(items.slice(1), [
    { type: "tool-call", kind: "function", callId: one, name: "f", arguments: "{}" },
    { type: "tool-output", kind: "function", callId: one, output: "1" },
    { type: "tool-call", kind: "function", callId: two, name: "f", arguments: "{}" },
    { type: "tool-output", kind: "function", callId: two, output: "" },
  ]);
});

test("the ids are the same when the history is sent again, even without its beginning, and suit every upstream", () => {
  const long = "f".repeat(64);
  const history = [called("g", '{"a":1}'), given("g", "1"), called(long), given(long, "2")];
  const ids = idsOf(read(user, ...history));
  assert.deepEqual(idsOf(read(user, ...history, user)), ids);
  assert.deepEqual(idsOf(read(...history.slice(2))), ids.slice(2));
  for (const id of ids) assert.match(id, /^call_[0-9a-f]{24}$/);
});

test("an abandoned call stays without output, and a call of the newer form may be answered in the older one", () => {
  const [abandoned, second, output] = idsOf(read(user, called("f", '{"a":1}'), user, called("f"), given("f", "1")));
  assert.notEqual(abandoned, second);
  assert.equal(output, second);
  const modern = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  assert.deepEqual(idsOf(read({ role: "assistant", tool_calls: [modern] }, given("f", "1"))), ["c", "c"]);
});

test("a function message keeps its unknown fields, without its name", () => {
  const [, output] = read(called("f"), { ...given("f", "1"), trace: 7 });
  assert.deepEqual(output?.type === "tool-output" && output.extra, { dialect: "chat", fields: { trace: 7 } });
});

test("calls in both forms are read once; those that the caller could not answer are left out", () => {
  const tool_calls = ["a", "b"].map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } }));
  const both = { ...called("f"), tool_calls };
  assert.deepEqual(idsOf(read(both, given("f", "1"))), ["a", "a"]);
  assert.deepEqual(idsOf(read(both, given("f", "1"), { role: "tool", tool_call_id: "b", content: "2" })), [
    "a",
    "b",
    "a",
    "b",
  ]);
});

const call: readonly Delta[] = [
  { type: "tool-call", index: 0, callId: "call_a", name: "f" },
  { type: "tool-arguments", index: 0, text: '{"a"' },
  { type: "tool-arguments", index: 0, text: ":1}" },
  { type: "finish", reason: "tool-calls" },
];

test("the call of an answer is sent as a function call", async () => {
  const { whole } = await play([call], { functions });
  const { message, finish_reason } = whole().choices[0]!;
  assert.deepEqual(message, {
    role: "assistant",
    content: null,
    refusal: null,
    annotations: [],
    function_call: { name: "f", arguments: '{"a":1}' },
  });
  assert.equal(finish_reason, "function_call");
});

test("in a stream the function is named once, and its arguments are sent in pieces", async () => {
  const { stream } = await play([call], { functions, stream: true });
  assert.deepEqual(
    readChunks(stream).map(({ choices }) => [choices[0]?.delta, choices[0]?.finish_reason]),
    [
      [{ role: "assistant", content: null, function_call: { name: "f", arguments: "" }, refusal: null }, null],
      [{ function_call: { arguments: '{"a"' } }, null],
      [{ function_call: { arguments: ":1}" } }, null],
      [{}, "function_call"],
    ],
  );
  const { stream: late } = await play([[{ type: "text", text: "So" }, ...call]], { functions, stream: true });
  assert.deepEqual(
    readChunks(late).map(({ choices }) => choices[0]?.delta),
    [
      { role: "assistant", content: "", refusal: null },
      { content: "So" },
      { function_call: { name: "f", arguments: "" } },
      { function_call: { arguments: '{"a"' } },
      { function_call: { arguments: ":1}" } },
      {},
    ],
  );
});

test("an answer without a call is the same in either form", async () => {
  const words: Delta[][] = [[{ type: "text", text: "Hello" }]];
  const { stream, whole } = await play(words, { functions, stream: true });
  const { stream: other, whole: otherWhole } = await play(words, { stream: true });
  assert.equal(stream, other);
  assert.deepEqual(whole(), otherWhole());
});

test("of several calls the first is sent as a function call, and all of them as tool calls next to it", async () => {
  const second: Delta[] = [
    { type: "tool-call", index: 1, callId: "call_b", name: "g" },
    { type: "tool-arguments", index: 1, text: "{}" },
  ];
  const { stream, whole } = await play([[...call, ...second]], { functions, stream: true });
  assert.deepEqual(gather(stream), {
    function_call: { name: "f", arguments: '{"a":1}' },
    tool_calls: [
      { id: "call_a", type: "function", function: { name: "f", arguments: '{"a":1}' } },
      { id: "call_b", type: "function", function: { name: "g", arguments: "{}" } },
    ],
    finish_reason: "function_call",
  });
  assert.deepEqual(gather(stream), callsOf(whole().choices[0]!));
});

test("extra fields of a call are sent with it, and read back", async () => {
  const extra = { dialect: "chat", fields: { signature: "s" } } as const;
  const { whole } = await play([[{ type: "tool-call", index: 0, name: "f", extra }]], { functions });
  const { message } = whole().choices[0]!;
  assert.deepEqual(message.function_call, { signature: "s", name: "f", arguments: "{}" });
  const [item] = read(message, given("f", "1"));
  assert.deepEqual(item?.type === "tool-call" && item.extra, extra);
});

test("the chunks of any answer add up to the whole completion in this form too", async () => {
  await fc.assert(
    fc.asyncProperty(batches, async (batches) => {
      const { stream, whole } = await play(batches, { functions, stream: true });
      assert.deepEqual(gather(stream), callsOf(whole().choices[0]!));
    }),
    { numRuns: 200 },
  );
});

interface Calls {
  function_call?: { name: string; arguments: string };
  tool_calls?: readonly WireCall[];
  finish_reason: string | null;
}

function callsOf({ message, finish_reason }: { message: Omit<Calls, "finish_reason">; finish_reason: string }): Calls {
  const { function_call, tool_calls } = message;
  return { ...(function_call && { function_call }), ...(tool_calls && { tool_calls }), finish_reason };
}

/** Joins the pieces of calls as clients do: texts grow, and everything else is set once. */
function gather(stream: string): Calls {
  const gathered: Record<string, unknown> & { tool_calls?: object[] } = {};
  let finishReason: string | null = null;
  for (const { choices } of readChunks(stream)) {
    const { delta, finish_reason } = choices[0]!;
    finishReason ??= finish_reason;
    if (delta.function_call !== undefined) grow((gathered["function_call"] ??= {}) as object, delta.function_call);
    for (const { index = -1, ...piece } of delta.tool_calls ?? []) {
      const list = (gathered.tool_calls ??= []);
      assert.ok(index <= list.length, "calls are numbered from 0 without gaps");
      grow((list[index] ??= {}), piece);
    }
  }
  return { ...gathered, finish_reason: finishReason };
}

function grow(whole: object, piece: object): void {
  const fields = whole as Record<string, unknown>;
  for (const [key, value] of Object.entries(piece)) {
    if (key === "arguments" || key === "input") fields[key] = String(fields[key] ?? "") + value;
    else if (key === "function" || key === "custom") grow((fields[key] ??= {}) as object, value as object);
    else fields[key] = value;
  }
}
