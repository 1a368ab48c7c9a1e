/** Calls that only their dialect defines, run by the client: resent with their outputs, they belong to one turn too. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import type { Item, OtherItem } from "../../src/core/item.ts";
import type { Caller } from "../../src/core/gateway.ts";
import type { Ask } from "../../src/core/turn.ts";
import type { Script } from "../scripted.ts";
import { drain, open } from "./asking.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const call = (id: string): OtherItem => ({
  type: "other",
  extra: { dialect: "responses", fields: { type: "shell_call", call_id: id } },
  exchange: { side: "model", id },
});
const output = (id: string, said = `said ${id}`): OtherItem => ({
  type: "other",
  extra: { dialect: "responses", fields: { type: "shell_call_output", call_id: id, output: said } },
  exchange: { side: "tools", id },
});

/** What the model's own server runs. */
const served = [call("s1"), output("s1")];

/** A function's call, and its output. */
const asked: Item = { type: "tool-call", kind: "function", callId: "f1", name: "look", arguments: "{}" };
const told: Item = { type: "tool-output", kind: "function", callId: "f1", output: "run" };

/** Calls when asked to run, and when a tool says so; twice at once, or after or before its own server, if asked to. */
function createScript(): Script {
  let calls = 0;
  return async function* ({ items }) {
    const last = items.at(-1);
    const spoken = last?.type === "message" ? last.content : last?.type === "tool-output" && last.output;
    const said = last?.type === "other" ? last.extra.fields["output"] : spoken;
    if (said === "look") return yield [{ type: "tool-call", index: 0, callId: "f1", name: "look" }];
    if (!String(said).startsWith("run")) return yield [{ type: "text", text: "well" }];
    if (said === "run after yours") yield served;
    yield Array.from({ length: said === "run twice" ? 2 : 1 }, () => call(`c${(calls += 1)}`));
    if (said === "run before yours") yield served;
  };
}

/** How a request is placed. */
const ways = ["header", "user", "response", "conversation"] as const;
type By = (typeof ways)[number];

const hints: Partial<Record<By, Partial<Caller>>> = {
  header: { hint: "header:x-session-id:kitchen", hintsAtTalk: true },
  user: { hint: "user:ann" },
};

/** Answers requests, and tells what the model saw of each. */
async function createScene(by: By) {
  const { adapter, answer, gateway } = open(createScript());
  const { id: conversationId } = await gateway.conversations.create("ann", {}, { turnId: "resp_0", items: [] });
  let previousId: string | undefined;
  return async (...items: readonly Item[]) => {
    const placed: Partial<Record<By, Partial<Ask>>> = { response: { previousId }, conversation: { conversationId } };
    const answered = await answer({ items, ...placed[by] }, hints[by]);
    await drain(answered);
    previousId = answered.about.id;
    return { history: answered.about.history, seen: adapter.turns.at(-1)!.items.map(toWords) };
  };
}

/** What a test compares of an item. */
function toWords(item: Item): unknown {
  if (item.type === "message") return [item.role, item.content];
  return item.type === "other" ? item.extra.fields : item.type;
}

for (const by of ways) {
  const history = hints[by] === undefined ? "continued" : "matched";
  const before = [user("I am Ann."), assistant("well")];

  for (const [what, question] of Object.entries({ "a call": [], "its question, a call": [user("run")] })) {
    test(`${by}: ${what} and its output may be sent together, and nothing is forgotten or shown twice`, async () => {
      const say = await createScene(by);
      await say(user("I am Ann."));
      await say(user("run"));
      const seen = [...before, user("run"), call("c1"), output("c1")];
      const step = await say(...question, call("c1"), output("c1"));
      assert.deepEqual(step, { history, seen: seen.map(toWords) });
      const after = [...seen, assistant("well"), user("Who am I?")];
      assert.deepEqual((await say(user("Who am I?"))).seen, after.map(toWords));
    });
  }

  test(`${by}: parallel calls may be sent one by one, each with its output, and none is lost`, async () => {
    const say = await createScene(by);
    await say(user("I am Ann."));
    await say(user("run twice"));
    const seen = [...before, user("run twice"), call("c1"), call("c2"), output("c1"), output("c2", "run")];
    const steps = [user("run twice"), call("c1"), output("c1"), call("c2"), output("c2", "run")];
    assert.deepEqual(await say(...steps), { history, seen: seen.map(toWords) });
    const next = [...seen, call("c3"), output("c3")];
    assert.deepEqual(await say(...steps, call("c3"), output("c3")), { history, seen: next.map(toWords) });
  });
}

for (const by of ways) {
  test(`${by}: a function's call after such a call is shown once, however often its turn is resent`, async () => {
    const say = await createScene(by);
    await say(user("I am Ann."));
    const steps: Item[] = [user("run")];
    await say(...steps);
    for (const step of [
      [call("c1"), output("c1", "look")],
      [asked, told],
      [call("c2"), output("c2")],
    ]) {
      steps.push(...step);
      assert.deepEqual((await say(...steps)).seen, [user("I am Ann."), assistant("well"), ...steps].map(toWords));
    }
  });
}

for (const by of ways) {
  const answers = { after: [...served, call("c1")], before: [call("c1"), ...served] };
  for (const [order, answer] of Object.entries(answers)) {
    test(`${by}: a call that the client runs ${order} what the model's own server has run, which is shown once`, async () => {
      const say = await createScene(by);
      await say(user("I am Ann."));
      await say(user(`run ${order} yours`));
      const step = [user(`run ${order} yours`), ...answer, output("c1")];
      assert.deepEqual((await say(...step)).seen, [user("I am Ann."), assistant("well"), ...step].map(toWords));
    });
  }
}

test("where something was deleted, the model sees what its own server has run as the client shows it", async () => {
  const { adapter, answer, store } = open(createScript());
  const say = async (...items: readonly Item[]) => {
    const answered = await answer({ items }, hints.header);
    await drain(answered);
    return answered.about.id;
  };
  const first = await say(user("I am Ann."));
  await say(user("run before yours"));
  await store.deleteTurn("ann", first);
  const step = [user("run before yours"), call("own"), output("own"), call("c1"), ...served, output("c1")];
  await say(...step);
  assert.deepEqual(adapter.turns.at(-1)!.items.map(toWords), step.map(toWords));
});

test("a client may shorten the steps of a first turn, as nothing precedes them", async () => {
  const say = await createScene("header");
  await say(user("run"));
  await say(user("run"), call("c1"), output("c1", "run on"));
  const short = [user("run"), call("c1"), output("c1", "[cleared]"), call("c2"), output("c2")];
  assert.deepEqual((await say(...short)).seen, short.map(toWords));
});

test("a client may show less of what the model's own server has run, which is none of its own steps", async () => {
  const say = await createScene("header");
  await say(user("run after yours"));
  const stepWith = (run: readonly Item[]) => [user("run after yours"), ...run, call("c1"), output("c1")];
  const step = await say(...stepWith([call("s1"), output("s1", "[cleared]")]));
  assert.deepEqual(step, { history: "matched", seen: stepWith(served).map(toWords) });
});

test("a client may resend all that was said before a hosted call, and the calls among it keep their outputs", async () => {
  const look: Item = { type: "tool-call", kind: "function", callId: "f1", name: "look", arguments: "" };
  const looked: Item = { type: "tool-output", kind: "function", callId: "f1", output: "tea" };
  const answers: readonly Delta[] = [
    { type: "text", text: "well" },
    { type: "tool-call", index: 0, callId: "f1", name: "look" },
    call("c1"),
    { type: "text", text: "done" },
  ];
  const { adapter, answer } = open(async function* () {
    yield answers.slice(adapter.turns.length - 1, adapter.turns.length);
  });
  const all = [user("hi"), assistant("well"), user("go"), look, looked, call("c1"), output("c1")];
  let previousId: string | undefined;
  for (const items of [[user("hi")], [user("go")], [looked], all]) {
    const answered = await answer({ items, previousId });
    await drain(answered);
    previousId = answered.about.id;
  }
  const seen = [...all.slice(0, 6), ...all.slice(0, 5), output("c1")];
  assert.deepEqual(adapter.turns.at(-1)!.items.map(toWords), seen.map(toWords));
});
