/** A model that calls several functions at once, and a caller that can handle only one. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import type { WireCompletion } from "../protocols/chunks.ts";
import { authorization, createBox, say } from "../scripted.ts";

const calls: Delta[] = ["Athens", "Rome"].flatMap((city, index): Delta[] => [
  { type: "tool-call", index, callId: `call_${city}`, name: "weather" },
  { type: "tool-arguments", index, text: `{"city":"${city}"}` },
]);
const functions = [{ name: "weather" }];
const question = { role: "user", content: "Athens and Rome?" };

async function start(context: TestContext, user: string | undefined) {
  const { adapter, listen } = createBox(context, async function* ({ items }) {
    yield items.some(({ type }) => type === "tool-output") ? say("done") : calls;
  });
  const address = await listen();
  const post = async (path: string, fields: object) => {
    const headers = { authorization, "content-type": "application/json" };
    const body = JSON.stringify({ model: "m", user, ...fields });
    const response = await fetch(address + path, { method: "POST", headers, body });
    return { history: response.headers.get("x-portico-history"), status: response.status, text: await response.text() };
  };
  const chat = async (...messages: readonly object[]) => {
    const { history, text } = await post("/v1/chat/completions", { messages, functions });
    return { history, message: (JSON.parse(text) as WireCompletion).choices[0]!.message };
  };
  return { post, chat, itemsSeen: () => adapter.turns.at(-1)?.items ?? [] };
}

for (const user of ["ann", undefined]) {
  const where = user === undefined ? "outside of a session" : "in a session";
  test(`${where} the turn continues from the one call that was answered`, async (context) => {
    const { post, chat, itemsSeen } = await start(context, user);
    const { message } = await chat(question);
    const { function_call, tool_calls } = message;
    assert.deepEqual(function_call, { name: "weather", arguments: '{"city":"Athens"}' });
    assert.equal(tool_calls?.length, 2);

    // Some clients send back what they received, others only the fields that they know.
    for (const shown of [message, { role: "assistant", content: null, function_call }]) {
      const answered = await chat(question, shown, { role: "function", name: "weather", content: "sunny" });
      assert.equal(answered.message.content, "done");
      const [, call, output, ...more] = itemsSeen();
      assert.ok(call?.type === "tool-call" && output?.type === "tool-output");
      assert.deepEqual([call.arguments, output.callId, more], ['{"city":"Athens"}', call.callId, []]);
    }
    assert.equal((await post("/v1/responses", { input: "And Oslo?" })).status, 200);
  });
}

test("a caller that knows both forms may answer all of the calls", async (context) => {
  const { chat, itemsSeen } = await start(context, "ann");
  const { message } = await chat(question);
  const outputs = message.tool_calls?.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "sunny" })) ?? [];
  const answered = await chat(question, message, ...outputs);
  assert.deepEqual([answered.message.content, answered.history], ["done", "matched"]);
  assert.equal(itemsSeen().length, 5);
});
