/** A part that an adapter refuses is named by its path in the caller's own request. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item, Part } from "../../src/core/item.ts";
import type { Ask } from "../../src/core/turn.ts";
import { authorization, createBox } from "../scripted.ts";
import { protocol as chat } from "./chat/script.ts";
import { protocol as responses } from "./responses/script.ts";

function partsOf(items: Ask["items"]): readonly Part[] {
  return items.flatMap((item) => {
    const content = item.type === "message" ? item.content : item.type === "tool-output" ? item.output : "";
    return typeof content === "string" ? [] : content;
  });
}

function pathsOf({ items, pathOf }: Ask): readonly (string | undefined)[] {
  return partsOf(items).map((part) => pathOf?.(part));
}

test("chat: the path of a part is found after messages that became several items, or none", () => {
  const call = (id: string) => ({ id, type: "function", function: { name: "look", arguments: "{}" } });
  const text = { type: "text", text: "Look:" };
  const messages = [
    { role: "system", content: [text] },
    { role: "assistant", content: "Yes?", tool_calls: [call("a"), call("b")] },
    { role: "tool", tool_call_id: "a", content: "1" },
    { role: "tool", tool_call_id: "b", content: [text] },
    { role: "assistant", content: [text], refusal: "no" },
    {
      role: "user",
      content: [
        text,
        { type: "image_url", image_url: { url: "https://example.test/a.png" } },
        { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
        { type: "file", file: { file_id: "file-1" } },
        { type: "file", file: { file_data: "AAAA" } },
        { type: "hologram" },
      ],
    },
  ];
  assert.deepEqual(pathsOf(chat.parse({ model: "m", messages }, "default").ask), [
    "messages[0].content[0]",
    "messages[3].content[0]",
    "messages[4].content[0]",
    "messages[4].content[1]",
    "messages[5].content[0]",
    "messages[5].content[1].image_url.url",
    "messages[5].content[2].input_audio.data",
    "messages[5].content[3].file.file_id",
    "messages[5].content[4].file.file_data",
    "messages[5].content[5]",
  ]);
});

test("responses: the path of a part is found in messages and in the outputs of tools", () => {
  const input = [
    { role: "user", content: "Hi" },
    { type: "function_call", call_id: "a", name: "look", arguments: "{}" },
    {
      type: "function_call_output",
      call_id: "a",
      output: [
        { type: "input_image", image_url: "https://example.test/a.png" },
        { type: "input_image", file_id: "file-1" },
      ],
    },
    {
      role: "user",
      content: [
        { type: "input_file", file_id: "file-1" },
        { type: "input_file", file_data: "AAAA" },
        { type: "input_file", file_url: "https://example.test/a.pdf" },
        { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
        { type: "hologram" },
      ],
    },
  ];
  assert.deepEqual(pathsOf(responses.parse({ model: "m", input }, "default").ask), [
    "input[2].output[0].image_url",
    "input[2].output[1].file_id",
    "input[3].content[0].file_id",
    "input[3].content[1].file_data",
    "input[3].content[2].file_url",
    "input[3].content[3].input_audio.data",
    "input[3].content[4]",
  ]);
});

test("a refused part is reported with its path, and one of an earlier turn with the field that continues it", async (context) => {
  const isImage = (part: Part) => part.type === "image";
  const find = (items: readonly Item[]) => partsOf(items).find(isImage);
  let isTaken = true;
  const address = await createBox(context, async function* ({ items }) {
    if (!isTaken) throw new GatewayError("unsupported_parameter", "No images.", { part: find(items) });
    yield [{ type: "text", text: "ok" }];
  }).listen();
  const ask = async (body: object) => {
    const headers = { authorization, "content-type": "application/json" };
    const sent = JSON.stringify({ model: "m", ...body });
    return (await fetch(`${address}/v1/responses`, { method: "POST", headers, body: sent })).json() as Promise<{
      readonly id: string;
      readonly error: { readonly param: string; readonly code: string };
    }>;
  };
  const content = [
    { type: "input_text", text: "Look:" },
    { type: "input_image", image_url: "https://example.test/a.png" },
  ];
  const { id } = await ask({ input: [{ role: "user", content }] });
  isTaken = false;
  const { error } = await ask({ input: [{ role: "user", content }] });
  assert.deepEqual([error.code, error.param], ["unsupported_parameter", "input[0].content[1].image_url"]);
  assert.equal((await ask({ previous_response_id: id, input: "And now?" })).error.param, "input");
});
