/** Reasoning that is sent as a summary, to callers that asked for one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toPlace } from "../../../src/core/conversation/conversations.ts";
import type { Delta } from "../../../src/core/delta.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Item } from "../../../src/core/item.ts";
import { readPageQuery, toItemPage } from "../../../src/protocols/responses/listing.ts";
import { checkStream, type WireItem } from "../grammar.ts";
import { about, play, protocol, seal } from "./script.ts";

const thought: readonly (readonly Delta[])[] = [
  [{ type: "reasoning", text: "Let me" }],
  [
    { type: "reasoning", text: " think" },
    { type: "text", text: "So." },
  ],
];
const request = { reasoning: { summary: "auto" } };
const include = ["reasoning.encrypted_content"];

/** The reasoning item of the stream, which is the same in the whole response. */
async function reasoningOf(deltas: readonly Delta[], body: object = request): Promise<WireItem> {
  const { stream, whole } = await play(
    deltas.map((delta) => [delta]),
    body,
  );
  const { response } = checkStream(stream);
  assert.deepEqual(whole(), response);
  return response.output[0]!;
}

function toSummary(...texts: readonly string[]): readonly object[] {
  return texts.map((text) => ({ type: "summary_text", text }));
}

test("reasoning is streamed as one section of a summary, and is one in the item", async () => {
  const { stream } = await play(thought, request);
  checkStream(stream);
  const lines = stream.split("\n").filter((line) => line.startsWith("data: "));
  const item = `"item_id":"rs_ab120000","output_index":0`;
  assert.deepEqual(
    lines.slice(2, 9).map((line) => line.slice("data: ".length)),
    [
      `{"type":"response.output_item.added","item":{"id":"rs_ab120000","type":"reasoning","status":"in_progress","summary":[]},"output_index":0,"sequence_number":2}`,
      `{"type":"response.reasoning_summary_part.added","summary_index":0,${item},"part":{"type":"summary_text","text":""},"sequence_number":3}`,
      `{"type":"response.reasoning_summary_text.delta","summary_index":0,"delta":"Let me",${item},"sequence_number":4}`,
      `{"type":"response.reasoning_summary_text.delta","summary_index":0,"delta":" think",${item},"sequence_number":5}`,
      `{"type":"response.reasoning_summary_text.done","summary_index":0,${item},"text":"Let me think","sequence_number":6}`,
      `{"type":"response.reasoning_summary_part.done","summary_index":0,${item},"part":{"type":"summary_text","text":"Let me think"},"sequence_number":7}`,
      `{"type":"response.output_item.done","item":{"id":"rs_ab120000","type":"reasoning","status":"completed","summary":[{"type":"summary_text","text":"Let me think"}]},"output_index":0,"sequence_number":8}`,
    ],
  );
});

test("a summary is requested in either of two fields, by any word; otherwise reasoning is sent raw", async () => {
  for (const reasoning of [
    { summary: "detailed" },
    { generate_summary: "concise" },
    { summary: null, generate_summary: "auto" },
  ]) {
    const item = await reasoningOf(thought.flat(), { reasoning });
    assert.deepEqual([item.content, item.summary], [undefined, toSummary("Let me think")]);
  }
  for (const reasoning of [undefined, {}, { effort: "high" }, { summary: null, generate_summary: null }]) {
    const item = await reasoningOf(thought.flat(), { reasoning });
    assert.deepEqual([item.content, item.summary], [[{ type: "reasoning_text", text: "Let me think" }], []]);
  }
});

test("reasoning with a summary of its own is sent unchanged", async () => {
  const own: readonly Delta[] = [
    { type: "reasoning", text: "First", summary: 0 },
    { type: "reasoning", text: "Then", summary: 1 },
  ];
  assert.deepEqual((await reasoningOf(own)).summary, toSummary("First", "Then"));
  const more: readonly Delta[] = [...own, { type: "reasoning", text: "hm" }];
  assert.deepEqual(await reasoningOf(more), await reasoningOf(more, {}));
});

test("a summary after reasoning that was already sent follows it, section by section", async () => {
  const item = await reasoningOf([
    { type: "reasoning", text: "hm" },
    { type: "reasoning", text: "First", summary: 0 },
    { type: "reasoning", text: "Then", summary: 1 },
    { type: "reasoning", text: "oh" },
  ]);
  assert.deepEqual([item.content, item.summary], [undefined, toSummary("hm", "First", "Then", "oh")]);
});

test("a stored response is replayed as it was sent, when it is complete and while it runs", async () => {
  const { voice } = protocol.parse({ model: "some-model", input: "Hi", ...request }, "default");
  const recalled = protocol.recall(voice.memo?.() ?? "", "default");
  const { answer, stream, whole } = await play(thought, request);
  assert.deepEqual(JSON.parse(recalled.whole(about, answer)), whole());
  const [item] = checkStream(stream).response.output;
  assert.deepEqual(JSON.parse(recalled.progress?.(about, "running", answer.items.slice(0, 1)) ?? "").output, [item]);
});

test("reasoning that is cut off is sent as far as it came, and is never done", async () => {
  const { stream } = await play(thought.slice(0, 1), request, new GatewayError("adapter_error", "It broke."));
  const { response, events } = checkStream(stream);
  assert.ok(!events.some(({ type }) => type.endsWith(".done")));
  assert.deepEqual([response.output[0]?.status, response.output[0]?.summary], ["incomplete", toSummary("Let me")]);
});

test("reasoning that a caller sends back is read from its seal, and without one as a summary", async () => {
  const read = (item: object) => protocol.parse({ model: "m", input: [item] }, "default").ask.items;
  const mixed: readonly Delta[] = [
    { type: "reasoning", text: "hm" },
    { type: "reasoning", text: "First", summary: 0 },
    { type: "reasoning-seal", encrypted: "opaque" },
  ];
  const sealed = await reasoningOf(mixed, { ...request, include });
  assert.deepEqual(sealed.summary, toSummary("hm", "First"));
  assert.deepEqual(read(sealed), [{ type: "reasoning", summary: ["First"], text: "hm", encrypted: "opaque" }]);

  const plain = await reasoningOf(thought.flat(), { ...request, include });
  assert.deepEqual(read(plain), [{ type: "reasoning", summary: [], text: "Let me think", encrypted: undefined }]);
  const { encrypted_content: _, ...open } = plain;
  assert.deepEqual(read(open), [{ type: "reasoning", summary: ["Let me think"], text: "", encrypted: undefined }]);
});

test("reasoning in a response's input is listed as a summary too, unless it has one of its own", () => {
  const items: readonly Item[] = [
    { type: "reasoning", summary: [], text: "hm" },
    { type: "reasoning", summary: ["First"], text: "hm" },
    { type: "message", role: "user", content: "Hi" },
  ];
  const places = items.map((item, index) => toPlace({ turnId: about.id, side: "input", index }, item));
  const list = (summarises: boolean) => {
    const { data } = toItemPage(places, readPageQuery({ order: "asc" }), seal, summarises) as {
      readonly data: WireItem[];
    };
    return data.map(({ content, summary }) => [content, summary]);
  };
  const text = [{ type: "reasoning_text", text: "hm" }];
  assert.deepEqual(list(true), [
    [undefined, toSummary("hm")],
    [text, toSummary("First")],
    [[{ type: "input_text", text: "Hi" }], undefined],
  ]);
  assert.deepEqual(list(false)[0], [text, []]);
});
