/** What callers read when an upstream refuses the gateway, and which words are secrets in it. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { toFailure } from "../../src/adapters/ai-sdk/failure.ts";
import { createReplyReader } from "../../src/adapters/openai/chat/reply.ts";
import { createScrubber } from "../../src/adapters/http/refusal.ts";
import { requireJson } from "../../src/adapters/openai/json.ts";
import { toRefusalError, toReportedFailure } from "../../src/adapters/http/refusal.ts";

const apiKey = "sk-very-secret-key";
const scrub = createScrubber([apiKey]);

test("an empty account and a forbidden request are reported in the upstream's words, without secrets", () => {
  for (const [status, message, expected] of [
    [402, "Insufficient Balance", "The upstream refuses to answer (status 402): Insufficient Balance"],
    [403, `Flagged for ${apiKey}.`, "The upstream refuses to answer (status 403): Flagged for [secret]."],
    [403, undefined, "The upstream refuses to answer (status 403)."],
  ] as const) {
    const failure = toRefusalError({ status, message, code: "some_code" }, scrub);
    assert.deepEqual(
      [failure.code, failure.wireCode, failure.message],
      ["adapter_refused", "adapter_refused", expected],
    );
  }
  const reported = toReportedFailure({ type: "permission_error", message: "Not for you." }, scrub);
  assert.deepEqual(
    [reported.code, reported.message],
    ["adapter_refused", "The upstream refuses to answer: Not for you."],
  );
});

test("an exhausted quota that is reported with status 429 is not retried", () => {
  const empty = { status: 429, message: "You exceeded your current quota." };
  const named = toRefusalError({ ...empty, code: "insufficient_quota" }, scrub);
  assert.deepEqual([named.code, named.wireCode, named.isLasting], ["adapter_rate_limit", "insufficient_quota", true]);
  assert.equal(toRefusalError({ ...empty, type: "insufficient_quota" }, scrub).isLasting, true);
  assert.equal(toRefusalError({ ...empty, code: "rate_limit_exceeded" }, scrub).isLasting, false);
});

suite("a conversation that is too long has the code that clients know", () => {
  test("also where a server has its own word for it", () => {
    const long = { message: "It does not fit.", type: "exceed_context_size_error" };
    for (const failure of [
      toRefusalError({ status: 400, ...long }, scrub),
      toRefusalError({ status: 400, ...long, code: "3051" }, scrub),
      toReportedFailure({ code: 400, ...long }, scrub),
    ])
      assert.deepEqual([failure.code, failure.wireCode], ["adapter_bad_request", "context_length_exceeded"]);
  });

  for (const message of [
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Your input exceeds the context window of this model.",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Input is too long for requested model.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "The decoder prompt (length 2136) is longer than the maximum model length of 2048.",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096).",
    "prompt too long; exceeded max context length by 9 tokens",
    "the input length exceeds the context length",
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
    "invalid params, context window exceeds limit (2013)",
  ]) {
    test(`if a server says: ${message}`, () => {
      assert.equal(toRefusalError({ status: 400, message }, scrub).wireCode, "context_length_exceeded");
      assert.equal(toReportedFailure({ message }, scrub).wireCode, "context_length_exceeded");
      assert.equal(toRefusalError({ status: 429, message }, scrub).wireCode, "adapter_rate_limit");
    });
  }

  test("with the size of the window and of the answer, if the server says them", () => {
    const size = (message: string) => toRefusalError({ status: 400, message }, scrub).contextWindow;
    const long = "This model's maximum context length is 8192 tokens";
    for (const message of [
      `${long}. However, you requested 9000 tokens (1000 in the messages, 8000 in the completion).`,
      `${long}, however you requested 9000 tokens (1000 in your prompt; 8000 for the completion).`,
      `${long}. However, you requested about 9000 tokens (1000 of text input, 8000 in the output).`,
      `'max_tokens' or 'max_completion_tokens' is too large: 8000. ${long} and your request has 1000 input tokens (8000 > 8192 - 1000).`,
      "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 1000 tokens from the input messages and 8000 tokens for the completion.",
      "You passed 1000 input tokens and requested 8000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 192 tokens.",
      "input length and `max_tokens` exceed context limit: 1000 + 8000 > 8192, decrease input length or `max_tokens`",
    ])
      assert.deepEqual(size(message), { tokens: 8_192, answer: 8_000 }, message);
    for (const message of [
      `${long}. However, your messages resulted in 9000 tokens.`,
      `${long}. However, you requested 9000 tokens (9000 in the messages, 0 in the completion).`,
      "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
      "Prompt contains 9000 tokens and 0 draft tokens, too large for model with 8192 maximum context length",
      "prompt is too long: 9000 tokens > 8192 maximum",
      "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
      "Your request exceeded model token limit: 8192 (requested: 9000)",
      "prompt is too long: 9,000 tokens > 8,192 maximum",
    ])
      assert.deepEqual(size(message), { tokens: 8_192, answer: undefined }, message);
    assert.deepEqual(size("The maximum context length is 131,072 tokens."), { tokens: 131_072, answer: undefined });
    assert.equal(size("prompt too long; exceeded max context length by 900 tokens"), undefined);
    assert.equal(size("temperature must be > 1000"), undefined);
  });

  test("and nothing else has it", () => {
    for (const message of [
      "max_tokens is too large: 99999",
      "Invalid 'input': string too long.",
      "Wrong context.",
      "Too many tokens, please wait.",
    ]) {
      assert.equal(toRefusalError({ status: 400, message }, scrub).wireCode, "adapter_bad_request");
    }
  });
});

test("a wrong key is reported to callers only as something for the operator to check", () => {
  const message = "Incorrect API key provided: abc.";
  const wrong = toRefusalError({ status: 401, message }, scrub);
  assert.equal(
    wrong.message,
    "The upstream refused the gateway's credentials (status 401). The gateway's operator must check the adapter's key.",
  );
  const reported = toReportedFailure({ code: "invalid_api_key", message }, scrub);
  assert.equal(
    reported.message,
    "The upstream refused the gateway's credentials. The gateway's operator must check the adapter's key.",
  );
});

test("a placeholder key is no secret, and is not removed from errors", () => {
  const said = "The field x is EMPTY.";
  for (const dummy of ["EMPTY", "x"]) assert.equal(createScrubber([dummy, "EMPTY"])(said), said);
  assert.equal(createScrubber(["12345678"])("It is 12345678."), "It is [secret].");
});

test("a secret that contains another leaves no remainder", () => {
  for (const secrets of [
    ["key of house", "key of house and garden"],
    ["key of house and garden", "key of house"],
  ])
    assert.equal(createScrubber(secrets)("It is key of house and garden."), "It is [secret].");
});

test("a key does not appear in the log, even at the edge of an excerpt or next to invalid bytes", () => {
  const key = "house-key-0123456789abcdef";
  const own = createScrubber([key]);
  const quoted = (length: number) => `${"x".repeat(length - 10)}${key}`;
  const causes = [
    causeOf(() => requireJson(quoted(200), own)),
    causeOf(() => {
      const reader = createReplyReader(own);
      reader.read([Buffer.from(`data: ${key}`), Buffer.of(0xff, 0x0a)]);
      reader.check();
    }),
    toFailure(Object.assign(new Error("Broken."), { statusCode: 500, responseBody: quoted(500) }), "there", own).cause,
  ];
  for (const cause of causes) {
    assert.match(String(cause), /\[secret\]/);
    assert.doesNotMatch(String(cause), /house-key/);
  }
});

test("a message that repeats the key shows no part of it, wherever the message is cut", () => {
  const key = "house-key-0123456789abcdef";
  const failure = toRefusalError({ status: 400, message: key.repeat(1000) }, createScrubber([key]));
  assert.doesNotMatch(failure.message, /house/);
});

test("a message is cut, however long it is, and so is the name of a parameter", () => {
  for (const length of [2_001, 10_000]) {
    const long = "x".repeat(length);
    const { message, param, wireCode } = toRefusalError({ status: 400, message: long, param: long, code: long }, scrub);
    assert.deepEqual([message.length, param?.length, wireCode.length], [2_000, 200, 200]);
  }
});

for (const [refusal, code, message] of [
  [{ status: 502, type: "invalid_request_error", message: "Odd." }, "adapter_error", /failed with status 502: Odd/],
  [{ status: 418, type: "invalid_request_error", message: "Odd." }, "adapter_bad_request", /^Odd\.$/],
  [{ status: 400, body: "{}" }, "adapter_bad_request", /without a message/],
  [{ status: 404, body: "{}" }, "adapter_not_found", /nothing at this path/],
  [{ code: "permission_error" }, "adapter_refused", /refuses to answer/],
  [{ type: "permission_error" }, "adapter_refused", /refuses to answer/],
  [{ type: "authentication_error" }, "adapter_refused", /refused the gateway's credentials/],
] as const) {
  test(`${JSON.stringify(refusal)} is ${code}`, () => {
    const failure = toRefusalError(refusal, scrub);
    assert.equal(failure.code, code);
    assert.match(failure.message, message);
  });
}

test("a wait that no whole number of seconds can express is none", () => {
  const { retryAfterSeconds } = toRefusalError({ status: 429, retryAfter: "1e300" }, scrub);
  assert.equal(retryAfterSeconds, undefined);
});

function causeOf(act: () => unknown): unknown {
  try {
    act();
  } catch (thrown) {
    return thrown instanceof Error ? thrown.cause : undefined;
  }
  return assert.fail("It did not throw.");
}
