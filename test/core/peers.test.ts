/** Several gateways on one store: the order of turns, what one of them runs, and what happens when it dies. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Event, Events } from "../../src/core/event.ts";
import type { Item } from "../../src/core/item.ts";
import { createScriptedAdapter, say, type Script } from "../scripted.ts";
import { codeOf, createSlow, drain, key, open, textOf } from "./asking.ts";
import { createPeerStores } from "./peer-stores.ts";

/** Two gateways, the first of which answers slowly. */
function openTwo(script: Script = [say("quick")]) {
  const slow = createSlow();
  const join = createPeerStores();
  const [home, away] = [join(), join()];
  return { slow, one: open(slow.script, home.store), other: open(script, away.store), die: home.die };
}

const user = (content: string): Item => ({ type: "message", role: "user", content });
const hint = "garden";
const toJson = (events: readonly Event[]): unknown => JSON.parse(JSON.stringify(events));

suite("gateways on one store", () => {
  test("a request waits for its session's turn on another gateway, and sees its answer", async () => {
    const { slow, one, other } = openTwo();
    const first = drain(await one.answer({ items: [user("first")], keep: "in-session" }, { hint }));
    await slow.begun;
    const second = other.answer({ items: [user("second")], keep: "in-session" }, { hint }).then(drain);
    slow.go();
    assert.equal(textOf(await first), "one two");
    assert.equal(textOf(await second), "quick");
    const seen = other.adapter.turns.at(-1)?.items.map((item) => (item.type === "message" ? item.content : ""));
    assert.deepEqual(seen, ["first", "one two", "second"]);
  });

  test("a request whose caller disconnects while it waits leaves the queue", async () => {
    const { slow, one, other } = openTwo();
    const first = drain(await one.answer({ keep: "in-session" }, { hint }));
    await slow.begun;
    const caller = new AbortController();
    const waiting = codeOf(other.answer({ keep: "in-session" }, { hint, signal: caller.signal }));
    caller.abort(new Error("gone"));
    assert.match(await waiting, /gone/);
    slow.go();
    await first;
    assert.equal(textOf(await drain(await other.answer({ keep: "in-session" }, { hint }))), "quick");
  });

  test("a request sent to two gateways with one key is answered once", async () => {
    const { slow, one, other } = openTwo();
    const first = await one.answer({}, { key });
    const told = drain(first);
    await slow.begun;
    const second = other.answer({}, { key });
    slow.go();
    const repeated = await second;
    assert.equal(repeated.isRepeated, true);
    assert.equal(repeated.about.id, first.about.id);
    assert.deepEqual(toJson(await drain(repeated)), toJson(await told));
    assert.equal(other.adapter.turns.length, 0);
  });

  test("a running request with a key can be followed from another gateway", async () => {
    const { slow, one, other } = openTwo();
    const first = await one.answer({ keep: "in-session" }, { key, hint });
    const told = drain(first);
    await slow.begun;
    const repeated = await other.answer({ keep: "in-session" }, { key, hint });
    assert.equal(repeated.isRepeated, true);
    assert.deepEqual(repeated.about, first.about);
    const early = (await repeated.events.next()).value!;
    assert.equal(textOf([...early]), "one");
    slow.go();
    const rest = await Array.fromAsync(repeated.events);
    assert.deepEqual(toJson([...early, ...rest.flat()]), toJson(await told));
    assert.equal(other.adapter.turns.length, 0);
    assert.equal(textOf(await drain(await other.answer({ keep: "in-session" }, { key, hint }))), "one two");
    // Its session continues after it, on any gateway.
    assert.equal((await drain(await other.answer({ keep: "in-session" }, { hint }))).length > 0, true);
    assert.equal(other.adapter.turns[0]?.items.length, 3);
  });

  test("several choices of a request with a key reach another gateway once complete, and from their beginning", async () => {
    const going = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const join = createPeerStores();
    const one = open(async function* () {
      yield [...say("one"), { type: "text", text: "uno", choice: 1 }];
      begun.resolve();
      await going.promise;
      yield [{ type: "text", text: " due", choice: 1 }, ...say(" two")];
    }, join().store);
    const other = open([say("never")], join().store);
    const asked = { settings: { tools: [], choices: 2 } };
    const told = drain(await one.answer(asked, { key }));
    await begun.promise;
    const resumes = { param: "Last-Event-ID", isOf: () => true };
    assert.equal(await codeOf(other.answer(asked, { key, resumes })), "events_expired");
    const repeated = drain(await other.answer(asked, { key }));
    going.resolve();
    assert.equal(textOf(await told, 1), "uno due");
    assert.deepEqual([textOf(await repeated), textOf(await repeated, 1)], ["one two", "uno due"]);
    assert.equal(other.adapter.turns.length, 0);
  });

  test("a request with a key that arrives before the first one is placed follows it while it runs", async () => {
    const going = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const join = createPeerStores();
    const one = open(async function* () {
      const { promise } = going[one.adapter.turns.length - 1]!;
      yield say("one");
      await promise;
      yield say(" two");
    }, join().store);
    const other = open([say("never")], join().store);
    const told = drain(await one.answer({ keep: "in-session" }, { hint }));
    // Both wait: the first for its session, the second for the first.
    const first = one.answer({ keep: "in-session" }, { key, hint }).then(drain);
    const second = other.answer({ keep: "in-session" }, { key, hint });
    going[0]!.resolve();
    await told;
    const repeated = await second;
    assert.equal(repeated.isRepeated, true);
    const early = (await repeated.events.next()).value!;
    assert.equal(textOf([...early]), "one");
    going[1]!.resolve();
    const rest = await Array.fromAsync(repeated.events);
    assert.deepEqual(toJson([...early, ...rest.flat()]), toJson(await first));
    assert.equal(other.adapter.turns.length, 0);
  });

  test("a stream that was cut is resumed on another gateway while it runs", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({}, { key });
    await slow.begun;
    const resumes = { param: "Last-Event-ID", isOf: (turnId: string) => turnId === about.id };
    const resumed = await other.answer({}, { key, resumes });
    assert.equal(resumed.about.id, about.id);
    slow.go();
    assert.equal(textOf(await drain(resumed)), "one two");
  });

  test("the same key with another request is refused while the first one runs on another gateway", async () => {
    const { slow, one, other } = openTwo();
    const told = drain(await one.answer({}, { key }));
    await slow.begun;
    assert.equal(await codeOf(other.answer({}, { key: { ...key, fingerprint: "f2" } })), "idempotency_conflict");
    slow.go();
    await told;
  });

  test("a request with a key that fails on another gateway gets that error, and is retried when it is sent again", async () => {
    const join = createPeerStores();
    const begun = Promise.withResolvers<void>();
    const broken = Promise.withResolvers<void>();
    const one = open(async function* fail() {
      begun.resolve();
      await broken.promise;
      throw new GatewayError("adapter_rate_limit", "It broke.", { retryAfterSeconds: 7 });
    }, join().store);
    const other = open([say("quick")], join().store);
    const failed = codeOf(one.answer({}, { key }).then(drain));
    await begun.promise;
    const { events } = await other.answer({}, { key });
    const repeated = events.next();
    broken.resolve();
    assert.equal(await failed, "adapter_rate_limit");
    // Thrown, so that it becomes a status there too.
    await assert.rejects(repeated, { code: "adapter_rate_limit", retryAfterSeconds: 7 });
    assert.equal(other.adapter.turns.length, 0);
    assert.equal(textOf(await drain(await other.answer({}, { key }))), "quick");
  });

  test("a request with a key whose gateway dies is retried when it is sent again", async () => {
    const { slow, one, other, die } = openTwo();
    const { about } = await one.answer({}, { key });
    await slow.begun;
    die();
    assert.equal(textOf(await drain(await other.answer({}, { key }))), "quick");
    const { state } = (await other.gateway.recall("ann", about.id))!;
    assert.equal(state.status === "over" && state.answer.error?.code, "interrupted");
    // The gateway was only suspended, and must not store its answer beside the one that was given.
    slow.go();
    await one.gateway.close(Promise.resolve());
    assert.equal(textOf(await drain(await other.answer({}, { key }))), "quick");
  });

  test("a follower of a request with a key whose gateway dies gets a failure after what it has received", async () => {
    const { slow, one, other, die } = openTwo();
    await one.answer({}, { key });
    await slow.begun;
    const { events } = await other.answer({}, { key });
    assert.equal(textOf([...(await events.next()).value!]), "one");
    die();
    const end = (await Array.fromAsync(events)).at(-1)?.at(-1);
    assert.equal(end?.type === "turn-end" && end.answer.error?.code, "interrupted");
    slow.go();
  });

  const breaks: Script = async function* () {
    yield say("half");
    throw new GatewayError("adapter_error", "It broke.");
  };
  const breaksAtOnce: Script = async function* (): AsyncGenerator<never> {
    throw new GatewayError("adapter_error", "It broke.");
  };
  for (const { how, script, background, text, status } of [
    { how: "has no words", script: [], background: false, text: "", status: "completed" },
    { how: "fails midway", script: breaks, background: false, text: "half", status: "failed" },
    { how: "fails in the background", script: breaksAtOnce, background: true, text: "", status: "failed" },
  ] as const) {
    test(`an answer that ${how} reaches a follower on another gateway that has heard nothing of it`, async () => {
      const join = createPeerStores();
      const going = Promise.withResolvers<void>();
      const one = open(async function* (...asked) {
        await going.promise;
        yield* createScriptedAdapter(script).stream(...asked);
      }, join().store);
      const { store } = join();
      const over = Promise.withResolvers<void>();
      async function* subscribe(): Events {
        await over.promise;
      }
      const other = open([], { ...store, peers: { ...store.peers!, subscribe } });
      const first = await one.answer({ background }, { key });
      const following = Array.fromAsync((await other.answer({ background }, { key })).events);
      going.resolve();
      await drain(first);
      over.resolve();
      const events = (await following).flat();
      const end = events.at(-1);
      assert.equal(textOf(events), text);
      assert.equal(end?.type === "turn-end" && end.answer.status, status);
    });
  }

  test("only a turn in the background can be cancelled by its id", async () => {
    const { slow, one, other } = openTwo();
    const first = await one.answer({}, { key });
    await slow.begun;
    assert.equal((await other.gateway.cancel("ann", first.about.id))?.state.status, "running");
    slow.go();
    assert.equal(textOf(await drain(first)), "one two");
  });

  test("a request with a key that must not be stored leaves nothing in the store, while it runs or afterwards", async () => {
    const { slow, one } = openTwo();
    const { about, events } = await one.answer({ keep: "no" }, { key });
    await slow.begun;
    assert.equal(await one.store.findTurn("ann", about.id), undefined);
    slow.go();
    assert.equal(textOf(await drain({ about, events })), "one two");
    assert.equal(await one.store.findTurn("ann", about.id), undefined);
  });

  test("the same key with another request is refused on every gateway", async () => {
    const { slow, one, other } = openTwo();
    slow.go();
    await drain(await one.answer({}, { key }));
    assert.equal(await codeOf(other.answer({}, { key: { ...key, fingerprint: "f2" } })), "idempotency_conflict");
  });

  test("a turn in the background is reported as running, and can be followed to its end, on another gateway", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    const recalled = (await other.gateway.recall("ann", about.id))!;
    assert.equal(recalled.state.status, "running");
    assert.equal(recalled.background, true);
    const events = recalled.follow(new AbortController().signal);
    const early = (await events.next()).value!;
    // Events arrive before it is over.
    assert.equal(recalled.state.status, "running");
    slow.go();
    const told = [...early, ...(await Array.fromAsync(events)).flat()];
    assert.equal(textOf(told), "one two");
    const again = (await other.gateway.recall("ann", about.id))!.follow(new AbortController().signal);
    assert.deepEqual(toJson(told), toJson((await Array.fromAsync(again)).flat()));
    const atHome = (await one.gateway.recall("ann", about.id))!.follow(new AbortController().signal);
    assert.deepEqual(toJson(told), toJson((await Array.fromAsync(atHome)).flat()));
    assert.equal((await other.gateway.recall("ann", about.id))!.state.status, "over");
  });

  test("what a turn says is published to other gateways, and nothing when only its end is left", async () => {
    const { store } = createPeerStores()();
    const published: string[] = [];
    const publish = (_name: string, events: readonly Event[]) =>
      void published.push(events.map(({ type }) => type).join(" "));
    const { answer } = open([say("x"), [{ type: "message-end" }]], { ...store, peers: { ...store.peers!, publish } });
    await drain(await answer({}, { key }));
    assert.deepEqual(published, ["turn-start item-start item-delta", "item-end"]);
  });

  test("a turn that still runs is not reported as failed to a follower that lost its stream", async () => {
    const slow = createSlow();
    const join = createPeerStores();
    const one = open(slow.script, join().store);
    const { store } = join();
    async function* subscribe(): Events {
      yield [{ type: "turn-queued" }];
    }
    const other = open([], { ...store, peers: { ...store.peers!, subscribe } });
    const { about } = await one.answer({ background: true });
    await slow.begun;
    const recalled = (await other.gateway.recall("ann", about.id))!;
    const following = Array.fromAsync(recalled.follow(new AbortController().signal));
    assert.equal(await codeOf(following), "events_expired");
    slow.go();
  });

  test("a complete answer whose events are gone before a follower on another gateway reads them is not a failure", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    const { signal } = new AbortController();
    const followed = (await other.gateway.recall("ann", about.id))!.follow(signal);
    await followed.next();
    slow.go();
    await Array.fromAsync((await one.gateway.recall("ann", about.id))!.follow(signal));
    await one.store.prune({ piecesBefore: new Date(1) });
    assert.equal(await codeOf(Array.fromAsync(followed)), "events_expired");
  });

  test("a turn in the background with a key is joined from another gateway", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true }, { key });
    await slow.begun;
    const joined = await other.answer({ background: true }, { key });
    assert.equal(joined.about.id, about.id);
    slow.go();
    assert.equal(textOf(await drain(joined)), "one two");
    assert.equal(other.adapter.turns.length, 0);
  });

  test("a turn in the background can be cancelled from another gateway", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    const { state } = (await other.gateway.cancel("ann", about.id))!;
    assert.equal(state.status === "over" && state.answer.status, "cancelled");
  });

  test("a turn in the background can be deleted from another gateway", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    assert.equal(await other.gateway.forget("ann", about.id), true);
    assert.equal(await one.gateway.recall("ann", about.id), undefined);
  });

  test("a stream that is followed on another gateway ends when its session is deleted", async () => {
    const { slow, one, other } = openTwo();
    const first = await other.answer({ keep: "in-session" }, { hint });
    await drain(first);
    const { about } = await one.answer({ background: true, conversationId: first.about.session });
    await slow.begun;
    const followed = (await other.gateway.recall("ann", about.id))!.follow(new AbortController().signal);
    await followed.next();
    await other.gateway.conversations.delete("ann", first.about.session!);
    slow.go();
    const end = (await Array.fromAsync(followed)).at(-1)?.at(-1);
    assert.equal(end?.type === "turn-end" && end.answer.error?.code, "not_found");
  });

  test("a turn that is deleted before a follower on another gateway gets a word of it is not found", async () => {
    const slow = createSlow();
    const join = createPeerStores();
    const one = open(slow.script, join().store);
    const { store } = join();
    async function* subscribe(): Events {}
    const other = open([], { ...store, peers: { ...store.peers!, subscribe } });
    const { about } = await one.answer({ background: true });
    await slow.begun;
    const { follow } = (await other.gateway.recall("ann", about.id))!;
    await one.gateway.forget("ann", about.id);
    assert.equal(await codeOf(Array.fromAsync(follow(new AbortController().signal))), "not_found");
  });

  test("a turn that ends while another gateway asks whether it still runs has its answer there", async () => {
    const slow = createSlow();
    const join = createPeerStores();
    const one = open(slow.script, join().store);
    const { store } = join();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    async function isTaken(): Promise<boolean> {
      slow.go();
      await Array.fromAsync((await one.gateway.recall("ann", about.id))!.follow(new AbortController().signal));
      return false;
    }
    const other = open([], { ...store, peers: { ...store.peers!, isTaken } });
    const { state } = (await other.gateway.recall("ann", about.id))!;
    assert.equal(state.status === "over" && state.answer.status, "completed");
  });

  test("another owner can neither see nor cancel what runs on another gateway", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    assert.equal(await other.gateway.recall("bob", about.id), undefined);
    assert.equal(await other.gateway.cancel("bob", about.id), undefined);
    assert.equal((await other.gateway.recall("ann", about.id))!.state.status, "running");
    slow.go();
  });

  test("a turn of a gateway that died is reported as failed, and its session continues", async () => {
    const { slow, one, other, die } = openTwo();
    const { about } = await one.answer({ background: true }, { hint });
    await slow.begun;
    const followed = (await other.gateway.recall("ann", about.id))!.follow(new AbortController().signal);
    const received = (await followed.next()).value!;
    die();
    // A follower that got its beginning gets an explicit failure, not a normal end.
    const [close, end] = (await Array.fromAsync(followed)).flat();
    const said = { type: "message", role: "assistant", content: textOf([...received]) };
    assert.deepEqual(close, { type: "item-end", index: 0, item: said, whole: false });
    assert.ok(end?.type === "turn-end" && end.answer.status === "failed" && end.answer.error?.code === "interrupted");
    assert.deepEqual([end.answer.items, end.answer.brokenOff], [[said], 0]);
    const { state } = (await other.gateway.recall("ann", about.id))!;
    assert.equal(state.status === "over" && state.answer.error?.code, "interrupted");
    assert.equal(textOf(await drain(await other.answer({}, { hint }))), "quick");
    // The gateway was only suspended: what it emits now is ignored.
    slow.go();
    await one.gateway.close(Promise.resolve());
    const after = (await other.gateway.recall("ann", about.id))!.state;
    assert.equal(after.status === "over" && after.answer.status, "failed");
  });
});
