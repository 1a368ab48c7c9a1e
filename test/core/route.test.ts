import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Extra } from "../../src/core/item.ts";
import { sizeOf } from "../../src/core/route/bound.ts";
import { createModelNames } from "../../src/core/route/models.ts";
import type { Adapter, Remark } from "../../src/core/ports.ts";
import { createRoute } from "../../src/core/route/route.ts";
import type { Tool } from "../../src/core/turn.ts";
import { failure, hear, lane, open, toTurn, tried } from "./route-lanes.ts";

test("a turn goes to its lane under the lane's own name for the model", async () => {
  const main = lane("main", [{ say: ["a", "b"] }], { models: createModelNames({ models: { asked: "real" } }) });
  assert.deepEqual(await hear(open([main])), { words: ["a", "b"], error: undefined, tried: [], remarks: [] });
  assert.equal(main.turns[0]?.model, "real");
});

test("a lane that fails in passing is asked again, later each time", async () => {
  const acts = [{ fail: failure("adapter_error") }, { fail: failure("overloaded") }, { say: ["a"] }];
  const house = open([lane("main", acts, { retry: {} })]);
  const { words, tried: told } = await hear(house);
  assert.deepEqual(words, ["a"]);
  assert.deepEqual(told, tried("main", "adapter_error", "overloaded"));
  assert.deepEqual(house.waits, [100, 200]);
});

test("chance doubles a wait at most", async () => {
  const house = open([lane("main", [{ fail: failure("adapter_error") }, { say: ["a"] }], { retry: {} })], 1);
  await hear(house);
  assert.deepEqual(house.waits, [200]);
});

test("without settings nothing is asked twice", async () => {
  const house = open([lane("main", [{ fail: failure("adapter_error") }])]);
  assert.equal((await hear(house)).error?.code, "adapter_error");
});

test("a lane is asked again as often as it is told, and no more", async () => {
  for (const [retry, times] of [[{}, 3] as const, [{ times: 4, baseMs: 1 }, 5] as const]) {
    const main = lane(
      "main",
      Array.from({ length: times }, () => ({ fail: failure("adapter_error") })),
      { retry },
    );
    assert.equal((await hear(open([main]))).error?.code, "adapter_error");
    assert.equal(main.turns.length, times);
  }
});

test("no turn waits longer than its caller has patience", async () => {
  const acts = Array.from({ length: 4 }, () => ({ fail: failure("adapter_error") }));
  const house = open([lane("main", acts, { retry: { times: 10, baseMs: 250 } })], 1);
  await hear(house);
  assert.deepEqual(house.waits, [250, 500]);
});

test("an upstream's own time to come again is kept, and ends the waiting when it is too long", async () => {
  const soon = open([lane("main", [{ fail: failure("adapter_rate_limit", 1) }, { say: ["a"] }], { retry: {} })]);
  assert.deepEqual((await hear(soon)).words, ["a"]);
  assert.deepEqual(soon.waits, [1_000]);
  const late = open([lane("main", [{ fail: failure("adapter_rate_limit", 2) }], { retry: {} })]);
  const { error } = await hear(late);
  assert.deepEqual([error?.code, error?.retryAfterSeconds, late.waits], ["adapter_rate_limit", 2, []]);
});

test("what will not pass in a moment is not asked again", async () => {
  for (const code of ["adapter_timeout", "adapter_protocol", "adapter_refused"] as const) {
    const house = open([lane("main", [{ fail: failure(code) }], { retry: {} })]);
    assert.equal((await hear(house)).error?.code, code);
    assert.deepEqual(house.waits, [], code);
  }
  const untrusted = new GatewayError("adapter_error", "Its certificate has expired.", { isLasting: true });
  const house = open([lane("main", [{ fail: untrusted }], { retry: {} })]);
  assert.equal((await hear(house)).error, untrusted);
});

test("a lane's own failure leads to the lanes behind it, in order and each once", async () => {
  const codes = ["adapter_error", "adapter_rate_limit", "overloaded", "adapter_timeout", "adapter_protocol"] as const;
  for (const code of [...codes, "adapter_refused"] as const) {
    const fallback = ["second", "second", "main", "third"];
    const house = open([
      lane("main", [{ fail: failure(code) }], { fallback }),
      lane("third", [{ say: ["a"] }]),
      lane("second", [{ fail: failure("adapter_error") }], { retry: {} }),
    ]);
    const { words, tried: told } = await hear(house);
    assert.deepEqual(words, ["a"], code);
    assert.deepEqual(told, [...tried("main", code), ...tried("second", "adapter_error")]);
    assert.deepEqual(house.waits, []);
  }
});

test("what an adapter throws by mistake leads to the lanes behind it too", async () => {
  const house = open([
    lane("main", [{ fail: new TypeError("oops") }], { fallback: ["second"] }),
    lane("second", [{ say: ["a"] }]),
  ]);
  const { words, tried: told } = await hear(house);
  assert.deepEqual([words, told], [["a"], tried("main", "internal_error")]);
});

test("a caller's mistake is told at once and tried nowhere else", async () => {
  const codes = ["adapter_bad_request", "body_too_large", "unsupported_parameter", "adapter_not_found"] as const;
  for (const code of codes) {
    const main = lane("main", [{ fail: failure(code) }], { fallback: ["second"], retry: {} });
    const { error, remarks } = await hear(open([main, lane("second", [])]));
    assert.deepEqual([error?.code, remarks], [code, []]);
  }
});

test("a caller's mistake that a lane behind finds is told at once too", async () => {
  const house = open([
    lane("main", [{ fail: failure("adapter_error") }], { fallback: ["second", "third"] }),
    lane("second", [{ fail: failure("adapter_bad_request") }]),
    lane("third", []),
  ]);
  const { error, tried: told } = await hear(house);
  assert.deepEqual([error?.code, told], ["adapter_bad_request", tried("main", "adapter_error")]);
});

test("a model that is not there is the lane's failure when the operator has put its name", async () => {
  const models = createModelNames({ model: "retired" });
  const main = lane("main", [{ fail: failure("adapter_not_found") }], { fallback: ["second"], models });
  assert.deepEqual((await hear(open([main, lane("second", [{ say: ["a"] }])]))).words, ["a"]);
});

test("a lane behind that cannot take the turn is passed over", async () => {
  const house = open([
    lane("main", [{ fail: failure("adapter_error") }], { fallback: ["second", "third", "fourth"] }),
    lane("second", [{ fail: failure("unsupported_parameter") }]),
    lane("third", [{ fail: failure("adapter_not_found") }]),
    lane("fourth", [{ say: ["a"] }]),
  ]);
  assert.deepEqual((await hear(house)).words, ["a"]);
});

test("when every lane fails the caller reads what happened at the first", async () => {
  const house = open([
    lane("main", [{ fail: failure("adapter_refused") }], { fallback: ["second"] }),
    lane("second", [{ fail: failure("adapter_rate_limit", 5) }]),
  ]);
  const { error, tried: told } = await hear(house);
  assert.equal(error?.code, "adapter_refused");
  assert.deepEqual(told, [...tried("main", "adapter_refused"), ...tried("second", "adapter_rate_limit")]);
});

test("when the caller shall come back later it is told the soonest time", async () => {
  const house = open([
    lane("main", [{ fail: failure("adapter_rate_limit", 30) }], { fallback: ["second", "third", "fourth"] }),
    lane("second", [{ fail: failure("adapter_error") }]),
    lane("third", [{ fail: failure("adapter_rate_limit", 7) }]),
    lane("fourth", [{ fail: failure("adapter_rate_limit", 9) }]),
  ]);
  const { error } = await hear(house);
  assert.deepEqual([error?.code, error?.retryAfterSeconds], ["adapter_rate_limit", 7]);
});

test("so it is by a lane that rests, and who says no time is the last to be waited for", async () => {
  const resting = lane("second", [{ fail: failure("adapter_error") }], { breaker: { failures: 1, openMs: 5_000 } });
  const limited = [failure("adapter_rate_limit"), failure("adapter_rate_limit", 30)];
  const acts = limited.map((fail) => ({ fail }));
  const house = open([lane("main", acts, { fallback: ["second"] }), resting]);
  assert.equal((await hear(house)).error, limited[0], "the second lane has failed, and says nothing of a time");
  const { error } = await hear(house);
  assert.deepEqual([error?.code, error?.retryAfterSeconds], ["overloaded", 5]);
  const vague = open([
    lane("main", [{ fail: failure("adapter_rate_limit") }], { fallback: ["second"] }),
    lane("second", [{ fail: failure("adapter_rate_limit", 9) }]),
  ]);
  assert.equal((await hear(vague)).error?.retryAfterSeconds, 9);
});

test("a failure after the first word is told as it is", async () => {
  const acts = [{ say: ["a"], fail: failure("adapter_error") }];
  const main = lane("main", acts, { fallback: ["second"], retry: {}, breaker: { failures: 1 } });
  const house = open([main, lane("second", [])]);
  const { words, error, remarks } = await hear(house);
  assert.deepEqual([words, error, remarks], [["a"], acts[0]!.fail, []]);
});

test("a batch without a word is no first word", async () => {
  const main = lane("main", [{ say: ["", ""], fail: failure("adapter_error") }], { fallback: ["second"] });
  assert.deepEqual((await hear(open([main, lane("second", [{ say: ["", "a"] }])]))).words, ["a"]);
});

test("what served the answer and what it cost are no first word, and are told with it", async () => {
  const notes: Delta = { type: "notes", notes: { fingerprint: "fp_1" } };
  const usage: Delta = {
    type: "usage",
    usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 },
  };
  const fail = failure("adapter_error");
  const house = open([
    lane(
      "main",
      [
        { give: [notes, usage], fail },
        { give: [notes], say: ["a"] },
      ],
      { retry: {} },
    ),
  ]);
  assert.deepEqual((await hear(house)).words, ["a"]);
  for (const [say, batches] of [
    [["a"], [[notes, usage, { type: "text", text: "a" }]]],
    [[], [[notes, usage]]],
  ] as const) {
    const { route } = open([lane("main", [{ give: [notes, usage], say }])]);
    assert.deepEqual(await Array.fromAsync(route.stream(toTurn(), new AbortController().signal)), batches);
  }
});

test("an answer without a word is an answer", async () => {
  const main = lane("main", [{}], { fallback: ["second"] });
  assert.deepEqual(await hear(open([main, lane("second", [])])), {
    words: [],
    error: undefined,
    tried: [],
    remarks: [],
  });
});

test("what is left out is told of the lane that answers only", async () => {
  const search: Tool = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } };
  const speaks: Adapter = { speaks: ["responses"], stream: () => assert.fail() };
  const refused = lane("main", [{ fail: failure("adapter_error") }], { fallback: ["second"] });
  const knowing = open([refused, lane("second", [{ say: ["a"] }], { adapter: speaks })]);
  assert.deepEqual((await hear(knowing, toTurn([search]))).remarks, tried("main", "adapter_error"));
  const plain = lane("main", [{ say: ["a"] }]);
  const leftOut: Remark = { type: "left-out", what: "tool web_search" };
  assert.deepEqual((await hear(open([plain]), toTurn([search]))).remarks, [leftOut]);
  assert.deepEqual(plain.turns[0]?.settings.tools, []);
});

test("what an adapter tells after its first word is told at once", async () => {
  const heard: unknown[] = [];
  const leftOut: Remark = { type: "left-out", what: "picture" };
  const adapter: Adapter = {
    async *stream(_turn, _signal, tell) {
      yield [{ type: "text", text: "a" }];
      tell?.(leftOut);
      yield [{ type: "text", text: "b" }];
    },
  };
  const { route } = open([{ ...lane("main", []), adapter }]);
  const listen = (remark: Remark) => void heard.push(remark);
  for await (const batch of route.stream(toTurn(), new AbortController().signal, listen)) heard.push(...batch);
  assert.deepEqual(heard.slice(1), [{ type: "text", text: "a" }, leftOut, { type: "text", text: "b" }]);
});

test("an adapter that closes badly does not keep the others open, and its failure is told", async () => {
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

test("an adapter says no more in one answer than its operator allows, and the failure names the key", async () => {
  const main = lane("main", [{ say: ["one ", "two ", "three ", "four "] }], { maxAnswerCharacters: 110 });
  const { words, error } = await hear(open([main]));
  assert.deepEqual(words, ["one ", "two ", "three "]);
  assert.equal(error?.wireCode, "adapter_answer_too_large");
  assert.match(error.message, /110 characters \(gateway\.adapters\.main\.max_answer_characters\)/);
  assert.equal(main.left(), 1);
});

test("an adapter that does not stop talking is left before its answer fills the memory", async () => {
  const million = "x".repeat(1024 * 1024);
  const main = lane("main", [{ say: Array.from({ length: 100 }, () => million) }], { retry: {} });
  const { words, error } = await hear(open([main]));
  assert.equal(words.length, 63);
  assert.deepEqual([error?.code, error?.wireCode], ["adapter_protocol", "adapter_answer_too_large"]);
  assert.equal(main.left(), 1);
});

test("whatever an adapter says counts with all of its length", () => {
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
    { type: "compaction", summary: long },
    { type: "other", extra },
  ];
  for (const delta of deltas) assert.ok(sizeOf(delta) > 1_000, JSON.stringify(delta));
});
