/** Tools in input items, and searches for them, in the form of the wire. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../../src/core/item.ts";
import type { Ask } from "../../../src/core/turn.ts";
import { toListedItem } from "../../../src/protocols/responses/listing.ts";
import { checkStream } from "../grammar.ts";
import { play, protocol, seal } from "./script.ts";

function ask(body: object): Ask {
  return protocol.parse({ model: "m", input: "hi", ...body }, "owner").ask;
}

const tool = { type: "function", name: "f", description: "Does it." };
const exec = { type: "custom", name: "exec" };
const functions = { type: "namespace", name: "functions", tools: [exec] };
const additional = { type: "additional_tools", role: "developer", tools: [tool, functions] };
const call = { type: "tool_search_call", call_id: "c", execution: "client", arguments: { query: "f" } };
const output = { type: "tool_search_output", call_id: "c", execution: "client", tools: [tool, functions] };

const read = { ...tool, parameters: undefined, strict: undefined };
const readExec = { ...exec, description: undefined, format: undefined };
const readFunctions = {
  type: "other",
  name: "namespace functions",
  group: { name: "functions", description: undefined, tools: [readExec] },
  extra: { dialect: "responses", fields: functions },
};

test("an item with tools is kept unchanged, its tools are read, and it is not part of the conversation", () => {
  const { items, settings } = ask({ input: [additional] });
  assert.deepEqual(items, [
    {
      type: "other",
      extra: { dialect: "responses", fields: additional },
      tools: [read, readFunctions],
      steers: true,
    },
  ]);
  assert.deepEqual(settings.tools, []);
});

test("an invalid tool stays in its item and is not offered, while a wrong type is refused with its path", () => {
  const bring = (...tools: unknown[]) => ask({ input: [{ ...additional, tools }] }).items[0];
  const odd = [{}, { type: "" }, { type: "function" }, { type: "namespace", name: "" }];
  assert.deepEqual((bring(...odd, tool) as { tools: unknown }).tools, [read]);
  const refused = (path: string) => ({ code: "invalid_type", param: `input[0].${path}` });
  assert.throws(() => bring("f"), refused("tools[0]"));
  assert.throws(() => bring({ type: "function", name: 5 }), refused("tools[0].name"));
  assert.throws(() => ask({ input: [{ ...additional, tools: {} }] }), refused("tools"));
});

test("a tool choice may name a tool of an input item", () => {
  const settings = (tool_choice: object) => ask({ input: [additional], tool_choice }).settings;
  const choose = (tool_choice: object) => settings(tool_choice).toolChoice;
  assert.deepEqual(choose({ type: "function", name: "f" }), { type: "tool", name: "f" });
  assert.deepEqual(choose({ type: "custom", name: "exec" }), { type: "tool", name: "functions exec" });
  const tools = [{ type: "namespace", name: "functions" }, tool];
  const { toolChoice, allowedTools } = settings({ type: "allowed_tools", mode: "auto", tools });
  assert.deepEqual([toolChoice, allowedTools], [{ type: "auto" }, ["namespace functions", "f"]]);
  assert.throws(() => choose({ type: "function", name: "g" }), { code: "invalid_value", param: "tool_choice" });
});

test("a tool search of the caller has a function in its place, and one of the server has none", () => {
  const parameters = { type: "object" };
  const client = { type: "tool_search", execution: "client", description: "Finds.", parameters };
  const server = { type: "tool_search", execution: "server" };
  const bare = { type: "tool_search" };
  assert.deepEqual(ask({ tools: [client, server, bare] }).settings.tools, [
    {
      type: "other",
      search: { type: "function", name: "tool_search", description: "Finds.", parameters },
      extra: { dialect: "responses", fields: client },
    },
    { type: "other", extra: { dialect: "responses", fields: server } },
    { type: "other", extra: { dialect: "responses", fields: bare } },
  ]);
});

const called: Item = {
  type: "tool-call",
  kind: "search",
  callId: "c",
  name: "tool_search",
  arguments: '{"query":"f"}',
};
const found: Item = {
  type: "tool-output",
  kind: "search",
  callId: "c",
  output: '[{"name":"f","description":"Does it."},{"name":"functions exec"}]',
  tools: [read, readFunctions] as never,
  extra: { dialect: "responses", fields: { tools: output.tools } },
};

test("the caller's search and its result are a call and its output; a server's are items of their own", () => {
  assert.deepEqual(ask({ input: [{ ...call, id: "tsc_1", status: "completed" }, output] }).items, [called, found]);
  const servers = [call, output].map((item) => ({ ...item, execution: "server", call_id: null }));
  const { items } = ask({ input: servers });
  assert.deepEqual(items[0], { type: "other", extra: { dialect: "responses", fields: servers[0] } });
  assert.deepEqual(items[1], {
    type: "other",
    extra: { dialect: "responses", fields: servers[1] },
    tools: [read, readFunctions],
  });
});

test("a search is sent as an item of its own, whose arguments are an object and are sent at once", async () => {
  const { stream, whole } = await play([
    [{ type: "tool-call", index: 0, callId: "c", name: "tool_search", kind: "search" }],
    [{ type: "tool-arguments", index: 0, text: '{"que' }],
    [{ type: "tool-arguments", index: 0, text: 'ry":"f"}' }],
  ]);
  const { events, response } = checkStream(stream);
  const item = { id: "tsc_ab120000", ...call, status: "completed" };
  assert.deepEqual(
    events.slice(2, -1).map(({ type, item }) => [type, item]),
    [
      ["response.output_item.added", { ...item, arguments: {}, status: "in_progress" }],
      ["response.output_item.done", item],
    ],
  );
  assert.deepEqual(response.output, [item]);
  assert.deepEqual(whole().output, [item]);
});

test("search arguments that are not an object, or have too much in them, are sent as the model wrote them", async () => {
  const deep = `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`;
  for (const [text, sent] of [
    ["f", "f"],
    ["[1]", "[1]"],
    ["", {}],
    [deep, deep],
  ] as const) {
    const { whole } = await play([
      [
        { type: "tool-call", index: 0, callId: "c", name: "tool_search", kind: "search" },
        { type: "tool-arguments", index: 0, text },
      ],
    ]);
    assert.deepEqual(whole().output[0]?.["arguments"], sent);
  }
});

test("searches and their results are listed unchanged", () => {
  const list = (item: Item) =>
    toListedItem({ item, isWhole: true, turnId: "resp_ab", side: "input", index: 0 }, { seal, showsSeals: false });
  const { id: callId, ...listedCall } = list(called) as { id: string };
  const { id: outputId, ...listedOutput } = list(found) as { id: string };
  assert.deepEqual(
    [listedCall, listedOutput],
    [
      { ...call, status: "completed" },
      { ...output, status: "completed" },
    ],
  );
  assert.match(`${callId} ${outputId}`, /^tsc_\S+ tso_\S+$/);
});
