/** What a key answers later: after a failure, a cancellation, a restart, an erasure, a day; and where nothing is stored. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, endpoints, type Wish } from "../harness/client.ts";
import { makeFolder, openGateway, operatorToken, say, shareGateway } from "../harness/house.ts";
import { ask, askWell, cancel, ended, fails, hold, idIn, keyed, look, textIn } from "./outlive.ts";

const open = shareGateway({ limits: { drain_timeout_ms: 0 } });

for (const on of endpoints) {
  for (const stream of [false, true]) {
    const kind = stream ? "streamed" : "whole";
    test(`${on}: a ${kind} turn that failed has released its key: it is tried again, with another body too`, async () => {
      const { address, model } = await open();
      const asked = model.turns.length;
      const wish: Wish = { on, say: "hi", stream };
      for (const times of [1, 2]) {
        model.script = fails;
        const failed = await ask(address, keyed(wish, `failed-${on}-${kind}`));
        assert.match(failed.raw, /"error":\{/);
        assert.equal(model.turns.length, asked + times);
      }
      model.script = [say("at last")];
      const other = { ...wish, say: "ho" };
      assert.equal(textIn(other, await askWell(address, keyed(other, `failed-${on}-${kind}`))), "at last");
      assert.equal((await ask(address, keyed(wish, `failed-${on}-${kind}`))).status, 409);
    });
  }

  test(`${on}: a key answers for 24 hours, and is free after them`, async (context) => {
    const clock = turnByHand();
    const { address, model } = await openGateway(context, { now: clock.now });
    const wish: Wish = { on, say: "hi" };
    const first = await askWell(address, keyed(wish, "daily"));
    clock.pass(24 * hourMs - 1000);
    assert.equal((await askWell(address, keyed(wish, "daily"))).raw, first.raw);
    clock.pass(2000);
    const other = { ...wish, say: "ho" };
    assert.notEqual(idIn(await askWell(address, keyed(other, "daily"))), idIn(first));
    assert.equal(model.turns.length, 2);
  });

  test(`${on}: a key answers after a restart, byte for byte, whole and streamed`, async (context) => {
    const folder = makeFolder(context);
    const wishes = [false, true].map((stream) => keyed({ on, say: "hi", stream }, `key-${stream}`));
    const before = await openGateway(context, { folder, script: [say("Good"), say(" day")] });
    const first = [];
    for (const wish of wishes) first.push((await askWell(before.address, wish)).raw);
    await before.close();
    const after = await openGateway(context, { folder });
    const again = [];
    for (const wish of wishes) again.push((await askWell(after.address, wish)).raw);
    assert.deepEqual(again, first);
    assert.equal(after.model.turns.length, 0);
  });

  test(`${on}: with store: false a key answers, and nothing else knows the turn`, async () => {
    const { address, model } = await open();
    model.script = [say("secret")];
    const asked = model.turns.length;
    const wish = keyed({ on, say: "hi", more: { store: false, user: `unstored-${on}` } }, `unstored-${on}`);
    const first = await askWell(address, wish);
    const again = await askWell(address, wish);
    assert.deepEqual([again.raw, again.headers.get("x-portico-replayed")], [first.raw, "true"]);
    const id = idIn(first).replace("chatcmpl-", "resp_");
    assert.equal((await look(address, id)).status, 404);
    const more = { previous_response_id: id };
    assert.equal((await ask(address, { on: "responses", say: "go on", more })).body.error.code, notFound);
    await askWell(address, { on, say: "next", more: { user: `unstored-${on}` } });
    assert.equal(model.turns.at(-1)!.items.length, 1);
    assert.equal(model.turns.length, asked + 2);
  });

  test(`${on}: with store: false a key answers after a restart, for 24 hours`, async (context) => {
    const folder = makeFolder(context);
    const clock = turnByHand();
    const wish = keyed({ on, say: "hi", more: { store: false } }, "unstored");
    const before = await openGateway(context, { folder, now: clock.now });
    const first = await askWell(before.address, wish);
    await before.close();
    const { address, model } = await openGateway(context, { folder, now: clock.now });
    assert.equal((await askWell(address, wish)).raw, first.raw);
    clock.pass(24 * hourMs + 1000);
    assert.notEqual(idIn(await askWell(address, wish)), idIn(first));
    assert.equal(model.turns.length, 1);
  });

  for (const store of [true, false]) {
    test(`${on}: with store: ${store} a key answers no more once its user is erased`, async () => {
      const { address, model } = await open();
      model.script = [say("secret")];
      const user = `erased-${on}-${store}`;
      const wish = keyed({ on, say: "hi", more: { store, user } }, user);
      await askWell(address, { on, say: "before", more: { user } });
      const first = await askWell(address, wish);
      const path = `/operator/sessions?user=${user}`;
      const erased = await call(address, "DELETE", path, undefined, { token: operatorToken });
      assert.equal(erased.status, 200, erased.raw);
      const again = await askWell(address, wish);
      assert.equal(again.headers.get("x-portico-replayed"), null);
      assert.notEqual(idIn(again), idIn(first));
    });
  }
}

test("a key's time is the operator's to set", async (context) => {
  const clock = turnByHand();
  const gateway = { sessions: { idempotency_ttl: "1h" } };
  const { address, model } = await openGateway(context, { gateway, now: clock.now });
  const wish = keyed({ on: "chat", say: "hi" }, "hourly");
  await askWell(address, wish);
  clock.pass(hourMs + 1000);
  await askWell(address, wish);
  assert.equal(model.turns.length, 2);
});

test("a background turn with a key is acknowledged once, and its end is told to whoever repeats it", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const asked = model.turns.length;
  const wish = keyed({ on: "responses", say: "hi", more: { background: true } }, "acknowledged");
  const id = idIn(await askWell(address, wish));
  await held.begun;
  const again = await askWell(address, wish);
  assert.deepEqual([idIn(again), again.headers.get("x-portico-replayed")], [id, "true"]);
  held.go();
  assert.equal((await ended(address, id)).output[0].content[0].text, "one two");
  assert.equal(idIn(await askWell(address, wish)), id);
  assert.equal(model.turns.length, asked + 1);
});

test("a background turn with a key that was cancelled is told again as cancelled", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const asked = model.turns.length;
  const wish = keyed({ on: "responses", say: "hi", more: { background: true } }, "cancelled");
  const id = idIn(await askWell(address, wish));
  await held.begun;
  await cancel(address, id);
  assert.equal(idIn(await askWell(address, wish)), id);
  assert.equal((await ended(address, id)).status, "cancelled");
  assert.equal(model.turns.length, asked + 1);
});

test("a background turn with a key that failed is tried again, and the failed one stays readable", async () => {
  const { address, model } = await open();
  model.script = fails;
  const wish = keyed({ on: "responses", say: "hi", more: { background: true } }, "failed");
  const id = idIn(await askWell(address, wish));
  await ended(address, id);
  model.script = [say("at last")];
  const second = idIn(await askWell(address, wish));
  assert.notEqual(second, id);
  assert.equal((await ended(address, second)).status, "completed");
  assert.equal((await look(address, id)).body.status, "failed");
});

for (const background of [false, true]) {
  test(`a ${background ? "background" : "foreground"} turn with a key that a stop interrupted is tried again`, async (context) => {
    const folder = makeFolder(context);
    const held = hold();
    const wish = keyed({ on: "responses", say: "hi", more: { background, user: "ann" } }, "interrupted");
    const before = await openGateway(context, { folder, script: held.script, limits: { drain_timeout_ms: 0 } });
    const first = ask(before.address, wish).catch(() => undefined);
    await held.begun;
    await before.close();
    const left = (await first)?.body.id;
    const { address } = await openGateway(context, { folder, script: [say("at last")] });
    const again = await askWell(address, wish);
    assert.notEqual(again.body.id, left);
    assert.equal(again.headers.get("x-portico-replayed"), null);
    assert.equal((await ended(address, again.body.id)).output[0].content[0].text, "at last");
  });
}

const hourMs = 3_600_000;
const notFound = "previous_response_not_found";

function turnByHand() {
  let atMs = Date.parse("2030-01-01T00:00:00Z");
  return { now: () => new Date(atMs), pass: (ms: number) => void (atMs += ms) };
}
