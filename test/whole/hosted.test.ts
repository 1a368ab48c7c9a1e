/**
 * What only the responses protocol has passes through the gateway: the items of hosted tools, in both directions, and
 * annotations.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { completed, item, itemAdded, itemDone, response, responseEvent } from "../adapters/openai-events.ts";
import { startGateway, token } from "../gateway.ts";
import { type WireCompletion, gatherChunks } from "../protocols/chunks.ts";
import { checkStream, type WireItem, type WireResponse } from "../protocols/grammar.ts";
import { answerEvents, answerJson, type Received, startUpstream } from "../upstream.ts";

type Fields = Readonly<Record<string, unknown>>;

const search = {
  id: "ws_1",
  type: "web_search_call",
  status: "completed",
  action: { type: "search", query: "ships" },
};
/** As long as the ids of a real server, and longer. */
const tools = { id: `mcpl_${"0123456789abcdef".repeat(4)}`, type: "mcp_list_tools", server_label: "wiki", tools: [] };
const approval = {
  id: "mcpr_1",
  type: "mcp_approval_request",
  server_label: "wiki",
  name: "look",
  arguments: "{}",
};
const shell = {
  id: "sh_1",
  type: "shell_call",
  status: "completed",
  call_id: "call_sh",
  action: { commands: ["ls"], timeout_ms: null, max_output_length: null },
};
const hosted: readonly Fields[] = [search, tools, approval, shell];

const cited = "A ship, it says.";
const citation = { type: "url_citation", url: "https://sea.test/", title: "Sea", start_index: 0, end_index: 6 };
const file = { type: "file_citation", file_id: "file_1", filename: "sea.txt", index: 7 };
const message = item.message(cited, { annotations: [citation, file] });
const output = [...hosted, message];

/** The text in two pieces, one annotation as an event, the other only in the finished item. */
const events = [
  ...hosted.flatMap((one, index) => [itemAdded(index, one), itemDone(index, one)]),
  responseEvent("output_text.delta", { output_index: hosted.length, content_index: 0, delta: cited.slice(0, 6) }),
  responseEvent("output_text.annotation.added", {
    output_index: hosted.length,
    content_index: 0,
    annotation_index: 0,
    annotation: citation,
  }),
  responseEvent("output_text.delta", { output_index: hosted.length, content_index: 0, delta: cited.slice(6) }),
  itemDone(hosted.length, message),
  completed(output),
];

async function startPair(context: TestContext) {
  const upstream = await startUpstream((received, reply) => {
    const { stream } = received.json as { readonly stream?: boolean };
    return (stream === true ? answerEvents(...events) : answerJson(response(output)))(received, reply);
  });
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", wire: "responses", base_url: `${upstream.url}/v1` } },
  });
  return { upstream, address, client: new OpenAI({ baseURL: `${address}/v1`, apiKey: token, maxRetries: 0 }) };
}

const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

async function post(address: string, path: string, body: Fields, more: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(`${address}/v1/${path}`, {
    method: "POST",
    headers: { ...headers, ...more },
    body: JSON.stringify({ model: "m", ...body }),
  });
  assert.equal(answer.status, 200);
  return answer.text();
}

async function get(address: string, path: string): Promise<string> {
  const answer = await fetch(`${address}/v1/${path}`, { headers });
  assert.equal(answer.status, 200);
  return answer.text();
}

/** The items as the upstream sent them, whatever ids the gateway shows. */
function withUpstreamIds(items: readonly WireItem[]): readonly unknown[] {
  return items
    .filter(({ type }) => type !== "message")
    .map((one) => ({ ...one, id: one.id.replace(/_[0-9a-f]{48}i?[0-9a-f]{4}$/, "") }));
}

function inputOf({ json }: Received): readonly Fields[] {
  return (json as { readonly input: readonly Fields[] }).input;
}

test("items of hosted tools are returned whole and streamed, stored, replayed and listed", async (context) => {
  const { address } = await startPair(context);
  const stream = await post(address, "responses", { input: "hi", stream: true });
  const { response: told, events } = checkStream(stream);
  assert.deepEqual(withUpstreamIds(told.output), hosted);
  const added = events.filter(({ type }) => type === "response.output_item.added").map((event) => event.item.status);
  assert.deepEqual(added, ["in_progress", undefined, undefined, "in_progress", "in_progress"]);
  assert.deepEqual(JSON.parse(await get(address, `responses/${told["id"]}`)), told);
  assert.equal(await get(address, `responses/${told["id"]}?stream=true`), stream);

  const whole: WireResponse = JSON.parse(await post(address, "responses", { input: "hi" }));
  assert.deepEqual(withUpstreamIds(whole.output), hosted);

  const { id } = JSON.parse(await post(address, "conversations", {}));
  await post(address, "responses", { input: "hi", conversation: id });
  const listed = JSON.parse(await get(address, `conversations/${id}/items?order=asc`));
  assert.deepEqual(withUpstreamIds(listed.data.slice(1)), hosted);
  const [, , shown] = listed.data;
  assert.deepEqual(JSON.parse(await get(address, `conversations/${id}/items/${shown.id}`)), shown);
  const behind = JSON.parse(await get(address, `conversations/${id}/items?order=asc&after=${shown.id}`));
  assert.deepEqual(behind.data, listed.data.slice(3));
});

test("a request that is repeated with its key gets the same stream again", async (context) => {
  const { address } = await startPair(context);
  for (const path of ["responses", "chat/completions"]) {
    const body = path === "responses" ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }] };
    const key = { "idempotency-key": path };
    const first = await post(address, path, { ...body, stream: true }, key);
    assert.equal(await post(address, path, { ...body, stream: true }, key), first);
  }
});

test("the upstream gets hosted items back as it sent them, stored, resent or referenced, and an approval matches its request", async (context) => {
  const { address, upstream } = await startPair(context);
  const first: WireResponse = JSON.parse(await post(address, "responses", { input: "hi" }));
  const shown = first.output.find(({ type }) => type === "mcp_approval_request");
  const approve = { type: "mcp_approval_response", approve: true, approval_request_id: shown?.id };
  const references = first.output.map(({ id }) => ({ type: "item_reference", id }));

  await post(address, "responses", { input: [approve], previous_response_id: first["id"] });
  await post(address, "responses", {
    input: [{ role: "user", content: "hi" }, ...first.output, approve],
    store: false,
  });
  await post(address, "responses", { input: [{ role: "user", content: "hi" }, ...references, approve] });

  for (const received of upstream.received.slice(1)) {
    const [, ...rest] = inputOf(received);
    assert.deepEqual(rest.slice(0, hosted.length), hosted);
    assert.deepEqual(rest.at(-2)?.["content"], [{ type: "output_text", text: cited, annotations: [citation, file] }]);
    assert.deepEqual(rest.at(-1), { ...approve, approval_request_id: "mcpr_1" });
  }
});

test("annotations are returned in the form of each protocol, whole and streamed", async (context) => {
  const { address } = await startPair(context);
  const { response: streamed } = checkStream(await post(address, "responses", { input: "hi", stream: true }));
  const whole: WireResponse = JSON.parse(await post(address, "responses", { input: "hi" }));
  for (const { output } of [streamed, whole]) {
    assert.deepEqual(output.at(-1)?.content?.[0]?.["annotations"], [citation, file]);
  }
  const messages = [{ role: "user", content: "hi" }];
  const { type, ...of } = citation;
  const inChat = [{ type, url_citation: of }];
  const chunks = gatherChunks(await post(address, "chat/completions", { messages, stream: true }));
  assert.deepEqual([chunks.message.content, chunks.message.annotations], [cited, inChat]);
  const completion: WireCompletion = JSON.parse(await post(address, "chat/completions", { messages }));
  assert.equal(completion.choices[0]?.message.content, cited, "items of hosted tools are not part of chat completions");
  assert.deepEqual(completion.choices[0]?.message.annotations, inChat);
});

test("the official client reads hosted items and annotations, and sends them back", async (context) => {
  const { client, upstream } = await startPair(context);
  const stream = client.responses.stream({ model: "m", input: "hi" });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  const final = await stream.finalResponse();
  assert.ok(types.includes("response.output_text.annotation.added"));
  assert.deepEqual(
    final.output.map(({ type }) => type),
    output.map((one) => one["type"]),
  );
  assert.equal(final.output_text, cited);
  const input = [{ role: "user" as const, content: "hi" }, ...final.output, { role: "user" as const, content: "more" }];
  await client.responses.create({ model: "m", input: input as OpenAI.Responses.ResponseInput });
  assert.deepEqual(inputOf(upstream.received.at(-1)!).slice(1, 1 + hosted.length), hosted);
});

test("a session matches a history with hosted tool calls, and omits those that nobody answered", async (context) => {
  const { upstream, address } = await startPair(context);
  upstream.script = (received, reply) => {
    const last = inputOf(received).at(-1);
    return answerJson(response(last?.["type"] === "shell_call_output" ? [item.message("Done.")] : [shell]))(
      received,
      reply,
    );
  };
  const typesOf = () => inputOf(upstream.received.at(-1)!).map((one) => one["type"]);
  const question = { role: "user", content: "hi" };
  const given = { type: "shell_call_output", call_id: "call_sh", output: [] };
  const first: WireResponse = JSON.parse(await post(address, "responses", { input: [question], user: "ann" }));
  const loop = [question, ...first.output, given];
  const second: WireResponse = JSON.parse(await post(address, "responses", { input: loop, user: "ann" }));
  assert.deepEqual(typesOf(), ["message", "shell_call", "shell_call_output"]);
  const more = [...loop, ...second.output, { role: "user", content: "more" }];
  await post(address, "responses", { input: more, user: "ann" });
  assert.deepEqual(typesOf(), ["message", "shell_call", "shell_call_output", "message", "message"]);

  await post(address, "responses", { input: "hi", user: "bob" });
  await post(address, "responses", { input: "Never mind.", user: "bob" });
  assert.deepEqual(typesOf(), ["message", "message"]);
});
