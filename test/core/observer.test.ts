/** What the core reports to its observer: each attempt at an adapter, and each turn that is placed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import type { Adapter } from "../../src/core/ports.ts";
import { createModelNames } from "../../src/core/route/models.ts";
import { createRoute, type Lane } from "../../src/core/route/route.ts";
import type { Attempt, Observer } from "../../src/core/observer.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter, say, usage } from "../scripted.ts";
import { failure, gone, lane, toTurn } from "./route-lanes.ts";

/** Records everything that is reported. */
function listen() {
  const told: unknown[] = [];
  const observer: Observer = {
    placed: (history) => void told.push(history),
    asked: (adapter) => ({ ended: (attempt: Attempt) => void told.push([adapter, attempt]) }),
    retried: (adapter) => void told.push(`${adapter} again`),
    fellBack: (adapter, { code }) => void told.push(`${adapter} hands on: ${code}`),
    breakerOpened: (adapter, why) => void told.push(`${adapter} rests: ${why}`),
    breakerClosed: (adapter) => void told.push(`${adapter} is back`),
    endedWithoutCaller: ({ turnId, failure }) => void told.push([turnId, failure?.code]),
  };
  return { told, observer };
}

function open(lanes: readonly Lane[]) {
  const { told, observer } = listen();
  const still = { now: () => new Date(0), random: () => 0, wait: async () => {} };
  return { told, route: createRoute({ lanes, defaultLane: lanes[0]!.name, ...still, observer }) };
}

/** A lane that emits these deltas. */
function emitting(...deltas: Delta[]): Lane {
  const adapter: Adapter = {
    async *stream() {
      yield deltas;
    },
  };
  return { name: "main", adapter, models: createModelNames({}), maxAnswerCharacters: 1_000 };
}

const noAbort = new AbortController().signal;

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

test("an attempt is reported with its latest token count, and whether the model was cut off", async () => {
  const first = { ...usage, outputTokens: 1 };
  const whole = open([emitting(...say("a"), { type: "usage", usage: first }, { type: "usage", usage })]);
  await drain(whole.route.stream(toTurn(), noAbort));
  assert.deepEqual(whole.told, [["main", { outcome: "completed", code: undefined, usage }]]);
  for (const reason of ["length", "content-filter"] as const) {
    const short = open([emitting(...say("a"), { type: "finish", reason })]);
    await drain(short.route.stream(toTurn(), noAbort));
    assert.deepEqual(short.told, [["main", { outcome: "incomplete", code: undefined, usage: undefined }]]);
  }
});

test("of several choices the first one determines whether the model was cut off", async () => {
  const outcomeOf = async (...finishes: readonly Delta[]) => {
    const { route, told } = open([emitting(...say("a"), ...finishes)]);
    await drain(route.stream(toTurn(), noAbort));
    return told;
  };
  const stop: Delta = { type: "finish", reason: "stop" };
  const cut: Delta = { type: "finish", reason: "length" };
  assert.deepEqual(await outcomeOf(stop, { ...cut, choice: 1 }), [completed("main")]);
  const incomplete = ["main", { outcome: "incomplete", code: undefined, usage: undefined }];
  assert.deepEqual(await outcomeOf(cut, { ...stop, choice: 1 }), [incomplete]);
});

const failed = (adapter: string, code: string) => [adapter, { outcome: "failed", code, usage: undefined }];
const completed = (adapter: string) => [adapter, { outcome: "completed", code: undefined, usage: undefined }];

test("retries and fallbacks are reported between the attempts", async () => {
  const acts = [{ fail: failure("adapter_error") }, { fail: failure("adapter_timeout") }];
  const main = lane("main", acts, { retry: {}, fallback: ["second"] });
  const { told, route } = open([main, lane("second", [{ say: ["a"] }])]);
  await drain(route.stream(toTurn(), noAbort));
  assert.deepEqual(told, [
    failed("main", "adapter_error"),
    "main again",
    failed("main", "adapter_timeout"),
    "main hands on: adapter_timeout",
    completed("second"),
  ]);
});

test("a lane with an open breaker is not asked, and falls back", async () => {
  const main = lane("main", [{ fail: failure("adapter_error") }], { breaker: { failures: 1 }, fallback: ["second"] });
  const { told, route } = open([main, lane("second", [{ say: ["a"] }, { say: ["b"] }])]);
  await drain(route.stream(toTurn(), noAbort));
  await drain(route.stream(toTurn(), noAbort));
  assert.deepEqual(told, [
    failed("main", "adapter_error"),
    "main rests: adapter_error",
    "main hands on: adapter_error",
    completed("second"),
    "main hands on: overloaded",
    completed("second"),
  ]);
});

test("the last lane of a path reports no fallback", async () => {
  const { told, route } = open([lane("main", [{ fail: failure("adapter_error") }])]);
  await assert.rejects(drain(route.stream(toTurn(), noAbort)));
  assert.deepEqual(told, [failed("main", "adapter_error")]);
});

test("an attempt that fails midway, exceeds its limit or fails at the start is reported as failed, once", async () => {
  const middle = open([lane("main", [{ say: ["a"], fail: failure("adapter_protocol") }])]);
  await assert.rejects(drain(middle.route.stream(toTurn(), noAbort)));
  assert.deepEqual(middle.told, [failed("main", "adapter_protocol")]);
  const much = open([lane("main", [{ say: ["a", "b"] }], { maxAnswerCharacters: 40 })]);
  await assert.rejects(drain(much.route.stream(toTurn(), noAbort)));
  assert.deepEqual(much.told, [failed("main", "adapter_protocol")]);
  const refuse = (): never => {
    throw failure("unsupported_parameter");
  };
  const early = open([{ ...emitting(), adapter: { stream: refuse } }]);
  await assert.rejects(drain(early.route.stream(toTurn(), noAbort)));
  assert.deepEqual(early.told, [failed("main", "unsupported_parameter")]);
});

test("an abandoned or aborted turn is reported as cancelled, however its adapter reacts", async () => {
  const cancelled = ["main", { outcome: "cancelled", usage: undefined }];
  const left = open([lane("main", [{ say: ["a", "b"] }])]);
  for await (const _ of left.route.stream(toTurn(), noAbort)) break;
  assert.deepEqual(left.told, [["main", { outcome: "cancelled", code: undefined, usage: undefined }]]);
  for (const act of [{ hang: true as const }, { say: [] }]) {
    const caller = new AbortController();
    const { told, route } = open([lane("main", [act])]);
    const drained = drain(route.stream(toTurn(), caller.signal));
    caller.abort(gone);
    await drained.catch(() => {});
    assert.deepEqual(told, [cancelled]);
  }
});

test("an attempt that is abandoned while it is awaited is reported once", async () => {
  const caller = new AbortController();
  const { told, route } = open([lane("main", [{ hang: true }])]);
  const deltas = route.stream(toTurn(), caller.signal)[Symbol.asyncIterator]();
  const pending = assert.rejects(deltas.next());
  const left = deltas.return!();
  caller.abort(gone);
  await Promise.all([pending, left]);
  assert.equal(told.length, 1);
});

test("each placed turn is reported once, with how its history was matched", async () => {
  const { told, observer } = listen();
  const adapter = createScriptedAdapter([say("hi")]);
  const gateway = makeGateway({ adapter, store: createMemoryStore(), observer });
  const ask = {
    model: "m",
    items: [{ type: "message", role: "user", content: "hi" }],
    itemsParam: "messages",
    settings: { tools: [] },
    stream: false,
    keep: "in-session",
  } as const;
  for (const [turnId, hint] of [
    ["resp_1", "u"],
    ["resp_2", "u"],
    ["resp_3", undefined],
  ] as const) {
    const { events } = await gateway.answer(ask, { turnId, owner: "o", hint, signal: noAbort });
    await drain(events);
  }
  assert.deepEqual(told, ["new", "continued", "stateless"]);
  assert.deepEqual(gateway.load(), { waiting: 0, live: 0 });
});
