/** How the console reads what the gateway sends: metrics, trees of turns, streams, and the line for a terminal. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { suite, test } from "node:test";
import { chat, chooseDialect, responses, toCurl } from "../../src/console/dialects.js";
import { boundOf, readMetrics } from "../../src/console/prometheus.js";
import { readEvents } from "../../src/console/stream.js";
import { summarise, totalOf } from "../../src/console/summary.js";
import { pairOutputs, threadOf, tipsOf } from "../../src/console/tree.js";
import { toSpan } from "../../src/console/words.js";
import type { Item } from "../../src/core/item.ts";
import { createMetrics } from "../../src/http/metrics.ts";

suite("metrics", () => {
  test("samples are read with their labels, escapes, signs and timestamps, and comments are ignored", () => {
    const text = [
      "# HELP a_total Things.",
      "# TYPE a_total counter",
      "a_total 3",
      String.raw`a_total{path="/v1/{id}",quote="say \"no\"",lines="one\ntwo\\"} 1.5e3 1700000000`,
      'a_bucket{le="+Inf"} +Inf',
      "",
    ];
    assert.deepEqual(readMetrics(text.join("\n")), [
      { name: "a_total", labels: {}, value: 3 },
      { name: "a_total", labels: { path: "/v1/{id}", quote: 'say "no"', lines: "one\ntwo\\" }, value: 1500 },
      { name: "a_bucket", labels: { le: "+Inf" }, value: Number.POSITIVE_INFINITY },
    ]);
  });

  const idle = {
    turns: () => 2,
    load: () => ({ waiting: 1, live: 0 }),
    heldBytes: () => 0,
    connections: () => 0,
    ready: async () => {},
  };

  test("requests are summed up by path and outcome", async () => {
    const metrics = createMetrics();
    for (const [path, status, ms] of [
      ["/v1/responses", 200, 300],
      ["/v1/responses", 200, 100],
      ["/v1/responses", 499, 9_000],
      ["/v1/responses", 502, 9_000],
      ["/v1/models", 401, 1],
      ["/readyz", 200, 1],
    ] as const) {
      metrics.count(path, status, ms);
    }
    metrics.count("/v1/responses", 200, 5_000, { ms: 1, isStreamed: true }, 502);
    metrics.count("/v1/responses", 101, 60_000);
    const { text } = await metrics.read({ ...idle, adapters: () => [] });
    const { startedAt = 0, running, waiting, endpoints, others, adapters } = summarise(readMetrics(text));
    assert.deepEqual([running, waiting, adapters], [2, 1, []]);
    assert.ok(Math.abs(startedAt * 1000 - performance.timeOrigin) < 1_000);
    assert.deepEqual(
      endpoints.map(({ path, answered, refused, failed, left }) => [path, answered, refused, failed, left]),
      [
        ["/v1/responses", 2, 0, 2, 1],
        ["/v1/models", 0, 1, 0, 0],
      ],
    );
    assert.deepEqual(
      others.map(({ path }) => path),
      ["/readyz"],
    );
    assert.deepEqual([totalOf(endpoints), totalOf(endpoints, ["failed", "left"])], [6, 3]);
    assert.ok(Math.abs((endpoints[0]?.seconds.sum ?? 0) - 0.4) < 1e-9, "only answers are timed");
  });

  test("times are shown as the bounds of the 50th and the 95th percentile", async () => {
    const metrics = createMetrics();
    for (let times = 1; times <= 100; times++) {
      metrics.count("/v1/responses", 200, times * 10, { ms: times, isStreamed: true });
      metrics.count("/v1/chat/completions", 200, 1, { ms: 1, isStreamed: false });
      metrics.count("/v1/models", 200, 1);
    }
    metrics.count("/v1/responses", 200, 3_600_000, { ms: 1, isStreamed: true });
    const { text } = await metrics.read({ ...idle, adapters: () => [] });
    const { firstByte, turns, endpoints } = summarise(readMetrics(text));
    const boundsOf = (histogram: Parameters<typeof boundOf>[0]) =>
      [0.5, 0.95, 1].map((share) => boundOf(histogram, share));
    assert.deepEqual(boundsOf(firstByte), [0.05, 0.1, 0.1], "of streams only");
    assert.equal(turns.count, 201, "requests that are no turns are left out");
    const [responses] = endpoints;
    assert.deepEqual(responses && boundsOf(responses.seconds), [1, 1, Number.POSITIVE_INFINITY]);
    assert.equal(boundOf({ buckets: new Map(), sum: 0, count: 0 }, 0.5), undefined);
  });

  test("each adapter has its turns, failures, tokens, mean time and the state of its circuit breaker", async () => {
    const name = 'an "odd" one';
    let nowMs = 0;
    const metrics = createMetrics(() => nowMs);
    const usage = { inputTokens: 30, cachedTokens: 10, outputTokens: 5, reasoningTokens: 1 };
    for (const attempt of [
      { outcome: "completed", usage },
      { outcome: "failed", code: "adapter_timeout" },
      { outcome: "failed", code: "adapter_error", usage },
    ] as const) {
      const asked = metrics.asked(name);
      nowMs += 200;
      asked.ended(attempt);
    }
    const { text } = await metrics.read({
      ...idle,
      adapters: () => [
        { name, state: "half-open" },
        { name: "spare", state: "closed" },
      ],
    });
    const [odd, spare] = summarise(readMetrics(text)).adapters;
    const { seconds, ...counts } = odd ?? assert.fail("it is missing");
    assert.deepEqual(counts, { name, state: "half-open", turns: 3, failed: 2, input: 60, output: 10 });
    assert.ok(Math.abs(seconds.sum / seconds.count - 0.2) < 1e-9);
    assert.deepEqual([spare?.name, spare?.turns, spare?.seconds.count], ["spare", 0, 0]);
  });

  test("a long time is shown in its two largest units", () => {
    const seconds = [-1, 59, 61, 3_600, 3 * 3_600 + 20 * 60, 86_400 * 400 + 3_600];
    assert.deepEqual(seconds.map(toSpan), ["0 s", "59 s", "1 min", "1 h 0 min", "3 h 20 min", "400 d 1 h"]);
  });
});

suite("the tree of a session", () => {
  const turns = [
    { id: "a" },
    { id: "b", parent: "a" },
    { id: "c", parent: "b" },
    { id: "d", parent: "a" },
    { id: "e", parent: "gone" },
  ];

  test("has the session's tip first, then the other ends, newest first", () => {
    const ids = (tip: string | undefined) => tipsOf(turns, tip).map(({ id }) => id);
    assert.deepEqual(ids("c"), ["c", "e", "d"]);
    assert.deepEqual(ids("b"), ["b", "e", "d", "c"]);
    assert.deepEqual(ids(undefined), ["e", "d", "c"]);
  });

  test("is read along one thread, from its root or from where turns were deleted", () => {
    const ids = (tip: string) => threadOf(turns, tip).map(({ id }) => id);
    assert.deepEqual(ids("c"), ["a", "b", "c"]);
    assert.deepEqual(ids("d"), ["a", "d"]);
    assert.deepEqual(ids("e"), ["e"]);
    assert.deepEqual(ids("unknown"), []);
  });

  test("has each output next to the call just before it, although models reuse ids", () => {
    const call = (callId: string): Item => {
      return { type: "tool-call", kind: "function", callId, name: "look", arguments: "{}" };
    };
    const output = (callId: string, said: string): Item => {
      return { type: "tool-output", kind: "function", callId, output: said };
    };
    const [first, second, open] = [call("c0"), call("c0"), call("c1")];
    const items = [first, output("c0", "one"), second, output("c0", "two"), output("gone", "three"), open];
    assert.deepEqual(
      [first, second, open].map((each) => pairOutputs(items).get(each)?.output),
      ["one", "two", undefined],
    );
  });

  test("never loops", () => {
    const circle = [
      { id: "a", parent: "b" },
      { id: "b", parent: "a" },
    ];
    assert.deepEqual(
      threadOf(circle, "a").map(({ id }) => id),
      ["b", "a"],
    );
  });
});

suite("a stream", () => {
  test("is read event by event, wherever the network splits it", async () => {
    const bytes = new TextEncoder().encode(
      ': heartbeat\n\nevent: e\ndata: {"type":"response.output_text.delta","delta":"grün"}\n\ndata: [DONE]\n\n',
    );
    const pieces = Array.from(bytes, (byte) => Uint8Array.of(byte));
    const events = await Array.fromAsync(readEvents(ReadableStream.from<Uint8Array<ArrayBuffer>>(pieces)));
    assert.deepEqual(events, [{ type: "response.output_text.delta", delta: "grün" }]);
  });

  test("gives the same on both endpoints", () => {
    assert.deepEqual(responses.read({ type: "response.output_text.delta", delta: "hi" }), { text: "hi" });
    assert.deepEqual(chat.read({ choices: [{ delta: { content: "hi" } }] }), { text: "hi" });
    const usage = { usage: { input: 3, output: 2 } };
    assert.deepEqual(
      responses.read({ type: "response.completed", response: { usage: { input_tokens: 3, output_tokens: 2 } } }),
      { ended: true, ...usage },
    );
    assert.deepEqual(chat.read({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } }), usage);
    assert.deepEqual(chat.read({ choices: [{ delta: {}, finish_reason: "stop" }] }), { ended: true });
    const error = { message: "It broke." };
    assert.deepEqual(responses.read({ type: "error", error }), { failure: "It broke." });
    assert.deepEqual(chat.read({ error }), { failure: "It broke." });
  });
});

test("a conversation uses the responses endpoint, or the other one if only that is offered", () => {
  const choose = (endpoints?: string) =>
    chooseDialect(new Headers(endpoints === undefined ? {} : { "x-portico-endpoints": endpoints }));
  assert.equal(choose("/v1/chat/completions, /v1/responses"), responses);
  assert.equal(choose("/v1/responses"), responses);
  assert.equal(choose("/v1/chat/completions"), chat);
  assert.equal(choose(), responses);
});

test(
  "the line for a terminal sends exactly the same request, whatever the text",
  { skip: process.platform === "win32" },
  () => {
    const body = responses.write("m", 'It\'s `$HOME`; "quoted"\\\nnext line');
    const line = toCurl(new URL("http://127.0.0.1:8600/v1/responses"), "o'clock", body);
    const said = execFileSync("sh", ["-c", `curl() { printf '%s\\0' "$@"; }; TOKEN=t\n${line}`], { encoding: "utf8" });
    assert.deepEqual(said.split("\0").slice(0, -1), [
      "-N",
      "http://127.0.0.1:8600/v1/responses",
      "-H",
      "Authorization: Bearer t",
      "-H",
      "Content-Type: application/json",
      "-H",
      "X-Session-Id: o'clock",
      "-d",
      JSON.stringify(body),
    ]);
  },
);
