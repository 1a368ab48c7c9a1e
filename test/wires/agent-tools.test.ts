/** Tools that only the responses dialect has, before a server that speaks chat alone: what an agent such as Codex needs. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { type Answered, call, messagesOf, paths, replyWith, startServer } from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { openGateway } from "../harness/house.ts";

type Fields = Readonly<Record<string, unknown>>;
interface Offered {
  readonly function: { readonly name: string; readonly description?: string; readonly parameters?: object };
}

const parameters = { type: "object", properties: { city: { type: "string" } } };
const weather = { type: "function", name: "get_weather", description: "Of a city", parameters };
const namespace = { type: "namespace", name: "mcp__wx", description: "d", tools: [weather] };
const question = { role: "user", content: "Athens?" };

/** A gateway before a chat server that calls the tool `wanted`, if it is offered, and then is done. */
async function start(context: TestContext) {
  const server = await startServer(context);
  const { address } = await openGateway(context, { gateway: { adapters: server.adapters } });
  const offered = () => ((server.received.at(-1)!.json as Fields)["tools"] ?? []) as readonly Offered[];
  const choose = (find: (name: string) => boolean, written = "{}") => {
    server.script = replyWith((received) => {
      if (messagesOf(received).some(({ role }) => role === "tool")) return { content: "done" };
      const tools = ((received.json as Fields)["tools"] ?? []) as readonly Offered[];
      const name = tools.map((tool) => tool.function.name).find(find);
      return { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name, arguments: written } }] };
    });
  };
  async function ask(fields: object, stream = false): Promise<Answered> {
    const body = { model: "m", input: [question], store: false, stream, ...fields };
    const answer = await call(address, "POST", paths.responses, body);
    assert.equal(answer.status, 200, answer.raw);
    return stream ? { ...answer, body: checkStream(answer.raw).response } : answer;
  }
  return { server, ask, offered, choose };
}

for (const stream of [false, true]) {
  const kind = stream ? "streamed" : "whole";
  test(`a namespace's functions are offered one by one, and called by their own names: ${kind}`, async (context) => {
    const { server, ask, offered, choose } = await start(context);
    choose((name) => /get_weather/.test(name), '{"city":"Athens"}');
    const other = { type: "function", name: "get_weather", description: "Not that one" };
    const first = await ask({ tools: [other, namespace] }, stream);
    const names = offered().map((tool) => tool.function.name);
    assert.equal(new Set(names).size, 2);
    for (const name of names) assert.match(name, /^[\w-]{1,64}$/);
    const flat = offered().find((tool) => tool.function.parameters !== undefined)!.function;
    assert.deepEqual([flat.parameters, flat.description?.includes("Of a city")], [parameters, true]);

    choose((name) => name === flat.name, '{"city":"Athens"}');
    const [made] = (await ask({ tools: [other, namespace] }, stream)).body.output;
    assert.deepEqual([first.body.output.length, made.type, made.name], [1, "function_call", "get_weather"]);
    assert.deepEqual([made.namespace, made.arguments], ["mcp__wx", '{"city":"Athens"}']);

    const output = { type: "function_call_output", call_id: made.call_id, output: "sunny" };
    await ask({ tools: [other, namespace], input: [question, made, output] });
    const sent = messagesOf(server.received.at(-1)!)[1]!.tool_calls as unknown as readonly Offered[];
    assert.equal(sent[0]!.function.name, flat.name, "the server sees the name that it called");
  });
}

test("a tool in a namespace is chosen by both names, and a whole namespace allowed by its own", async (context) => {
  const { server, ask, offered, choose } = await start(context);
  choose(() => true);
  const mail = { type: "namespace", name: "mail", tools: [{ type: "function", name: "send" }] };
  const tools = [namespace, mail, { type: "function", name: "rm" }];
  await ask({ tools, tool_choice: { type: "function", name: "send", namespace: "mail" } });
  const chosen = (server.received.at(-1)!.json as Fields)["tool_choice"] as Offered;
  assert.match(chosen.function.name, /mail.*send/);
  assert.ok(offered().some((tool) => tool.function.name === chosen.function.name));
  await ask({
    tools,
    tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "namespace", name: "mail" }] },
  });
  assert.deepEqual(
    offered().map((tool) => tool.function.name),
    [chosen.function.name],
  );
});

test("tools that come with an input item are offered together with the request's own", async (context) => {
  const { ask, offered, choose } = await start(context);
  choose((name) => name === "late");
  const item = { type: "additional_tools", role: "developer", tools: [{ type: "function", name: "late" }] };
  const { body } = await ask({ input: [item, question], tools: [weather] });
  assert.deepEqual(
    offered()
      .map((tool) => tool.function.name)
      .toSorted(),
    ["get_weather", "late"],
  );
  assert.equal(body.output[0].name, "late");
});

for (const stream of [false, true]) {
  const kind = stream ? "streamed" : "whole";
  test(`a search for tools that the caller runs is a function, and what it finds is offered: ${kind}`, async (context) => {
    const { ask, offered, choose } = await start(context);
    const search = { type: "tool_search", execution: "client", description: "Finds tools.", parameters };
    choose((name) => name === "tool_search", '{"query":"weather"}');
    const { body } = await ask({ tools: [search, { ...weather, defer_loading: true }] }, stream);
    assert.deepEqual(
      offered().map((tool) => tool.function),
      [{ name: "tool_search", description: "Finds tools.", parameters }],
    );
    const [made] = body.output;
    assert.deepEqual([made.type, made.execution, made.arguments], ["tool_search_call", "client", { query: "weather" }]);
    const found = { type: "tool_search_output", call_id: made.call_id, execution: "client", tools: [weather] };
    const told = await ask({ input: [question, made, found], tools: [search] }, stream);
    assert.deepEqual(
      offered()
        .map((tool) => tool.function.name)
        .toSorted(),
      ["get_weather", "tool_search"],
    );
    assert.equal(told.body.output[0].content[0].text, "done");
  });
}
