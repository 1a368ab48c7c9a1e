/**
 * A coding agent that sends its tools in its input, or lets the model search for them, with models that support chat
 * only.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startGateway, token } from "../gateway.ts";
import { checkStream, type WireEvent, type WireItem, type WireResponse } from "../protocols/grammar.ts";
import { answerEvents, answerJson, chunk, type ScriptedUpstream, startUpstream } from "../upstream.ts";

type Fields = Readonly<Record<string, unknown>>;
type Message = { readonly role: string; readonly content: string | null; readonly tool_calls?: readonly Fields[] };
type Body = {
  readonly messages: readonly Message[];
  readonly tools?: readonly Fields[];
  readonly tool_choice?: unknown;
};

const exec = {
  type: "custom",
  name: "exec",
  description: "Runs a program.",
  format: { type: "grammar", syntax: "lark", definition: "start: /.+/" },
};
const wait = { type: "function", name: "wait", strict: false, parameters: { type: "object" } };
const additional = {
  type: "additional_tools",
  role: "developer",
  tools: [{ type: "namespace", name: "functions", description: "Tools.", tools: [exec, wait] }, { type: "web_search" }],
};
const search = {
  type: "tool_search",
  execution: "client",
  description: "Finds tools.",
  parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
};
const question = [
  { type: "message", role: "developer", content: [{ type: "input_text", text: "rules" }] },
  { type: "message", role: "user", content: [{ type: "input_text", text: "fix it" }] },
];
const request = {
  model: "agent-model",
  instructions: "You are an agent.",
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { effort: "medium", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "thread",
  text: { verbosity: "low" },
  client_metadata: { "x-installation": "i" },
};

/** Makes these calls one after the other, each in pieces; when it has all of their outputs, it answers "done". */
async function startModel(context: TestContext, calls: readonly Fields[]): Promise<ScriptedUpstream> {
  const upstream = await startUpstream((received, response) => {
    const { messages, stream } = received.json as Body & { readonly stream?: boolean };
    const call = calls[messages.filter(({ role }) => role === "tool").length];
    const message = call === undefined ? { content: "done" } : { content: null, tool_calls: [call] };
    const finish = call === undefined ? "stop" : "tool_calls";
    if (stream !== true) {
      const choices = [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }];
      return answerJson({ id: "c", object: "chat.completion", choices })(received, response);
    }
    const pieces = call === undefined ? [message] : cut(call);
    return answerEvents(...pieces.map((piece) => chunk(piece)), chunk({}, finish))(received, response);
  });
  context.after(() => upstream.close());
  return upstream;
}

function cut(call: Fields): readonly object[] {
  const kind = call["type"] as "function" | "custom";
  const { name, ...rest } = call[kind] as { readonly name: string };
  const [[key, written] = ["", ""]] = Object.entries(rest as Record<string, string>);
  const piece = (text: string) => ({ tool_calls: [{ index: 0, [kind]: { [key]: text } }] });
  const begin = { tool_calls: [{ index: 0, ...call, [kind]: { name, [key]: "" } }] };
  return [begin, piece(written.slice(0, 4)), piece(written.slice(4))];
}

interface Received {
  readonly response: WireResponse & { readonly id: string };
  readonly events: readonly WireEvent[];
  readonly warning: string | null;
  readonly history: string | null;
}

async function startAsking(context: TestContext, { url }: ScriptedUpstream, adapter: Fields = {}) {
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", base_url: `${url}/v1`, api_key: "sk-model", ...adapter } },
  });
  return async (fields: Fields, more: Readonly<Record<string, string>> = {}): Promise<Received> => {
    const answer = await fetch(`${address}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...more },
      body: JSON.stringify({ ...request, ...fields }),
    });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    const warning = answer.headers.get("x-portico-warning");
    const history = answer.headers.get("x-portico-history");
    const { response, events } =
      fields["stream"] === true ? checkStream(text) : { response: JSON.parse(text), events: [] };
    return { response: response as Received["response"], events, warning, history };
  };
}

function bodiesOf({ received }: ScriptedUpstream): readonly Body[] {
  return received.map(({ json }) => json as Body);
}

/** The only item of an answer, checked to be the same wherever a client can read it. */
function onlyItem({ response, events }: Received): WireItem {
  const [item] = response.output as readonly [WireItem];
  assert.equal(response.output.length, 1);
  for (const event of events) {
    if (event.type === "response.output_item.done") assert.deepEqual(event.item, item);
    if (event.type === "response.output_item.added") assert.equal(event.item.type, item.type);
  }
  return item;
}

/** Agents that store nothing here send the whole history, without ids and states. */
function toCarried({ id: _id, status: _status, ...item }: WireItem): object {
  return item;
}

const input = "await tools.run('ls')";
const customCall = { id: "call_1", type: "custom", custom: { name: "functions__exec", input } };
const functionCall = {
  id: "call_1",
  type: "function",
  function: { name: "functions__exec", arguments: JSON.stringify({ input }) },
};

const ways = [
  { way: "as it is", call: customCall, adapter: {} },
  {
    way: "as a function, for a server that supports functions only",
    call: functionCall,
    adapter: { custom_tools: "function" },
  },
] as const;

for (const { way, call, adapter } of ways) {
  for (const stream of [true, false]) {
    const form = stream ? "streamed" : "whole";
    test(`a custom tool that an input item offers in a namespace is offered and called, ${way}, ${form}`, async (context) => {
      const model = await startModel(context, [call]);
      const ask = await startAsking(context, model, adapter);
      const first = await ask({ stream, store: false, input: [additional, ...question] });
      assert.equal(first.warning, "tool web_search left out");
      const item = onlyItem(first);
      assert.deepEqual(toCarried(item), {
        type: "custom_tool_call",
        call_id: "call_1",
        name: "exec",
        namespace: "functions",
        input,
      });
      const output = { type: "custom_tool_call_output", call_id: "call_1", output: "a.ts" };
      const second = await ask({ stream, store: false, input: [additional, ...question, toCarried(item), output] });
      assert.equal(onlyItem(second).content?.[0]?.["text"], "done");

      const [one, other] = bodiesOf(model);
      assert.deepEqual(one?.tools, other?.tools);
      const offered = one?.tools?.map((tool) => [tool["type"], (tool[String(tool["type"])] as Fields)["name"]]);
      assert.deepEqual(offered, [
        [call.type, "functions__exec"],
        ["function", "functions__wait"],
      ]);
      assert.match(JSON.stringify(one?.tools), /Tools\.\\n\\nRuns a program\..*start: \/\.\+\//);
      assert.deepEqual(other?.messages.slice(one?.messages.length), [
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "a.ts" },
      ]);
    });
  }
}

test("tools of an input item are offered in the turns that continue it, and may be forced", async (context) => {
  const model = await startModel(context, [customCall]);
  const ask = await startAsking(context, model);
  const choice = { type: "custom", name: "exec", namespace: "functions" };
  const first = await ask({ input: [additional, ...question], tool_choice: choice });
  const output = { type: "custom_tool_call_output", call_id: "call_1", output: "a.ts" };
  await ask({ input: [output], previous_response_id: first.response.id });
  const [one, other] = bodiesOf(model);
  assert.deepEqual(one?.tool_choice, { type: "custom", custom: { name: "functions__exec" } });
  assert.deepEqual(one?.tools, other?.tools);
});

const query = { query: "calendar" };
const searching = {
  id: "call_s",
  type: "function",
  function: { name: "tool_search", arguments: JSON.stringify(query) },
};
const listing = { id: "call_l", type: "function", function: { name: "calendar__list", arguments: "{}" } };
const calendar = {
  type: "namespace",
  name: "calendar",
  description: "Dates.",
  tools: [
    { type: "function", name: "list", description: "Lists.", defer_loading: true, parameters: { type: "object" } },
  ],
};
const found = {
  type: "tool_search_output",
  call_id: "call_s",
  execution: "client",
  status: "completed",
  tools: [calendar],
};
const listed = { type: "function_call_output", call_id: "call_l", output: "nothing" };

for (const store of [true, false]) {
  for (const stream of [true, false]) {
    const form = `${stream ? "streamed" : "whole"}, ${store ? "stored" : "sent by the agent"}`;
    test(`a model searches for tools, and calls what the agent has found, ${form}`, async (context) => {
      const model = await startModel(context, [searching, listing]);
      const ask = await startAsking(context, model);
      let carried: readonly object[] = [];
      let last: string | undefined;
      const go = async (news: readonly object[]): Promise<WireItem> => {
        const before = store ? { previous_response_id: last, input: news } : { input: [...carried, ...news] };
        const received = await ask({ stream, store, tools: [search], ...before });
        assert.equal(received.warning, null);
        last = received.response.id;
        const item = onlyItem(received);
        carried = [...carried, ...news, toCarried(item)];
        return item;
      };
      const { id, ...call } = await go(question);
      assert.match(id, /^tsc_/);
      assert.deepEqual(call, {
        type: "tool_search_call",
        status: "completed",
        call_id: "call_s",
        execution: "client",
        arguments: query,
      });
      const { namespace, name } = await go([found]);
      assert.deepEqual([namespace, name], ["calendar", "list"]);
      assert.equal((await go([listed])).content?.[0]?.["text"], "done");

      const bodies = bodiesOf(model);
      const { description, parameters } = search;
      assert.deepEqual(bodies[0]?.tools, [
        { type: "function", function: { name: "tool_search", description, parameters } },
      ]);
      for (const { tools } of bodies.slice(1)) {
        assert.deepEqual(
          tools?.map((tool) => (tool["function"] as Fields)["name"]),
          ["tool_search", "calendar__list"],
        );
      }
      assert.deepEqual(bodies[2]?.messages.slice(bodies[0]?.messages.length), [
        { role: "assistant", content: null, tool_calls: [searching] },
        { role: "tool", tool_call_id: "call_s", content: '[{"name":"calendar__list","description":"Lists."}]' },
        { role: "assistant", content: null, tool_calls: [listing] },
        { role: "tool", tool_call_id: "call_l", content: "nothing" },
      ]);
    });
  }
}

test("in a session the tools of a request's items replace the earlier ones, which apply while it has none", async (context) => {
  const model = await startModel(context, []);
  const ask = await startAsking(context, model);
  const bring = (name: string) => ({ ...additional, tools: [{ type: "function", name }] });
  const said = { role: "assistant", content: "done" };
  const session = { "x-session-id": "s" };
  const histories = [
    await ask({ input: [bring("one"), { role: "user", content: "hi" }] }, session),
    await ask({ input: [{ role: "user", content: "and?" }], instructions: null }, session),
    await ask(
      {
        input: [
          bring("two"),
          { role: "user", content: "hi" },
          said,
          { role: "user", content: "and?" },
          said,
          { role: "user", content: "so?" },
        ],
      },
      session,
    ),
  ].map(({ history }) => history);
  assert.deepEqual(histories, ["new", "continued", "matched"]);
  const names = bodiesOf(model).map(({ tools }) => tools?.map((tool) => (tool["function"] as Fields)["name"]));
  assert.deepEqual(names, [["one"], ["one"], ["two"]]);
});

test("a model that supports such items gets them unchanged, and its own tool search is returned unchanged", async (context) => {
  const call = { type: "tool_search_call", id: "tsc_1", call_id: "call_s", execution: "client", arguments: query };
  const output = [{ ...call, status: "completed" }];
  const upstream = await startUpstream(
    answerEvents(
      { type: "response.output_item.added", output_index: 0, item: { ...call, arguments: {}, status: "in_progress" } },
      { type: "response.output_item.done", output_index: 0, item: output[0] },
      { type: "response.completed", response: { status: "completed", output } },
    ),
  );
  context.after(() => upstream.close());
  const ask = await startAsking(context, upstream, { wire: "responses" });
  const first = await ask({ stream: true, tools: [search], input: [additional, ...question] });
  assert.equal(first.warning, null);
  const { id: _, ...item } = onlyItem(first);
  const { id: __, ...said } = call;
  assert.deepEqual(item, { ...said, status: "completed" });
  await ask({ stream: true, tools: [search], input: [found], previous_response_id: first.response.id });
  const [one, other] = upstream.received.map(({ json }) => json as { tools: unknown; input: readonly Fields[] });
  assert.deepEqual([one?.tools, one?.input[0]], [[search], additional]);
  const { status: ___, ...back } = found;
  assert.deepEqual([other?.tools, other?.input[0], other?.input.at(-1)], [[search], additional, back]);
  assert.deepEqual(other?.input.at(-2), said);
});

test("items of a server's own tools are left out for a model without such items, and reported", async (context) => {
  const model = await startModel(context, []);
  const ask = await startAsking(context, model);
  const searched = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } };
  const { warning } = await ask({ input: [...question, searched, searched, { role: "user", content: "and?" }] });
  assert.equal(warning, "item web_search_call left out");
});

test("messages between agents reach a model without such items as text", async (context) => {
  const model = await startModel(context, []);
  const ask = await startAsking(context, model);
  const content = [
    { type: "input_text", text: "New task:" },
    { type: "encrypted_content", encrypted_content: "Say hello." },
  ];
  const message = { type: "agent_message", author: "lead", recipient: "lead/helper", content };
  const { warning } = await ask({ store: false, input: [...question, message] });
  assert.equal(warning, null);
  assert.deepEqual(bodiesOf(model)[0]?.messages.at(-1), { role: "user", content: "New task:\nSay hello." });
});
