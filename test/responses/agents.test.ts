/** Coding agents on a model that speaks chat alone: custom tools, namespaces, tools in items and tools that are searched for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, messagesOf, replyWith } from "../harness/client.ts";
import { checkStream, type WireItem, type WireResponse } from "../harness/grammar.ts";
import { shareServed } from "./aids.ts";

type Fields = Readonly<Record<string, unknown>>;
interface Body {
  readonly messages: readonly (Fields & { readonly role: string })[];
  readonly tools?: readonly Fields[];
  readonly tool_choice?: unknown;
}

const format = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
const exec = { type: "custom", name: "exec", description: "Runs a program.", format };
const wait = { type: "function", name: "wait", strict: false, parameters: { type: "object" } };
const namespace = { type: "namespace", name: "functions", description: "Tools.", tools: [exec, wait] };
const additional = { type: "additional_tools", role: "developer", tools: [namespace, { type: "web_search" }] };
const question = [
  { type: "message", role: "developer", content: [{ type: "input_text", text: "rules" }] },
  { type: "message", role: "user", content: [{ type: "input_text", text: "fix it" }] },
];
const request = {
  model: "agent-model",
  instructions: "You are an agent.",
  parallel_tool_calls: true,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "thread",
  client_metadata: { "x-installation": "i" },
};

/** A server with custom tools, and the same as one that has functions only. */
const open = shareServed({}, () => ({ plain: { custom_tools: "function" } }));

/** One agent and a model that makes these calls one after the other; with all of their outputs it answers "done". */
async function start(...calls: readonly Fields[]) {
  const { address, server } = await open();
  server.script = replyWith((received) => {
    const next = calls[messagesOf(received).filter(({ role }) => role === "tool").length];
    return next === undefined ? { content: "done" } : { tool_calls: [{ index: 0, ...next }] };
  });
  const from = server.received.length;
  return {
    bodies: () => server.received.slice(from).map(({ json }) => json as Body),
    async ask(fields: Fields) {
      const { status, raw, headers } = await call(address, "POST", "/v1/responses", { ...request, ...fields });
      assert.equal(status, 200, raw);
      const response = (fields["stream"] === true ? checkStream(raw).response : JSON.parse(raw)) as WireResponse;
      assert.equal(response.output.length, 1, raw);
      return { id: response["id"], item: response.output[0]!, warning: headers.get("x-portico-warning") ?? "" };
    },
  };
}

/** An agent that keeps its history itself sends items without ids and states. */
function toCarried({ id: _id, status: _status, ...item }: WireItem): Fields {
  return item;
}

const textOf = (item: WireItem): unknown => item.content?.[0]?.["text"];

const offered = (body: Body | undefined): unknown =>
  body?.tools?.map((tool) => [tool["type"], (tool[String(tool["type"])] as Fields)["name"]]);

const input = "await tools.run('ls')";
const custom = { type: "custom_tool_call", call_id: "call_1", name: "exec", namespace: "functions", input };
const waiting = { name: "wait", namespace: "functions", arguments: '{"s": 1}' };
const kinds: readonly (readonly [kind: string, model: string, made: Fields, called: Fields])[] = [
  ["a custom tool", "m", { type: "custom", custom: { name: "functions__exec", input } }, custom],
  [
    "a custom tool that is a function to its server",
    "plain",
    { type: "function", function: { name: "functions__exec", arguments: JSON.stringify({ input }) } },
    custom,
  ],
  [
    "a function",
    "m",
    { type: "function", function: { name: "functions__wait", arguments: waiting.arguments } },
    { type: "function_call", call_id: "call_1", ...waiting },
  ],
];
for (const [kind, model, made, called] of kinds) {
  for (const store of [true, false]) {
    const stream = !store;
    test(`${kind} of a namespace is called under its own name, ${store ? "stored" : "streamed and carried"}`, async () => {
      const toolCall = { id: "call_1", ...made };
      const { ask, bodies } = await start(toolCall);
      const shown = store ? question : [additional, ...question];
      const fields = { model, stream, store, ...(store && { tools: [namespace, { type: "web_search" }] }) };
      const first = await ask({ ...fields, input: shown });
      assert.match(first.warning, /web_search/);
      const carried = toCarried(first.item);
      assert.deepEqual(carried, called);
      const output = { type: `${called["type"]}_output`, call_id: "call_1", output: "a.ts" };
      const again = store
        ? { input: [output], previous_response_id: first.id }
        : { input: [...shown, carried, output] };
      assert.equal(textOf((await ask({ ...fields, ...again })).item), "done");
      const [one, other] = bodies();
      assert.deepEqual(one?.tools, other?.tools);
      assert.deepEqual(offered(one), [
        [model === "plain" ? "function" : "custom", "functions__exec"],
        ["function", "functions__wait"],
      ]);
      assert.match(JSON.stringify(one?.tools), /Tools\..*Runs a program\..*start: \/\.\+\//);
      assert.deepEqual(other?.messages.slice(one?.messages.length), [
        { role: "assistant", content: null, tool_calls: [toolCall] },
        { role: "tool", tool_call_id: "call_1", content: "a.ts" },
      ]);
    });
  }
}

test("tools that came with an item are offered in the turns that continue it, and may be forced or chosen from", async () => {
  const { ask, bodies } = await start();
  const tool_choice = { type: "custom", name: "exec", namespace: "functions" };
  const first = await ask({ input: [additional, ...question], tool_choice });
  await ask({ input: "and?", previous_response_id: first.id });
  const tools = [{ type: "function", name: "wait" }];
  await ask({ tools: [namespace], input: "wait", tool_choice: { type: "allowed_tools", mode: "required", tools } });
  const [one, other, last] = bodies();
  assert.deepEqual(one?.tool_choice, { type: "custom", custom: { name: "functions__exec" } });
  assert.deepEqual(one?.tools, other?.tools);
  assert.deepEqual([last?.tool_choice, offered(last)], ["required", [["function", "functions__wait"]]]);
});

const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
const search = { type: "tool_search", execution: "client", description: "Finds tools.", parameters };
const query = { query: "calendar" };
const searching = {
  id: "call_s",
  type: "function",
  function: { name: "tool_search", arguments: JSON.stringify(query) },
};
const listing = { id: "call_l", type: "function", function: { name: "calendar__list", arguments: "{}" } };
const list = { ...wait, name: "list", description: "Lists.", defer_loading: true };
const calendar = { type: "namespace", name: "calendar", description: "Dates.", tools: [list] };
const found = { type: "tool_search_output", call_id: "call_s", execution: "client", tools: [calendar] };

for (const store of [true, false]) {
  test(`a model searches for tools and calls what the agent has found, ${store ? "stored" : "carried by the agent"}`, async () => {
    const { ask, bodies } = await start(searching, listing);
    let carried: readonly object[] = [];
    let last: unknown;
    const go = async (news: readonly object[]): Promise<WireItem> => {
      const before = store ? { previous_response_id: last, input: news } : { input: [...carried, ...news] };
      const { item, id } = await ask({ stream: true, store, tools: [search], ...before });
      last = id;
      carried = [...carried, ...news, toCarried(item)];
      return item;
    };
    const { type, call_id, execution, arguments: asked } = await go(question);
    assert.deepEqual([type, call_id, execution, asked], ["tool_search_call", "call_s", "client", query]);
    const called = await go([found]);
    assert.deepEqual([called["namespace"], called["name"]], ["calendar", "list"]);
    assert.equal(textOf(await go([{ type: "function_call_output", call_id: "call_l", output: "nothing" }])), "done");
    const seen = bodies();
    const { description } = search;
    const tool = { type: "function", function: { name: "tool_search", description, parameters } };
    assert.deepEqual(seen[0]?.tools, [tool]);
    const both = ["tool_search", "calendar__list"].map((name) => ["function", name]);
    assert.deepEqual(seen.slice(1).map(offered), [both, both]);
    const [searched, output, listed] = seen[2]!.messages.slice(seen[0]?.messages.length);
    assert.deepEqual([searched?.["tool_calls"], output?.["tool_call_id"]], [[searching], "call_s"]);
    assert.match(String(output?.["content"]), /calendar__list/);
    assert.deepEqual(listed?.["tool_calls"], [listing]);
  });
}

test("a server's own items are left out for a model without such items, and the caller is told", async () => {
  const { ask, bodies } = await start();
  const searched = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } };
  const { warning } = await ask({ input: [...question, searched, { role: "user", content: "and?" }] });
  assert.match(warning, /web_search_call/);
  assert.deepEqual(
    bodies()[0]
      ?.messages.slice(2)
      .map(({ content }) => content),
    ["fix it", "and?"],
  );
});
