/** Tools that a responses server runs itself: offered as they are, and their items shown and sent back as they came. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, paths, startServer } from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { openGateway, type Scope } from "../harness/house.ts";
import { answerEvents, answerJson, type Script } from "../harness/upstream.ts";

type Fields = Readonly<Record<string, unknown>>;

const searched = {
  type: "web_search_call",
  id: "ws_1",
  status: "completed",
  action: { type: "search", query: "cats" },
};
const part = { type: "output_text", text: "Two.", annotations: [], logprobs: [] };
const message = { type: "message", id: "msg_1", status: "completed", role: "assistant", content: [part] };
const response = {
  id: "resp_1",
  object: "response",
  status: "completed",
  model: "m",
  output: [searched, message],
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
};

/** The same answer, whole or in events as it is asked for. */
const answer: Script = (received, sent) => {
  if (!(received.json as Fields)["stream"]) return answerJson(response)(received, sent);
  const begun = { ...response, status: "in_progress", output: [] };
  const events: readonly Fields[] = [
    { type: "response.created", response: begun },
    { type: "response.output_item.added", output_index: 0, item: { ...searched, status: "in_progress" } },
    { type: "response.web_search_call.searching", output_index: 0, item_id: "ws_1" },
    { type: "response.output_item.done", output_index: 0, item: searched },
    { type: "response.output_item.added", output_index: 1, item: { ...message, status: "in_progress", content: [] } },
    { type: "response.output_text.delta", output_index: 1, content_index: 0, item_id: "msg_1", delta: "Two." },
    { type: "response.output_item.done", output_index: 1, item: message },
    { type: "response.completed", response },
  ];
  return answerEvents(...events.map((event, index) => ({ ...event, sequence_number: index })))(received, sent);
};

async function start(context: Scope) {
  const server = await startServer(context, { wire: "responses" });
  server.script = answer;
  const { address } = await openGateway(context, { gateway: { adapters: server.adapters } });
  const ask = async (fields: object) => {
    const { status, body, raw } = await call(address, "POST", paths.responses, {
      model: "m",
      input: "Cats?",
      ...fields,
    });
    assert.equal(status, 200, raw);
    return raw.startsWith("event:") ? checkStream(raw).response : body;
  };
  const sent = () => server.received.at(-1)!.json as Fields;
  return { ask, sent };
}

for (const stream of [false, true]) {
  test(`a hosted tool's item comes through, and goes back under its own id: ${stream ? "streamed" : "whole"}`, async (context) => {
    const { ask, sent } = await start(context);
    const { output, id } = await ask({ tools: [{ type: "web_search" }], stream });
    const [item, told] = output;
    assert.deepEqual({ ...item, id: undefined }, { ...searched, id: undefined });
    assert.deepEqual([typeof item.id, told.content[0].text], ["string", "Two."]);
    const next = { role: "user", content: "And dogs?" };
    for (const shown of [
      { previous_response_id: id, input: [next] },
      { input: [{ role: "user", content: "Cats?" }, item, told, next] },
    ]) {
      await ask(shown);
      const again = (sent()["input"] as readonly Fields[]).find(({ type }) => type === searched.type);
      assert.deepEqual(again, searched);
    }
  });
}

test("allowed_tools holds for hosted tools too: a server is known by its label, a kind without one is all of it", async (context) => {
  const { ask, sent } = await start(context);
  const mcp = (server_label: string) => ({ type: "mcp", server_label, server_url: "https://example.com/mcp" });
  const tools = [mcp("wiki"), mcp("mail"), { type: "web_search" }, { type: "function", name: "f" }];
  const offered = async (...allowed: readonly object[]) => {
    await ask({ tools, tool_choice: { type: "allowed_tools", mode: "auto", tools: allowed } });
    const { tools: found } = sent() as { tools: readonly Fields[] };
    return found.map(({ type, server_label: label, name }) => label ?? name ?? type);
  };
  assert.deepEqual(await offered({ type: "mcp", server_label: "mail" }), ["mail"]);
  assert.deepEqual(await offered({ type: "mcp" }, { type: "function", name: "f" }), ["wiki", "mail", "f"]);
  assert.deepEqual(await offered({ type: "web_search" }), ["web_search"]);
});
