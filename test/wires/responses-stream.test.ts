/** The events of a response, in the order and with the fields of the live wire. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WireEvent } from "../harness/grammar.ts";
import { type Delta, say, shareGateway } from "../harness/house.ts";
import { normalise, playResponse } from "./play.ts";

const open = shareGateway();

/** The events between the opening and the end, without the ids and numbers that the grammar judges. */
function inner(events: readonly WireEvent[]): unknown[] {
  return events.slice(2, -1).map(({ sequence_number: _number, ...event }) => normalise(event));
}

/** The kinds of the events between the opening and the end, with repeated ones once. */
function kindsOf(events: readonly WireEvent[]): string {
  const kinds = events.slice(2, -1).map(({ type }) => type.replace("response.", ""));
  return kinds.filter((kind, index) => kind !== kinds[index - 1]).join(" ");
}

test("a text is one message with one part, and the end has all of it", async () => {
  const { events, response, whole } = await playResponse(await open(), [say('Say "'), say("hé\n")]);
  const place = { item_id: "msg", output_index: 0, content_index: 0 };
  const part = { type: "output_text", annotations: [], logprobs: [], text: "" };
  const item = { id: "msg", type: "message", status: "in_progress", content: [], role: "assistant" };
  const text = 'Say "hé\n';
  const [added, begun, ...rest] = inner(events);
  assert.deepEqual(added, { type: "response.output_item.added", item, output_index: 0 });
  assert.deepEqual(begun, { type: "response.content_part.added", ...place, part });
  const pieces = rest.slice(0, -3) as { delta: string }[];
  for (const { delta: _delta, ...piece } of pieces) {
    assert.deepEqual(piece, { type: "response.output_text.delta", ...place, logprobs: [] });
  }
  assert.equal(pieces.map(({ delta }) => delta).join(""), text);
  assert.deepEqual(rest.slice(-3), [
    { type: "response.output_text.done", ...place, logprobs: [], text },
    { type: "response.content_part.done", ...place, part: { ...part, text } },
    {
      type: "response.output_item.done",
      item: { ...item, status: "completed", content: [{ ...part, text }] },
      output_index: 0,
    },
  ]);
  assert.deepEqual(normalise(response), normalise(whole));
});

test("the stream opens with the unfinished response, twice", async () => {
  const { events } = await playResponse(await open(), [say("a")]);
  const [created, running] = events;
  const { status, output, usage, completed_at: completed, id } = created!.response;
  assert.deepEqual([created!.type, running!.type], ["response.created", "response.in_progress"]);
  assert.deepEqual([status, output, usage, completed], ["in_progress", [], null, null]);
  assert.equal(events.at(-1)!.response["id"], id);
});

test("parallel calls are sent one after the other, each with its arguments", async () => {
  const { events, whole } = await playResponse(await open(), [
    [
      { type: "tool-call", index: 0, callId: "call_a", name: "weather" },
      { type: "tool-call", index: 1, callId: "call_b", name: "time" },
      { type: "tool-arguments", index: 0, text: '{"city"' },
      { type: "tool-arguments", index: 1, text: "{}" },
      { type: "tool-arguments", index: 0, text: ':"Rome"}' },
    ],
  ]);
  const one = "output_item.added function_call_arguments.delta function_call_arguments.done output_item.done";
  assert.equal(kindsOf(events), `${one} ${one}`);
  const place = { item_id: "fc", output_index: 0 };
  const written = '{"city":"Rome"}';
  const all = inner(events) as WireEvent[];
  const item = {
    id: "fc",
    type: "function_call",
    status: "in_progress",
    arguments: "",
    call_id: "call_a",
    name: "weather",
  };
  assert.deepEqual(all[0], { type: "response.output_item.added", item, output_index: 0 });
  assert.deepEqual({ ...all[1]!, delta: "" }, { type: "response.function_call_arguments.delta", ...place, delta: "" });
  const [said, done] = all.filter(({ type }) => type.endsWith(".done"));
  assert.deepEqual(said, {
    type: "response.function_call_arguments.done",
    ...place,
    arguments: written,
    name: "weather",
  });
  assert.deepEqual(done!.item, { ...item, status: "completed", arguments: written });
  assert.deepEqual(
    whole.output.map((call) => [call["call_id"], call["name"], call["arguments"]]),
    [
      ["call_a", "weather", written],
      ["call_b", "time", "{}"],
    ],
  );
});

test("a call without arguments has an empty object, also as a piece; a custom tool's input stays empty", async () => {
  const gateway = await open();
  const { events, whole } = await playResponse(gateway, [[{ type: "tool-call", index: 0, callId: "c", name: "look" }]]);
  const deltas = events.flatMap(({ type, delta }) => (type.endsWith("arguments.delta") ? [delta] : []));
  assert.deepEqual([whole.output[0]!["arguments"], deltas.join("")], ["{}", "{}"]);
  const free: Delta = { type: "tool-call", index: 0, callId: "c", name: "note", kind: "custom" };
  assert.equal((await playResponse(gateway, [[free]])).whole.output[0]!["input"], "");
});

test("a custom tool's input is sent in the form of custom tools", async () => {
  const { events } = await playResponse(await open(), [
    [
      { type: "tool-call", index: 0, callId: "call_c", name: "patch", kind: "custom" },
      { type: "tool-arguments", index: 0, text: "*** Begin" },
    ],
  ]);
  const item = { id: "ctc", type: "custom_tool_call", call_id: "call_c", name: "patch" };
  const place = { item_id: "ctc", output_index: 0 };
  const input = "*** Begin";
  assert.deepEqual(inner(events), [
    { type: "response.output_item.added", item: { ...item, status: "in_progress", input: "" }, output_index: 0 },
    { type: "response.custom_tool_call_input.delta", ...place, delta: input },
    { type: "response.custom_tool_call_input.done", ...place, input },
    { type: "response.output_item.done", item: { ...item, status: "completed", input }, output_index: 0 },
  ]);
});

test("a refusal after some text is a second part of the same message", async () => {
  const { events, response } = await playResponse(await open(), [[...say("Well"), { type: "refusal", text: "No." }]]);
  const parts =
    "content_part.added output_text.delta output_text.done content_part.done " +
    "content_part.added refusal.delta refusal.done content_part.done";
  assert.equal(kindsOf(events), `output_item.added ${parts} output_item.done`);
  assert.deepEqual(response.output[0]!.content![1], { type: "refusal", refusal: "No." });
});

test("a message is announced only when there is text, and two messages stay two", async () => {
  const gateway = await open();
  const silent: Delta[] = [
    { type: "text", text: "" },
    { type: "tool-call", index: 0, callId: "c", name: "f" },
  ];
  const { whole } = await playResponse(gateway, [silent]);
  assert.deepEqual(
    whole.output.map(({ type }) => type),
    ["function_call"],
  );
  const two = await playResponse(gateway, [[...say("Let me see."), { type: "message-end" }, ...say("42.")]]);
  assert.deepEqual(
    two.whole.output.map(({ content }) => content![0]!["text"]),
    ["Let me see.", "42."],
  );
});

test("log probabilities come with the pieces, together at the end of the text, and in the item", async () => {
  const said = ["a", "b"].map((token): Delta => {
    const logprobs = [{ token, bytes: [97], logprob: -0.5, top_logprobs: [{ token: "z", bytes: null, logprob: -2 }] }];
    return { type: "text", text: token, logprobs };
  });
  const { events, response } = await playResponse(await open(), [said], { top_logprobs: 1 });
  const sent = said.flatMap((delta) => (delta.type === "text" ? delta.logprobs : []));
  const pieces = events.filter(({ type }) => type === "response.output_text.delta");
  assert.deepEqual(
    pieces.flatMap(({ logprobs }) => logprobs),
    sent,
  );
  assert.deepEqual(events.find(({ type }) => type === "response.output_text.done")!["logprobs"], sent);
  assert.equal((response.output[0]!.content![0]!["logprobs"] as unknown[]).length, 2);
});

test("an annotation is an event of its text, and in the part", async () => {
  const cite = (url: string): Delta => {
    return {
      type: "annotation",
      annotation: { type: "url_citation", fields: { url, title: "t", start_index: 0, end_index: 1 } },
    };
  };
  const gateway = await open();
  const { events, response } = await playResponse(gateway, [
    [...say("Hi"), cite("a")],
    [...say("!"), cite("b")],
  ]);
  const annotation = { type: "url_citation", url: "a", title: "t", start_index: 0, end_index: 1 };
  const found = events.filter(({ type }) => type === "response.output_text.annotation.added");
  assert.deepEqual(
    found.map(({ annotation_index: at, annotation: one }) => [at, one]),
    [
      [0, annotation],
      [1, { ...annotation, url: "b" }],
    ],
  );
  assert.deepEqual(response.output[0]!.content![0]!["annotations"], [annotation, { ...annotation, url: "b" }]);
});
