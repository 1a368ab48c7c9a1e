import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GatewayError } from "../../src/core/errors.ts";
import { createRoute } from "../../src/core/route/route.ts";
import { cut, failure, gone, receive, lane, open, type Opened, toTurn, tried } from "./route-lanes.ts";

test("an abort ends everything at once and does not count for the lane's breaker", async () => {
  const main = lane("main", [{ hang: true }], { fallback: ["second"], retry: {}, breaker: { failures: 1 } });
  const opened = open([main, lane("second", [])]);
  const caller = new AbortController();
  const received = receive(opened, toTurn(), caller.signal);
  caller.abort(gone);
  const { error, remarks } = await received;
  assert.deepEqual([error, remarks], [cut, []]);
  assert.equal(opened.route.states()[0]?.failures, 0);
  assert.equal((await receive(opened, toTurn(), caller.signal)).error, gone);
  assert.equal(main.turns.length, 1);
});

test("an abort while a turn waits to retry ends it", async () => {
  const main = lane("main", [{ fail: failure("adapter_error") }], { fallback: ["second"], retry: {} });
  const caller = new AbortController();
  const route = createRoute({
    lanes: [main, lane("second", [])],
    defaultLane: "main",
    now: () => new Date(0),
    random: () => 0,
    wait: async () => caller.abort(gone),
  });
  const opened: Opened = { route, waits: [], advance: () => {} };
  assert.equal((await receive(opened, toTurn(), caller.signal)).error, gone);
});

test("a caller that stops reading stops the lane that answers", async () => {
  const main = lane("main", [{ say: ["a", "b"] }]);
  for await (const batch of open([main]).route.stream(toTurn(), new AbortController().signal)) {
    assert.equal(batch.length, 1);
    break;
  }
  assert.equal(main.left(), 1);
});

test("an attempt abandoned before its first word leaves the breaker half open", async () => {
  const acts = [{ fail: failure("adapter_error") }, { hang: true as const }];
  const main = lane("main", acts, { breaker: { failures: 1 } });
  const opened = open([main]);
  await receive(opened);
  opened.advance(10_000);
  const caller = new AbortController();
  const received = receive(opened, toTurn(), caller.signal);
  caller.abort(gone);
  assert.equal((await received).error, cut);
  assert.deepEqual(opened.route.states(), [
    { name: "main", state: "half-open", failures: 1, opensUntil: 10_000, code: "adapter_error" },
  ]);
});

test("an answer that is abandoned before it started asks no adapter", async () => {
  const { route } = open([lane("main", [])]);
  const deltas = route.stream(toTurn(), new AbortController().signal)[Symbol.asyncIterator]();
  await deltas.return!();
  assert.equal((await deltas.next()).done, true);
});

test("an answer that ends normally because of an abort does not count for the breaker either", async () => {
  const caller = new AbortController();
  const main = lane("main", [{ fail: failure("adapter_error") }, {}], { breaker: {} });
  const opened = open([main]);
  await receive(opened);
  const received = receive(opened, toTurn(), caller.signal);
  caller.abort(gone);
  await received;
  assert.equal(opened.route.states()[0]?.failures, 1);
});

test("a lane with an open breaker is not asked until its time is over, and the error says when", async () => {
  const fail = failure("adapter_error");
  const main = lane("main", [{ fail }, { fail }, { say: ["a"] }], { breaker: { failures: 2 } });
  const opened = open([main]);
  await receive(opened);
  await receive(opened);
  assert.deepEqual(opened.route.states(), [
    { name: "main", state: "open", failures: 2, opensUntil: 10_000, code: "adapter_error" },
  ]);
  opened.advance(2_500);
  const { error, tried: told } = await receive(opened);
  assert.deepEqual([error?.code, error?.retryAfterSeconds], ["overloaded", 8]);
  assert.deepEqual(told, tried("main", "overloaded"));
  opened.advance(7_500);
  assert.deepEqual((await receive(opened)).words, ["a"]);
  assert.equal(opened.route.states()[0]?.state, "closed");
});

test("the error of an open breaker does not repeat what the upstream said about another caller's turn", async () => {
  const fail = new GatewayError("adapter_error", "The upstream failed with status 500: cannot parse 'my secret'");
  const opened = open([lane("main", [{ fail }], { breaker: { failures: 1 } })]);
  await receive(opened);
  const { error } = await receive(opened);
  assert.equal(
    error?.message,
    "The adapter 'main' has failed too often, so its circuit breaker is open. Its last failure: adapter_error. Try again in a moment.",
  );
});

test("the error of an open breaker has the same words each second, so that the log does not repeat them", async () => {
  const opened = open([lane("main", [{ fail: failure("adapter_error") }], { breaker: { failures: 1 } })]);
  await receive(opened);
  const before = (await receive(opened)).error;
  opened.advance(2_500);
  const later = (await receive(opened)).error;
  assert.deepEqual([before?.retryAfterSeconds, later?.retryAfterSeconds], [10, 8]);
  assert.equal(later?.message, before?.message);
});

test("a turn that fails after its retries counts once for its lane's breaker", async () => {
  const fails = Array.from({ length: 6 }, () => ({ fail: failure("adapter_error") }));
  const main = lane("main", fails, { retry: {}, breaker: { failures: 2 } });
  const opened = open([main]);
  await receive(opened);
  assert.equal(main.turns.length, 3);
  assert.equal(opened.route.states()[0]?.failures, 1);
  await receive(opened);
  assert.equal(main.turns.length, 6);
  assert.deepEqual(opened.route.states(), [
    { name: "main", state: "open", failures: 2, opensUntil: 10_600, code: "adapter_error" },
  ]);
});

test("a turn that succeeds on a retry is not a failure of its lane, and resets the count of failures", async () => {
  const fail = failure("adapter_error");
  const acts = [{ fail: failure("adapter_timeout") }, { fail }, { fail }, { say: ["a"] }];
  const opened = open([lane("main", acts, { retry: {}, breaker: { failures: 2 } })]);
  await receive(opened);
  assert.equal(opened.route.states()[0]?.failures, 1);
  assert.deepEqual((await receive(opened)).words, ["a"]);
  assert.equal(opened.route.states()[0]?.failures, 0);
});

test("only the last attempt counts for the breaker", async () => {
  const acts = [{ fail: failure("adapter_error") }, { fail: failure("adapter_refused") }];
  const opened = open([lane("main", acts, { retry: {}, breaker: { failures: 1 } })]);
  assert.equal((await receive(opened)).error?.code, "adapter_refused");
  assert.deepEqual(opened.route.states()[0]?.state, "closed");
});

test("a half-open breaker lets one turn through without retries, and opens again when it fails", async () => {
  const fails = Array.from({ length: 4 }, () => ({ fail: failure("adapter_error") }));
  const main = lane("main", fails, { retry: {}, breaker: { failures: 1 } });
  const opened = open([main]);
  await receive(opened);
  opened.advance(10_000);
  assert.equal((await receive(opened)).error?.code, "adapter_error");
  assert.equal(main.turns.length, 4);
  assert.deepEqual(opened.route.states(), [
    { name: "main", state: "open", failures: 2, opensUntil: 20_300, code: "adapter_error" },
  ]);
});

test("while a breaker is open, turns go to the next lane without waiting", async () => {
  const main = lane("main", [{ fail: failure("adapter_timeout") }], {
    fallback: ["second"],
    retry: {},
    breaker: { failures: 1, openMs: 500 },
  });
  const opened = open([main, lane("second", [{ say: ["a"] }, { say: ["b"] }])]);
  assert.deepEqual((await receive(opened)).words, ["a"]);
  assert.deepEqual((await receive(opened)).words, ["b"]);
  assert.deepEqual(opened.waits, []);
});

test("a retry does not ask a lane whose breaker other turns have opened meanwhile", async () => {
  const main = lane("main", [{ fail: failure("adapter_error") }, { fail: failure("adapter_timeout") }], {
    retry: {},
    breaker: { failures: 1 },
  });
  const route = createRoute({
    lanes: [main],
    defaultLane: "main",
    now: () => new Date(0),
    random: () => 0,
    wait: async () => void (await receive(opened)),
  });
  const opened: Opened = { route, waits: [], advance: () => {} };
  assert.equal((await receive(opened)).error?.code, "overloaded");
  assert.equal(main.turns.length, 2);
});

test("a rate limit does not open the breaker", async () => {
  const acts = [{ fail: failure("adapter_rate_limit", 60) }, { say: ["a"] }];
  const opened = open([lane("main", acts, { breaker: { failures: 1 } })]);
  await receive(opened);
  assert.deepEqual((await receive(opened)).words, ["a"]);
});

test("whatever fails, only the words of one lane are emitted, in order and complete up to its failure", async () => {
  const codes = [
    "adapter_error",
    "adapter_rate_limit",
    "overloaded",
    "adapter_timeout",
    "adapter_bad_request",
  ] as const;
  const act = fc.record({
    words: fc.integer({ min: 0, max: 3 }),
    code: fc.option(fc.constantFrom(...codes), { nil: undefined }),
    retryAfter: fc.option(fc.constantFrom(0, 1, 5), { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(act, { minLength: 8, maxLength: 8 }), { minLength: 1, maxLength: 4 }),
      async (scripts) => {
        const names = scripts.map((_, index) => `lane${index}`);
        const lanes = scripts.map((acts, index) =>
          lane(
            names[index]!,
            acts.map(({ words, code, retryAfter }, number) => ({
              say: Array.from({ length: words }, (_, word) => `${index}.${number}.${word}`),
              fail: code && failure(code, retryAfter),
            })),
            { fallback: names.slice(1), retry: {}, breaker: { failures: 3 } },
          ),
        );
        const opened = open(lanes);
        for (const _ of [1, 2]) {
          const before = opened.waits.length;
          const { words, error } = await receive(opened);
          const [speaker = "", number = ""] = words[0]?.split(".") ?? [];
          const said = words.length === 0 ? undefined : scripts[Number(speaker)]?.[Number(number)];
          assert.deepEqual(
            words,
            Array.from({ length: said?.words ?? 0 }, (_, word) => `${speaker}.${number}.${word}`),
          );
          if (said !== undefined) assert.equal(error?.code, said.code);
          assert.ok(opened.waits.slice(before).reduce((sum, each) => sum + each, 0) <= 1_000);
        }
      },
    ),
    { numRuns: 300 },
  );
});
