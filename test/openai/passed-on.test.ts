/** What only one dialect has passes through: hosted items whole, and fields of a server's own for callers of its dialect. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gatherChunks } from "../harness/chunks.ts";
import { call } from "../harness/client.ts";
import type { WireItem } from "../harness/grammar.ts";
import { answerEvents, answerJson, chunk } from "../harness/upstream.ts";
import { added, ask, completed, done, type Fields, isStreamed, item, listen, respond } from "./scene.ts";
import { responseOf, type Scene, says, shareScene, textDelta, whole } from "./scene.ts";

const open = shareScene();

const images = ["AAAA", "BBBB"].map((data) => ({
  type: "image_url",
  image_url: { url: `data:image/png;base64,${data}` },
}));
const around = {
  citations: ["https://a.test/"],
  search_results: [{ title: "A" }],
  moderation: { input: { results: [] } },
};
const usage = { prompt_tokens: 1, completion_tokens: 1, cost: 0.5, cost_details: { input: 0.2 } };

test("images, citations, the cost and moderation results of a chat server reach chat callers alone, and do not go back", async () => {
  const scene = await open();
  const say = (delta: Fields, finish: string | null = null) => ({ ...(chunk(delta, finish) as Fields), ...around });
  const pieces = [
    say({ content: "Look.", images: images.slice(0, 1) }),
    say({ images: images.slice(1) }),
    say({}, "stop"),
  ];
  const events = answerEvents(...pieces, { choices: [], usage });
  const json = answerJson(whole({ content: "Look.", images }, "stop", { ...around, usage }));
  scene.plays((received, response) => (isStreamed(received) ? events : json)(received, response));
  const completion = JSON.parse((await ask(scene, { on: "chat", model: "chat" })).raw);
  assert.deepEqual(completion.choices[0].message.images, images);
  for (const [name, value] of Object.entries(around)) assert.deepEqual(completion[name], value);
  assert.deepEqual([completion.usage.cost, completion.usage.cost_details], [0.5, { input: 0.2 }]);

  const { message, rest } = gatherChunks((await ask(scene, { on: "chat", model: "chat", stream: true })).raw);
  assert.deepEqual(message.added["images"], images);
  for (const [name, value] of Object.entries(around)) assert.deepEqual(rest[name], value);

  const other = await ask(scene, { on: "responses", model: "chat", more: { user: "ann" } });
  assert.ok(!other.raw.includes("AAAA") && !other.raw.includes("citations"));
  scene.plays(says("fine"));
  await listen(scene, { on: "chat", model: "chat", say: "Another.", more: { user: "ann" } });
  assert.match(scene.last().text, /Look\./);
  assert.ok(!scene.last().text.includes("AAAA"));
});

/** As long as the ids of a real server, and longer. */
const id = `mcpl_${"0123456789abcdef".repeat(4)}`;
const hosted: readonly Fields[] = [
  { id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search", query: "ships" } },
  { id, type: "mcp_list_tools", server_label: "wiki", tools: [] },
  { id: "mcpr_1", type: "mcp_approval_request", server_label: "wiki", name: "look", arguments: "{}" },
  { id: "sh_1", type: "shell_call", status: "completed", call_id: "call_sh", action: { commands: ["ls"] } },
  { id: "ig_1", type: "image_generation_call", status: "completed", result: "A".repeat(1_000_000) },
];
const citation = { type: "url_citation", url: "https://sea.test/", title: "Sea", start_index: 0, end_index: 6 };
const annotations = [citation, { type: "file_citation", file_id: "file_1", filename: "sea.txt", index: 7 }];
const message = item.message("A ship, it says.", { annotations });
const output = [...hosted, message];
const opened = hosted.flatMap((one, index) => [added(index, one), done(index, one)]);
const events = [...opened, textDelta(5, "A ship, it says."), done(5, message), completed(output)];

async function openHosted(): Promise<Scene> {
  const scene = await open();
  const [streamed, whole] = [answerEvents(...events), answerJson(responseOf(output))];
  scene.plays((received, response) => (isStreamed(received) ? streamed : whole)(received, response));
  return scene;
}

/** Ids begin with the server's own. */
function checkHosted(items: readonly WireItem[]): void {
  for (const [index, { id, ...rest }] of hosted.entries()) {
    const { id: shownId, ...shown } = items[index]!;
    assert.deepEqual(shown, rest);
    assert.ok(shownId.startsWith(String(id)), shownId);
  }
}

test("items of hosted tools are told whole and streamed, and stored as they were told; a chat caller gets the text", async () => {
  const scene = await openHosted();
  for (const stream of [false, true]) {
    const told = await respond(scene, stream);
    checkHosted(told.output);
    assert.deepEqual(told.output.at(-1)?.content?.[0]?.["annotations"], annotations);
    assert.deepEqual((await call(scene.address, "GET", `/v1/responses/${told["id"]}`)).body, told);
    const heard = await listen(scene, { on: "chat", stream, model: "responses" });
    assert.deepEqual([heard.text, heard.annotations, heard.calls], ["A ship, it says.", [citation], []]);
  }
});

test("hosted items go back to the server as it sent them, named, shown or referenced, and an approval finds its request", async () => {
  const scene = await openHosted();
  const first = await respond(scene, false);
  const approval_request_id = first.output.find(({ type }) => type === "mcp_approval_request")?.id;
  const approve = { type: "mcp_approval_response", approve: true, approval_request_id };
  const news = [{ type: "shell_call_output", call_id: "call_sh", output: [] }, approve];
  const asked = { role: "user", content: "hi" };
  const references = first.output.map(({ id }) => ({ type: "item_reference", id }));
  for (const more of [
    { input: news, previous_response_id: first["id"] },
    { input: [asked, ...first.output, ...news], store: false },
    { input: [asked, ...references, ...news] },
  ]) {
    await respond(scene, false, more);
    const { input } = scene.last().json as { readonly input: readonly Fields[] };
    const ofHosted = input.filter(({ type }) => hosted.some((one) => one["type"] === type));
    assert.deepEqual(ofHosted, hosted);
    assert.deepEqual(input.at(-1), { ...approve, approval_request_id: "mcpr_1" });
    const [said] = input.find(({ role }) => role === "assistant")!["content"] as readonly Fields[];
    assert.deepEqual(said?.["annotations"], annotations);
  }
});
