/** Stored responses: what is retrieved, what is deleted, and what remains of a chain from which something was deleted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { call as calls, repeatLast, say, usage } from "../harness/house.ts";
import { ask, fetchBody, refuse, shareTalk, stranger, strangersToken } from "./aids.ts";

const open = shareTalk({ http: stranger });
const notFound = [404, "not_found", null];

/** Fields that an answer repeats. */
const echoed = {
  instructions: "Be brief.",
  max_output_tokens: 16,
  max_tool_calls: 1,
  metadata: { topic: "tea" },
  parallel_tool_calls: false,
  prompt_cache_key: "k",
  reasoning: { effort: "low", summary: "auto" },
  safety_identifier: "s",
  temperature: 0,
  text: { format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: true }, verbosity: "low" },
  tool_choice: { type: "function", name: "f" },
  tools: [{ type: "function", name: "f", description: "d", parameters: { type: "object" }, strict: true }],
  top_p: 0.5,
  truncation: "auto",
};

for (const stream of [false, true]) {
  test(`a response is retrieved as its caller got it, ${stream ? "streamed" : "whole"}, with what was asked for`, async () => {
    const { address } = await open([
      [{ type: "reasoning", text: "hm" }, ...say("Hel", "lo"), ...calls("c1", "f", '{"a": 1}')],
      [
        { type: "usage", usage },
        { type: "finish", reason: "tool-calls" },
      ],
    ]);
    const body = { model: "m", input: "hi", ...echoed, stream };
    const { raw } = await call(address, "POST", "/v1/responses", body);
    const told = stream ? checkStream(raw).response : JSON.parse(raw);
    for (const [key, value] of Object.entries(echoed)) assert.deepEqual(told[key], value, key);
    assert.deepEqual(await fetchBody(address, "GET", `/v1/responses/${told.id}`), told);
  });
}

test("an answer that was cut off is stored as incomplete, and can be continued", async () => {
  const { address, model, seen } = await open([[...say("Half"), { type: "finish", reason: "length" }]]);
  const cut = await ask(address, "hi");
  assert.deepEqual([cut.status, cut.incomplete_details], ["incomplete", { reason: "max_output_tokens" }]);
  assert.deepEqual(await fetchBody(address, "GET", `/v1/responses/${cut.id}`), cut);
  model.script = repeatLast;
  await ask(address, "go on", { previous_response_id: cut.id });
  assert.deepEqual(seen(), ["user: hi", "assistant: Half", "user: go on"]);
});

test("a response that is not stored exists for nobody", async () => {
  const { address } = await open();
  const { id, store } = await ask(address, "hi", { store: false });
  assert.equal(store, false);
  assert.deepEqual(await refuse(address, "GET", `/v1/responses/${id}`), notFound);
  assert.deepEqual(await refuse(address, "DELETE", `/v1/responses/${id}`), notFound);
  assert.deepEqual(await refuse(address, "GET", `/v1/responses/${id}/input_items`), notFound);
});

test("a response that is not stored still sees what it continues, and leaves that as it was", async () => {
  const { address, seen } = await open();
  const one = await ask(address, "one");
  await ask(address, "two", { previous_response_id: one.id, store: false });
  assert.deepEqual(seen(), ["user: one", "assistant: re: one", "user: two"]);
  const { id } = await fetchBody(address, "POST", "/v1/conversations", { items: [{ role: "user", content: "first" }] });
  await ask(address, "second", { conversation: id, store: false });
  assert.deepEqual(seen(), ["user: first", "user: second"]);
  await ask(address, "third", { conversation: id });
  assert.deepEqual(seen(), ["user: first", "user: third"]);
});

test("a deleted response is gone for good, and deleted once", async () => {
  const { address } = await open();
  const { id, output } = await ask(address, "hi");
  const path = `/v1/responses/${id}`;
  assert.deepEqual(await refuse(address, "DELETE", path, undefined, { token: strangersToken }), notFound);
  assert.deepEqual(await fetchBody(address, "DELETE", path), { id, object: "response", deleted: true });
  for (const at of [path, `${path}/input_items`, `${path}?stream=true`]) {
    assert.deepEqual(await refuse(address, "GET", at), notFound);
  }
  assert.deepEqual(await refuse(address, "DELETE", path), notFound);
  const refer = { model: "m", input: [{ type: "item_reference", id: output[0].id }] };
  assert.equal((await call(address, "POST", "/v1/responses", refer)).status, 404);
});

test("what follows a deleted response can still be continued, without the words of the deleted one", async () => {
  const { address, seen } = await open();
  const one = await ask(address, "one");
  const two = await ask(address, "two", { previous_response_id: one.id });
  const three = await ask(address, "three", { previous_response_id: two.id });
  await fetchBody(address, "DELETE", `/v1/responses/${two.id}`);
  assert.deepEqual(await fetchBody(address, "GET", `/v1/responses/${three.id}`), three);
  await ask(address, "four", { previous_response_id: three.id });
  assert.deepEqual(seen(), ["user: one", "assistant: re: one", "user: three", "assistant: re: three", "user: four"]);
});

test("the outputs of a deleted response's calls are not shown without them", async () => {
  const { address, model, seen } = await open([calls("c1", "look")]);
  const one = await ask(address, "look");
  model.script = repeatLast;
  const output = { type: "function_call_output", call_id: "c1", output: "seen" };
  const two = await ask(address, [output], { previous_response_id: one.id });
  await fetchBody(address, "DELETE", `/v1/responses/${one.id}`);
  await ask(address, "and?", { previous_response_id: two.id });
  assert.deepEqual(seen(), ["assistant: re: seen", "user: and?"]);
});
