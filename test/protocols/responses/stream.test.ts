/** Golden streams of the responses dialect. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../../src/core/delta.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { failedTurn } from "../../../src/core/frame/frame.ts";
import { checkStream, readStream } from "../grammar.ts";
import { about, play, protocol } from "./script.ts";

/** The data between the opening and the terminal event, without the events' names. */
function inner(stream: string): string[] {
  const lines = stream.split("\n").filter((line) => line.startsWith("data: "));
  return lines.slice(2, -2).map((line) => line.slice("data: ".length));
}

test("a text is streamed as one message with one part, and the terminal event contains all of it", async () => {
  const { stream } = await play([
    [{ type: "text", text: 'Say "' }],
    [{ type: "text", text: "hé\n" }],
    [{ type: "usage", usage: { inputTokens: 7, cachedTokens: 2, outputTokens: 5, reasoningTokens: 1 } }],
  ]);
  const item = `"item_id":"msg_ab120000"`;
  assert.deepEqual(inner(stream), [
    `{"type":"response.output_item.added","item":{"id":"msg_ab120000","type":"message","status":"in_progress","content":[],"role":"assistant"},"output_index":0,"sequence_number":2}`,
    `{"type":"response.content_part.added","content_index":0,${item},"output_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""},"sequence_number":3}`,
    `{"type":"response.output_text.delta","content_index":0,"delta":"Say \\"",${item},"logprobs":[],"output_index":0,"sequence_number":4}`,
    `{"type":"response.output_text.delta","content_index":0,"delta":"hé\\n",${item},"logprobs":[],"output_index":0,"sequence_number":5}`,
    `{"type":"response.output_text.done","content_index":0,${item},"logprobs":[],"output_index":0,"text":"Say \\"hé\\n","sequence_number":6}`,
    `{"type":"response.content_part.done","content_index":0,${item},"output_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":"Say \\"hé\\n"},"sequence_number":7}`,
    `{"type":"response.output_item.done","item":{"id":"msg_ab120000","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Say \\"hé\\n"}],"role":"assistant"},"output_index":0,"sequence_number":8}`,
  ]);
  assert.ok(
    stream.endsWith(
      `"truncation":"disabled","usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":12},"user":null,"metadata":{}},"sequence_number":9}\n\ndata: [DONE]\n\n`,
    ),
  );
  checkStream(stream);
});

test("the number of cache write tokens is sent where the model reports it", async () => {
  const usage = { inputTokens: 7, cachedTokens: 2, cacheWriteTokens: 4, outputTokens: 5, reasoningTokens: 1 };
  const { stream } = await play([[{ type: "usage", usage }]]);
  assert.ok(stream.includes(`"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":4}`));
});

test("the stream opens with two events that contain the unfinished response", async () => {
  const { writes } = await play([[{ type: "text", text: "a" }]]);
  const response = `"response":{"id":"resp_ab12","object":"response","created_at":1700000000,"status":"in_progress","background":false,"completed_at":null,"error":null,"frequency_penalty":0,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":"some-model","output":[],"parallel_tool_calls":true,"presence_penalty":0,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"service_tier":"auto","store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"truncation":"disabled","usage":null,"user":null,"metadata":{}}`;
  const opening =
    `event: response.created\ndata: {"type":"response.created",${response},"sequence_number":0}\n\n` +
    `event: response.in_progress\ndata: {"type":"response.in_progress",${response},"sequence_number":1}\n\n`;
  assert.equal(writes[0]?.slice(0, opening.length), opening);
});

test("parallel calls are sent one after the other, each with its arguments", async () => {
  const { stream } = await play([
    [
      { type: "tool-call", index: 0, callId: "call_a", name: "weather" },
      { type: "tool-call", index: 1, callId: "call_b", name: "time" },
      { type: "tool-arguments", index: 0, text: '{"city"' },
      { type: "tool-arguments", index: 1, text: "{}" },
      { type: "tool-arguments", index: 0, text: ':"Rome"}' },
    ],
  ]);
  assert.deepEqual(inner(stream), [
    `{"type":"response.output_item.added","item":{"id":"fc_ab120000","type":"function_call","status":"in_progress","arguments":"","call_id":"call_a","name":"weather"},"output_index":0,"sequence_number":2}`,
    `{"type":"response.function_call_arguments.delta","delta":"{\\"city\\"","item_id":"fc_ab120000","output_index":0,"sequence_number":3}`,
    `{"type":"response.function_call_arguments.delta","delta":":\\"Rome\\"}","item_id":"fc_ab120000","output_index":0,"sequence_number":4}`,
    `{"type":"response.function_call_arguments.done","arguments":"{\\"city\\":\\"Rome\\"}","item_id":"fc_ab120000","name":"weather","output_index":0,"sequence_number":5}`,
    `{"type":"response.output_item.done","item":{"id":"fc_ab120000","type":"function_call","status":"completed","arguments":"{\\"city\\":\\"Rome\\"}","call_id":"call_a","name":"weather"},"output_index":0,"sequence_number":6}`,
    `{"type":"response.output_item.added","item":{"id":"fc_ab120001","type":"function_call","status":"in_progress","arguments":"","call_id":"call_b","name":"time"},"output_index":1,"sequence_number":7}`,
    `{"type":"response.function_call_arguments.delta","delta":"{}","item_id":"fc_ab120001","output_index":1,"sequence_number":8}`,
    `{"type":"response.function_call_arguments.done","arguments":"{}","item_id":"fc_ab120001","name":"time","output_index":1,"sequence_number":9}`,
    `{"type":"response.output_item.done","item":{"id":"fc_ab120001","type":"function_call","status":"completed","arguments":"{}","call_id":"call_b","name":"time"},"output_index":1,"sequence_number":10}`,
  ]);
  checkStream(stream);
});

test("a custom tool's input is sent in the form of custom tools", async () => {
  const { stream } = await play([
    [
      { type: "tool-call", index: 0, callId: "call_c", name: "patch", kind: "custom" },
      { type: "tool-arguments", index: 0, text: "*** Begin" },
    ],
  ]);
  assert.deepEqual(inner(stream), [
    `{"type":"response.output_item.added","item":{"id":"ctc_ab120000","type":"custom_tool_call","status":"in_progress","call_id":"call_c","input":"","name":"patch"},"output_index":0,"sequence_number":2}`,
    `{"type":"response.custom_tool_call_input.delta","delta":"*** Begin","item_id":"ctc_ab120000","output_index":0,"sequence_number":3}`,
    `{"type":"response.custom_tool_call_input.done","input":"*** Begin","item_id":"ctc_ab120000","output_index":0,"sequence_number":4}`,
    `{"type":"response.output_item.done","item":{"id":"ctc_ab120000","type":"custom_tool_call","status":"completed","call_id":"call_c","input":"*** Begin","name":"patch"},"output_index":0,"sequence_number":5}`,
  ]);
  checkStream(stream);
});

test("a summary is sent section by section, and raw reasoning as a part of the same item", async () => {
  const { stream } = await play([
    [
      { type: "reasoning", text: "First", summary: 0 },
      { type: "reasoning", text: "Then", summary: 1 },
      { type: "reasoning", text: "hmm" },
    ],
  ]);
  const item = `"item_id":"rs_ab120000","output_index":0`;
  assert.deepEqual(inner(stream), [
    `{"type":"response.output_item.added","item":{"id":"rs_ab120000","type":"reasoning","status":"in_progress","summary":[]},"output_index":0,"sequence_number":2}`,
    `{"type":"response.reasoning_summary_part.added","summary_index":0,${item},"part":{"type":"summary_text","text":""},"sequence_number":3}`,
    `{"type":"response.reasoning_summary_text.delta","summary_index":0,"delta":"First",${item},"sequence_number":4}`,
    `{"type":"response.reasoning_summary_text.done","summary_index":0,${item},"text":"First","sequence_number":5}`,
    `{"type":"response.reasoning_summary_part.done","summary_index":0,${item},"part":{"type":"summary_text","text":"First"},"sequence_number":6}`,
    `{"type":"response.reasoning_summary_part.added","summary_index":1,${item},"part":{"type":"summary_text","text":""},"sequence_number":7}`,
    `{"type":"response.reasoning_summary_text.delta","summary_index":1,"delta":"Then",${item},"sequence_number":8}`,
    `{"type":"response.content_part.added","content_index":0,${item},"part":{"type":"reasoning_text","text":""},"sequence_number":9}`,
    `{"type":"response.reasoning_text.delta","content_index":0,"delta":"hmm",${item},"sequence_number":10}`,
    `{"type":"response.reasoning_summary_text.done","summary_index":1,${item},"text":"Then","sequence_number":11}`,
    `{"type":"response.reasoning_summary_part.done","summary_index":1,${item},"part":{"type":"summary_text","text":"Then"},"sequence_number":12}`,
    `{"type":"response.reasoning_text.done","content_index":0,${item},"text":"hmm","sequence_number":13}`,
    `{"type":"response.content_part.done","content_index":0,${item},"part":{"type":"reasoning_text","text":"hmm"},"sequence_number":14}`,
    `{"type":"response.output_item.done","item":{"id":"rs_ab120000","type":"reasoning","status":"completed","content":[{"type":"reasoning_text","text":"hmm"}],"summary":[{"type":"summary_text","text":"First"},{"type":"summary_text","text":"Then"}]},"output_index":0,"sequence_number":15}`,
  ]);
  checkStream(stream);
});

test("a refusal after some text is a second part of the same message", async () => {
  const { stream } = await play([
    [
      { type: "text", text: "Well" },
      { type: "refusal", text: "No." },
    ],
  ]);
  const { response } = checkStream(stream);
  assert.deepEqual(
    readStream(stream).map((event) => event.type.replace("response.", "")),
    (
      "created in_progress output_item.added " +
      "content_part.added output_text.delta output_text.done content_part.done " +
      "content_part.added refusal.delta refusal.done content_part.done " +
      "output_item.done completed"
    ).split(" "),
  );
  assert.deepEqual(response.output[0]?.content?.[1], { type: "refusal", refusal: "No." });
});

test("the phase of a message is sent when it begins and when it is done", async () => {
  const extra = { dialect: "responses", fields: { phase: "final_answer" } } as const;
  const { stream } = await play([[{ type: "text", text: "a", extra }], [{ type: "message-end", extra }]]);
  const { events } = checkStream(stream);
  const items = events.flatMap((event) => (event.type.startsWith("response.output_item.") ? [event.item] : []));
  assert.deepEqual(
    items.map((item) => item?.["phase"]),
    ["final_answer", "final_answer"],
  );
});

test("log probabilities are sent with the pieces of the text, and with their bytes in the item", async () => {
  const logprob = { token: "a", bytes: [97], logprob: -0.5, top_logprobs: [{ token: "b", bytes: null, logprob: -2 }] };
  const { stream } = await play([[{ type: "text", text: "a", logprobs: [logprob] }]], { top_logprobs: 1 });
  const { events, response } = checkStream(stream);
  const sent = [{ token: "a", logprob: -0.5, top_logprobs: [{ token: "b", logprob: -2 }] }];
  assert.deepEqual(events.find((event) => event.type === "response.output_text.delta")?.["logprobs"], sent);
  assert.deepEqual(events.find((event) => event.type === "response.output_text.done")?.["logprobs"], sent);
  assert.deepEqual(response.output[0]?.content?.[0]?.["logprobs"], [
    { token: "a", bytes: [97], logprob: -0.5, top_logprobs: [{ token: "b", bytes: [], logprob: -2 }] },
  ]);
});

test("the log probabilities of all pieces of a text are sent together at its end, in order", async () => {
  const entries = ["a", "b", "c"].map((token) => ({ token, logprob: -1, top_logprobs: [] }));
  const pieces = [
    [{ type: "text", text: "a", logprobs: entries.slice(0, 1) }],
    [{ type: "text", text: "bc", logprobs: entries.slice(1) }],
  ] as const;
  const { stream } = await play(pieces, { top_logprobs: 1 });
  const { events } = checkStream(stream);
  assert.deepEqual(events.find((event) => event.type === "response.output_text.done")?.["logprobs"], entries);
});

test("a model that is cut off by its limit ends the stream as incomplete, and so is the last item", async () => {
  const { stream } = await play([
    [
      { type: "reasoning", text: "hm" },
      { type: "text", text: "Once" },
      { type: "finish", reason: "length" },
    ],
  ]);
  const { response, events } = checkStream(stream);
  assert.equal(events.at(-1)?.type, "response.incomplete");
  assert.deepEqual(response["incomplete_details"], { reason: "max_output_tokens" });
  assert.deepEqual(
    response.output.map((item) => item.status),
    ["completed", "incomplete"],
  );
  assert.equal(response.error, null);
  assert.equal(response["completed_at"], null);
});

test("a filtered answer is marked as filtered", async () => {
  const { stream } = await play([
    [
      { type: "text", text: "Once" },
      { type: "finish", reason: "content-filter" },
    ],
  ]);
  assert.deepEqual(checkStream(stream).response["incomplete_details"], { reason: "content_filter" });
});

test("a turn that fails after some text sends its error in two events, and ends once", async () => {
  const failure = new GatewayError("adapter_rate_limit", "Too fast.", { wireCode: "tokens_per_minute" });
  const { stream } = await play([[{ type: "text", text: "So" }]], {}, failure);
  const { response } = checkStream(stream);
  assert.equal(
    inner(stream).at(-1),
    `{"type":"error","error":{"type":"rate_limit_error","code":"tokens_per_minute","message":"Too fast.","param":null},"code":"tokens_per_minute","message":"Too fast.","param":null,"sequence_number":5}`,
  );
  assert.deepEqual(response.error, { code: "rate_limit_exceeded", message: "Too fast." });
  assert.equal(response.output[0]?.status, "incomplete");
});

const halves: Readonly<Record<string, readonly Delta[]>> = {
  "a call": [
    { type: "tool-call", index: 0, callId: "c1", name: "rm" },
    { type: "tool-arguments", index: 0, text: '{"path":"/"}' },
  ],
  "an answer": [{ type: "text", text: "So" }],
  reasoning: [{ type: "reasoning", text: "Hm" }],
};
for (const [what, half] of Object.entries(halves)) {
  test(`${what} that is cut off by a failure is never sent as done, since agents store or run what is done`, async () => {
    for (const code of ["adapter_error", "cancelled"] as const) {
      const { events, response } = checkStream((await play([half], {}, new GatewayError(code, "Cut."))).stream);
      assert.ok(!events.some(({ type }) => type.endsWith(".done")));
      assert.deepEqual([response.status, response.output[0]?.status], ["failed", "incomplete"]);
    }
    const short = checkStream((await play([half, [{ type: "finish", reason: "length" }]])).stream);
    assert.ok(short.events.some(({ type, item }) => type.endsWith("output_item.done") && item.status === "incomplete"));
  });
}

test("a cancelled turn ends with response.failed and without an error event", async () => {
  const { stream } = await play([[{ type: "text", text: "So" }]], {}, new GatewayError("cancelled", "Called off."));
  const { response, events } = checkStream(stream);
  assert.equal(events.at(-1)?.type, "response.failed");
  assert.ok(!events.some(({ type }) => type === "error"));
  assert.deepEqual([response.status, response.output[0]?.status], ["failed", "incomplete"]);
  assert.equal(response.error?.message, "The response was cancelled.");
});

test("a turn that fails before its first word can be sent as a stream too", () => {
  const { voice } = protocol.parse({ model: "m", input: "Hi", stream: true }, "default");
  const stream = voice.stream(about)(failedTurn(new GatewayError("adapter_timeout", "Nothing came."), new Date(0)));
  const { events, response } = checkStream(stream);
  assert.deepEqual(
    events.map((event) => event.type),
    ["response.created", "response.in_progress", "error", "response.failed"],
  );
  assert.deepEqual(response.error, { code: "server_error", message: "Nothing came." });
});

test("a failed response has one of the error codes that clients know", () => {
  const table = [
    [new GatewayError("overloaded", ""), "server_is_overloaded"],
    [new GatewayError("store_unavailable", ""), "server_is_overloaded"],
    [new GatewayError("session_busy", ""), "rate_limit_exceeded"],
    [new GatewayError("adapter_bad_request", ""), "invalid_prompt"],
    [new GatewayError("adapter_bad_request", "", { wireCode: "context_length_exceeded" }), "context_length_exceeded"],
    [new GatewayError("adapter_rate_limit", "", { wireCode: "insufficient_quota" }), "insufficient_quota"],
    [new GatewayError("adapter_bad_request", "", { wireCode: "never_heard_of" }), "invalid_prompt"],
    [new GatewayError("adapter_error", ""), "server_error"],
    [new GatewayError("internal_error", ""), "server_error"],
  ] as const;
  for (const [error, code] of table) {
    const stream = protocol.parse({ model: "m", input: "Hi" }, "default").voice.stream(about)(
      failedTurn(error, new Date(0)),
    );
    assert.equal(checkStream(stream).response.error?.code, code);
  }
});

test("an empty answer is completed with no output and no usage", async () => {
  const { stream } = await play([]);
  const { events, response } = checkStream(stream);
  assert.equal(events.length, 3);
  assert.deepEqual(response.output, []);
  assert.equal(response.status, "completed");
  assert.equal(response["usage"], null);
});

test("a batch of events is one write, and an answer in one batch is sent at once", async () => {
  const { writes } = await play([
    [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ],
    [{ type: "text", text: "c" }],
  ]);
  assert.equal(writes.length, 3);
  assert.equal(writes[0]?.match(/^event: response\.output_text\.delta$/gm)?.length, 2);
  assert.equal(writes[1]?.match(/^event: /gm)?.length, 1);
});
