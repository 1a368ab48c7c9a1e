/** Turns that outlive their callers: what is remembered of them, for how long, and who may resume them. */
import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { suite, test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { say, type Script } from "../scripted.ts";
import { codeOf, createSlow, drain, key, open, textOf } from "./asking.ts";
import { collectGarbage } from "../garbage.ts";

const words = (count: number): Delta[] => say(...Array.from({ length: count }, (_, index) => `word ${index} `));

/** A model that emits three hundred words, one at a time, with a log of twenty events. */
function openLong() {
  let said = 0;
  const script: Script = async function* (_turn, signal) {
    for (const word of words(300)) {
      signal.throwIfAborted();
      said += 1;
      yield [word];
      await new Promise(setImmediate);
    }
  };
  return { ...open(script, createMemoryStore(), { maxEvents: 20 }), said: () => said };
}

/** Lets everything that can proceed do so. */
async function settle(hops = 50): Promise<void> {
  for (let hop = 0; hop < hops; hop++) await new Promise(setImmediate);
}

/** Resumes whatever answer there is. */
const param = "Last-Event-ID";
const resumes = { param, isOf: () => true };

suite("a caller that resumes a stream", () => {
  test("is refused when there is none, and no turn starts", async () => {
    const { adapter, answer } = open([say("x")]);
    assert.equal(await codeOf(answer({}, { key, resumes })), "events_expired");
    assert.equal(adapter.turns.length, 0);
    assert.equal(textOf(await drain(await answer({}, { key }))), "x");
  });

  test("is refused when the answer whose beginning it has read has failed", async () => {
    const { adapter, answer } = open(async function* () {
      yield say("Half a");
      throw new GatewayError("adapter_error", "down");
    });
    await drain(await answer({}, { key }));
    assert.equal(await codeOf(answer({}, { key, resumes })), "events_expired");
    assert.equal(adapter.turns.length, 1);
  });

  test("is refused when the answer whose beginning it has read has failed and another one is running", async () => {
    const slow = createSlow();
    let attempts = 0;
    const { answer } = open(async function* (turn, signal, tell) {
      if (attempts++ > 0) return yield* slow.script(turn, signal, tell);
      yield say("Half a");
      throw new GatewayError("adapter_error", "down");
    });
    const failed = await answer({}, { key });
    await drain(failed);
    const running = await answer({}, { key });
    const isOf = (id: string) => (turnId: string) => turnId === id;
    assert.equal(await codeOf(answer({}, { key, resumes: { param, isOf: isOf(failed.about.id) } })), "events_expired");
    const joined = await answer({}, { key, resumes: { param, isOf: isOf(running.about.id) } });
    slow.go();
    assert.deepEqual(await drain(joined), await drain(running));
    assert.equal(await codeOf(answer({}, { key, resumes: { param, isOf: isOf(failed.about.id) } })), "events_expired");
  });

  test("is refused when its events are no longer stored one by one, while others still get the answer", async () => {
    const { answer, store } = open([say("Good"), say(" day")]);
    await drain(await answer({}, { key }));
    assert.equal(textOf(await drain(await answer({}, { key, resumes }))), "Good day");
    await store.prune({ piecesBefore: new Date(1) });
    assert.equal(await codeOf(answer({}, { key, resumes })), "events_expired");
    assert.equal(textOf(await drain(await answer({}, { key }))), "Good day");
  });

  test("gets the running answer, in the background too, and one that is only in memory", async () => {
    for (const ask of [{}, { background: true }, { keep: "no" }] as const) {
      const slow = createSlow();
      const { adapter, answer } = open(slow.script);
      const first = drain(await answer(ask, { key }));
      await slow.begun;
      const running = drain(await answer(ask, { key, resumes }));
      slow.go();
      const told = await first;
      assert.deepEqual(await running, told);
      assert.equal(textOf(await drain(await answer(ask, { key, resumes }))), "one two");
      assert.equal(adapter.turns.length, 1);
    }
  });
});

suite("an answer with a key", () => {
  test("is replayed completely, however much longer it is than the log of a running turn", async () => {
    const { answer } = open([words(300)], createMemoryStore(), { maxEvents: 100 });
    const told = await drain(await answer({}, { key }));
    assert.equal(told.length, 304);
    assert.equal((await drain(await answer({}, { key }))).length, 304);
  });

  test("that was cancelled is not the answer to the next request", async () => {
    const slow = createSlow();
    const { answer, gateway } = open(slow.script);
    const { about, events } = await answer({ keep: "no" }, { key });
    await slow.begun;
    await gateway.forget("ann", about.id);
    assert.equal((await events.next()).value?.[0]?.type, "turn-start");
    slow.go();
    const again = await answer({ keep: "no" }, { key });
    assert.equal(again.isRepeated, false);
    assert.equal(textOf(await drain(again)), "one two");
  });

  test("that is only in memory does not retain its request", async () => {
    const { answer, adapter } = open([say("short")]);
    const ask = async (): Promise<WeakRef<Item>> => {
      const item: Item = { type: "message", role: "user", content: "long ".repeat(1_000) };
      await drain(await answer({ keep: "no", items: [item] }, { key }));
      return new WeakRef(item);
    };
    const request = await ask();
    adapter.turns.length = 0;
    // A collection that was already under way may have seen it while it was referenced.
    for (let attempt = 0; attempt < 5 && request.deref() !== undefined; attempt++) {
      // What was looked at stays referenced until then.
      await new Promise(setImmediate);
      collectGarbage();
    }
    assert.equal(request.deref(), undefined);
    assert.equal(textOf(await drain(await answer({ keep: "no" }, { key }))), "short");
  });

  test("in the background counts as one turn, and one that finds no room leaves nothing behind", async () => {
    const slow = createSlow();
    const { answer, store, adapter } = open(slow.script, createMemoryStore(), { maxRunning: 1 });
    const first = await answer({ background: true, stream: false }, { key });
    await slow.begun;
    assert.equal(adapter.turns[0]?.stream, true, "a caller that comes back for it need not wait for the whole answer");
    const refused = { key: { ...key, key: "k2" }, turnId: "resp_refused" };
    for (const caller of [refused, { ...refused, key: undefined }]) {
      assert.equal(await codeOf(answer({ background: true }, caller)), "overloaded");
    }
    assert.equal(await store.findTurn("ann", "resp_refused"), undefined);
    assert.equal(await store.findKey("ann", "k2"), undefined);
    slow.go();
    assert.equal(textOf(await drain(first)), "one two");
  });

  test("holds its slot until it ends, and one that gets none leaves nothing behind", async () => {
    const slow = createSlow();
    const { answer, store } = open(slow.script);
    let places = 1;
    const stay = () => {
      if (places === 0) throw new GatewayError("rate_limit_exceeded", "There is no place.");
      places--;
      return () => void places++;
    };
    const first = await answer({ background: true }, { stay });
    assert.equal(places, 0);
    for (const own of [{ turnId: "resp_refused" }, { turnId: "resp_refused", key }]) {
      assert.equal(await codeOf(answer({ background: true }, { ...own, stay })), "rate_limit_exceeded");
    }
    assert.equal(await store.findTurn("ann", "resp_refused"), undefined);
    slow.go();
    await drain(first);
    await new Promise(setImmediate);
    assert.equal(places, 1);
    await drain(await answer({ background: true }, { key, stay }));
    await new Promise(setImmediate);
    assert.equal(places, 1, "with a key it needs no second one");
  });

  test("in the background can be repeated when there is no room for another, while it runs and afterwards", async () => {
    const slow = createSlow();
    const other = createSlow();
    const scripts = [slow.script, other.script];
    const script: Script = (...given) => (scripts.shift() ?? assert.fail("a third turn began"))(...given);
    const { answer } = open(script, createMemoryStore(), { maxRunning: 1 });
    const ask = { background: true };
    const first = await answer(ask, { key });
    const second = await answer(ask, { key });
    assert.deepEqual([second.about.id, second.isRepeated], [first.about.id, true]);
    slow.go();
    assert.deepEqual(await drain(second), await drain(first));
    const filling = await answer(ask);
    await other.begun;
    assert.equal(textOf(await drain(await answer(ask, { key }))), "one two");
    other.go();
    await drain(filling);
  });

  test("waits for its followers, but not for those that have left", async () => {
    const { answer, said } = openLong();
    const slow = await answer({}, { key });
    let text = textOf([...(await slow.events.next()).value!]);
    await settle();
    // It is ahead by the length of its log.
    assert.ok(said() > 15 && said() < 30, `${said()} words were emitted`);
    for (let count = 0; count < 3; count++) {
      const before = said();
      text += textOf([...(await slow.events.next()).value!]);
      await settle();
      assert.ok(said() > before && said() < before + 30, `${said()} words were emitted`);
    }
    const quick = drain(await answer({}, { key: { ...key, key: "k2" } }));
    text += textOf((await Array.fromAsync(slow.events)).flat());
    assert.equal(text, textOf(await quick));
    const left = await answer({}, { key: { ...key, key: "k3" } });
    await left.events.next();
    await settle();
    const before = said();
    await left.events.return();
    await settle();
    assert.ok(said() > before + 30, `${said()} words were emitted`);
  });

  test("sends its end even to a slow reader when it is cancelled", async () => {
    const { answer, gateway } = openLong();
    const slow = await answer({}, { key });
    await slow.events.next();
    await settle();
    await gateway.close(Promise.resolve());
    const last = (await Array.fromAsync(slow.events)).at(-1)?.at(-1);
    assert.equal(last?.type === "turn-end" && last.answer.error?.code, "interrupted");
  });

  test("does not wait for a reader that is too far behind to continue", async () => {
    const { answer, said } = openLong();
    const quick = await answer({}, { key });
    const lost = await answer({}, { key });
    await Promise.all([quick.events.next(), lost.events.next()]);
    for (let count = 0; count < 100; count++) await quick.events.next();
    await quick.events.return();
    await settle(400);
    assert.equal(said(), 300);
    assert.equal(await codeOf(Array.fromAsync(lost.events)), "events_expired");
  });

  test("reaches a follower in small batches, running or stored, so that one that reads slowly holds little of it", async () => {
    const gate = Promise.withResolvers<void>();
    const piece = "x".repeat(1_000);
    const { answer } = open(async function* () {
      yield say(...Array<string>(1_000).fill(piece));
      await gate.promise;
    });
    const first = await answer({}, { key });
    await first.events.next();
    const live = await answer({}, { key });
    gate.resolve();
    const stored = async () => {
      await drain(first);
      return answer({}, { key });
    };
    for (const followed of [live, await stored()]) {
      const batches = await Array.fromAsync(followed.events);
      assert.equal(textOf(batches.flat()), piece.repeat(1_000));
      for (const batch of batches) assert.ok(textOf([...batch]).length <= 70_000);
      assert.deepEqual(
        batches.at(-1)?.map(({ type }) => type),
        ["turn-end"],
        "the end is not held together with the whole text",
      );
    }
  });

  test("has one listener on its caller's signal while it is followed, and none afterwards", async () => {
    const { signal } = new AbortController();
    let most = 0;
    const { answer } = open(async function* () {
      for (const word of words(50)) {
        await new Promise(setImmediate);
        most = Math.max(most, getEventListeners(signal, "abort").length);
        yield [word];
      }
    });
    await drain(await answer({}, { key, signal }));
    assert.equal(most, 1);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  });
});

test("a turn whose slot cannot be released ends nevertheless, releases the rest, and the failure is not hidden", async () => {
  const { answer, gateway } = open([say("x")]);
  const stay = () => () => {
    throw new Error("no such slot");
  };
  const stray = takeStray();
  const { about } = await answer({ background: true, stream: false }, { stay });
  assert.deepEqual(await stray, new Error("no such slot"));
  assert.equal(gateway.load().live, 0);
  assert.equal((await gateway.cancel("ann", about.id))?.state.status, "over");
  await gateway.close(new Promise(() => {}));
});

/** The next failure that nobody awaits, which would otherwise fail the test. */
async function takeStray(): Promise<unknown> {
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  const [thrown] = await once(process, "unhandledRejection");
  for (const other of others) process.on("unhandledRejection", other);
  return thrown;
}

test("the pieces of an answer are stored if someone may ask for them", async () => {
  const { answer, store } = open([words(3)]);
  const isCut = async (caller: Parameters<typeof answer>[1]): Promise<boolean> => {
    const reply = await answer({}, caller);
    await drain(reply);
    return (await store.findTurn("ann", reply.about.id))?.told?.pieces !== undefined;
  };
  assert.equal(await isCut({}), false);
  assert.equal(await isCut({ key }), true);
  assert.equal(await isCut({ memo: () => "the request" }), true);
});

suite("a turn that nobody follows", () => {
  const maxUnattendedMs = 1_000;

  /** Emits a word on demand, endlessly. */
  function createEndless() {
    let next = Promise.withResolvers<void>();
    let isCancelled = false;
    const script: Script = async function* (_turn, signal) {
      for (;;) {
        await next.promise;
        if (signal.aborted) isCancelled = true;
        signal.throwIfAborted();
        yield say("word ");
      }
    };
    const go = async () => {
      next.resolve();
      next = Promise.withResolvers();
      await new Promise(setImmediate);
    };
    return { script, go, isCancelled: () => isCancelled };
  }

  test("may continue for a while, and is then reported as interrupted", async () => {
    const endless = createEndless();
    const { answer, gateway, setTime } = open(endless.script, createMemoryStore(), { maxUnattendedMs });
    const { about } = await answer({ background: true });
    for (const time of [0, 1_000, 1_001, 1_002]) {
      setTime(time);
      await endless.go();
    }
    assert.ok(endless.isCancelled());
    const { state } = (await gateway.recall("ann", about.id))!;
    assert.equal(state.status === "over" && state.answer.error?.code, "interrupted");
  });

  test("is not interrupted by a clock that leaps", async () => {
    const endless = createEndless();
    const { answer, setTime } = open(endless.script, createMemoryStore(), { maxUnattendedMs }, () => 0);
    await answer({ background: true });
    for (const time of [0, Date.now(), Date.now()]) {
      setTime(time);
      await endless.go();
    }
    assert.ok(!endless.isCancelled());
  });

  test("may continue for the same time again once somebody has asked for it", async () => {
    const endless = createEndless();
    const { answer, gateway, setTime } = open(endless.script, createMemoryStore(), { maxUnattendedMs });
    const { about } = await answer({ background: true });
    setTime(900);
    await endless.go();
    await gateway.recall("ann", about.id);
    for (const time of [1_900, 1_901]) {
      setTime(time);
      await endless.go();
      assert.ok(!endless.isCancelled());
    }
    await endless.go();
    assert.ok(endless.isCancelled());
  });

  test("may continue for the same time again once somebody has followed it", async () => {
    const endless = createEndless();
    const { answer, setTime } = open(endless.script, createMemoryStore(), { maxUnattendedMs });
    const { events } = await answer({}, { key });
    const first = events.next();
    for (const time of [0, 5_000]) {
      setTime(time);
      await endless.go();
    }
    await first;
    await events.return();
    for (const time of [6_000, 6_000, 6_001]) {
      setTime(time);
      assert.ok(!endless.isCancelled());
      await endless.go();
    }
    await endless.go();
    assert.ok(endless.isCancelled());
  });
});
