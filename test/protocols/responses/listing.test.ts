import assert from "node:assert/strict";
import { test } from "node:test";
import { type ItemPlace, toPlace } from "../../../src/core/conversation/conversations.ts";
import type { Item } from "../../../src/core/item.ts";
import {
  findListed,
  readPageQuery,
  showsSeals,
  toItemList,
  toItemPage,
  toListedItem,
} from "../../../src/protocols/responses/listing.ts";
import { seal } from "./script.ts";

const hidden = { seal, showsSeals: false };
const shown = { seal, showsSeals: true };
const digits = "0123456789ab".repeat(4);

function place(item: Item, index = 0, isWhole = true): ItemPlace {
  return toPlace({ turnId: `resp_${digits}`, side: "input", index }, item, isWhole);
}

function said(text: string): Item {
  return { type: "message", role: "user", content: text };
}

interface List {
  readonly data: readonly { readonly id: string }[];
  readonly first_id: string;
  readonly last_id: string;
  readonly has_more: boolean;
}

const five = ["a", "b", "c", "d", "e"].map((text, index) => place(said(text), index));

function page(query: Readonly<Record<string, unknown>>, places = five): List {
  return toItemPage(places, readPageQuery(query), seal) as List;
}

function numbersOf({ data }: List): readonly number[] {
  return data.map(({ id }) => Number.parseInt(id.slice(-4), 16));
}

test("a page is newest first, has at most twenty items, and says whether there are more", () => {
  const many = Array.from({ length: 21 }, (_, index) => place(said(`${index}`), index));
  const list = page({}, many);
  assert.deepEqual(numbersOf(list).slice(0, 2), [20, 19]);
  assert.equal(list.data.length, 20);
  assert.equal(list.has_more, true);
  assert.equal(page({ limit: "21" }, many).has_more, false);
});

test("a page of long items ends early, but has at least one", () => {
  const many = ["a", "x".repeat(33 * 1024 * 1024), "c"].map((text, index) => place(said(text), index));
  for (const [order, pages] of [
    ["asc", [[0], [1], [2]]],
    ["desc", [[2], [1], [0]]],
  ] as const) {
    let after: string | undefined;
    for (const [at, numbers] of pages.entries()) {
      const list = page({ order, after }, many);
      assert.deepEqual([numbersOf(list), list.has_more], [numbers, at < 2]);
      after = list.last_id;
    }
  }
});

test("successive pages are the whole list, in either order and with any limit", () => {
  for (const order of ["asc", "desc"]) {
    for (const limit of ["1", "2", "3", "5", "100"]) {
      const seen: number[] = [];
      let after: string | undefined;
      for (let list = page({ order, limit }); ; list = page({ order, limit, after })) {
        seen.push(...numbersOf(list));
        assert.equal(list.first_id, list.data[0]?.id);
        after = list.last_id;
        if (!list.has_more || seen.length > five.length) break;
      }
      assert.deepEqual(seen, order === "asc" ? [0, 1, 2, 3, 4] : [4, 3, 2, 1, 0]);
    }
  }
});

test("a page may start after an item that was deleted since", () => {
  const { last_id: after } = page({ limit: "2" });
  const places = five.map((each) => (each.index === 3 ? { ...each, item: undefined } : each));
  assert.deepEqual(numbersOf(page({ after }, places)), [2, 1, 0]);
  assert.deepEqual(numbersOf(page({}, places)), [4, 2, 1, 0]);
  assert.deepEqual(numbersOf(page({ limit: "1" }, places)), [4]);
});

test("an empty list has empty ids", () => {
  assert.deepEqual(page({}, []), { object: "list", data: [], first_id: "", last_id: "", has_more: false });
});

test("an unknown cursor, a wrong limit or a wrong order is refused with its name", () => {
  assert.throws(() => page({ after: "msg_nowhere" }), { code: "not_found", param: "after" });
  assert.throws(() => page({ limit: "0" }), { code: "out_of_range", param: "limit" });
  assert.throws(() => page({ limit: "101" }), { code: "out_of_range", param: "limit" });
  assert.throws(() => page({ limit: "ten" }), { code: "invalid_type", param: "limit" });
  assert.throws(() => page({ limit: ["1", "2"] }), { code: "invalid_type", param: "limit" });
  assert.throws(() => page({ order: "up" }), { code: "invalid_value", param: "order" });
});

test("an item is found by its complete id only", () => {
  const id = `msg_${digits}i0001`;
  assert.equal(findListed(five, id), five[1]);
  for (const other of [`fc_${digits}i0001`, `msg_${digits}0001`, `msg_${digits}i0009`, "msg_"]) {
    assert.throws(() => findListed(five, other), { code: "not_found", message: `Item with id '${other}' not found.` });
  }
});

test("sealed reasoning is requested in every form in which clients write lists", () => {
  const seal = "reasoning.encrypted_content";
  for (const query of [{ include: seal }, { include: ["x", seal] }, { "include[]": seal }, { "include[0]": seal }]) {
    assert.equal(showsSeals(query), true);
  }
  for (const query of [{}, { include: "message.input_image.image_url" }, { order: seal }]) {
    assert.equal(showsSeals(query), false);
  }
});

const shapes: readonly (readonly [name: string, item: Item, wire: object])[] = [
  [
    "a user message",
    said("hi"),
    { type: "message", id: "msg", role: "user", content: [{ type: "input_text", text: "hi" }] },
  ],
  [
    "a message with images and files",
    {
      type: "message",
      role: "user",
      content: [
        { type: "text", text: "see" },
        { type: "image", url: "https://example.com/a.png" },
        { type: "image", fileId: "file_1", detail: "low" },
        { type: "file", data: "data:,x", name: "x.txt" },
        {
          type: "audio",
          data: "AA",
          format: "wav",
          extra: { dialect: "responses", fields: { input_audio: { rate: 8 } } },
        },
        { type: "other", extra: { dialect: "responses", fields: { type: "new_part", value: 1 } } },
        { type: "other", extra: { dialect: "chat", fields: { type: "foreign" } } },
      ],
    },
    {
      type: "message",
      id: "msg",
      role: "user",
      content: [
        { type: "input_text", text: "see" },
        { type: "input_image", detail: "auto", image_url: "https://example.com/a.png" },
        { type: "input_image", detail: "low", file_id: "file_1" },
        { type: "input_file", filename: "x.txt", file_data: "data:,x" },
        { type: "input_audio", input_audio: { data: "AA", format: "wav", rate: 8 } },
        { type: "new_part", value: 1 },
      ],
    },
  ],
  [
    "an assistant message",
    {
      type: "message",
      role: "assistant",
      extra: { dialect: "responses", fields: { phase: "commentary" } },
      content: [
        { type: "text", text: "hi", annotations: [{ type: "file_path", fields: {} }] },
        { type: "refusal", text: "no", extra: { dialect: "responses", fields: { policy: "p1" } } },
      ],
    },
    {
      type: "message",
      id: "msg",
      role: "assistant",
      phase: "commentary",
      content: [
        { type: "output_text", text: "hi", annotations: [{ type: "file_path" }], logprobs: [] },
        { type: "refusal", refusal: "no", policy: "p1" },
      ],
    },
  ],
  [
    "a function call",
    { type: "tool-call", kind: "function", callId: "c", name: "f", arguments: "{}" },
    { type: "function_call", id: "fc", call_id: "c", name: "f", arguments: "{}" },
  ],
  [
    "a custom call",
    { type: "tool-call", kind: "custom", callId: "c", name: "f", arguments: "x" },
    { type: "custom_tool_call", id: "ctc", call_id: "c", name: "f", input: "x" },
  ],
  [
    "a function's output",
    { type: "tool-output", kind: "function", callId: "c", output: "ok" },
    { type: "function_call_output", id: "fco", call_id: "c", output: "ok" },
  ],
  [
    "a custom tool's output",
    { type: "tool-output", kind: "custom", callId: "c", output: [{ type: "text", text: "ok" }] },
    { type: "custom_tool_call_output", id: "ctco", call_id: "c", output: [{ type: "input_text", text: "ok" }] },
  ],
  [
    "reasoning",
    { type: "reasoning", summary: ["s"], text: "t", encrypted: "sealed" },
    {
      type: "reasoning",
      id: "rs",
      summary: [{ type: "summary_text", text: "s" }],
      content: [{ type: "reasoning_text", text: "t" }],
    },
  ],
];

for (const [name, item, wire] of shapes) {
  test(`${name} is listed in the form of the wire`, () => {
    const { id, ...listed } = structuredClone(toListedItem(place(item), hidden)) as { readonly id: string };
    const shown = JSON.parse(JSON.stringify({ ...listed, id: id.slice(0, id.indexOf("_")) }));
    assert.deepEqual(shown, { ...wire, status: "completed" });
    assert.equal(id.slice(id.indexOf("_") + 1), `${digits}i0000`);
  });
}

test("a compaction that only its maker can read is listed with its sealed content", () => {
  const item: Item = { type: "compaction", summary: "", encrypted: "sealed" };
  assert.deepEqual(toListedItem(place(item), hidden), {
    id: `cmp_${digits}i0000`,
    type: "compaction",
    encrypted_content: "sealed",
  });
});

test("a compaction in plain text is listed sealed, so that its caller can send it back", () => {
  const listed = toListedItem(place({ type: "compaction", summary: "We met." }), hidden);
  assert.deepEqual(listed, {
    id: `cmp_${digits}i0000`,
    type: "compaction",
    encrypted_content: seal.seal('{"summary":"We met."}'),
  });
});

test("an item of the dialect is listed unchanged, under its own id with its position appended", () => {
  const fields = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } };
  const listed = toListedItem(place({ type: "other", extra: { dialect: "responses", fields } }), hidden);
  assert.deepEqual(listed, { ...fields, id: `ws_1_${digits}i0000` });
  const { id: _, ...nameless } = fields;
  const alone = toListedItem(place({ type: "other", extra: { dialect: "responses", fields: nameless } }), hidden);
  assert.deepEqual(alone, { ...nameless, id: `item_${digits}i0000` });
});

test("an item that was cut off is listed as incomplete", () => {
  const { data } = toItemList([place(said("hi"), 0, false)], hidden) as { readonly data: readonly object[] };
  assert.deepEqual(
    data.map((item) => "status" in item && item.status),
    ["incomplete"],
  );
});

test("sealed reasoning is listed on request", () => {
  const item: Item = { type: "reasoning", summary: [], text: "", encrypted: "sealed" };
  assert.ok(!("encrypted_content" in (toListedItem(place(item), hidden) ?? {})));
  assert.ok("encrypted_content" in (toListedItem(place(item), shown) ?? {}));
});
