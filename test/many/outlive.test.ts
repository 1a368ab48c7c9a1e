/** A turn that outlives its caller is followed, resumed and cancelled wherever somebody asks for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, endpoints, hear, readAll, type Wish } from "../harness/client.ts";
import { operatorToken, say } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { askWell, cancel, hold, idIn, keyed, look, messagesOf, promise, remove } from "../outlive/outlive.ts";
import { sharePair } from "./pair.ts";

const { skip } = need("postgres");
const open = sharePair();

test("a background stream is followed and resumed on the other process, byte for byte", { skip }, async () => {
  const { one, other, play } = await open();
  const held = hold();
  play(held.script);
  const wish: Wish = { on: "responses", say: "hi", stream: true, more: { background: true } };
  const here = await begin(one.address, wish);
  const beginning = await hear(here, "one");
  const id = idIn({ raw: beginning });
  const running = await look(other.address, id);
  assert.deepEqual([running.body.status, running.body.background], ["in_progress", true]);
  const there = look(other.address, id, "?stream=true");
  const resumed = look(other.address, id, "?stream=true&starting_after=2");
  await new Promise((resolve) => setTimeout(resolve, 300));
  held.go();
  const all = messagesOf((await look(one.address, id, "?stream=true")).raw);
  assert.deepEqual(messagesOf((await there).raw), all);
  assert.deepEqual(messagesOf((await resumed).raw), all.slice(3));
  assert.deepEqual((await look(other.address, id)).body, (await look(one.address, id)).body);
});

test("a background turn is cancelled on the other process", { skip }, async () => {
  const { one, other, play } = await open();
  const held = hold();
  play(held.script);
  const id = await promise(one.address);
  await held.begun;
  const { status, body } = await cancel(other.address, id);
  assert.deepEqual([status, body.status], [200, "cancelled"]);
  await held.aborted;
  assert.equal((await look(one.address, id)).body.status, "cancelled");
});

test("a background turn is deleted on the other process while it runs", { skip }, async () => {
  const { one, other, play } = await open();
  const held = hold();
  play(held.script);
  const id = await promise(one.address);
  await held.begun;
  assert.equal((await remove(other.address, id)).status, 200);
  await held.aborted;
  assert.equal((await look(one.address, id)).status, 404);
});

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(
      `${on}: a key that is sent to both processes asks the model once, and both get the same ${stream ? "stream" : "answer"}`,
      { skip },
      async () => {
        const { one, other, play } = await open();
        const held = hold();
        play(held.script);
        const asked = one.model.turns.length + other.model.turns.length;
        const wish = keyed({ on, say: "hi", stream }, `both ${on} ${stream}`);
        const answers = [one, other].map(({ address }) => askWell(address, wish));
        await held.begun;
        await new Promise((resolve) => setTimeout(resolve, 200));
        held.go();
        const [first, second] = await Promise.all(answers);
        assert.deepEqual(messagesOf(second?.raw ?? ""), messagesOf(first?.raw ?? ""));
        assert.deepEqual(messagesOf((await askWell(other.address, wish)).raw), messagesOf(first?.raw ?? ""));
        assert.equal(one.model.turns.length + other.model.turns.length, asked + 1);
      },
    );
  }

  test(`${on}: another request with a key that runs on the other process is refused`, { skip }, async () => {
    const { one, other, play } = await open();
    const held = hold();
    play(held.script);
    const first = askWell(one.address, keyed({ on, say: "hi" }, `conflict ${on}`));
    await held.begun;
    const path = on === "chat" ? "/v1/chat/completions" : "/v1/responses";
    const body =
      on === "chat" ? { model: "any", messages: [{ role: "user", content: "ho" }] } : { model: "any", input: "ho" };
    const { status } = await call(other.address, "POST", path, body, {
      headers: { "idempotency-key": `conflict ${on}` },
    });
    assert.equal(status, 409);
    held.go();
    await first;
  });
}

test("a session that is deleted on the other process while a turn of it runs stays deleted", { skip }, async () => {
  const { one, other, play } = await open();
  const more = { user: "erased" };
  play([say("ok")]);
  await askWell(one.address, { on: "responses", say: "first", more });
  const held = hold();
  play(held.script);
  const stream = await begin(one.address, { on: "responses", say: "second", stream: true, more });
  await hear(stream, "one");
  const path = "/operator/sessions?user=erased";
  assert.equal((await call(other.address, "DELETE", path, undefined, { token: operatorToken })).status, 200);
  const rest = readAll(stream);
  held.go();
  assert.match(await rest, /deleted while this was answered/);
  const { body } = await call(one.address, "GET", "/operator/sessions", undefined, { token: operatorToken });
  assert.equal(body.data.length, 0);
});
