/** What is kept for how long, by a clock that is turned by hand and a retention that the operator asks for. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { call, endpoints, tell, tellWell, type Wish } from "../harness/client.ts";
import { placesWith } from "../harness/engine.ts";
import { gate, openGateway, say, seenBy } from "../harness/house.ts";
import { operate, prune, sessionIds } from "./aid.ts";

const hourMs = 3_600_000;
const longAgo = Date.now() - 30 * 24 * hourMs;

async function open(context: TestContext, sessions: object, http: Record<string, unknown> = {}, from = longAgo) {
  let time = from;
  const gateway = await openGateway(context, { gateway: { sessions }, http, now: () => new Date(time) });
  return {
    gateway,
    /** Lets hours pass, and applies the retention. */
    async wait(hours: number) {
      time += hours * hourMs;
      await prune(gateway);
    },
    ask: (say: Wish["say"], more: object = {}, rest: Partial<Wish> = {}) =>
      tellWell(gateway.address, { on: "responses", say, more: { user: "u", ...more }, ...rest }),
    status: async (id: string) => (await call(gateway.address, "GET", `/v1/responses/${id}`)).status,
    seen: () => seenBy(gateway.model.turns.at(-1)),
  };
}

const shown = (...texts: string[]) =>
  texts.map((content, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content }));

test("a session that was idle for its `ttl` is gone, and not before", async (context) => {
  const { gateway, ask, wait, status } = await open(context, { ttl: "3d" }, {}, Date.now());
  const { id } = await ask("quetzalcoatlus");
  await wait(71);
  assert.equal(await status(id), 200);
  await wait(2);
  assert.equal(await status(id), 404);
  assert.deepEqual(await placesWith(gateway.folder, "quetzalcoatlus"), []);
  assert.equal((await ask("hello")).headers.get("x-portico-history"), "new");
});

test("what was stored outside of sessions, and a conversation nobody used, go after their `ttl` too", async (context) => {
  const { gateway, ask, wait, status } = await open(context, { ttl: "3d" });
  const { body: conversation } = await call(gateway.address, "POST", "/v1/conversations", {});
  const [first, second] = [await ask("one", { user: null }), await ask("two", { user: null })];
  await wait(48);
  const next = await ask("more", { user: null, previous_response_id: second.id });
  await wait(25);
  assert.deepEqual([await status(first.id), await status(second.id), await status(next.id)], [404, 200, 200]);
  assert.equal((await call(gateway.address, "GET", `/v1/conversations/${conversation.id}`)).status, 404);
});

test("under one constant `user` each thread ages by itself", async (context) => {
  const { ask, wait, status, seen } = await open(context, { ttl: "3d" });
  const old = await ask("old");
  const oldNext = await ask(shown("old", "re: old", "old 2"));
  const young = await ask(shown("young", "re: old", "young 2"));
  await wait(48);
  const later = await ask(shown("young", "re: old", "young 2", "re: young 2", "young 3"));
  await wait(25);
  assert.deepEqual([await status(old.id), await status(oldNext.id)], [404, 404]);
  assert.deepEqual([await status(young.id), await status(later.id)], [200, 200]);
  await ask("and?", { previous_response_id: later.id });
  assert.equal(seen().at(-2), "assistant: re: young 3");
});

test("a branch that is left goes back to where a younger one leaves it", async (context) => {
  const { ask, wait, status, seen } = await open(context, { ttl: "3d" });
  const root = await ask("root");
  const left = await ask(shown("root", "re: root", "left"));
  await wait(48);
  const taken = await ask(shown("root", "re: root", "taken"));
  await wait(25);
  assert.deepEqual([await status(root.id), await status(left.id), await status(taken.id)], [200, 404, 200]);
  await ask("on", { previous_response_id: taken.id });
  assert.deepEqual(seen().slice(0, 3), ["user: root", "assistant: re: root", "user: taken"]);
});

test("what is left of a failed turn goes after the `ttl`", async (context) => {
  const { gateway, wait } = await open(context, { ttl: "3d" });
  gateway.model.script = async function* () {
    yield say("half quetzalcoatlus");
    throw new Error("The model broke.");
  };
  await tell(gateway.address, { on: "responses", say: "quetzalcoatlus", stream: true, more: { user: "u" } });
  await wait(73);
  assert.deepEqual(await placesWith(gateway.folder, "quetzalcoatlus"), []);
});

for (const on of endpoints) {
  test(`${on}: a thread keeps its newest \`max_turns_per_thread\` turns, and goes on`, async (context) => {
    const { ask, wait, status, seen } = await open(context, { max_turns_per_thread: 3 });
    const heard = [];
    for (const word of ["one", "two", "three", "four", "five"]) heard.push(await ask(word));
    await wait(0);
    await ask("six", {}, { on });
    const kept = ["three", "four", "five"].flatMap((word) => [`user: ${word}`, `assistant: re: ${word}`]);
    assert.deepEqual(seen(), [...kept, "user: six"]);
    assert.deepEqual([await status(heard[0]!.id), await status(heard[4]!.id)], [404, 200]);
  });
}

test("a client that shows its history keeps it for the model beyond `max_turns_per_thread`", async (context) => {
  const { ask, wait, seen } = await open(context, { max_turns_per_thread: 2 });
  const said: string[] = [];
  for (const word of ["one", "two", "three", "four", "five"]) {
    said.push(word);
    const heard = await ask(shown(...said));
    assert.equal(heard.headers.get("x-portico-history"), said.length === 1 ? "new" : "matched");
    assert.equal(seen().length, said.length);
    said.push(heard.text);
    await wait(0);
  }
});

test("of too many sessions of an owner the longest idle go; those of others, and turns without a hint, do not count", async (context) => {
  const [ann, ben] = ["sk-ann-0123456789abcdef", "sk-ben-0123456789abcdef"] as const;
  const { gateway, ask, wait, status } = await open(
    context,
    { max_sessions_per_owner: 2 },
    {
      tokens: [
        { name: "ann", token: ann },
        { name: "ben", token: ben },
      ],
    },
  );
  const outside = [];
  for (let count = 0; count < 4; count += 1) outside.push(await ask("hi", { user: null }, { token: ann }));
  await ask("hi", { user: "first" }, { token: ben });
  await wait(1);
  for (const user of ["a", "b", "c"]) {
    await ask("hi", { user }, { token: ann });
    await wait(1);
  }
  const again = async (user: string, token: string) =>
    (await ask("again", { user }, { token })).headers.get("x-portico-history");
  assert.equal((await sessionIds(gateway, "?owner=ann")).length, 2);
  assert.deepEqual([await again("c", ann), await again("b", ann)], ["continued", "continued"]);
  assert.deepEqual([await again("first", ben), await again("a", ann)], ["continued", "new"]);
  for (const { id } of outside) {
    assert.equal((await call(gateway.address, "GET", `/v1/responses/${id}`, undefined, { token: ann })).status, 200);
  }
  assert.equal(await status(outside[0]!.id), 404, "another owner's");
});

for (const on of endpoints) {
  test(`${on}: an Idempotency-Key is known for its \`idempotency_ttl\`, then it is free`, async (context) => {
    const { gateway, ask, wait } = await open(context, { idempotency_ttl: "2h" });
    const keyed = { on, headers: { "idempotency-key": "breakfast" } };
    const first = await ask("an egg", {}, keyed);
    await wait(1);
    assert.equal((await ask("an egg", {}, keyed)).id, first.id);
    const other = { ...keyed, say: "two eggs", more: { user: "u" } };
    assert.equal((await tell(gateway.address, other)).status, 409);
    await wait(1.5);
    assert.equal((await ask("two eggs", {}, keyed)).text, "re: two eggs");
  });
}

for (const keyTtl of ["2h", "never"]) {
  test(`a stream resumes word by word for a day, then it is told whole, though keys are kept for ${keyTtl}`, async (context) => {
    const { gateway, ask, wait } = await open(context, { idempotency_ttl: keyTtl });
    gateway.model.script = [say("one "), say("two "), say("three")];
    const { id } = await ask("count", { background: true }, { stream: true });
    const pieces = async () => {
      const { raw } = await call(gateway.address, "GET", `/v1/responses/${id}?stream=true`);
      return raw.split("event: response.output_text.delta").length - 1;
    };
    await wait(23);
    assert.equal(await pieces(), 3);
    await wait(2);
    assert.equal(await pieces(), 1);
  });
}

test("what a running turn continues is in use, however idle it was", async (context) => {
  const { gateway, ask, wait, seen } = await open(context, { ttl: "3d" }, {}, Date.now());
  const [started, go] = [gate(), gate()];
  await ask("one");
  gateway.model.script = async function* () {
    started.open();
    await go.opened;
    yield say("at last");
  };
  await wait(71);
  const running = ask("two");
  await started.opened;
  await wait(2);
  go.open();
  await running;
  await ask("three");
  assert.deepEqual(seen(), ["user: one", "assistant: re: one", "user: two", "assistant: at last", "user: three"]);
});

test("the operator is told how much was pruned", async (context) => {
  const { gateway, ask, wait } = await open(context, { ttl: "3d" });
  for (const word of ["one", "two"]) await ask(word, { user: null });
  await wait(71);
  const { id } = await ask("three", { user: null });
  await wait(0);
  const told = await operate(gateway, "POST", "prune");
  assert.deepEqual(told.body, { object: "prune", sessions: 0, turns: 0 });
  assert.equal((await call(gateway.address, "GET", `/v1/responses/${id}`)).status, 200);
});
