/** What is more than words: structured output, images and files reach a chat server, and again in every turn that continues them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { replyWith } from "../harness/client.ts";
import { ask, shareServed } from "./aids.ts";

type Fields = Readonly<Record<string, unknown>>;

const open = shareServed();

async function start(content = "well") {
  const { address, server } = await open();
  server.script = replyWith(() => ({ content }));
  return { address, seen: () => server.received.at(-1)!.json as Fields & { messages: Fields[] } };
}

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };

test("a wanted structure reaches the server in its own field, is repeated, and is not inherited", async () => {
  const { address, seen } = await start('{"n":7}');
  const format = { type: "json_schema", name: "number", schema, strict: true };
  const first = await ask(address, "Which?", { text: { format } });
  assert.deepEqual(seen()["response_format"], {
    type: "json_schema",
    json_schema: { name: "number", schema, strict: true },
  });
  assert.deepEqual([first.text.format, first.output[0].content[0].text], [format, '{"n":7}']);
  const next = await ask(address, "Why?", { previous_response_id: first.id });
  assert.equal(seen()["response_format"], undefined);
  assert.deepEqual(next.text.format, { type: "text" });
  const { strict: _, ...loose } = format;
  assert.deepEqual((await ask(address, "Which?", { text: { format: loose } })).text.format, { ...loose, strict: null });
  assert.deepEqual((seen()["response_format"] as Fields)["json_schema"], { name: "number", schema });
  await ask(address, "Which?", { text: { format: { type: "json_object" } } });
  assert.deepEqual(seen()["response_format"], { type: "json_object" });
});

const picture = "data:image/png;base64,iVBORw0KGgo=";
const paper = "data:application/pdf;base64,JVBERi0=";
const rows: readonly (readonly [what: string, sent: Fields, seen: Fields])[] = [
  [
    "an image in the request",
    { type: "input_image", image_url: picture, detail: "low" },
    { type: "image_url", image_url: { url: picture, detail: "low" } },
  ],
  [
    "a file in the request",
    { type: "input_file", filename: "a.pdf", file_data: paper },
    { type: "file", file: { filename: "a.pdf", file_data: paper } },
  ],
  ["a file by its id", { type: "input_file", file_id: "file_1" }, { type: "file", file: { file_id: "file_1" } }],
];
for (const [what, sent, expected] of rows) {
  test(`${what} is shown to the server now, and in the turn that continues it`, async () => {
    const { address, seen } = await start();
    const content = [{ type: "input_text", text: "Look:" }, sent];
    const { id } = await ask(address, [{ role: "user", content }]);
    const message = { role: "user", content: [{ type: "text", text: "Look:" }, expected] };
    assert.deepEqual(seen().messages, [message]);
    await ask(address, "And?", { previous_response_id: id });
    assert.deepEqual(seen().messages[0], message);
  });
}

test("what a model says beside its call joins the call's message when both go back", async () => {
  const { address, seen } = await start();
  const made = { type: "function_call", call_id: "c1", name: "look", arguments: '{"a": 1}' };
  const input = [
    { role: "user", content: "Look." },
    { role: "assistant", content: "One moment." },
    made,
    { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "seen" }] },
  ];
  await ask(address, input);
  const called = { id: "c1", type: "function", function: { name: "look", arguments: '{"a": 1}' } };
  const [, spoken, given] = seen().messages;
  assert.deepEqual(spoken, { role: "assistant", content: "One moment.", tool_calls: [called] });
  assert.deepEqual([given?.["role"], given?.["tool_call_id"]], ["tool", "c1"]);
  assert.match(JSON.stringify(given?.["content"]), /seen/);
});
