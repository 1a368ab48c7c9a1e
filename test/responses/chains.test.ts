/** Chains and branches of responses: what `previous_response_id` brings back, and what it does not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../harness/client.ts";
import { repeatLast } from "../harness/house.ts";
import { ask, fetchBody, refuse, shareTalk, stranger, strangersToken } from "./aids.ts";

const open = shareTalk({ http: stranger });

test("a chain shows the model every earlier input and output, in order", async () => {
  const { address, seen } = await open();
  const one = await ask(address, "one");
  const two = await ask(address, [{ role: "user", content: "two" }], { previous_response_id: one.id });
  const three = await ask(address, "three", { previous_response_id: two.id });
  assert.deepEqual([two.previous_response_id, three.previous_response_id], [one.id, two.id]);
  const lines = ["user: one", "assistant: re: one", "user: two", "assistant: re: two", "user: three"];
  assert.deepEqual(seen(), lines);
});

test("two branches from one response never see each other", async () => {
  const { address, seen } = await open();
  const root = await ask(address, "root");
  const branches = ["left", "right"].map((text) => ask(address, text, { previous_response_id: root.id }));
  const [left, right] = await Promise.all(branches);
  for (const [branch, name] of [
    [left, "left"],
    [right, "right"],
    [left, "left"],
  ] as const) {
    await ask(address, "on", { previous_response_id: branch.id });
    const lines = ["user: root", "assistant: re: root", `user: ${name}`, `assistant: re: ${name}`, "user: on"];
    assert.deepEqual(seen(), lines);
  }
});

test("instructions are not inherited, but system messages stay where they stood", async () => {
  const { address, seen } = await open();
  const system = (text: string) => ({ role: "system", content: text });
  const user = (text: string) => ({ role: "user", content: text });
  const one = await ask(address, [system("Be kind."), user("one")], { instructions: "In English." });
  assert.deepEqual(seen(), ["instructions: In English.", "system: Be kind.", "user: one"]);
  const two = await ask(address, [system("Be brief."), user("two")], { previous_response_id: one.id });
  assert.equal(two.instructions, null);
  const lines = ["system: Be kind.", "user: one", "assistant: re: one", "system: Be brief.", "user: two"];
  assert.deepEqual(seen(), lines);
  await ask(address, "three", { previous_response_id: two.id, instructions: "In Latin." });
  assert.deepEqual(seen(), ["instructions: In Latin.", ...lines, "assistant: re: two", "user: three"]);
});

test("a session's memory does not come in beside a name: the name wins over a hint", async () => {
  const { address, seen } = await open();
  const caller = { headers: { "x-session-id": "elsewhere" } };
  await ask(address, "hinted", {}, caller);
  const named = await ask(address, "named");
  await ask(address, "next", { previous_response_id: named.id }, caller);
  assert.deepEqual(seen(), ["user: named", "assistant: re: named", "user: next"]);
});

test("an unknown, deleted, foreign or unstored response cannot be continued, and the model is not asked", async () => {
  const { address, model } = await open();
  const unstored = await ask(address, "hi", { store: false });
  const foreign = await ask(address, "hi", {}, { token: strangersToken });
  const deleted = await ask(address, "hi");
  await fetchBody(address, "DELETE", `/v1/responses/${deleted.id}`);
  const asked = model.turns.length;
  for (const id of ["resp_unknown", unstored.id, foreign.id, deleted.id]) {
    for (const stream of [false, true]) {
      const body = { model: "m", input: "hi", previous_response_id: id, stream };
      const expected = [400, "previous_response_not_found", "previous_response_id"];
      assert.deepEqual(await refuse(address, "POST", "/v1/responses", body), expected);
    }
  }
  assert.equal(model.turns.length, asked);
});

test("a response and a conversation cannot be continued both at once", async () => {
  const { address } = await open();
  const { id } = await ask(address, "hi");
  const conversation = (await fetchBody(address, "POST", "/v1/conversations", {})).id;
  const body = { model: "m", input: "hi", previous_response_id: id, conversation };
  const { status, raw, body: answered } = await call(address, "POST", "/v1/responses", body);
  assert.deepEqual([status, answered.error.code], [400, "mutually_exclusive"]);
  for (const word of ["previous_response_id", "conversation", "mutually exclusive"])
    assert.ok(raw.toLowerCase().includes(word), word);
});

test("a failed response is not continued, and leaves the one before it as it was", async () => {
  const { address, model, seen } = await open();
  const one = await ask(address, "one");
  model.script = async function* () {
    yield [{ type: "text", text: "half" }];
    throw new Error("broken");
  };
  const failed = await call(address, "POST", "/v1/responses", {
    model: "m",
    input: "two",
    previous_response_id: one.id,
  });
  assert.ok(failed.status >= 500 || failed.body.status === "failed", failed.raw);
  model.script = repeatLast;
  await ask(address, "three", { previous_response_id: one.id });
  assert.deepEqual(seen(), ["user: one", "assistant: re: one", "user: three"]);
});
