/** Retention: when it runs, how it continues, and how it stops. */
import assert from "node:assert/strict";
import { mock, test, type TestContext } from "node:test";
import type { PruneRules, Pruned } from "../src/core/store.ts";
import { type Adapter, openPortico } from "../src/index.ts";
import { createPruner, pruneAll, toPruneRules } from "../src/prune.ts";
import { makeFolder } from "./gateway.ts";
import { say } from "./scripted.ts";

type Call = PromiseWithResolvers<Pruned> & { readonly rules: PruneRules };

/** A store whose calls are answered by hand. */
function createStore() {
  const calls: Call[] = [];
  let called = Promise.withResolvers<void>();
  return {
    calls,
    /** Waits for the next call. */
    async next(): Promise<Call> {
      const before = calls.length;
      while (calls.length === before) await called.promise;
      return calls.at(-1)!;
    },
    prune(rules: PruneRules): Promise<Pruned> {
      const call = { ...Promise.withResolvers<Pruned>(), rules };
      calls.push(call);
      called.resolve();
      called = Promise.withResolvers();
      return call.promise;
    },
  };
}

const none: Pruned = { sessions: 0, turns: 0, more: false };

function make(context: TestContext, intervalMs: number, firstMs: number) {
  const store = createStore();
  const logged: [string, object, string][] = [];
  const clock = { time: 1_000, elapsedMs: 0 };
  const pruner = createPruner({
    store,
    rules: (now) => ({ idleBefore: now, maxSessionsPerOwner: 7 }),
    intervalMs,
    firstMs,
    now: () => new Date(clock.time),
    elapsedMs: () => clock.elapsedMs,
    log: {
      info: (fields, message) => void logged.push(["info", fields, message]),
      error: (fields, message) => void logged.push(["error", fields, message]),
    },
  });
  context.after(() => pruner.close());
  return { store, logged, pruner, clock };
}

test("retention runs a moment after the start and then at every interval", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { store, clock } = make(context, 1_000, 100);
  context.mock.timers.tick(99);
  assert.equal(store.calls.length, 0);
  const first = store.next();
  context.mock.timers.tick(1);
  (await first).resolve(none);
  await settled();
  clock.time += 900;
  clock.elapsedMs += 900;
  const second = store.next();
  context.mock.timers.tick(900);
  (await second).resolve(none);
  assert.equal(store.calls.length, 2);
  assert.deepEqual(store.calls[1]?.rules, { idleBefore: new Date(1_900), maxSessionsPerOwner: 7 });
});

test("for its age nothing is deleted until the clock has gone on steadily since the run before", async (context) => {
  const { store, clock } = make(context, 5, 1);
  const hourMs = 3_600_000;
  const [in1970, now, in2035] = [0, Date.parse("2026-11-18"), Date.parse("2035-01-01")];
  /** Whether it goes by the clock, in runs an hour apart at which the clock says this. */
  const goesBy: boolean[] = [];
  for (const [hour, time] of [in1970, now, now + hourMs, now + 2 * hourMs, in2035, now, now + hourMs].entries()) {
    clock.time = time;
    clock.elapsedMs = hour * hourMs;
    const next = store.next();
    store.calls.at(-1)?.resolve(none);
    const { rules } = await next;
    assert.equal(rules.maxSessionsPerOwner, 7);
    goesBy.push(rules.idleBefore !== undefined);
  }
  store.calls.at(-1)?.resolve(none);
  assert.deepEqual(goesBy, [false, false, true, true, false, false, true]);
});

test("whoever asks for a run vouches for the clock, also during one that leaves out what is old", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { store, pruner } = make(context, 1_000, 100);
  const first = store.next();
  context.mock.timers.tick(100);
  const { rules, resolve } = await first;
  const asked = pruner.run();
  const second = store.next();
  resolve(none);
  (await second).resolve({ sessions: 3, turns: 4, more: false });
  assert.deepEqual([rules.idleBefore, store.calls[1]?.rules.idleBefore], [undefined, new Date(1_000)]);
  assert.deepEqual(await asked, { sessions: 3, turns: 4 });
});

test("closing waits for a run that was asked for during another", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { store, pruner } = make(context, 1_000, 100);
  const first = store.next();
  context.mock.timers.tick(100);
  const { resolve } = await first;
  const asked = pruner.run();
  const order: string[] = [];
  const closed = pruner.close().then(() => order.push("closed"));
  const second = store.next();
  resolve(none);
  const last = await second;
  await settled();
  order.push("ended");
  last.resolve(none);
  await Promise.all([asked, closed]);
  assert.deepEqual(order, ["ended", "closed"]);
});

test("a new interval counts from when it is set, and setting the same one again delays nothing", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { store, pruner } = make(context, 1_000, 1_000);
  pruner.retime(5_000);
  const first = store.next();
  context.mock.timers.tick(1_000);
  (await first).resolve(none);
  await settled();
  context.mock.timers.tick(3_000);
  pruner.retime(5_000);
  assert.equal(store.calls.length, 1);
  const second = store.next();
  context.mock.timers.tick(1_000);
  (await second).resolve(none);
  assert.equal(store.calls.length, 2);
});

test("a store is called again while there is more, with the same rules, and the total is logged in one line", async (context) => {
  const { store, logged, pruner } = make(context, 1_000_000, 1_000_000);
  const running = pruner.run();
  const second = store.next();
  store.calls[0]?.resolve({ sessions: 1, turns: 200, more: true });
  const call = await second;
  call.resolve({ sessions: 2, turns: 5, more: false });
  assert.deepEqual(await running, { sessions: 3, turns: 205 });
  assert.equal(store.calls[1]?.rules, store.calls[0]?.rules);
  assert.deepEqual(logged, [["info", { sessions: 3, turns: 205 }, "pruned"]]);
});

test("abandoned turns are ended first, if they are an hour old or as old as what is pruned", async () => {
  const told: unknown[] = [];
  const now = () => new Date("2026-02-03T04:00:00Z");
  const hourAgo = new Date("2026-02-03T03:00:00Z");
  const log = { info: () => {}, error: () => {} };
  const endLeft = async (before: Date) => void told.push(before);
  const store = {
    async prune(rules: PruneRules): Promise<Pruned> {
      told.push(rules);
      return { ...none, more: told.length < 3 };
    },
  };
  for (const idleBefore of [new Date("2026-02-03T03:30:00Z"), new Date("2026-01-03T04:00:00Z"), undefined]) {
    const rules = { idleBefore };
    const pruner = createPruner({
      store,
      endLeft,
      rules: () => rules,
      intervalMs: 1_000_000,
      now,
      elapsedMs: () => 0,
      log,
    });
    await pruner.run();
    await pruner.close();
    assert.deepEqual(told.splice(0), [
      idleBefore !== undefined && idleBefore > hourAgo ? idleBefore : hourAgo,
      rules,
      rules,
    ]);
  }
});

test("runs never overlap: a call while one runs gets its result", async (context) => {
  const { store, pruner } = make(context, 1_000_000, 1_000_000);
  const both = Promise.all([pruner.run(), pruner.run()]);
  assert.equal(store.calls.length, 1);
  store.calls[0]?.resolve({ sessions: 0, turns: 4, more: false });
  assert.deepEqual(await both, [
    { sessions: 0, turns: 4 },
    { sessions: 0, turns: 4 },
  ]);
});

test("nothing is logged when nothing was pruned", async (context) => {
  const { store, logged, pruner } = make(context, 1_000_000, 1_000_000);
  const running = pruner.run();
  store.calls[0]?.resolve(none);
  await running;
  assert.deepEqual(logged, []);
});

test("a store failure is logged, and the next run tries again", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { store, logged } = make(context, 1_000, 100);
  const first = store.next();
  context.mock.timers.tick(100);
  const failure = new Error("the disk is full");
  (await first).reject(failure);
  await settled();
  assert.equal(logged.length, 1);
  assert.deepEqual(logged[0]?.slice(0, 2), ["error", { err: failure }]);
  const second = store.next();
  context.mock.timers.tick(900);
  (await second).resolve(none);
});

test("closing waits for the running call, and no other follows", async (context) => {
  const { store, pruner } = make(context, 1_000_000, 1_000_000);
  const running = pruner.run();
  const whenClosed = mock.fn();
  const closing = pruner.close().then(whenClosed);
  await settled();
  assert.equal(whenClosed.mock.callCount(), 0);
  store.calls[0]?.resolve({ sessions: 1, turns: 1, more: true });
  await closing;
  assert.deepEqual(await running, { sessions: 1, turns: 1 });
  assert.equal(store.calls.length, 1);
});

test("other work runs between two calls", async () => {
  let calls = 0;
  let others = 0;
  const store = {
    async prune() {
      setImmediate(() => others++);
      return { sessions: 0, turns: 1, more: ++calls < 3 };
    },
  };
  assert.deepEqual(await pruneAll(store, {}), { sessions: 0, turns: 3 });
  assert.ok(others >= 2);
});

test("the rules are the operator's durations, counted back from now; what is kept forever has no rule", () => {
  const sessions = {
    store: "memory:",
    hints: [],
    alwaysResends: false,
    ttlMs: 5_000,
    maxTurnsPerThread: 10,
    maxBytesPerThread: 100_000,
    maxSessionsPerOwner: 7,
    pruneIntervalMs: 1,
    idempotencyMs: 2_000,
    eventsMs: undefined,
    maxEventsPerTurn: 1,
    maxEventBytesPerTurn: 1,
    maxBackgroundTurns: 1,
    maxReplayBytes: 1,
    maxUnattendedMs: 1,
  } as const;
  assert.deepEqual(toPruneRules(sessions, new Date(10_000)), {
    idleBefore: new Date(5_000),
    keysBefore: new Date(8_000),
    piecesBefore: undefined,
    maxSessionsPerOwner: 7,
  });
});

for (const store of ["memory:", "sqlite:portico.db"]) {
  test(`a session that is resumed while it is pruned stays, and its turn is stored: ${store}`, async (context) => {
    const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const adapter: Adapter = {
      async *stream({ items }) {
        yield say(`${items.length} items`);
        if (items.length === 1) return;
        asked.resolve();
        await released.promise;
      },
    };
    const auth = { token: "sk-general-0123456789" };
    const http = { port: 0, endpoints: { compat_responses: true } };
    const portico = await openPortico(
      { gateway: { auth, http, sessions: { store, max_sessions_per_owner: 1 } } },
      { folder: makeFolder(context), env: {}, log: { info: () => {}, error: () => {} }, adapters: { adapter } },
    );
    context.after(() => portico.close());
    const post = async (path: string, body: object = {}) => {
      const headers = { authorization: `Bearer ${auth.token}`, "content-type": "application/json" };
      const answer = await fetch(`${portico.address}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: answer.status, body: (await answer.json()) as Readonly<Record<string, unknown>> };
    };
    const ask = (user: string) => post("/v1/responses", { model: "m", input: "hi", user });
    await ask("ann");
    await ask("bob");
    const resumed = ask("ann");
    await asked.promise;
    assert.equal((await post("/operator/prune")).body["sessions"], 1);
    released.resolve();
    const { status, body } = await resumed;
    assert.deepEqual([status, body["status"]], [200, "completed"]);
    const next = await post("/v1/responses", { model: "m", input: "hi", previous_response_id: body["id"] });
    assert.match(JSON.stringify(next.body["output"]), /5 items/);
  });
}

/** Lets the reactions of settled promises run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
