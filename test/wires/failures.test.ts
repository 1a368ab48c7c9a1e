/** A turn that fails: before its first word with a status, midway with one error and one end on either wire. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, endpoints, paths } from "../harness/client.ts";
import { gatherChunks } from "../harness/chunks.ts";
import { checkStream } from "../harness/grammar.ts";
import { type Delta, say, shareGateway } from "../harness/house.ts";
import { failure, playFailure, question } from "./play.ts";

const open = shareGateway();

test("a whole answer that breaks midway is a failure, with nothing of what had been said", async () => {
  const { address, model } = await open();
  model.script = async function* () {
    yield say("Half");
    throw failure("adapter_error");
  };
  for (const on of endpoints) {
    const { status, raw, body } = await call(address, "POST", paths[on], { model: "m", ...question[on] });
    assert.deepEqual([status, body.error.code, raw.includes("Half")], [502, "adapter_error", false]);
  }
});

test("chat: a stream that breaks ends with its error instead of a finish reason, and with [DONE]", async () => {
  const more = { stream_options: { include_usage: true } };
  const stream = await playFailure(await open(), "chat", [say("So")], failure("adapter_rate_limit", "Too fast."), more);
  const { error, finishReason, message } = gatherChunks(stream, true);
  const expected = { message: "Too fast.", type: "rate_limit_error", param: null, code: "adapter_rate_limit" };
  assert.deepEqual([error, finishReason, message.content], [expected, undefined, "So"]);
  assert.ok(stream.endsWith(`data: ${JSON.stringify({ error: expected })}\n\ndata: [DONE]\n\n`));
});

test("responses: a stream that breaks sends an error, nested and flat, and then response.failed", async () => {
  const failed = failure("adapter_rate_limit", "Too fast.");
  const { events, response } = checkStream(await playFailure(await open(), "responses", [say("So")], failed));
  const flat = { code: "adapter_rate_limit", message: "Too fast.", param: null };
  const { sequence_number: number, ...error } = events.at(-2)!;
  assert.deepEqual(error, { type: "error", error: { type: "rate_limit_error", ...flat }, ...flat });
  assert.equal(number, events.length - 2);
  assert.deepEqual(response.error, { code: "rate_limit_exceeded", message: "Too fast." });
  assert.deepEqual(
    [response.status, response["completed_at"], response.output[0]!.status],
    ["failed", null, "incomplete"],
  );
});

const known = [
  ["overloaded", "server_is_overloaded"],
  ["adapter_bad_request", "invalid_prompt"],
  ["adapter_rate_limit", "rate_limit_exceeded"],
  ["adapter_error", "server_error"],
  ["adapter_timeout", "server_error"],
  ["context_length_exceeded", "context_length_exceeded"],
] as const;

for (const [code, sent] of known) {
  test(`a response that failed with ${code} has the wire's own code ${sent}`, async () => {
    const stream = await playFailure(await open(), "responses", [say("So")], failure(code));
    assert.equal(checkStream(stream).response.error?.code, sent);
  });
}

const halves: Readonly<Record<string, readonly Delta[]>> = {
  "a call": [
    { type: "tool-call", index: 0, callId: "c1", name: "rm" },
    { type: "tool-arguments", index: 0, text: '{"path":"/"}' },
  ],
  "an answer": say("So"),
  reasoning: [{ type: "reasoning", text: "Hm" }],
};

for (const [what, half] of Object.entries(halves)) {
  test(`${what} that a failure cut off is never sent as done, since agents keep or run what is done`, async () => {
    const gateway = await open();
    const { events, response } = checkStream(await playFailure(gateway, "responses", [half], failure("adapter_error")));
    assert.equal(
      events.some(({ type }) => type.endsWith(".done")),
      false,
    );
    assert.equal(response.output[0]!.status, "incomplete");
    const { finishReason, error } = gatherChunks(await playFailure(gateway, "chat", [half], failure("adapter_error")));
    assert.deepEqual([finishReason, error?.["code"]], [undefined, "adapter_error"]);
  });
}
