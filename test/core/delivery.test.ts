/** Who gets a turn's end: the caller that started it, or the observer; never both, and never neither. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Caller, Reply } from "../../src/core/gateway.ts";
import type { SessionStore } from "../../src/core/store.ts";
import type { Ask } from "../../src/core/turn.ts";
import type { EndedTurn } from "../../src/core/observer.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter, say, type Script, usage } from "../scripted.ts";
import { codeOf, createSlow, drain, key } from "./asking.ts";

const newId = createIds(() => new Date());

/** A gateway with a manual clock, and an observer that records the turns that ended without their caller. */
function open(script: Script, store: SessionStore = createMemoryStore(), maxEvents = 1_000) {
  const told: EndedTurn[] = [];
  let time = 1_000;
  const gateway = makeGateway({
    adapter: createScriptedAdapter(script),
    store,
    limits: { maxEvents },
    now: () => new Date(time),
    observer: { placed: () => {}, endedWithoutCaller: (turn) => void told.push(turn) },
  });
  const items = [{ type: "message", role: "user", content: "hi" }] as const;
  const usual = { model: "m", items, itemsParam: "input", settings: { tools: [] }, stream: true, keep: "yes" } as const;
  const answer = (ask: Partial<Ask>, caller: Partial<Caller> = {}): Promise<Reply> => {
    const { signal } = new AbortController();
    return gateway.answer(
      { ...usual, ...ask },
      { turnId: newId("resp"), owner: "ann", hint: undefined, signal, ...caller },
    );
  };
  /** Resolves when no turn runs any more. */
  const settled = async () => {
    while (gateway.load().live > 0) await new Promise(setImmediate);
  };
  return { gateway, answer, told, settled, setTime: (at: number) => (time = at) };
}

const fails: Script = async function* () {
  yield say("half");
  throw new GatewayError("adapter_error", "broke");
};
const gone = () => new GatewayError("client_closed", "gone");

suite("a turn in the background", () => {
  test("that was only acknowledged is reported when it ends, with its usage and duration", async () => {
    const going = Promise.withResolvers<void>();
    const { answer, told, settled, setTime } = open(async function* () {
      yield say("one");
      await going.promise;
      yield [{ type: "usage", usage }];
    });
    const { about } = await answer({ background: true, stream: false });
    assert.equal(told.length, 0, "it has not ended");
    setTime(1_070);
    going.resolve();
    await settled();
    const { about: placed, ...turn } = told.at(0) ?? assert.fail("nothing was reported");
    assert.deepEqual(turn, { turnId: about.id, owner: "ann", usage, failure: undefined, ms: 70 });
    assert.equal(placed?.history, "new");
    assert.equal(told.length, 1);
  });

  test("that fails or is cancelled is reported with the reason", async () => {
    const failing = open(fails);
    await failing.answer({ background: true, stream: false });
    await failing.settled();
    assert.deepEqual(
      failing.told.map(({ failure }) => failure?.message),
      ["broke"],
    );
    const slow = createSlow();
    const { answer, gateway, told } = open(slow.script);
    const { about } = await answer({ background: true, stream: false });
    await slow.begun;
    await gateway.cancel("ann", about.id);
    assert.deepEqual(
      told.map(({ failure }) => failure?.code),
      ["cancelled"],
    );
  });

  test("whose caller reads its stream to the end is not reported, with or without a key", async () => {
    const { answer, told, settled } = open(fails);
    await drain(await answer({ background: true }));
    await drain(await answer({ background: true }, { key }));
    await settled();
    assert.deepEqual(told, []);
  });

  test("with a key is reported once, and not again when the request is repeated", async () => {
    const { answer, told, settled } = open([say("x")]);
    const { about } = await answer({ background: true, stream: false }, { key });
    await settled();
    await answer({ background: true, stream: false }, { key });
    await drain(await answer({ background: true }, { key }));
    await settled();
    assert.deepEqual(
      told.map(({ turnId }) => turnId),
      [about.id],
    );
  });

  test("that could not be acknowledged is not reported, as its caller gets the error", async () => {
    const store = {
      ...createMemoryStore(),
      begin: () => Promise.reject(new GatewayError("store_unavailable", "full")),
    };
    const { answer, told, settled } = open([say("x")], store);
    assert.equal(await codeOf(answer({ background: true, stream: false })), "store_unavailable");
    assert.equal(await codeOf(answer({ background: true, stream: false }, { key })), "store_unavailable");
    await settled();
    assert.deepEqual(told, []);
  });
});

suite("a turn with a key", () => {
  test("whose caller stays is not reported, whether it is answered, fails at once, or midway", async () => {
    const failsAtOnce: Script = () => {
      throw new GatewayError("adapter_error", "broke");
    };
    for (const script of [[say("x")], fails, failsAtOnce]) {
      const { answer, told, settled } = open(script);
      await answer({}, { key }).then(drain, () => {});
      await answer({ stream: false }, { key: { ...key, key: "another" } }).then(drain, () => {});
      await settled();
      assert.deepEqual(told, []);
    }
  });

  test("whose caller disconnects is reported once, at its end, even if another caller reads it", async () => {
    const slow = createSlow();
    const { answer, told, settled } = open(slow.script);
    const caller = new AbortController();
    const { about, events } = await answer({}, { key, signal: caller.signal });
    await events.next();
    caller.abort(gone());
    await assert.rejects(events.next(), { code: "client_closed" });
    const other = drain(await answer({}, { key }));
    assert.deepEqual(told, []);
    slow.go();
    await other;
    await settled();
    assert.deepEqual(
      told.map(({ turnId, failure }) => [turnId, failure]),
      [[about.id, undefined]],
    );
  });

  test("whose caller never reads, stops before the end, or is too slow is reported", async () => {
    const slow = createSlow();
    const unread = open(slow.script);
    await (await unread.answer({}, { key })).events.return();
    slow.go();
    await unread.settled();
    assert.equal(unread.told.length, 1);

    const early = open([say("x"), say("y")]);
    const { events } = await early.answer({}, { key });
    await events.next();
    await early.settled();
    assert.equal(early.told.length, 0, "the caller may still read the end");
    await events.return();
    assert.equal(early.told.length, 1);

    const long = open(
      async function* () {
        for (let count = 0; count < 100; count++) yield say("word ");
      },
      createMemoryStore(),
      20,
    );
    const late = await long.answer({}, { key });
    await long.settled();
    assert.equal(await codeOf(drain(late)), "events_expired");
    assert.equal(long.told.length, 1);
  });

  test("that fails before it is placed is reported if its caller had disconnected by then", async () => {
    const asked = Promise.withResolvers<void>();
    const full = Promise.withResolvers<never>();
    const check = () => {
      asked.resolve();
      return full.promise;
    };
    const { answer, told } = open([say("x")], { ...createMemoryStore(), check });
    const caller = new AbortController();
    const code = codeOf(answer({}, { key, signal: caller.signal }));
    await asked.promise;
    caller.abort(gone());
    full.reject(new GatewayError("store_unavailable", "full"));
    assert.equal(await code, "client_closed");
    assert.deepEqual(
      told.map(({ about, failure }) => [about, failure?.code]),
      [[undefined, "store_unavailable"]],
    );
  });
});
