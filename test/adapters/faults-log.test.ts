/** What remains of an upstream's failure: an excerpt in the log, none on the wire, and no secret in either. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toLateness, toNetworkFailure } from "../../src/adapters/http/failure.ts";
import { createScrubber, toRefusalError } from "../../src/adapters/http/refusal.ts";
import { createOpenai } from "./made.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { type Script, answerJson, chunk, startUpstream } from "../upstream.ts";

const apiKey = "upstream-key-0123456789";

const scrubbed: readonly (readonly [said: string, scrubbedText: string])[] = [
  [`Bad ${apiKey}.`, "Bad [secret]."],
  ["GET https://a.test/v1?key=abc123&alt=sse failed", "GET https://a.test/v1?key=[secret]&alt=sse failed"],
  ["https://a.test/?x=1&api_key=abc", "https://a.test/?x=1&api_key=[secret]"],
  ["https://a.test/?x-goog-api-key=abc#top", "https://a.test/?x-goog-api-key=[secret]#top"],
  ["https://a.test/?sv=1&sig=a%2Fb%3D)", "https://a.test/?sv=1&sig=[secret])"],
  ["access_token=abc; scope=all", "access_token=[secret]; scope=all"],
  ["https://user:pass@a.test/v1", "https://[secret]@a.test/v1"],
  ["Incorrect API key provided: abcdefgh***xyz.", "Incorrect API key provided: [secret]"],
  ["key sk-proj-abc123DEF456 is unknown", "key [secret] is unknown"],
  ["Authorization: Bearer abc.def-123", "Authorization: Bearer [secret]"],
  ["AIzaSyA1234567890abcdefg", "[secret]"],
];

test("secrets are removed from an upstream's text: configured ones, those in URLs, and what looks like one", () => {
  const scrub = createScrubber([apiKey]);
  for (const [said, scrubbedText] of scrubbed) assert.equal(scrub(said), scrubbedText);
});

test("words that merely resemble secrets are kept", () => {
  const scrub = createScrubber([apiKey]);
  for (const said of [
    "max_tokens=4096 is too large; this model's maximum is 2048.",
    "Use Basic authentication or a Bearer token.",
    "The task-12345678 of sk-learn-pipelines has no key.",
    "Unknown parameter: 'api_key'.",
    "See https://a.test/errors@latest for more.",
  ])
    assert.equal(scrub(said), said);
});

test("a long hostile message is scrubbed in linear time", () => {
  const scrub = createScrubber([apiKey]);
  for (const piece of ["sk-", "key=", "a://", "api key: ", "Bearer ", "x-", "Basic a"]) {
    const before = process.threadCpuUsage();
    toRefusalError({ status: 400, message: piece.repeat(500_000) }, scrub);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 200_000, `${piece}: ${user + system} µs`);
  }
});

const answers: Readonly<Record<string, { readonly script: Script; readonly stream?: boolean }>> = {
  "a web page": { script: send("text/html", `<html>private ${apiKey}</html>`) },
  "a web page with an error status": { script: send("text/html", `<html>private ${apiKey}</html>`, 403) },
  "another type": { script: send("text/plain", `private ${apiKey}`) },
  "no JSON": { script: send("application/json", `private ${apiKey}`) },
  "JSON that ends too early": { script: send("application/json", `{"private": "${apiKey}`) },
  "events that are no JSON": { script: send("text/event-stream", `data: {private ${apiKey}\n\n`), stream: true },
  "bytes that are no text": { script: send("application/json", Buffer.from("{private \xc3}", "latin1")) },
  "a redirect": { script: answerJson("private", 307, { location: `https://a.test/?key=${apiKey}` }) },
};

for (const [what, { script, stream = false }] of Object.entries(answers)) {
  test(`${what} instead of an answer is adapter_protocol: the log has its beginning, the caller does not`, async () => {
    const failure = await failureOf(script, stream);
    assert.deepEqual([failure.code, failure.status], ["adapter_protocol", 502]);
    assert.doesNotMatch(failure.message, /private/);
    assert.match(String(failure.cause), /private/);
    assert.doesNotMatch(String(failure.cause), new RegExp(apiKey));
    assert.ok(String(failure.cause).length < 800);
  });
}

test("an incomplete character within a stream is adapter_protocol, and is never replaced", async () => {
  const bytes = Buffer.from(`data: ${JSON.stringify(chunk({ content: "é" }))}\n\n`);
  const half = Buffer.concat([bytes.subarray(0, bytes.indexOf("é") + 1), bytes.subarray(bytes.indexOf("é") + 2)]);
  assert.equal((await failureOf(send("text/event-stream", half), true)).code, "adapter_protocol");
});

test("every timeout names the option that sets it, and has a code of its own", () => {
  for (const limit of ["connect", "first_byte", "idle", "total"] as const) {
    const { status, code, wireCode, message } = toLateness(limit, 40, "a.test:443");
    assert.deepEqual([status, code, wireCode], [504, "adapter_timeout", `adapter_${limit}_timeout`]);
    assert.match(
      message,
      new RegExp(`^Timed out: the upstream at a\\.test:443 .* within 40 ms \\(${limit}_timeout_ms\\)\\.$`),
    );
  }
  const late = Object.assign(new Error("late"), { code: "ETIMEDOUT", syscall: "connect" });
  const { wireCode, message } = toNetworkFailure(late, "a.test:443");
  assert.deepEqual([wireCode, /connect_timeout_ms/.test(message)], ["adapter_connect_timeout", true]);
  assert.equal(toNetworkFailure(Object.assign(late, { syscall: "read" }), "a.test:443").code, "adapter_error");
});

function send(type: string, body: string | Buffer, status = 200): Script {
  return (_, response) => void response.writeHead(status, { "content-type": type }).end(body);
}

async function failureOf(script: Script, stream: boolean): Promise<GatewayError> {
  await using server = await startUpstream(script);
  const adapter = createOpenai({ base_url: `${server.url}/v1`, api_key: apiKey }, {});
  const items = [{ type: "message", role: "user", content: "Hello" }] as const;
  const turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream };
  try {
    for await (const _ of adapter.stream(turn, new AbortController().signal));
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  } finally {
    await adapter.close?.();
  }
  return assert.fail("It did not fail.");
}
