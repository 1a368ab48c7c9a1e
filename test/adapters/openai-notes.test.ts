/** Annotations and log probabilities of an upstream's text, in the form that clients can read, on both wires. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readLogprobs } from "../../src/adapters/openai/logprobs.ts";
import type { Delta } from "../../src/core/delta.ts";
import type { Turn } from "../../src/core/turn.ts";
import { type Script, answerEvents, answerJson, chunk, startUpstream } from "../upstream.ts";
import { createOpenai } from "./made.ts";
import { completed, item, itemDone, response, responseEvent } from "./openai-events.ts";

const text = "Hello world";

/** The same text on each wire, streamed and whole, with annotations and log probabilities. */
function waysOf(notes: readonly object[], logprobs: readonly unknown[]): readonly (readonly [Wire, Script])[] {
  const choice = { index: 0, finish_reason: "stop", logprobs: { content: logprobs } };
  const message = item.message(text, { annotations: notes, logprobs });
  const place = { output_index: 0, content_index: 0 };
  return [
    [
      "chat",
      answerJson({ choices: [{ ...choice, message: { role: "assistant", content: text, annotations: notes } }] }),
    ],
    [
      "chat",
      answerEvents(
        chunk({ content: text }, null, { logprobs: { content: logprobs } }),
        chunk({ annotations: notes }),
        chunk({}, "stop"),
      ),
    ],
    ["responses", answerJson(response([message]))],
    [
      "responses",
      answerEvents(
        responseEvent("output_text.delta", { ...place, delta: text, logprobs }),
        ...notes.map((annotation) => responseEvent("output_text.annotation.added", { ...place, annotation })),
        itemDone(0, message),
        completed([message]),
      ),
    ],
  ];
}

type Wire = "chat" | "responses";

async function deltasOf(wire: Wire, script: Script): Promise<readonly Delta[]> {
  await using server = await startUpstream(script);
  const adapter = createOpenai({ base_url: `${server.url}/v1`, wire }, {});
  const items = [{ type: "message", role: "user", content: "Hello" }] as const;
  const turn: Turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream: true };
  const deltas: Delta[] = [];
  for await (const batch of adapter.stream(turn, new AbortController().signal)) deltas.push(...batch);
  await adapter.close?.();
  return deltas;
}

interface Note {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** How an annotation is emitted, if at all. */
const notes: readonly (readonly [Note, object | undefined])[] = [
  [
    { type: "url_citation", url: "u" },
    { url: "u", title: "u", start_index: 0, end_index: 11 },
  ],
  [
    { type: "url_citation", url_citation: { url: "u", title: null, start_index: 6, content: "snippet" } },
    { url: "u", title: "u", start_index: 6, end_index: 11, content: "snippet" },
  ],
  [
    { type: "url_citation", url: "u", title: "", start_index: -4, end_index: 900.5 },
    { url: "u", title: "", start_index: 0, end_index: 11 },
  ],
  [
    { type: "url_citation", url: "u", title: "t", start_index: 20, end_index: "5" },
    { url: "u", title: "t", start_index: 20, end_index: 20 },
  ],
  [{ type: "url_citation", title: "t", start_index: 0, end_index: 3 }, undefined],
  [
    { type: "file_citation", file_id: "f" },
    { file_id: "f", filename: "f", index: 0 },
  ],
  [
    { type: "file_citation", file_id: "f", filename: "a.txt", index: 7 },
    { file_id: "f", filename: "a.txt", index: 7 },
  ],
  [{ type: "file_citation", filename: "a.txt", index: 7 }, undefined],
  [
    { type: "container_file_citation", container_id: "c", file_id: "f", end_index: 2 },
    { container_id: "c", file_id: "f", filename: "f", start_index: 0, end_index: 2 },
  ],
  [{ type: "container_file_citation", file_id: "f", filename: "a.txt" }, undefined],
  [
    { type: "file_path", file_id: "f", index: 1.5 },
    { file_id: "f", index: 0 },
  ],
  [{ type: "file_path", index: 1 }, undefined],
];

test("an annotation is completed with required fields or left out; one of an unknown type stays on its own wire", async () => {
  const undescribed = { type: "file", file: { hash: "h", name: "a.pdf" } };
  const said = [...notes.map(([note]) => note), undescribed];
  const expected = notes.flatMap(([{ type }, fields]) =>
    fields === undefined ? [] : [{ type: "annotation", annotation: { type, fields } }],
  );
  const responsesOnly = { type: "annotation", annotation: { type: "file", fields: undescribed.file } };
  for (const [wire, script] of waysOf(said, [])) {
    const deltas = await deltasOf(wire, script);
    assert.deepEqual(
      deltas.filter(({ type }) => type === "annotation"),
      wire === "chat" ? expected : [...expected, responsesOnly],
    );
  }
});

test("log probabilities are emitted in one form, and those without a token or a number are left out", async () => {
  const said = [
    { token: "He", logprob: -1 },
    "x",
    5,
    null,
    { token: 5, logprob: -1 },
    { token: "a" },
    { token: "a", logprob: null, bytes: [], top_logprobs: [] },
    { token: "a", logprob: "-inf" },
    { token: "", logprob: 0, bytes: [1.5], top_logprobs: null },
    {
      token: "llo",
      logprob: -0.5,
      bytes: [108],
      rank: 1,
      top_logprobs: [null, { token: "b", logprob: -2, id: 7 }, { token: "c", logprob: null }, { logprob: -1 }],
    },
  ];
  const expected = [
    { token: "He", logprob: -1, bytes: null, top_logprobs: [] },
    { token: "", logprob: 0, bytes: null, top_logprobs: [] },
    {
      token: "llo",
      logprob: -0.5,
      bytes: [108],
      top_logprobs: [{ token: "b", logprob: -2, bytes: null }],
    },
  ];
  for (const [wire, script] of waysOf([], said)) {
    const [first] = await deltasOf(wire, script);
    assert.deepEqual(first, { type: "text", text, logprobs: expected });
  }
  assert.equal(readLogprobs(JSON.parse('[{"token":"a","logprob":-1e999}]')), undefined);
  for (const none of [[], ["x", null, { token: "a" }]]) {
    for (const [wire, script] of waysOf([], none)) {
      const [first] = await deltasOf(wire, script);
      assert.deepEqual(first, { type: "text", text, logprobs: undefined });
    }
  }
});
