/** Requests with an idempotency key, turns in the background, and finished turns, without a socket. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Event } from "../../src/core/event.ts";
import type { Gateway } from "../../src/core/gateway.ts";
import { interrupted } from "../../src/core/frame/replay.ts";
import type { Ask } from "../../src/core/turn.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { say, type Script } from "../scripted.ts";
import { codeOf, createSlow, drain, key, open, textOf } from "./asking.ts";

suite("a request with an idempotency key", () => {
  test("is answered once, and replayed exactly when it is repeated", async () => {
    const { adapter, answer } = open([say("Good"), say(" day")]);
    const first = await answer({}, { key });
    const told = await drain(first);
    const second = await answer({}, { key });
    assert.equal(second.isRepeated, true);
    assert.equal(second.about.id, first.about.id);
    assert.deepEqual(JSON.parse(JSON.stringify(await drain(second))), JSON.parse(JSON.stringify(told)));
    assert.equal(adapter.turns.length, 1);
  });

  test("can be joined while it runs, from its first event on", async () => {
    const slow = createSlow();
    const { adapter, answer } = open(slow.script);
    const first = await answer({}, { key });
    const firstDone = drain(first);
    await slow.begun;
    const second = await answer({}, { key });
    const secondDone = drain(second);
    slow.go();
    assert.equal(textOf(await secondDone), "one two");
    assert.equal(textOf(await firstDone), "one two");
    assert.equal(second.about.id, first.about.id);
    assert.equal(adapter.turns.length, 1);
  });

  test("continues when its caller disconnects, and is available when the caller returns", async () => {
    const slow = createSlow();
    const { adapter, answer } = open(slow.script);
    const caller = new AbortController();
    const first = await answer({}, { key, signal: caller.signal });
    await first.events.next();
    caller.abort(new GatewayError("client_closed", "gone"));
    await assert.rejects(first.events.next(), { code: "client_closed" });
    slow.go();
    assert.equal(textOf(await drain(await answer({}, { key }))), "one two");
    assert.equal(adapter.turns.length, 1);
  });

  test("lets its callers leave at once, though it waits for its session, and is answered", async () => {
    for (const ask of [{}, { keep: "no" }] as const) {
      const slow = createSlow();
      const { answer } = open(slow.script);
      const before = drain(await answer({}, { hint: "talk" }));
      await slow.begun;
      const leaving = new AbortController();
      const caller = { hint: "talk", key, signal: leaving.signal };
      const first = answer(ask, caller);
      const others = [answer(ask, caller), answer(ask, { ...caller, key: { ...key, fingerprint: "f2" } })];
      leaving.abort(new GatewayError("client_closed", "gone"));
      for (const left of [first, ...others]) assert.equal(await codeOf(left), "client_closed");
      slow.go();
      await before;
      assert.equal(
        textOf(await drain(await answer(ask, { ...caller, signal: new AbortController().signal }))),
        "one two",
      );
    }
  });

  test("is replayed even if an item that it references was deleted meanwhile", async () => {
    const { adapter, answer, gateway } = open([say("hello")]);
    const named = await answer();
    await drain(named);
    const items = [{ type: "reference", id: `msg_${named.about.id.slice("resp_".length)}0000` }] as const;
    const first = await answer({ items }, { key });
    await drain(first);
    await gateway.forget("ann", named.about.id);
    const again = await answer({ items }, { key });
    assert.equal(again.about.id, first.about.id);
    assert.equal(textOf(await drain(again)), "hello");
    assert.equal(adapter.turns.length, 2);
    assert.equal(await codeOf(answer({ items }, { key: { ...key, key: "k2" } })), "not_found");
  });

  test("returns its input while it runs, including referenced items", async () => {
    const slow = createSlow();
    const { answer, gateway } = open(slow.script);
    slow.go();
    const named = await answer();
    await drain(named);
    const items = [{ type: "reference", id: `msg_${named.about.id.slice("resp_".length)}0000` }] as const;
    const { about, events } = await answer({ items }, { key });
    const { input } = (await gateway.recall("ann", about.id))!;
    assert.deepEqual(
      input.map(({ item }) => item),
      [{ type: "message", role: "assistant", content: "one two" }],
    );
    await Array.fromAsync(events);
  });

  test("is refused with another body, running or finished", async () => {
    const slow = createSlow();
    const { answer } = open(slow.script);
    const first = drain(await answer({}, { key }));
    assert.equal(await codeOf(answer({}, { key: { ...key, fingerprint: "f2" } })), "idempotency_conflict");
    slow.go();
    await first;
    assert.equal(await codeOf(answer({}, { key: { ...key, fingerprint: "f2" } })), "idempotency_conflict");
  });

  test("is answered when an earlier request with the same key is refused", async () => {
    const { answer } = open([say("hello")]);
    const wrong = codeOf(answer({ previousId: "resp_none" }, { key }));
    const right = answer({}, { key: { ...key, fingerprint: "f2" } });
    assert.equal(await wrong, "previous_response_not_found");
    assert.equal(textOf(await drain(await right)), "hello");
  });

  test("is refused when another one with the same key takes the place of an earlier one that was refused", async () => {
    const { adapter, answer } = open([say("hello")]);
    const wrong = codeOf(answer({ previousId: "resp_none" }, { key }));
    const [right, late] = ["f2", "f3"].map((fingerprint) => answer({}, { key: { ...key, fingerprint } }));
    assert.equal(await wrong, "previous_response_not_found");
    assert.equal(textOf(await drain(await right!)), "hello");
    assert.equal(await codeOf(late!), "idempotency_conflict");
    assert.equal(adapter.turns.length, 1);
  });

  test("of another owner is another key", async () => {
    const { adapter, answer } = open([say("hello")]);
    await drain(await answer({}, { key }));
    await drain(await answer({}, { key: { ...key, fingerprint: "f2" }, owner: "bob" }));
    assert.equal(adapter.turns.length, 2);
  });

  test("that failed may be sent again", async () => {
    let fails = true;
    const { answer } = open(async function* () {
      if (fails) throw new GatewayError("adapter_error", "down");
      yield say("up");
    });
    assert.equal(await codeOf(answer({}, { key }).then(drain)), "adapter_error");
    fails = false;
    assert.equal(textOf(await drain(await answer({}, { key }))), "up");
  });

  test("is forgotten when its time is over", async () => {
    const { adapter, answer, setTime } = open([say("hello")]);
    await drain(await answer({}, { key }));
    setTime(24 * 3_600_000 - 1);
    const second = await answer({}, { key });
    await drain(second);
    assert.equal(second.isRepeated, true);
    setTime(24 * 3_600_000);
    const third = await answer({}, { key: { ...key, fingerprint: "f2" } });
    await drain(third);
    assert.equal(third.isRepeated, false);
    assert.equal(adapter.turns.length, 2);
  });

  test("is stored even outside a session, so that it survives a restart", async () => {
    const store = createMemoryStore();
    const before = open([say("hello")], store);
    const first = await before.answer({ keep: "in-session" }, { key });
    await drain(first);
    const after = open([say("other")], store);
    const again = await after.answer({ keep: "in-session" }, { key });
    assert.equal(textOf(await drain(again)), "hello");
    assert.equal(after.adapter.turns.length, 0);
  });

  test("that must not be stored is replayed from memory, and leaves nothing in the store", async () => {
    const { adapter, answer, store } = open([say("secret")]);
    const first = await answer({ keep: "no" }, { key });
    await drain(first);
    const again = await answer({ keep: "no" }, { key });
    assert.equal(textOf(await drain(again)), "secret");
    assert.equal(adapter.turns.length, 1);
    assert.equal(await store.findTurn("ann", first.about.id), undefined);
  });

  test("that must not be stored is dropped from memory when its time is over, requested or not", async () => {
    const { adapter, answer, gateway, setTime } = open([say("secret")]);
    await drain(await answer({ keep: "no" }, { key }));
    setTime(25 * 3_600_000);
    await drain(await answer({ keep: "no" }, { key }));
    assert.equal(adapter.turns.length, 2);
    setTime(50 * 3_600_000);
    gateway.forgetOld();
    // Only the clock is set back.
    setTime(0);
    await drain(await answer({ keep: "no" }, { key }));
    assert.equal(adapter.turns.length, 3);
  });

  test("that must not be stored is not dropped because the clock leaps", async () => {
    const { adapter, answer, setTime } = open([say("secret")], createMemoryStore(), {}, () => 0);
    await drain(await answer({ keep: "no" }, { key }));
    setTime(25 * 3_600_000);
    assert.equal((await answer({ keep: "no" }, { key })).isRepeated, true);
    assert.equal(adapter.turns.length, 1);
  });

  test("that must not be stored is dropped from memory when newer ones need the space", async () => {
    const { answer } = open([say("secret")], createMemoryStore(), { maxRememberedCharacters: 5_000 });
    const ask = (name: string) => answer({ keep: "no" }, { key: { ...key, key: name } });
    for (const name of ["one", "two", "three"]) await drain(await ask(name));
    await new Promise(setImmediate);
    const told = await Promise.all(["three", "two", "one"].map(ask));
    assert.deepEqual(
      told.map(({ isRepeated }) => isRepeated),
      [true, true, false],
    );
  });

  test("that must not be stored is not dropped because another owner has more of them", async () => {
    const { answer } = open([say("secret")], createMemoryStore(), { maxRememberedCharacters: 5_000 });
    const ask = (owner: string, name: string) => answer({ keep: "no" }, { owner, key: { ...key, key: name } });
    await drain(await ask("ann", "one"));
    for (const name of ["one", "two", "three", "four"]) await drain(await ask("ben", name));
    await new Promise(setImmediate);
    assert.equal((await ask("ann", "one")).isRepeated, true);
    assert.equal((await ask("ben", "four")).isRepeated, true);
    assert.equal((await ask("ben", "three")).isRepeated, false);
  });

  test("that must not be stored takes the space of an expired one with the same key", async () => {
    const { answer, setTime } = open([say("secret")], createMemoryStore(), { maxRememberedCharacters: 5_000 });
    const ask = (name: string) => answer({ keep: "no" }, { key: { ...key, key: name } });
    for (const [day, name] of ["one", "one", "one", "two"].entries()) {
      setTime(Math.min(day, 2) * 24 * 3_600_000);
      await drain(await ask(name));
      await new Promise(setImmediate);
    }
    assert.equal((await ask("one")).isRepeated, true);
  });

  test("that must not be stored counts with all that its dialect adds to it", async () => {
    const extra = { dialect: "chat", fields: { images: ["x".repeat(5_000)] } } as const;
    for (const added of [
      { type: "message-extra", extra },
      { type: "message-extra", extra, choice: 1 },
      { type: "notes", notes: { extra } },
    ] satisfies readonly Delta[]) {
      const { answer } = open([[...say("a cat"), added]], createMemoryStore(), { maxRememberedCharacters: 5_000 });
      await drain(await answer({ keep: "no" }, { key }));
      await new Promise(setImmediate);
      assert.equal((await answer({ keep: "no" }, { key })).isRepeated, false);
    }
  });

  test("advances its session once", async () => {
    const { answer, store, adapter } = open([say("hello")]);
    const caller = { key, hint: "user:x" };
    const first = await answer({ keep: "in-session" }, caller);
    await drain(first);
    await drain(await answer({ keep: "in-session" }, caller));
    const session = await store.findSession("ann", "user:x");
    assert.equal(session?.tip, first.about.id);
    await drain(await answer({ keep: "in-session" }, { hint: "user:x" }));
    assert.equal(adapter.turns.at(-1)?.items.length, 3);
  });

  test("is one turn even if sent many times at once", async () => {
    const { adapter, answer } = open([say("hello")]);
    const texts = await Promise.all(
      Array.from({ length: 20 }, async () => textOf(await drain(await answer({}, { key })))),
    );
    assert.deepEqual(new Set(texts), new Set(["hello"]));
    assert.equal(adapter.turns.length, 1);
  });
});

suite("a turn in the background", () => {
  async function statusOf(gateway: Gateway, id: string): Promise<string> {
    const { state } = (await gateway.recall("ann", id))!;
    return state.status === "over" ? state.answer.status : state.status;
  }

  test("continues without its caller, can be retrieved, and is stored", async () => {
    const slow = createSlow();
    const { answer, gateway } = open(slow.script);
    const { about } = await answer({ background: true });
    assert.equal(await statusOf(gateway, about.id), "queued");
    await slow.begun;
    assert.equal(await statusOf(gateway, about.id), "running");
    const followed = (await gateway.recall("ann", about.id))!.follow(new AbortController().signal);
    slow.go();
    const events: Event[] = [];
    for await (const batch of followed) events.push(...batch);
    assert.equal(events[0]?.type, "turn-queued");
    assert.equal(textOf(events), "one two");
    const after = (await gateway.recall("ann", about.id))!;
    assert.equal(after.state.status === "over" && after.state.answer.status, "completed");
    const again: Event[] = [];
    for await (const batch of after.follow(new AbortController().signal)) again.push(...batch);
    assert.deepEqual(JSON.parse(JSON.stringify(again)), JSON.parse(JSON.stringify(events)));
  });

  test("says whether its conversation may be cut before it has its place", async () => {
    const { answer, gateway } = open([say("one")]);
    const first = await answer();
    await drain(first);
    const { id: conversationId } = await gateway.conversations.create("ann", {}, { turnId: "resp_0", items: [] });
    const truncationOf = async (ask: Partial<Ask>, hint?: string) =>
      (await answer({ background: true, ...ask }, { hint })).about.truncation;
    assert.equal(await truncationOf({}), "disabled");
    assert.equal(await truncationOf({}, "user:x"), "auto");
    assert.equal(await truncationOf({ previousId: first.about.id }, "user:x"), "disabled");
    assert.equal(await truncationOf({ conversationId }, "user:x"), "disabled");
    assert.equal(await truncationOf({ truncation: "auto" }), "auto");
    assert.equal(await truncationOf({ truncation: "disabled" }, "user:x"), "disabled");
  });

  test("is stored whatever else its caller says, since that comes back for it", async () => {
    for (const keep of ["no", "in-session"] as const) {
      for (const caller of [{}, { key }]) {
        const { answer, store } = open([say("x")]);
        const { about, events } = await answer({ background: true, keep }, caller);
        await Array.fromAsync(events);
        assert.equal((await store.findTurn("ann", about.id))?.status, "completed");
      }
    }
  });

  test("that is cancelled ends as cancelled, is not continued, and cancelling again changes nothing", async () => {
    const slow = createSlow();
    const { answer, gateway } = open(slow.script);
    const { about, events } = await answer({ background: true }, { hint: "user:x" });
    await slow.begun;
    const cancelled = (await gateway.cancel("ann", about.id))!;
    assert.equal(cancelled.state.status === "over" && cancelled.state.answer.status, "cancelled");
    assert.equal(await statusOf(gateway, about.id), "cancelled");
    assert.equal((await gateway.cancel("ann", about.id))!.state.status, "over");
    assert.equal(await codeOf(answer({ previousId: about.id })), "previous_response_not_found");
    const told: Event[] = [];
    for await (const batch of events) told.push(...batch);
    const end = told.at(-1);
    assert.equal(end?.type === "turn-end" && end.answer.status, "cancelled");
  });

  test("that fails before its first word is stored as failed, with the cause", async () => {
    const { answer, gateway } = open(async function* (): AsyncGenerator<readonly Delta[]> {
      throw new GatewayError("adapter_rate_limit", "slow down");
    });
    const reply = await answer({ background: true });
    const events = await drain(reply);
    assert.equal(events.at(-1)?.type, "turn-end");
    const { state } = (await gateway.recall("ann", reply.about.id))!;
    assert.equal(state.status === "over" && state.answer.error?.message, "slow down");
  });

  test("that was left running by a restart has failed", async () => {
    const store = createMemoryStore();
    const slow = createSlow();
    const before = open(slow.script, store);
    const { about } = await before.answer({ background: true });
    await slow.begun;
    const after = open([say("x")], store);
    assert.equal(await statusOf(after.gateway, about.id), "failed");
    assert.equal(await store.endRunning(interrupted, new Date(9)), 1);
    const { state } = (await after.gateway.recall("ann", about.id))!;
    assert.equal(state.status === "over" && state.answer.error?.code, "interrupted");
    slow.go();
  });

  test("does not start when what it continues does not exist, and is told so even if there is no room", async () => {
    const slow = createSlow();
    const { answer } = open(slow.script, createMemoryStore(), { maxRunning: 1 });
    const background = true;
    const check = async (caller: Parameters<typeof answer>[1] = {}) => {
      assert.equal(await codeOf(answer({ background, previousId: "resp_x" }, caller)), "previous_response_not_found");
      assert.equal(await codeOf(answer({ background, conversationId: "conv_x" }, caller)), "not_found");
    };
    await check();
    await answer({ background });
    await check();
    await check({ key });
    slow.go();
  });

  test("with a key is acknowledged once", async () => {
    const { adapter, answer } = open([say("x")]);
    const first = await answer({ background: true }, { key });
    const second = await answer({ background: true }, { key });
    assert.equal(second.about.id, first.about.id);
    await drain(first);
    const third = await answer({ background: true }, { key });
    assert.equal(textOf(await drain(third)), "x");
    assert.equal(adapter.turns.length, 1);
  });

  test("with a key is retried after it failed, with the same or another body, and the failed one remains readable", async () => {
    let isDown = true;
    const { adapter, answer, gateway } = open(async function* () {
      if (isDown) throw new GatewayError("adapter_error", "down");
      yield say("x");
    });
    const first = await answer({ background: true }, { key });
    const [, , end] = await drain(first);
    assert.equal(end?.type === "turn-end" && end.answer.error?.message, "down");
    const second = await answer({ background: true }, { key });
    assert.notEqual(second.about.id, first.about.id);
    assert.ok(!second.isRepeated);
    await drain(second);
    isDown = false;
    const other = { ...key, fingerprint: "f2" };
    const third = await answer({ background: true }, { key: other });
    assert.equal(textOf(await drain(third)), "x");
    assert.equal(textOf(await drain(await answer({ background: true }, { key: other }))), "x");
    assert.equal(await codeOf(answer({ background: true }, { key })), "idempotency_conflict");
    assert.equal(adapter.turns.length, 3);
    assert.equal(await statusOf(gateway, first.about.id), "failed");
  });

  test("with a key that is cancelled stays cancelled, however often it is repeated", async () => {
    const slow = createSlow();
    const { adapter, answer, gateway } = open(slow.script);
    const { about } = await answer({ background: true }, { key });
    await slow.begun;
    await gateway.cancel("ann", about.id);
    const again = await answer({ background: true }, { key });
    assert.equal(again.about.id, about.id);
    const end = (await drain(again)).at(-1);
    assert.equal(end?.type === "turn-end" && end.answer.status, "cancelled");
    assert.equal(adapter.turns.length, 1);
  });

  test("with a key that was left running by a restart is retried", async () => {
    const store = createMemoryStore();
    const slow = createSlow();
    const { about } = await open(slow.script, store).answer({ background: true }, { key });
    await slow.begun;
    await store.endRunning(interrupted, new Date(9));
    const again = await open([say("x")], store).answer({ background: true }, { key });
    assert.notEqual(again.about.id, about.id);
    assert.equal(textOf(await drain(again)), "x");
    slow.go();
  });

  test("is limited in number", async () => {
    const slow = createSlow();
    const { answer } = open(slow.script, createMemoryStore(), { maxRunning: 1 });
    await answer({ background: true });
    assert.equal(await codeOf(answer({ background: true })), "overloaded");
    slow.go();
  });

  test("leaves room for requests with a key, which have the same limit of their own", async () => {
    const slow = createSlow();
    const { answer } = open(slow.script, createMemoryStore(), { maxRunning: 1 });
    await answer({ background: true });
    const keyed = await answer({}, { key });
    assert.equal(await codeOf(answer({}, { key: { ...key, key: "k2" } })), "overloaded");
    slow.go();
    assert.equal(textOf(await drain(keyed)), "one two");
    assert.equal(textOf(await drain(await answer({}, { key: { ...key, key: "k3" } }))), "one two");
  });

  test("may end before the gateway closes, and is cancelled when that takes too long", async () => {
    const slow = createSlow();
    const patient = open(slow.script);
    const { about } = await patient.answer({ background: true });
    await slow.begun;
    const closing = patient.gateway.close(new Promise(() => {}));
    slow.go();
    await closing;
    assert.equal(await statusOf(patient.gateway, about.id), "completed");

    const stuck = createSlow();
    const hasty = open(stuck.script);
    const { about: other } = await hasty.answer({ background: true });
    await stuck.begun;
    await hasty.gateway.close(Promise.resolve());
    assert.equal(await statusOf(hasty.gateway, other.id), "failed");
  });

  test("drops the beginning of its log when that grows too long, in events or in size, and reports it", async () => {
    const long = "x".repeat(5_000);
    const extra = { dialect: "responses", fields: { type: "picture", data: long } } as const;
    const whole = { type: "tool-arguments", index: 0, text: "{}" } as const;
    const others: readonly (readonly Delta[])[] = [
      [{ type: "other", extra }],
      [{ type: "compaction", summary: long }],
      [{ type: "reasoning-seal", encrypted: long }],
      [
        { type: "reasoning", text: "hm" },
        { type: "reasoning-extra", extra },
        { type: "reasoning-seal", encrypted: "" },
      ],
      [...say("word "), { type: "message-end", extra }],
      [...say("word "), { type: "annotation", annotation: { type: "note", fields: extra.fields } }],
      [{ type: "tool-call", index: 0, name: "f", extra }, whole],
      [{ type: "tool-call", index: 0, name: "f" }, { type: "tool-extra", index: 0, extra }, whole],
    ];
    for (const [words, limits] of [
      [say("word "), { maxEvents: 20 }],
      [say("word "), { maxCharacters: 2_000 }],
      ...others.map((words) => [words, { maxCharacters: 100_000 }] as const),
    ] as const) {
      const gate = Promise.withResolvers<void>();
      const said = Promise.withResolvers<void>();
      const script: Script = async function* () {
        for (let count = 0; count < 100; count++) yield words;
        said.resolve();
        await gate.promise;
      };
      const { answer, gateway } = open(script, createMemoryStore(), limits);
      const reply = await answer({ background: true });
      await said.promise;
      assert.equal(await codeOf(drain(reply)), "events_expired");
      gate.resolve();
      while ((await statusOf(gateway, reply.about.id)) === "running") await new Promise(setImmediate);
      assert.equal(await statusOf(gateway, reply.about.id), "completed");
    }
  });
});

suite("a finished turn", () => {
  test("is deleted permanently, and was never visible to other owners", async () => {
    const { answer, gateway, store } = open([say("x")]);
    const reply = await answer();
    await drain(reply);
    const { id } = reply.about;
    assert.equal(await gateway.recall("bob", id), undefined);
    assert.equal(await gateway.forget("bob", id), false);
    assert.equal(await gateway.forget("ann", id), true);
    assert.equal(await gateway.recall("ann", id), undefined);
    assert.equal(await store.findTurn("ann", id), undefined);
  });

  test("could not be cancelled while it ran if it was not in the background", async () => {
    const slow = createSlow();
    const { answer, gateway } = open(slow.script);
    const reply = await answer({}, { key });
    await slow.begun;
    const { background, state } = (await gateway.cancel("ann", reply.about.id))!;
    assert.deepEqual([background, state.status], [false, "running"]);
    slow.go();
    assert.equal(textOf(await drain(reply)), "one two");
  });

  test("does not change when it is cancelled and was not in the background", async () => {
    const { answer, gateway } = open([say("x")]);
    const reply = await answer();
    await drain(reply);
    const { background, state } = (await gateway.cancel("ann", reply.about.id))!;
    assert.equal(background, false);
    assert.equal(state.status === "over" && state.answer.status, "completed");
  });
});
