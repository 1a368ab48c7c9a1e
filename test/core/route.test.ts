import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Extra, Item } from "../../src/core/item.ts";
import { sizeOf } from "../../src/core/route/bound.ts";
import { createModelNames } from "../../src/core/route/models.ts";
import type { Adapter, Remark } from "../../src/core/ports.ts";
import { createRoute } from "../../src/core/route/route.ts";
import type { Shortening, Tool } from "../../src/core/turn.ts";
import { failure, receive, lane, open, toTurn, tried } from "./route-lanes.ts";

test("a turn goes to its lane with the lane's own name for the model", async () => {
  const main = lane("main", [{ say: ["a", "b"] }], { models: createModelNames({ models: { asked: "real" } }) });
  assert.deepEqual(await receive(open([main])), { words: ["a", "b"], error: undefined, tried: [], remarks: [] });
  assert.equal(main.turns[0]?.model, "real");
});

test("a lane that fails temporarily is retried with increasing delays", async () => {
  const acts = [{ fail: failure("adapter_error") }, { fail: failure("overloaded") }, { say: ["a"] }];
  const opened = open([lane("main", acts, { retry: {} })]);
  const { words, tried: told } = await receive(opened);
  assert.deepEqual(words, ["a"]);
  assert.deepEqual(told, tried("main", "adapter_error", "overloaded"));
  assert.deepEqual(opened.waits, [100, 200]);
});

test("jitter doubles a delay at most", async () => {
  const opened = open([lane("main", [{ fail: failure("adapter_error") }, { say: ["a"] }], { retry: {} })], 1);
  await receive(opened);
  assert.deepEqual(opened.waits, [200]);
});

test("without settings nothing is retried", async () => {
  const opened = open([lane("main", [{ fail: failure("adapter_error") }])]);
  assert.equal((await receive(opened)).error?.code, "adapter_error");
});

test("a lane is retried as often as configured, and no more", async () => {
  for (const [retry, times] of [[{}, 3] as const, [{ times: 4, baseMs: 1 }, 5] as const]) {
    const main = lane(
      "main",
      Array.from({ length: times }, () => ({ fail: failure("adapter_error") })),
      { retry },
    );
    assert.equal((await receive(open([main]))).error?.code, "adapter_error");
    assert.equal(main.turns.length, times);
  }
});

test("the delays of retries never exceed the configured maximum in total", async () => {
  const acts = Array.from({ length: 4 }, () => ({ fail: failure("adapter_error") }));
  const opened = open([lane("main", acts, { retry: { times: 10, baseMs: 250 } })], 1);
  opened.advance(10_000);
  await receive(opened);
  assert.deepEqual(opened.waits, [250, 500]);
});

test("an upstream's own retry time is respected, and ends the retries if it is too long", async () => {
  const soon = open([lane("main", [{ fail: failure("adapter_rate_limit", 1) }, { say: ["a"] }], { retry: {} })]);
  assert.deepEqual((await receive(soon)).words, ["a"]);
  assert.deepEqual(soon.waits, [1_000]);
  const late = open([lane("main", [{ fail: failure("adapter_rate_limit", 2) }], { retry: {} })]);
  const { error } = await receive(late);
  assert.deepEqual([error?.code, error?.retryAfterSeconds, late.waits], ["adapter_rate_limit", 2, []]);
});

test("a clock that is set back leaves no more time for retries", async () => {
  const limited = {
    get fail() {
      opened.advance(-3_600_000);
      return failure("adapter_rate_limit", 2);
    },
  };
  const opened = open([lane("main", [limited], { retry: {} })]);
  assert.equal((await receive(opened)).error?.retryAfterSeconds, 2);
  assert.deepEqual(opened.waits, []);
});

test("a lasting failure is not retried", async () => {
  for (const code of ["adapter_timeout", "adapter_protocol", "adapter_refused"] as const) {
    const opened = open([lane("main", [{ fail: failure(code) }], { retry: {} })]);
    assert.equal((await receive(opened)).error?.code, code);
    assert.deepEqual(opened.waits, [], code);
  }
  const untrusted = new GatewayError("adapter_error", "Its certificate has expired.", { isLasting: true });
  const opened = open([lane("main", [{ fail: untrusted }], { retry: {} })]);
  assert.equal((await receive(opened)).error, untrusted);
});

test("a failure of a lane leads to its fallbacks, in order and each once", async () => {
  const codes = ["adapter_error", "adapter_rate_limit", "overloaded", "adapter_timeout", "adapter_protocol"] as const;
  for (const code of [...codes, "adapter_refused"] as const) {
    const fallback = ["second", "second", "main", "third"];
    const opened = open([
      lane("main", [{ fail: failure(code) }], { fallback }),
      lane("third", [{ say: ["a"] }]),
      lane("second", [{ fail: failure("adapter_error") }], { retry: {} }),
    ]);
    const { words, tried: told } = await receive(opened);
    assert.deepEqual(words, ["a"], code);
    assert.deepEqual(told, [...tried("main", code), ...tried("second", "adapter_error")]);
    assert.deepEqual(opened.waits, []);
  }
});

test("an unexpected error of an adapter leads to its fallbacks too", async () => {
  const opened = open([
    lane("main", [{ fail: new TypeError("oops") }], { fallback: ["second"] }),
    lane("second", [{ say: ["a"] }]),
  ]);
  const { words, tried: told } = await receive(opened);
  assert.deepEqual([words, told], [["a"], tried("main", "internal_error")]);
});

test("a caller's mistake is reported at once and not sent to another lane", async () => {
  const codes = ["adapter_bad_request", "body_too_large", "unsupported_parameter", "adapter_not_found"] as const;
  for (const code of codes) {
    const main = lane("main", [{ fail: failure(code) }], { fallback: ["second"], retry: {} });
    const { error, remarks } = await receive(open([main, lane("second", [])]));
    assert.deepEqual([error?.code, remarks], [code, []]);
  }
});

test("a caller's mistake that a fallback reports is returned at once too", async () => {
  const opened = open([
    lane("main", [{ fail: failure("adapter_error") }], { fallback: ["second", "third"] }),
    lane("second", [{ fail: failure("adapter_bad_request") }]),
    lane("third", []),
  ]);
  const { error, tried: told } = await receive(opened);
  assert.deepEqual([error?.code, told], ["adapter_bad_request", tried("main", "adapter_error")]);
});

test("a missing model is the lane's failure if the operator chose its name", async () => {
  const models = createModelNames({ model: "retired" });
  const main = lane("main", [{ fail: failure("adapter_not_found") }], { fallback: ["second"], models });
  assert.deepEqual((await receive(open([main, lane("second", [{ say: ["a"] }])]))).words, ["a"]);
});

test("a fallback that cannot take the turn is skipped", async () => {
  const opened = open([
    lane("main", [{ fail: failure("adapter_error") }], { fallback: ["second", "third", "fourth"] }),
    lane("second", [{ fail: failure("unsupported_parameter") }]),
    lane("third", [{ fail: failure("adapter_not_found") }]),
    lane("fourth", [{ say: ["a"] }]),
  ]);
  assert.deepEqual((await receive(opened)).words, ["a"]);
});

test("when every lane fails the caller gets the error of the first", async () => {
  const opened = open([
    lane("main", [{ fail: failure("adapter_refused") }], { fallback: ["second"] }),
    lane("second", [{ fail: failure("adapter_rate_limit", 5) }]),
  ]);
  const { error, tried: told } = await receive(opened);
  assert.equal(error?.code, "adapter_refused");
  assert.deepEqual(told, [...tried("main", "adapter_refused"), ...tried("second", "adapter_rate_limit")]);
});

test("when the caller should retry later it gets the shortest time", async () => {
  const opened = open([
    lane("main", [{ fail: failure("adapter_rate_limit", 30) }], { fallback: ["second", "third", "fourth"] }),
    lane("second", [{ fail: failure("adapter_error", 1) }]),
    lane("third", [{ fail: failure("adapter_rate_limit", 7) }]),
    lane("fourth", [{ fail: failure("adapter_rate_limit", 9) }]),
  ]);
  const { error } = await receive(opened);
  assert.deepEqual([error?.code, error?.retryAfterSeconds], ["adapter_rate_limit", 7]);
});

test("an open breaker counts with its time, and a failure without a time is considered last", async () => {
  const resting = lane("second", [{ fail: failure("adapter_error") }], { breaker: { failures: 1, openMs: 5_000 } });
  const limited = [failure("adapter_rate_limit"), failure("adapter_rate_limit", 30)];
  const acts = limited.map((fail) => ({ fail }));
  const opened = open([lane("main", acts, { fallback: ["second"] }), resting]);
  assert.equal((await receive(opened)).error, limited[0], "the second lane has failed, and states no time");
  const { error } = await receive(opened);
  assert.deepEqual([error?.code, error?.retryAfterSeconds], ["overloaded", 5]);
  const vague = open([
    lane("main", [{ fail: failure("adapter_rate_limit") }], { fallback: ["second"] }),
    lane("second", [{ fail: failure("adapter_rate_limit", 9) }]),
  ]);
  assert.equal((await receive(vague)).error?.retryAfterSeconds, 9);
});

test("a failure after the first word is reported as it is", async () => {
  const acts = [{ say: ["a"], fail: failure("adapter_error") }];
  const main = lane("main", acts, { fallback: ["second"], retry: {}, breaker: { failures: 1 } });
  const opened = open([main, lane("second", [])]);
  const { words, error, remarks } = await receive(opened);
  assert.deepEqual([words, error, remarks], [["a"], acts[0]!.fail, []]);
});

test("a batch without content does not count as the first word", async () => {
  const main = lane("main", [{ say: ["", ""], fail: failure("adapter_error") }], { fallback: ["second"] });
  assert.deepEqual((await receive(open([main, lane("second", [{ say: ["", "a"] }])]))).words, ["a"]);
});

test("what is about the answer does not count as its first word, and is emitted with it", async () => {
  const added: Delta = { type: "message-extra", extra: { dialect: "chat", fields: { tag: "" } } };
  const notes: Delta = { type: "notes", notes: { fingerprint: "fp_1" } };
  const usage: Delta = {
    type: "usage",
    usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 },
  };
  const fail = failure("adapter_error");
  const opened = open([
    lane(
      "main",
      [
        { give: [notes, usage, added], fail },
        { give: [notes], say: ["a"] },
      ],
      { retry: {} },
    ),
  ]);
  assert.deepEqual((await receive(opened)).words, ["a"]);
  for (const [say, batches] of [
    [["a"], [[notes, usage, { type: "text", text: "a" }]]],
    [[], [[notes, usage]]],
  ] as const) {
    const { route } = open([lane("main", [{ give: [notes, usage], say }])]);
    assert.deepEqual(await Array.fromAsync(route.stream(toTurn(), new AbortController().signal)), batches);
  }
});

test("an answer without content is an answer", async () => {
  const main = lane("main", [{}, { say: [""] }], { fallback: ["second"] });
  const opened = open([main, lane("second", [])]);
  assert.deepEqual(await receive(opened), { words: [], error: undefined, tried: [], remarks: [] });
  assert.deepEqual(await Array.fromAsync(opened.route.stream(toTurn(), new AbortController().signal)), []);
});

test("omissions are reported only for the lane that answers", async () => {
  const search: Tool = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } };
  const speaks: Adapter = { speaks: ["responses"], stream: () => assert.fail() };
  const refused = lane("main", [{ fail: failure("adapter_error") }], { fallback: ["second"] });
  const knowing = open([refused, lane("second", [{ say: ["a"] }], { adapter: speaks })]);
  assert.deepEqual((await receive(knowing, toTurn([search]))).remarks, tried("main", "adapter_error"));
  const plain = lane("main", [{ say: ["a"] }]);
  const leftOut: Remark = { type: "left-out", what: "tool web_search" };
  assert.deepEqual((await receive(open([plain]), toTurn([search]))).remarks, [leftOut]);
  assert.deepEqual(plain.turns[0]?.settings.tools, []);
});

test("a remark of an adapter after its first word is passed on at once", async () => {
  const received: unknown[] = [];
  const leftOut: Remark = { type: "left-out", what: "picture" };
  const adapter: Adapter = {
    async *stream(_turn, _signal, tell) {
      yield [{ type: "text", text: "a" }];
      tell?.(leftOut);
      yield [{ type: "text", text: "b" }];
    },
  };
  const { route } = open([{ ...lane("main", []), adapter }]);
  const listen = (remark: Remark) => void received.push(remark);
  for await (const batch of route.stream(toTurn(), new AbortController().signal, listen)) received.push(...batch);
  assert.deepEqual(received.slice(1), [{ type: "text", text: "a" }, leftOut, { type: "text", text: "b" }]);
});

test("an adapter that fails to close does not keep the others open, and its failure is reported", async () => {
  const closed: string[] = [];
  const bad = { async *stream() {}, close: () => assert.fail("stuck") };
  const good = {
    async *stream() {},
    async close() {
      closed.push("good");
    },
  };
  const names = createModelNames({});
  const route = createRoute({
    lanes: [
      { name: "bad", adapter: bad, models: names, maxAnswerCharacters: 1 },
      { name: "good", adapter: good, models: names, maxAnswerCharacters: 1 },
    ],
    defaultLane: "bad",
    now: () => new Date(0),
    random: () => 0,
    wait: async () => {},
  });
  await assert.rejects(route.close(), /stuck/);
  assert.deepEqual(closed, ["good"]);
});

test("an answer longer than the operator allows fails, and the error names the setting", async () => {
  const main = lane("main", [{ say: ["one ", "two ", "three ", "four "] }], { maxAnswerCharacters: 110 });
  const { words, error } = await receive(open([main]));
  assert.deepEqual(words, ["one ", "two ", "three "]);
  assert.equal(error?.wireCode, "adapter_answer_too_large");
  assert.match(error.message, /110 characters \(gateway\.adapters\.main\.max_answer_characters\)/);
  assert.equal(main.left(), 1);
});

test("an endless answer is abandoned before it fills the memory", async () => {
  const million = "x".repeat(1024 * 1024);
  const main = lane("main", [{ say: Array.from({ length: 100 }, () => million) }], { retry: {} });
  const { words, error } = await receive(open([main]));
  assert.equal(words.length, 63);
  assert.deepEqual([error?.code, error?.wireCode], ["adapter_protocol", "adapter_answer_too_large"]);
  assert.equal(main.left(), 1);
});

test("every kind of delta counts with its whole length", () => {
  const long = "x".repeat(1_000);
  const extra: Extra = { dialect: "chat", fields: { long } };
  const deltas: readonly Delta[] = [
    { type: "text", text: long },
    { type: "text", text: "", logprobs: [{}, {}] },
    { type: "text", text: "", extra },
    { type: "refusal", text: long },
    { type: "refusal", text: "", extra },
    { type: "message-end", extra },
    { type: "reasoning", text: long },
    { type: "reasoning-seal", encrypted: long },
    { type: "annotation", annotation: { type: "url_citation", fields: { long } } },
    { type: "tool-call", index: 0, name: long },
    { type: "tool-call", index: 0, name: "f", callId: long },
    { type: "tool-call", index: 0, name: "f", group: long },
    { type: "tool-call", index: 0, name: "f", extra },
    { type: "tool-extra", index: 0, extra },
    { type: "tool-arguments", index: 0, text: long },
    { type: "message-extra", extra },
    { type: "reasoning-extra", extra },
    { type: "notes", notes: { extra } },
    { type: "compaction", summary: long },
    { type: "other", extra },
  ];
  for (const delta of deltas) assert.ok(sizeOf(delta) > 1_000, JSON.stringify(delta));
});

test("a lane that finds a turn too long is asked again with less, even if its breaker has just let it through", async () => {
  const down = { fail: failure("adapter_error") };
  const refused = { fail: failure("adapter_bad_request") };
  const main = lane("main", [down, refused, refused, { say: ["a"] }], { breaker: { failures: 1 } });
  const opened = open([main]);
  await receive(opened);
  opened.advance(10_000);
  const items: Item[] = ["one", "two", "three"].map((content) => ({ type: "message", role: "user", content }));
  const shortening: Shortening = {
    itemsFor: async () => items,
    lessThan: async (asked) => asked.slice(1),
  };
  const { words, remarks } = await receive(opened, { ...toTurn(), shortening });
  assert.deepEqual([words, remarks], [["a"], []]);
  assert.deepEqual(
    main.turns.slice(1).map((turn) => turn.items),
    [items, items.slice(1), items.slice(2)],
  );
  assert.ok(main.turns.every((turn) => !("shortening" in turn)));
});
