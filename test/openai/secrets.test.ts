/** What is passed on of a server's words: never a secret, in no answer and no log, and what clients act on in the words that they know. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { answerEvents, answerJson, type Script } from "../harness/upstream.ts";
import { apiKey, ask, listen, openScene, says, sends, shareScene, ways } from "./scene.ts";

const open = shareScene();
const headerKey = "house-key-0123456789";

/** [what the server says, what of it no one may read]. */
const leaks: readonly (readonly [said: string, secret: string])[] = [
  [`Bad ${apiKey}.`, "0123456789abcdef"],
  [`Bad ${headerKey}.`, "house-key"],
  ["GET https://a.test/v1?key=topsecret&alt=sse failed", "topsecret"],
  ["https://a.test/?x=1&api_key=topsecret", "topsecret"],
  ["https://user:topsecret@a.test/v1", "topsecret"],
  ["key sk-proj-topsecret123DEF456 is unknown", "topsecret"],
  ["Authorization: Bearer topsecret.def-123", "topsecret"],
];

test("secrets in a server's words reach neither callers nor the log: configured ones, those in URLs, and what looks like one", async (context) => {
  const scene = await openScene(context, { own: { headers: { "x-key": headerKey } } });
  for (const [said, secret] of leaks) {
    const error = { message: `The server says: ${said}`, type: "x", code: null };
    const scripts: readonly Script[] = [
      answerJson({ error }, 400),
      answerEvents({ error }),
      sends("text/html", said),
      (_, response) => void response.writeHead(307, { location: `https://a.test/?key=${secret}&${said}` }).end(said),
    ];
    for (const script of scripts) {
      scene.plays(script);
      const heard = await ask(scene, { on: "chat", model: "own" });
      assert.notEqual(heard.status, 200);
      assert.ok(!heard.raw.includes(secret), heard.raw);
    }
    scene.plays(says("fine"));
    await listen(scene, { on: "chat", model: "own" });
    assert.ok(!inspect(scene.logged, { depth: 10 }).includes(secret), said);
  }
});

test("words that only resemble secrets are passed on", async () => {
  const scene = await open();
  for (const said of [
    "max_tokens=4096 is too much.",
    "Use a Bearer token.",
    "Unknown: 'api_key'.",
    "See https://a.test/x@1.",
  ]) {
    scene.plays(answerJson({ error: { message: said } }, 400));
    assert.equal((await ask(scene, { on: "chat", model: "chat" })).error?.["message"], said);
  }
});

test("what is no answer has its beginning in the log, and none of it reaches the caller", async (context) => {
  const scene = await openScene(context);
  scene.plays(sends("text/html", "<!doctype html><p>The garden gate is closed."));
  const heard = await ask(scene, { on: "chat", model: "chat" });
  assert.ok(!heard.raw.includes("garden gate"));
  assert.match(inspect(scene.logged, { depth: 10 }), /garden gate/);
});

const tooLong = [
  "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
  "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
  "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
  "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
  "Your input exceeds the context window of this model.",
  "prompt is too long: 210000 tokens > 200000 maximum",
  "Input is too long for requested model.",
  "too many tokens: total number of tokens in the prompt cannot exceed 4081",
  "The decoder prompt (length 2136) is longer than the maximum model length of 2048.",
  "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096).",
  "prompt too long; exceeded max context length by 9 tokens",
  "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
  "invalid params, context window exceeds limit (2013)",
];

test("a conversation that is too long is context_length_exceeded, whatever words a server has for it, since agents compact on that code", async () => {
  const scene = await open();
  const type = "exceed_context_size_error";
  const named = [
    { message: "No.", type, code: "3051" },
    { message: "No.", code: "context_length_exceeded" },
  ];
  const errors = [...tooLong.map((message) => ({ message })), ...named];
  for (const error of errors) {
    for (const script of [answerJson({ error }, 400), answerEvents({ error })]) {
      scene.plays(script);
      const heard = await ask(scene, { on: "chat", model: "chat" });
      assert.deepEqual([heard.status, heard.error?.["code"]], [400, "context_length_exceeded"], error.message);
    }
  }
  scene.plays(answerJson({ error: { message: tooLong[0] } }, 400));
  for (const way of ways)
    assert.equal((await ask(scene, { ...way, model: "chat" })).error?.["code"], "context_length_exceeded");
});

test("other words about lengths and tokens are not context_length_exceeded", async () => {
  const scene = await open();
  for (const message of [
    "max_tokens is too large: 99",
    "Invalid 'input': string too long.",
    "Too many tokens, please wait.",
  ]) {
    scene.plays(answerJson({ error: { message } }, 400));
    assert.equal((await ask(scene, { on: "chat", model: "chat" })).error?.["code"], "adapter_bad_request", message);
  }
});

test("an exhausted quota keeps its code and is not asked again; a rate limit is", async (context) => {
  const scene = await openScene(context, { chat: { retries: 2 } });
  const codes = { insufficient_quota: 1, rate_limit_exceeded: 3 };
  for (const [code, times] of Object.entries(codes)) {
    scene.plays(answerJson({ error: { message: "You exceeded it.", type: code, code } }, 429));
    const before = scene.upstream.received.length;
    const heard = await ask(scene, { on: "chat", model: "chat" });
    assert.deepEqual([heard.status, heard.error?.["code"]], [429, code]);
    assert.equal(scene.upstream.received.length - before, times);
  }
});

test("Retry-After is passed on, in seconds, as a date or in milliseconds", async () => {
  const scene = await open();
  const soon = { "retry-after": "Wed, 01 Jan 2020 00:00:20 GMT" };
  const rows: readonly (readonly [headers: Record<string, string>, seconds: string])[] = [
    [{ "retry-after": "7" }, "7"],
    [soon, "0"],
    [{ "retry-after-ms": "4200" }, "5"],
    [{ "retry-after": "soon" }, "1"],
    [{}, "1"],
  ];
  for (const [headers, seconds] of rows) {
    scene.plays(answerJson({ error: { message: "Slow down." } }, 429, headers));
    for (const way of ways) {
      const heard = await ask(scene, { ...way, model: "chat" });
      assert.deepEqual([heard.status, heard.headers.get("retry-after")], [429, seconds], JSON.stringify(headers));
    }
    scene.plays(says("fine"));
    await listen(scene, { on: "chat", model: "chat" });
  }
});
