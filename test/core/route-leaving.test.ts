import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";
import { createModelNames } from "../../src/core/route/models.ts";
import type { Adapter } from "../../src/core/ports.ts";
import { createRoute } from "../../src/core/route/route.ts";
import { cut, failure, gone, hear, lane, open, type Opened, toTurn, tried, usual } from "./route-lanes.ts";

test("an abort ends everything at once and says nothing about the lane", async () => {
  const main = lane("main", [{ hang: true }], { fallback: ["second"], retry: {}, breaker: { failures: 1 } });
  const house = open([main, lane("second", [])]);
  const caller = new AbortController();
  const heard = hear(house, toTurn(), caller.signal);
  caller.abort(gone);
  const { error, remarks } = await heard;
  assert.deepEqual([error, remarks], [cut, []]);
  assert.equal(house.route.states()[0]?.failures, 0);
  assert.equal((await hear(house, toTurn(), caller.signal)).error, gone);
  assert.equal(main.turns.length, 1);
});

test("an abort while a turn waits to ask again ends it", async () => {
  const main = lane("main", [{ fail: failure("adapter_error") }], { fallback: ["second"], retry: {} });
  const caller = new AbortController();
  const route = createRoute({
    lanes: [main, lane("second", [])],
    defaultLane: "main",
    now: () => new Date(0),
    random: () => 0,
    wait: async () => caller.abort(gone),
  });
  const house: Opened = { route, waits: [], turnClock: () => {} };
  assert.equal((await hear(house, toTurn(), caller.signal)).error, gone);
});

test("a caller who stops listening stops the lane that speaks", async () => {
  const main = lane("main", [{ say: ["a", "b"] }]);
  for await (const batch of open([main]).route.stream(toTurn(), new AbortController().signal)) {
    assert.equal(batch.length, 1);
    break;
  }
  assert.equal(main.left(), 1);
});

test("a caller who stops listening before the first word is not asked for again, and leaves room in the breaker", async () => {
  const acts = [{ fail: failure("adapter_error") }, { hang: true as const }];
  const main = lane("main", acts, { breaker: { failures: 1 } });
  const house = open([main]);
  await hear(house);
  house.turnClock(10_000);
  const caller = new AbortController();
  const deltas = house.route.stream(toTurn(), caller.signal)[Symbol.asyncIterator]();
  const pending = deltas.next();
  const left = deltas.return!();
  assert.deepEqual(house.route.states(), [
    { name: "main", state: "half-open", failures: 1, opensUntil: 10_000, why: "adapter_error" },
  ]);
  caller.abort(gone);
  await assert.rejects(pending, cut);
  assert.equal((await left).done, true);
});

test("an answer that was left before it began asks nobody", async () => {
  const { route } = open([lane("main", [])]);
  const deltas = route.stream(toTurn(), new AbortController().signal)[Symbol.asyncIterator]();
  await deltas.return!();
  assert.equal((await deltas.next()).done, true);
});

test("an answer that ends quietly because of an abort says nothing about the lane either", async () => {
  const caller = new AbortController();
  const main = lane("main", [{ fail: failure("adapter_error") }, {}], { breaker: {} });
  const house = open([main]);
  await hear(house);
  const heard = hear(house, toTurn(), caller.signal);
  caller.abort(gone);
  await heard;
  assert.equal(house.route.states()[0]?.failures, 1);
});

test("a caller who leaves while a turn waits to ask again is gone for good", async () => {
  const adapter: Adapter = {
    stream: () => ({
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.reject(failure("adapter_error")),
        return: () => assert.fail("what has failed is not left"),
      }),
    }),
  };
  const route = createRoute({
    lanes: [{ ...usual, name: "main", adapter, models: createModelNames({}) }],
    defaultLane: "main",
    now: () => new Date(0),
    random: () => 0,
    wait: async () => void (await deltas.return?.()),
  });
  const { signal } = new AbortController();
  const deltas: AsyncIterator<readonly Delta[]> = route.stream(toTurn(), signal)[Symbol.asyncIterator]();
  assert.equal((await deltas.next()).done, true);
  assert.equal((await deltas.next()).done, true);
});

test("whoever pulls twice at once hears the words in order", async () => {
  const { route } = open([lane("main", [{ say: ["a", "b"] }])]);
  const deltas = route.stream(toTurn(), new AbortController().signal)[Symbol.asyncIterator]();
  const [first, second] = await Promise.all([deltas.next(), deltas.next()]);
  assert.deepEqual([first.value, second.value], [[{ type: "text", text: "a" }], [{ type: "text", text: "b" }]]);
});

test("a lane that is down is not asked until its time is over, and whoever asks is told when", async () => {
  const fail = failure("adapter_error");
  const main = lane("main", [{ fail }, { fail }, { say: ["a"] }], { breaker: { failures: 2 } });
  const house = open([main]);
  await hear(house);
  await hear(house);
  assert.deepEqual(house.route.states(), [
    { name: "main", state: "open", failures: 2, opensUntil: 10_000, why: "adapter_error" },
  ]);
  house.turnClock(2_500);
  const { error, tried: told } = await hear(house);
  assert.deepEqual([error?.code, error?.retryAfterSeconds], ["overloaded", 8]);
  assert.deepEqual(told, tried("main", "overloaded"));
  house.turnClock(7_500);
  assert.deepEqual((await hear(house)).words, ["a"]);
  assert.equal(house.route.states()[0]?.state, "closed");
});

test("a turn that fails after its retries counts once for its lane", async () => {
  const fails = Array.from({ length: 6 }, () => ({ fail: failure("adapter_error") }));
  const main = lane("main", fails, { retry: {}, breaker: { failures: 2 } });
  const house = open([main]);
  await hear(house);
  assert.equal(main.turns.length, 3);
  assert.equal(house.route.states()[0]?.failures, 1);
  await hear(house);
  assert.equal(main.turns.length, 6);
  assert.deepEqual(house.route.states(), [
    { name: "main", state: "open", failures: 2, opensUntil: 10_600, why: "adapter_error" },
  ]);
});

test("a turn that a retry saves is no failure of its lane, and ends the row of failures", async () => {
  const fail = failure("adapter_error");
  const acts = [{ fail: failure("adapter_timeout") }, { fail }, { fail }, { say: ["a"] }];
  const house = open([lane("main", acts, { retry: {}, breaker: { failures: 2 } })]);
  await hear(house);
  assert.equal(house.route.states()[0]?.failures, 1);
  assert.deepEqual((await hear(house)).words, ["a"]);
  assert.equal(house.route.states()[0]?.failures, 0);
});

test("what the last attempt says about a lane is what counts", async () => {
  const acts = [{ fail: failure("adapter_error") }, { fail: failure("adapter_refused") }];
  const house = open([lane("main", acts, { retry: {}, breaker: { failures: 1 } })]);
  assert.equal((await hear(house)).error?.code, "adapter_refused");
  assert.deepEqual(house.route.states()[0]?.state, "closed");
});

test("the turn that is let through to see asks once, and the lane rests again when it fails", async () => {
  const fails = Array.from({ length: 4 }, () => ({ fail: failure("adapter_error") }));
  const main = lane("main", fails, { retry: {}, breaker: { failures: 1 } });
  const house = open([main]);
  await hear(house);
  house.turnClock(10_000);
  assert.equal((await hear(house)).error?.code, "adapter_error");
  assert.equal(main.turns.length, 4);
  assert.deepEqual(house.route.states(), [
    { name: "main", state: "open", failures: 2, opensUntil: 20_300, why: "adapter_error" },
  ]);
});

test("while a lane is down its turns go to the lane behind it without a wait", async () => {
  const main = lane("main", [{ fail: failure("adapter_timeout") }], {
    fallback: ["second"],
    retry: {},
    breaker: { failures: 1, openMs: 500 },
  });
  const house = open([main, lane("second", [{ say: ["a"] }, { say: ["b"] }])]);
  assert.deepEqual((await hear(house)).words, ["a"]);
  assert.deepEqual((await hear(house)).words, ["b"]);
  assert.deepEqual(house.waits, []);
});

test("a lane that others found to be down is not asked again", async () => {
  const main = lane("main", [{ fail: failure("adapter_error") }, { fail: failure("adapter_timeout") }], {
    retry: {},
    breaker: { failures: 1 },
  });
  const route = createRoute({
    lanes: [main],
    defaultLane: "main",
    now: () => new Date(0),
    random: () => 0,
    wait: async () => void (await hear(house)),
  });
  const house: Opened = { route, waits: [], turnClock: () => {} };
  assert.equal((await hear(house)).error?.code, "overloaded");
  assert.equal(main.turns.length, 2);
});

test("a rate limit does not take a lane out of use", async () => {
  const acts = [{ fail: failure("adapter_rate_limit", 60) }, { say: ["a"] }];
  const house = open([lane("main", acts, { breaker: { failures: 1 } })]);
  await hear(house);
  assert.deepEqual((await hear(house)).words, ["a"]);
});

test("whatever fails, the words of one lane at most are told, in order and whole up to its failure", async () => {
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
        const house = open(lanes);
        for (const _ of [1, 2]) {
          const before = house.waits.length;
          const { words, error } = await hear(house);
          const [speaker = "", number = ""] = words[0]?.split(".") ?? [];
          const said = words.length === 0 ? undefined : scripts[Number(speaker)]?.[Number(number)];
          assert.deepEqual(
            words,
            Array.from({ length: said?.words ?? 0 }, (_, word) => `${speaker}.${number}.${word}`),
          );
          if (said !== undefined) assert.equal(error?.code, said.code);
          assert.ok(house.waits.slice(before).reduce((sum, each) => sum + each, 0) <= 1_000);
        }
      },
    ),
    { numRuns: 300 },
  );
});
