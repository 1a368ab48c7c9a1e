/** What a coding agent relies on from turn to turn: its tools under their own names, whatever the server can take. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerEvents, answerJson, chunk, type Script } from "../harness/upstream.ts";
import { added, bodyOf, completed, done, type Fields, isStreamed, item, respond } from "./scene.ts";
import { responseOf, says, shareScene, whole } from "./scene.ts";

const open = shareScene({ functions: { custom_tools: "function" } });

const question = { type: "message", role: "user", content: "Fix it." };
const format = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
const exec = { type: "custom", name: "exec", description: "Runs a program.", format };
const wait = { type: "function", name: "wait", strict: false, parameters: { type: "object" } };
const namespace = { type: "namespace", name: "functions", description: "Tools.", tools: [exec, wait] };
const additional = { type: "additional_tools", role: "developer", tools: [namespace, { type: "web_search" }] };
const search = {
  type: "tool_search",
  execution: "client",
  description: "Finds tools.",
  parameters: { type: "object" },
};

/** Makes a call until it has its output. */
function calls(call: Fields): Script {
  return (received, response) => {
    if (received.text.includes('"role":"tool"')) return says("done")(received, response);
    const streamed = answerEvents(chunk({ tool_calls: [{ index: 0, ...call }] }), chunk({}, "tool_calls"));
    const made = answerJson(whole({ content: null, tool_calls: [call] }, "tool_calls"));
    return (isStreamed(received) ? streamed : made)(received, response);
  };
}

const input = "await tools.run('ls')";
const written = JSON.stringify({ input });
const forms = {
  chat: { id: "call_1", type: "custom", custom: { name: "functions__exec", input } },
  functions: { id: "call_1", type: "function", function: { name: "functions__exec", arguments: written } },
};

for (const [model, call] of Object.entries(forms)) {
  test(`a tool that takes free text, in a namespace, from an item, is offered and called as ${call.type}, turn after turn`, async () => {
    const scene = await open();
    scene.plays(calls(call));
    for (const stream of [true, false]) {
      const first = await respond(scene, stream, { model, store: false, input: [additional, question] });
      const { id: _id, status: _status, ...shown } = first.output[0]!;
      const expected = { type: "custom_tool_call", call_id: "call_1", name: "exec", namespace: "functions", input };
      assert.deepEqual(shown, expected);
      const output = { type: "custom_tool_call_output", call_id: "call_1", output: "a.ts" };
      const again = [additional, question, shown, output];
      const second = await respond(scene, stream, { model, store: false, input: again });
      assert.equal(second.output[0]?.content?.[0]?.["text"], "done");
      const { tools, messages } = bodyOf(scene.last()) as Readonly<Record<string, readonly Fields[]>>;
      assert.deepEqual(messages?.slice(-2), [
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "a.ts" },
      ]);
      const names = tools?.map((tool) => (tool[String(tool["type"])] as Fields)["name"]);
      assert.deepEqual([tools?.[0]?.["type"], names], [call.type, ["functions__exec", "functions__wait"]]);
      assert.match(JSON.stringify(tools?.[0]), /Runs a program\..*start: \/\.\+\//);
    }
  });
}

test("a server on the responses wire gets namespaces, items with tools and searches unchanged, and its calls keep theirs", async () => {
  const scene = await open();
  const call = item.call("call_1", "wait", "{}", { namespace: "functions" });
  scene.plays(answerEvents(added(0, { ...call, arguments: "" }), done(0, call), completed([call])));
  const tools = [search, namespace];
  const { id, output } = await respond(scene, true, { tools, input: [additional, question] });
  assert.deepEqual([output[0]?.["namespace"], output[0]?.["name"]], ["functions", "wait"]);
  const sent = bodyOf(scene.last());
  assert.deepEqual([sent["tools"], sent["input"]], [tools, [additional, question]]);
  scene.plays(answerJson(responseOf([item.message("done")])));
  const given = { type: "function_call_output", call_id: "call_1", output: "x" };
  const searched = { type: "tool_search_call", call_id: "s", execution: "client", arguments: { query: "f" } };
  const found = { type: "tool_search_output", call_id: "s", execution: "client", tools: [wait] };
  const news = [given, searched, found];
  await respond(scene, false, { tools, input: news, previous_response_id: id });
  const { id: _id, status: _status, ...made } = call;
  assert.deepEqual(bodyOf(scene.last())["input"], [additional, question, made, ...news]);
});
