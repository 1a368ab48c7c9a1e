/** Lists of items: their order, their pages, and the form of each kind of item in them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, fetchBody, refuse, shareTalk, toTexts } from "./aids.ts";

const open = shareTalk();

const words = ["a", "b", "c", "d", "e"];
const toItems = (texts: readonly string[]) => texts.map((content) => ({ role: "user", content }));

/** The path of a list with these items: each kind of list behaves alike. */
const kinds: Readonly<Record<string, (address: string, items: readonly object[]) => Promise<string>>> = {
  "input of a response": async (address, items) => `/v1/responses/${(await ask(address, items)).id}/input_items`,
  "items of a conversation": async (address, items) =>
    `/v1/conversations/${(await fetchBody(address, "POST", "/v1/conversations", { items })).id}/items`,
};

for (const [kind, make] of Object.entries(kinds)) {
  test(`the ${kind} are listed newest first, at most twenty unless the caller wants more`, async () => {
    const { address } = await open();
    const many = Array.from({ length: 21 }, (_, index) => `${index}`);
    const path = await make(address, toItems(many));
    const list = await fetchBody(address, "GET", path);
    assert.deepEqual(toTexts(list.data), many.slice(1).toReversed());
    assert.deepEqual([list.object, list.has_more], ["list", true]);
    assert.deepEqual([list.first_id, list.last_id], [list.data[0].id, list.data[19].id]);
    assert.equal((await fetchBody(address, "GET", `${path}?limit=21`)).has_more, false);
  });

  test(`the ${kind} come whole in pages of any size, in either order`, async () => {
    const { address } = await open();
    const path = await make(address, toItems(words));
    for (const order of ["asc", "desc"]) {
      for (const limit of [1, 2, 3, 5]) {
        const texts: string[] = [];
        let after = "";
        for (let pages = 0; pages < 6; pages += 1) {
          const list = await fetchBody(address, "GET", `${path}?order=${order}&limit=${limit}${after}`);
          texts.push(...toTexts(list.data));
          after = `&after=${list.last_id}`;
          if (!list.has_more) break;
        }
        assert.deepEqual(texts, order === "asc" ? words : words.toReversed(), `${order} ${limit}`);
      }
    }
  });

  test(`a wrong page of the ${kind} is refused with the name of what is wrong`, async () => {
    const { address } = await open();
    const path = await make(address, toItems(["a"]));
    for (const [query, status, param] of [
      ["limit=0", 400, "limit"],
      ["limit=101", 400, "limit"],
      ["limit=ten", 400, "limit"],
      ["order=up", 400, "order"],
      ["after=msg_nowhere", 404, "after"],
    ] as const) {
      const refused = await refuse(address, "GET", `${path}?${query}`);
      assert.deepEqual([refused[0], refused[2]], [status, param], query);
    }
  });
}

const picture = { type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=" };
const linked = { type: "input_image", image_url: "https://a.test/a.png", detail: "low" };
const paper = { type: "input_file", filename: "a.txt", file_data: "data:text/plain;base64,aGk=" };
const files = [{ type: "input_file", file_id: "file_1" }, paper];
const message = (content: unknown, more: object = {}) => ({ type: "message", role: "user", content, ...more });
const comment = { role: "assistant", phase: "commentary" };
const nothing = { annotations: [], logprobs: [] };
const said = { type: "output_text", text: "Let me see." };
const refusal = [{ type: "refusal", refusal: "No." }];
const thought = { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] };
/** What a caller sends, and how it is listed but for its id and status. */
const shapes: readonly (readonly [kind: string, prefix: string, sent: object, listed: object])[] = [
  ["a message without a type", "msg", { role: "user", content: "hi" }, message([{ type: "input_text", text: "hi" }])],
  ["an image by its address", "msg", message([linked]), message([linked])],
  ["an image in the request", "msg", message([picture]), message([{ ...picture, detail: "auto" }])],
  ["files, by id and in the request,", "msg", message(files), message(files)],
  ["a comment of an assistant", "msg", message([said], comment), message([{ ...said, ...nothing }], comment)],
  ["a refusal", "msg", message(refusal, { role: "assistant" }), message(refusal, { role: "assistant" })],
  ["reasoning", "rs", thought, thought],
];
for (const [kind, prefix, sent, listed] of shapes) {
  test(`the kept form of ${kind} is listed as the wire has it`, async () => {
    const { address } = await open();
    const { id } = await ask(address, [sent, { role: "user", content: "and?" }]);
    const { data } = await fetchBody(address, "GET", `/v1/responses/${id}/input_items?order=asc`);
    const { id: own, status = "completed", ...shown } = data[0];
    assert.ok(own.startsWith(`${prefix}_`), own);
    assert.equal(status, "completed");
    assert.deepEqual(shown, listed);
  });
}

test("reasoning is listed sealed only to who asks for it", async () => {
  const { address } = await open([[{ type: "reasoning", text: "hm" }]]);
  const conversation = (await fetchBody(address, "POST", "/v1/conversations")).id;
  await ask(address, "hi", { conversation });
  const path = `/v1/conversations/${conversation}/items`;
  const seal = "reasoning.encrypted_content";
  for (const query of ["", `?include[]=${seal}`, `?include=${seal}`, "?include=message.input_image.image_url"]) {
    const [reasoning] = (await fetchBody(address, "GET", path + query)).data;
    assert.deepEqual([reasoning.type, "encrypted_content" in reasoning], ["reasoning", query.includes(seal)], query);
  }
});
