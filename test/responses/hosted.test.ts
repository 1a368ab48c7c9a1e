/** Items that only the responses dialect has: they pass in both directions, are kept, and return to their server as it made them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../harness/client.ts";
import { checkStream, type WireItem, type WireResponse } from "../harness/grammar.ts";
import { ask, fetchBody, refuse, shareServed } from "./aids.ts";
import { answerEvents, answerJson, type Script } from "../harness/upstream.ts";

type Fields = Readonly<Record<string, unknown>>;

const search = { id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search", query: "ships" } };
/** As long as the ids of a real server. */
const listing = { id: `mcpl_${"0123456789abcdef".repeat(4)}`, type: "mcp_list_tools", server_label: "wiki", tools: [] };
const approval = { id: "mcpr_1", type: "mcp_approval_request", server_label: "wiki", name: "look", arguments: "{}" };
const shell = { id: "sh_1", type: "shell_call", status: "completed", call_id: "call_sh", action: { commands: ["ls"] } };
const cited = "A ship, it says.";
const citation = { type: "url_citation", url: "https://sea.test/", title: "Sea", start_index: 0, end_index: 6 };
const file = { type: "file_citation", file_id: "file_1", filename: "sea.txt", index: 7 };
const saying = (text: string, annotations: readonly Fields[] = []) => ({
  type: "message",
  id: "msg_1",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations, logprobs: [] }],
});

/** A server of the responses wire that answers with these items, whole or streamed. */
function answerWith(...output: readonly Fields[]): Script {
  const response = { id: "resp_1", object: "response", status: "completed", error: null, output };
  const events = output.flatMap((item, output_index) => [
    { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress", content: [] } },
    ...((item["content"] as readonly Fields[] | undefined) ?? []).map((part) => {
      return { type: "response.output_text.delta", output_index, content_index: 0, delta: part["text"] };
    }),
    { type: "response.output_item.done", output_index, item },
  ]);
  const stream = answerEvents(...events, { type: "response.completed", response });
  return (received, reply) =>
    (received.text.includes('"stream":true') ? stream : answerJson(response))(received, reply);
}

const hosted: readonly Fields[] = [search, listing, approval];
const all = answerWith(...hosted, saying(cited, [citation, file]));

const open = shareServed({ wire: "responses" });

/** The answer to a request, and what its server saw. */
async function tellServer(input: unknown, more: Fields = {}, script: Script = all) {
  const { address, server } = await open();
  server.script = script;
  const { raw, status } = await call(address, "POST", "/v1/responses", { model: "m", input, ...more });
  assert.equal(status, 200, raw);
  const response = (more["stream"] === true ? checkStream(raw).response : JSON.parse(raw)) as WireResponse;
  const { input: seen } = server.received.at(-1)!.json as { readonly input: readonly Fields[] };
  return { address, response, seen };
}

/** Checks that these are the server's own items under ids that begin with its own. */
function checkHosted(items: readonly WireItem[]): void {
  const bare = items
    .filter(({ type }) => type !== "message")
    .map((item, at) => {
      const own = String(hosted[at]?.["id"]);
      assert.ok(item.id.startsWith(own), `${item.id} ${own}`);
      return { ...item, id: own };
    });
  assert.deepEqual(bare, hosted);
}

for (const stream of [false, true]) {
  test(`items of hosted tools reach the caller as their server sent them, and are stored and listed, ${stream ? "streamed" : "whole"}`, async () => {
    const { address, response } = await tellServer("hi", { stream });
    checkHosted(response.output);
    assert.deepEqual(response.output.at(-1)?.content?.[0]?.["annotations"], [citation, file]);
    assert.deepEqual(await fetchBody(address, "GET", `/v1/responses/${response["id"]}`), response);
    const conversation = (await fetchBody(address, "POST", "/v1/conversations")).id;
    await ask(address, "hi", { conversation });
    const path = `/v1/conversations/${conversation}/items`;
    const { data } = await fetchBody(address, "GET", `${path}?order=asc`);
    checkHosted(data.slice(1));
    assert.deepEqual(await fetchBody(address, "GET", `${path}/${data[1].id}`), data[1]);
  });
}

test("their server gets them back as it made them, whether continued, resent or meant by their ids", async () => {
  const { response } = await tellServer("hi");
  const question = { role: "user", content: "hi" };
  const shown = response.output.find(({ type }) => type === "mcp_approval_request");
  const approve = { type: "mcp_approval_response", approve: true, approval_request_id: shown?.id };
  const references = response.output.map(({ id }) => ({ type: "item_reference", id }));
  for (const [input, more] of [
    [[approve], { previous_response_id: response["id"] }],
    [[question, ...response.output, approve], { store: false }],
    [[question, ...references, approve], {}],
  ] as const) {
    const { seen } = await tellServer(input, more);
    assert.deepEqual(seen.slice(1, 1 + hosted.length), hosted);
    const [part] = seen.at(-2)!["content"] as readonly Fields[];
    assert.deepEqual([part?.["text"], part?.["annotations"]], [cited, [citation, file]]);
    assert.deepEqual(seen.at(-1), { ...approve, approval_request_id: "mcpr_1" });
  }
});

test("a hosted call that the caller runs is answered under its id, and under no other", async () => {
  const { address, response } = await tellServer("hi", {}, answerWith(shell));
  const previous_response_id = response["id"];
  const given = { type: "shell_call_output", call_id: "call_sh", output: [] };
  const { seen } = await tellServer([given], { previous_response_id }, answerWith(saying("Done.")));
  assert.deepEqual(
    seen.map(({ type }) => type ?? "message"),
    ["message", "shell_call", "shell_call_output"],
  );
  const stray = { ...given, call_id: "call_other" };
  const body = { model: "m", input: [stray], previous_response_id };
  assert.equal((await refuse(address, "POST", "/v1/responses", body))[1], "tool_call_mismatch");
});

test("items and fields that nobody here knows are kept, and given back unchanged", async () => {
  const unknown = { type: "dream_call", id: "dr_1", status: "completed", depth: { level: 3 } };
  const comment = { type: "message", role: "assistant", phase: "commentary", content: "Let me see." };
  const input = [{ role: "user", content: "hi" }, comment, unknown, { role: "user", content: "and?" }];
  const { address, response } = await tellServer(input);
  const { seen } = await tellServer("more", { previous_response_id: response["id"] });
  assert.deepEqual([seen[1]?.["phase"], seen[2]], ["commentary", unknown]);
  const { data } = await fetchBody(address, "GET", `/v1/responses/${response["id"]}/input_items?order=asc`);
  assert.deepEqual([data[1].phase, data[2].type, data[2].depth], ["commentary", unknown.type, unknown.depth]);
});
