/** Several gateways on one store: whose turn it is, what one of them runs, and what becomes of it when it dies. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Event } from "../../src/core/event.ts";
import type { Item } from "../../src/core/item.ts";
import { say, type Script } from "../scripted.ts";
import { codeOf, createSlow, drain, key, open, textOf } from "./asking.ts";
import { createNeighbourhood } from "./neighbourhood.ts";

/** Two gateways, the first of which answers slowly. */
function openTwo(script: Script = [say("quick")]) {
  const slow = createSlow();
  const join = createNeighbourhood();
  const [home, away] = [join(), join()];
  return { slow, one: open(slow.script, home.store), other: open(script, away.store), die: home.die };
}

const user = (content: string): Item => ({ type: "message", role: "user", content });
const hint = "garden";
const toJson = (events: readonly Event[]): unknown => JSON.parse(JSON.stringify(events));

suite("gateways on one store", () => {
  test("a request waits for the turn of its session that another gateway runs, and sees its answer", async () => {
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

  test("a request whose caller leaves while it waits leaves the line", async () => {
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

  test("a request that is sent to two gateways with one key is answered once", async () => {
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

  test("the same key with another request is refused wherever it comes", async () => {
    const { slow, one, other } = openTwo();
    slow.go();
    await drain(await one.answer({}, { key }));
    assert.equal(await codeOf(other.answer({}, { key: { ...key, fingerprint: "f2" } })), "idempotency_conflict");
  });

  test("a turn in the background is known to run, and followed to its end, from another gateway", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    const recalled = (await other.gateway.recall("ann", about.id))!;
    assert.equal(recalled.state.status, "running");
    assert.equal(recalled.background, true);
    const events = recalled.follow(new AbortController().signal);
    const early = (await events.next()).value!;
    // It is heard before it is over.
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

  test("a turn in the background is called off from another gateway", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    const { state } = (await other.gateway.cancel("ann", about.id))!;
    assert.equal(state.status === "over" && state.answer.status, "cancelled");
  });

  test("a turn in the background is deleted from another gateway", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    assert.equal(await other.gateway.forget("ann", about.id), true);
    assert.equal(await one.gateway.recall("ann", about.id), undefined);
  });

  test("another owner can neither see nor call off what runs elsewhere", async () => {
    const { slow, one, other } = openTwo();
    const { about } = await one.answer({ background: true });
    await slow.begun;
    assert.equal(await other.gateway.recall("bob", about.id), undefined);
    assert.equal(await other.gateway.cancel("bob", about.id), undefined);
    assert.equal((await other.gateway.recall("ann", about.id))!.state.status, "running");
    slow.go();
  });

  test("what a gateway ran that died is told as failed, and its session goes on", async () => {
    const { slow, one, other, die } = openTwo();
    const { about } = await one.answer({ background: true }, { hint });
    await slow.begun;
    const followed = (await other.gateway.recall("ann", about.id))!.follow(new AbortController().signal);
    await followed.next();
    die();
    // Who heard its beginning learns that there is no end, and does not take it for one.
    assert.equal(await codeOf(Array.fromAsync(followed)), "interrupted");
    const { state } = (await other.gateway.recall("ann", about.id))!;
    assert.equal(state.status === "over" && state.answer.error?.code, "interrupted");
    assert.equal(textOf(await drain(await other.answer({}, { hint }))), "quick");
    // It was only asleep: what it says now has no place any more.
    slow.go();
    await one.gateway.close(Promise.resolve());
    const after = (await other.gateway.recall("ann", about.id))!.state;
    assert.equal(after.status === "over" && after.answer.status, "failed");
  });
});
