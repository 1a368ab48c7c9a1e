/** A request with an Idempotency-Key is answered once, however often and however quickly it is sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, endpoints, readAll, type Wish } from "../harness/client.ts";
import { say, shareGateway } from "../harness/house.ts";
import { ask, askWell, hold, idIn, keyed, remove, textIn } from "./outlive.ts";

const tokens = ["ann", "bob"].map((name) => ({ name, token: `sk-${name}-0123456789` }));
const open = shareGateway({ http: { tokens }, limits: { drain_timeout_ms: 0 } });

for (const on of endpoints) {
  for (const stream of [false, true]) {
    const wish: Wish = { on, say: "hi", stream };
    const kind = stream ? "stream" : "whole answer";
    const name = `${on}-${stream}`;

    test(`${on}: a key sent again gets the same ${kind}, byte for byte, and the model is asked once`, async () => {
      const { address, model } = await open();
      model.script = [say("Good"), say(" day")];
      const asked = model.turns.length;
      const first = await askWell(address, keyed(wish, `same-${name}`));
      const again = await askWell(address, keyed(wish, `same-${name}`));
      assert.equal(textIn(wish, first), "Good day");
      assert.equal(again.raw, first.raw);
      assert.equal(first.headers.get("x-portico-replayed"), null);
      assert.equal(again.headers.get("x-portico-replayed"), "true");
      assert.equal(model.turns.length, asked + 1);
    });

    test(`${on}: twenty twins that are sent at once get the same ${kind}, and the model is asked once`, async () => {
      const { address, model } = await open();
      const held = hold();
      model.script = held.script;
      const asked = model.turns.length;
      const answers = Array.from({ length: 20 }, () => askWell(address, keyed(wish, `twins-${name}`)));
      await held.begun;
      held.go();
      const [first, ...others] = await Promise.all(answers);
      assert.equal(textIn(wish, first!), "one two");
      for (const other of others) assert.equal(other.raw, first!.raw);
      assert.equal(model.turns.length, asked + 1);
    });
  }

  test(`${on}: a stream that is sent again while it runs is joined from its beginning`, async () => {
    const { address, model } = await open();
    const held = hold();
    model.script = held.script;
    const wish = keyed({ on, say: "hi", stream: true }, `join-${on}`);
    const first = await begin(address, wish);
    await held.begun;
    const second = await begin(address, wish);
    held.go();
    const [one, two] = await Promise.all([readAll(first), readAll(second)]);
    assert.equal(two, one);
    assert.match(one, /one.* two/s);
    assert.equal(second.headers["x-portico-replayed"], "true");
  });

  test(`${on}: a caller that leaves a keyed turn does not stop it, and gets the answer when it comes back`, async () => {
    const { address, model } = await open();
    const held = hold();
    model.script = held.script;
    const asked = model.turns.length;
    const wish = keyed({ on, say: "hi", stream: true, more: { user: "leaver" } }, `left-${on}`);
    const left = await begin(address, wish);
    await held.begun;
    left.destroy();
    // Its leaving has been seen when the next request is answered.
    await call(address, "GET", "/v1/models");
    held.go();
    assert.equal(textIn(wish, await askWell(address, wish)), "one two");
    assert.equal(model.turns.length, asked + 1);
  });

  for (const [what, other] of Object.entries<Partial<Wish>>({
    "another body": { more: { temperature: 0 } },
    "another question": { say: "ho" },
    "another session": { headers: { "x-session-id": "elsewhere" } },
    "the other endpoint": { on: on === "chat" ? "responses" : "chat" },
  })) {
    test(`${on}: a key sent again with ${what} is a conflict, while its turn runs and afterwards`, async () => {
      const { address, model } = await open();
      const held = hold();
      model.script = held.script;
      const asked = model.turns.length;
      const key = `conflict-${on}-${what.replaceAll(" ", "-")}`;
      const wish: Wish = { on, say: "hi" };
      const first = askWell(address, keyed(wish, key));
      await held.begun;
      const early = ask(address, keyed({ ...wish, ...other }, key));
      held.go();
      const late = await first.then(() => ask(address, keyed({ ...wish, ...other }, key)));
      for (const { status, body } of [await early, late]) {
        assert.deepEqual(
          [status, body.error.type, body.error.code],
          [409, "invalid_request_error", "idempotency_conflict"],
        );
      }
      assert.equal(model.turns.length, asked + 1);
    });
  }

  test(`${on}: a key has 1 to 255 characters`, async () => {
    const { address, model } = await open();
    model.script = [say("ok")];
    const asked = model.turns.length;
    for (const key of ["", "k".repeat(256)]) {
      const { status, body } = await ask(address, keyed({ on, say: "hi" }, key));
      assert.deepEqual([status, body.error.code, body.error.param], [400, "invalid_value", "Idempotency-Key"]);
    }
    assert.equal(model.turns.length, asked);
    await askWell(address, keyed({ on, say: "hi" }, (on === "chat" ? "c" : "r").repeat(255)));
  });

  test(`${on}: each owner has its own keys, while a turn runs and afterwards`, async () => {
    const { address, model } = await open();
    const held = hold();
    model.script = held.script;
    const wishes = tokens.map(({ token }) => keyed({ on, say: `I have ${token}`, token }, `owned-${on}`));
    const answers = wishes.map((wish) => askWell(address, wish));
    await held.begun;
    held.go();
    const ids = (await Promise.all(answers)).map(idIn);
    assert.notEqual(ids[1], ids[0]);
    const again = [];
    for (const wish of wishes) again.push(idIn(await askWell(address, wish)));
    assert.deepEqual(again, ids);
  });

  test(`${on}: a keyed turn is in its session once`, async () => {
    const { address, model } = await open();
    model.script = [say("yes")];
    const wish: Wish = { on, say: "first", more: { user: `once-${on}` } };
    await askWell(address, keyed(wish, `once-${on}`));
    await askWell(address, keyed(wish, `once-${on}`));
    await askWell(address, { ...wish, say: "second" });
    assert.equal(model.turns.at(-1)!.items.length, 3);
  });
}

test("a refused request leaves its key free", async () => {
  const { address, model } = await open();
  model.script = [say("ok")];
  const wish: Wish = { on: "responses", say: "hi" };
  const wrong = await ask(address, keyed({ ...wish, more: { previous_response_id: "resp_none" } }, "refused"));
  assert.equal(wrong.body.error.code, "previous_response_not_found");
  await askWell(address, keyed(wish, "refused"));
});

test("a keyed answer is told again though an item that it referred to was deleted meanwhile", async () => {
  const { address, model } = await open();
  model.script = [say("ok")];
  const named = (await askWell(address, { on: "responses", say: "hi" })).body;
  const input = [
    { type: "item_reference", id: named.output[0].id },
    { role: "user", content: "go on" },
  ];
  const wish = keyed({ on: "responses", say: input }, "referring");
  const first = await askWell(address, wish);
  await remove(address, named.id);
  assert.equal((await askWell(address, wish)).raw, first.raw);
  assert.equal((await ask(address, keyed(wish, "referring-2"))).status, 404);
});
