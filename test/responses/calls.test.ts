/** Calls and their outputs in what a response continues and in what it shows: paired by place, refused where one is missing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../harness/client.ts";
import { call as calls, repeatLast, type Script, say, toLines } from "../harness/house.ts";
import { ask, fetchBody, refuse, shareTalk } from "./aids.ts";

const open = shareTalk();

const user = (content: string) => ({ role: "user", content });
const made = (call_id: string) => ({ type: "function_call", call_id, name: "look", arguments: "{}" });
const given = (call_id: string, output = "seen") => ({ type: "function_call_output", call_id, output });

/** Calls `look` twice when it is asked to look, always with the same ids; answers anything else with a word. */
const looks: Script = async function* ({ items }) {
  const last = toLines(items).at(-1) ?? "";
  yield last.includes("look") ? [...calls("c0", "look"), ...calls("c1", "look", "{}", 1)] : say("done");
};

/** A request that names what it continues: a response, or a conversation; the calls `c0` and `c1` are open there. */
const ways = {
  "a response": async (address: string) => {
    const { id, output } = await ask(address, "look");
    assert.equal(output.length, 2);
    return { previous_response_id: id };
  },
  "a conversation": async (address: string) => {
    const conversation = (await fetchBody(address, "POST", "/v1/conversations")).id;
    await ask(address, "look", { conversation });
    return { conversation };
  },
} as const;

const before = ["user: look", "call c0: look {}", "call c1: look {}"];

for (const [way, begin] of Object.entries(ways)) {
  test(`in ${way} parallel calls take their outputs in any order, and the turn goes on`, async () => {
    const { address, seen } = await open(looks);
    for (const outputs of [
      [given("c0", "a"), given("c1", "b")],
      [given("c1", "b"), given("c0", "a")],
    ]) {
      await ask(address, outputs, await begin(address));
      const lines = seen();
      assert.deepEqual(lines.slice(0, 3), before);
      assert.deepEqual(lines.slice(3).toSorted(), ["output c0: a", "output c1: b"]);
    }
  });

  test(`in ${way} an output that comes behind other words still stands behind its call`, async () => {
    const { address, seen } = await open(looks);
    await ask(address, [given("c0", "a"), user("wait"), given("c1", "b")], await begin(address));
    const lines = seen();
    assert.deepEqual([...lines.slice(0, 3), lines.at(-1)], [...before, "user: wait"]);
    assert.deepEqual(lines.slice(3, 5).toSorted(), ["output c0: a", "output c1: b"]);
  });

  test(`in ${way} call ids that a model uses again in every answer belong to the answer they stand in`, async () => {
    const { address, seen } = await open(looks);
    let at: object = await begin(address);
    for (const said of ["look 1", "look 2", "end"]) {
      const { id } = await ask(address, [given("c0", said), given("c1", said)], { ...at });
      if ("previous_response_id" in at) at = { previous_response_id: id };
    }
    await ask(address, "thanks", { ...at });
    const step = (said: string) => [...before.slice(1), `output c0: ${said}`, `output c1: ${said}`];
    const steps = ["look 1", "look 2", "end"].flatMap(step);
    assert.deepEqual(seen(), ["user: look", ...steps, "assistant: done", "user: thanks"]);
  });

  for (const stream of [false, true]) {
    const rows: readonly (readonly [what: string, input: unknown, message: RegExp])[] = [
      ["no output", "never mind", /^No tool output found for function call c0\.?/],
      ["one output of two", [given("c0")], /^No tool output found for function call c1\.?/],
      ["an output without a call", [given("c0"), given("c1"), given("c9")], /^No tool call found for .* c9\.?$/],
    ];
    for (const [what, input, message] of rows) {
      test(`in ${way} ${what} is refused in OpenAI's words and leaves no trace, ${stream ? "streamed" : "whole"}`, async () => {
        const { address, model, seen } = await open(looks);
        const at = await begin(address);
        const asked = model.turns.length;
        const body = { model: "m", input, stream, ...at };
        const refused = await call(address, "POST", "/v1/responses", body);
        assert.equal(refused.status, 400, refused.raw);
        assert.deepEqual([refused.body.error.code, refused.body.error.param], ["tool_call_mismatch", "input"]);
        assert.match(refused.body.error.message, message);
        assert.equal(model.turns.length, asked);
        await ask(address, [given("c0"), given("c1")], at);
        assert.deepEqual(seen(), [...before, "output c0: seen", "output c1: seen"]);
      });
    }
  }
}

for (const lost of ["words", "a call"]) {
  test(`a step is answered anew when it is sent again because its answer was lost, which was ${lost}`, async () => {
    const { address, model, seen } = await open([calls("a1", "look")]);
    const conversation = (await fetchBody(address, "POST", "/v1/conversations")).id;
    await ask(address, "look", { conversation });
    model.script = lost === "words" ? [say("done")] : [calls("a2", "look")];
    for (let times = 0; times < 2; times += 1) {
      await ask(address, [given("a1")], { conversation });
      const steps = seen().filter((line) => /^(call|output) /.test(line));
      assert.deepEqual(steps, ["call a1: look {}", "output a1: seen"]);
    }
  });
}

test("call ids that the client itself shows twice belong to the place they stand in, too", async () => {
  const { address, seen } = await open();
  const said = { role: "assistant", content: "done" };
  await ask(address, [user("A"), made("c0"), given("c0", "one"), said, made("c0"), given("c0", "two")]);
  const steps = seen().filter((line) => /^(call|output)/.test(line));
  assert.deepEqual(steps, [before[1], "output c0: one", before[1], "output c0: two"]);
});

test("an output without its call is refused where nothing is named, too", async () => {
  const { address, model } = await open();
  const asked = model.turns.length;
  const input = [given("c9"), made("c9")];
  const refused = await refuse(address, "POST", "/v1/responses", { model: "m", input });
  assert.deepEqual(refused, [400, "tool_call_mismatch", "input"]);
  assert.equal(model.turns.length, asked);
});

test("a call that nobody answered is left out of a history that its client shows", async () => {
  const { address, seen } = await open();
  await ask(address, [user("A"), made("c0"), user("B"), made("c0"), given("c0")]);
  assert.deepEqual(seen(), ["user: A", "user: B", "call c0: look {}", "output c0: seen"]);
});

test("a custom tool is offered, called with free text, and its output goes back under its call", async () => {
  const { address, model, seen } = await open([
    [
      { type: "tool-call", kind: "custom", index: 0, callId: "c1", name: "run" },
      { type: "tool-arguments", index: 0, text: "ls -l" },
    ],
  ]);
  const tools = [{ type: "custom", name: "run", description: "Runs it.", format: { type: "text" } }];
  const { id, output } = await ask(address, "list", { tools });
  const { type, call_id, name, input } = output[0];
  assert.deepEqual([type, call_id, name, input], ["custom_tool_call", "c1", "run", "ls -l"]);
  model.script = repeatLast;
  const result = { type: "custom_tool_call_output", call_id: "c1", output: "a.ts" };
  await ask(address, [result], { previous_response_id: id, tools });
  assert.deepEqual(seen(), ["user: list", "call c1: run ls -l", "output c1: a.ts"]);
  const wrong = { model: "m", input: "and?", previous_response_id: id };
  assert.deepEqual(await refuse(address, "POST", "/v1/responses", wrong), [400, "tool_call_mismatch", "input"]);
});
