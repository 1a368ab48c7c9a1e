import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Event } from "../../src/core/event.ts";
import type { Caller, Gateway, Reply } from "../../src/core/gateway.ts";
import type { Item } from "../../src/core/item.ts";
import type { Path } from "../../src/core/place/path.ts";
import type { Memory } from "../../src/core/place/place.ts";
import type { SessionStore } from "../../src/core/store.ts";
import type { Answer, Ask } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { createScriptedAdapter, type Script, type ScriptedAdapter } from "../scripted.ts";
import { makeGateway } from "../making.ts";
import { makeTurn } from "../stores/making.ts";

interface Scene {
  readonly adapter: ScriptedAdapter;
  readonly store: SessionStore;
  readonly gateway: Gateway;
  ask(ask: Partial<Ask>, caller?: Partial<Caller>): Promise<Reply>;
  /** Asks, and reads to the end. */
  talk(ask: Partial<Ask>, caller?: Partial<Caller>): Promise<{ reply: Reply; answer: Answer; seen: readonly Item[] }>;
}

const reply: Script = (turn) => replay([[{ type: "text", text: `answer ${turn.items.length}` }]]);

async function* replay(batches: Delta[][]): AsyncIterable<readonly Delta[]> {
  yield* batches;
}

function createScene(script: Script = reply, store: SessionStore = createMemoryStore()): Scene {
  const adapter = createScriptedAdapter(script);
  const newId = createIds(() => new Date());
  const gateway = makeGateway({
    adapter,
    store,
    limits: { maxItems: 10, maxQueuedPerThread: 2 },
    now: () => new Date(0),
  });
  const scene: Scene = {
    adapter,
    store,
    gateway,
    ask: (ask, caller = {}) =>
      gateway.answer(
        {
          model: "m",
          items: [user("hi")],
          itemsParam: "messages",
          settings: { tools: [] },
          stream: false,
          keep: "in-session",
          ...ask,
        },
        { turnId: newId("resp"), owner: "ann", hint: undefined, signal: new AbortController().signal, ...caller },
      ),
    async talk(ask, caller) {
      const talked = await scene.ask(ask, caller);
      return { reply: talked, answer: await listen(talked), seen: adapter.turns.at(-1)?.items ?? [] };
    },
  };
  return scene;
}

async function listen({ events }: Reply): Promise<Answer> {
  for await (const batch of events) {
    const last = batch.at(-1);
    if (last?.type === "turn-end") return last.answer;
  }
  throw new Error("no end");
}

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });
const called = (callId: string): Item => ({ type: "tool-call", kind: "function", callId, name: "f", arguments: "{}" });
const output = (callId: string): Item => ({ type: "tool-output", kind: "function", callId, output: "done" });
const callDeltas: Delta[] = [
  { type: "tool-call", index: 0, callId: "c1", name: "f" },
  { type: "tool-arguments", index: 0, text: "{}" },
];
const callTool: Script = () => replay([callDeltas]);

test("without a hint a chat turn is stateless and nothing is stored", async () => {
  const { talk, store } = createScene();
  const { reply } = await talk({});
  assert.equal(reply.about.history, "stateless");
  assert.equal(await store.findTurn("ann", reply.about.id), undefined);
});

test("the same hint continues the session: the model sees the whole conversation, each turn once", async () => {
  const { talk } = createScene();
  const first = await talk({ items: [user("one")] }, { hint: "user:u" });
  const second = await talk({ items: [user("two")] }, { hint: "user:u" });
  assert.equal(first.reply.about.history, "new");
  assert.equal(second.reply.about.history, "continued");
  assert.equal(second.reply.about.session, first.reply.about.session);
  assert.deepEqual(second.seen, [user("one"), assistant("answer 1"), user("two")]);
});

test("another owner under the same hint is another session", async () => {
  const { talk } = createScene();
  await talk({ items: [user("one")] }, { hint: "user:u" });
  const { reply, seen } = await talk({ items: [user("two")] }, { hint: "user:u", owner: "bob" });
  assert.equal(reply.about.history, "new");
  assert.deepEqual(seen, [user("two")]);
});

test("a caller that shows its own history does not get the stored one in addition", async () => {
  const { talk } = createScene();
  await talk({ items: [user("one")] }, { hint: "user:u" });
  const shown = [user("other"), assistant("yes"), user("two")];
  const { reply, seen } = await talk({ items: shown }, { hint: "user:u" });
  assert.equal(reply.about.history, "foreign");
  assert.deepEqual(seen, shown);
});

test("a history that a caller shows is remembered, even if its turn fails or is stored nowhere else", async () => {
  const shown = [user("other"), assistant("yes"), user("two")];
  const known = new Map<string, Path>();
  const memory: Memory = { find: (id) => known.get(id), keep: (path) => known.set(path.tip!.id, path) };
  const { talk } = createScene();
  const { reply } = await talk({ items: shown, keep: "no" }, { hint: "user:u", memory, memo: () => "{}" });
  assert.ok(!("told" in known.get(reply.about.id)!.tip!), "nobody replays it");
  const next = await talk({ items: [user("three")], keep: "no", previousId: reply.about.id }, { memory });
  assert.deepEqual(next.seen, [...shown, assistant("answer 3"), user("three")]);

  const broken = createScene(async function* () {
    yield [{ type: "text", text: "no" }];
    throw new Error("broken");
  });
  const failed = await broken.talk({ items: shown, keep: "yes" }, { hint: "user:u", memo: () => "{}" });
  const { input } = (await broken.gateway.recall("ann", failed.reply.about.id))!;
  assert.deepEqual(
    input.map(({ item }) => item),
    shown,
  );
});

test("a response id continues exactly that turn, even twice, and the branches do not see each other", async () => {
  const { talk } = createScene();
  const root = await talk({ items: [user("root")], keep: "yes" });
  const previousId = root.reply.about.id;
  const left = await talk({ items: [user("left")], keep: "yes", previousId });
  const right = await talk({ items: [user("right")], keep: "yes", previousId });
  assert.deepEqual(left.seen, [user("root"), assistant("answer 1"), user("left")]);
  assert.deepEqual(right.seen, [user("root"), assistant("answer 1"), user("right")]);
});

test("an unknown response id and another owner's get the same error", async () => {
  const { talk } = createScene();
  const { reply } = await talk({ keep: "yes" });
  const unknown = { code: "previous_response_not_found", param: "previous_response_id" };
  await assert.rejects(talk({ previousId: "resp_nope" }), {
    ...unknown,
    message: "Previous response with id 'resp_nope' not found.",
  });
  await assert.rejects(talk({ previousId: reply.about.id }, { owner: "bob" }), unknown);
});

test("continuing the newest response of a session by id advances the session", async () => {
  const { talk } = createScene();
  const first = await talk({ items: [user("one")] }, { hint: "user:u" });
  await talk({ items: [user("two")], keep: "yes", previousId: first.reply.about.id });
  const third = await talk({ items: [user("three")] }, { hint: "user:u" });
  assert.deepEqual(
    third.seen.filter((item) => item.type === "message" && item.role === "user"),
    [user("one"), user("two"), user("three")],
  );
});

test("store: false reads the context and stores nothing", async () => {
  const { talk } = createScene();
  await talk({ items: [user("one")] }, { hint: "user:u" });
  const second = await talk({ items: [user("two")], keep: "no" }, { hint: "user:u" });
  const third = await talk({ items: [user("three")] }, { hint: "user:u" });
  assert.equal(second.seen.length, 3);
  assert.deepEqual(third.seen, [user("one"), assistant("answer 1"), user("three")]);
});

test("a request's own system message applies; without one the thread's newest does", async () => {
  const { talk } = createScene();
  await talk({ items: [system("be brief"), user("one")] }, { hint: "user:u" });
  const second = await talk({ items: [system("be kind"), user("two")] }, { hint: "user:u" });
  assert.deepEqual(second.seen, [system("be kind"), user("one"), assistant("answer 2"), user("two")]);
  const third = await talk({ items: [user("three")] }, { hint: "user:u" });
  assert.deepEqual(third.seen[0], system("be kind"));
  assert.equal(third.seen.filter((item) => item.type === "message" && item.role === "system").length, 1);
  const fourth = await talk(
    { items: [user("four")], settings: { tools: [], instructions: "be quick" } },
    { hint: "user:u" },
  );
  assert.equal(
    fourth.seen.some((item) => item.type === "message" && item.role === "system"),
    false,
  );
});

test("only the system messages of the newest request that had any apply", async () => {
  const { talk } = createScene();
  const by = { hint: "user:u" };
  const inForce = async () =>
    (await talk({}, by)).seen.filter((item) => item.type === "message" && item.role === "system");
  await talk({ items: [system("a"), system("b"), user("one")] }, by);
  await talk({ items: [system("a"), system("c"), user("two")] }, by);
  assert.deepEqual(await inForce(), [system("a"), system("c")]);
  await talk({ items: [system("a"), user("three")] }, by);
  assert.deepEqual(await inForce(), [system("a")]);
});

test("a tool output without its call is refused, and the error names its id", async () => {
  const { talk } = createScene();
  await assert.rejects(talk({ items: [output("nope")] }), {
    code: "tool_call_mismatch",
    param: "messages",
    message: "No tool call found for function call output with call_id nope.",
  });
});

test("a call left open in a session is answered by its output in the next turn", async () => {
  const { talk } = createScene(callTool);
  await talk({ items: [user("go")] }, { hint: "user:u" });
  const { seen } = await talk({ items: [output("c1")] }, { hint: "user:u" });
  assert.deepEqual(seen, [user("go"), called("c1"), output("c1")]);
});

test("an abandoned call is omitted from a hinted session, and refused after a response id", async () => {
  const { talk } = createScene(callTool);
  const first = await talk({ items: [user("go")] }, { hint: "user:u" });
  await assert.rejects(talk({ items: [user("well?")], previousId: first.reply.about.id }), {
    message: "No tool output found for function call c1.",
  });
  const { seen } = await talk({ items: [user("well?")] }, { hint: "user:u" });
  assert.deepEqual(seen, [user("go"), user("well?")]);
});

test("without a continuation a call without output is left to the model, unless the caller's protocol refuses it", async () => {
  const { talk } = createScene();
  const items = [user("go"), called("c1"), user("well?")];
  assert.deepEqual((await talk({ items })).seen, items);
  await assert.rejects(talk({ items, needsOutputs: true }), { code: "tool_call_mismatch" });
  const { seen } = await talk({ items, needsOutputs: true }, { hint: "user:u" });
  assert.deepEqual(seen, [user("go"), user("well?")]);
});

test("turns of one session wait for each other and see each other's answers", async () => {
  const { talk, adapter } = createScene();
  await Promise.all(["one", "two", "three"].map((text) => talk({ items: [user(text)] }, { hint: "user:u" })));
  assert.deepEqual(
    adapter.turns.map((turn) => turn.items.length),
    [1, 3, 5],
  );
});

test("a failed turn leaves nothing behind, and the next one proceeds", async () => {
  let fails = true;
  const { talk } = createScene(async function* (turn) {
    yield [{ type: "text", text: `answer ${turn.items.length}` }];
    if (fails) throw new Error("broken");
  });
  const first = await talk({ items: [user("one")] }, { hint: "user:u" });
  assert.equal(first.answer.status, "failed");
  fails = false;
  const second = await talk({ items: [user("two")] }, { hint: "user:u" });
  assert.deepEqual(second.seen, [user("two")]);
});

test("a failed or abandoned turn is stored only if it was to be stored and could be retrieved", async () => {
  const { talk, ask, store } = createScene(async function* () {
    yield [{ type: "text", text: "half" }];
    throw new Error("broken");
  });
  const memo = () => "{}";
  for (const [wanted, caller, status] of [
    [{ keep: "no" }, { memo }, undefined],
    [{ keep: "in-session" }, { hint: "user:u" }, undefined],
    [{ keep: "yes" }, { memo }, "failed"],
  ] as const) {
    await talk(wanted, { turnId: "resp_failed", ...caller });
    assert.equal((await store.findTurn("ann", "resp_failed"))?.status, status);
  }
  const { events } = await ask({ keep: "yes" }, { turnId: "resp_left", memo });
  await events.next();
  await events.return();
  const left = await store.findTurn("ann", "resp_left");
  assert.deepEqual([left?.status, left?.told?.failure], ["cancelled", undefined]);
});

test("the reason for an abort takes precedence over the error that it causes", async () => {
  const caller = new AbortController();
  const { talk } = createScene(async function* () {
    yield [{ type: "text", text: "half" }];
    caller.abort(new GatewayError("draining", "The gateway stops."));
    throw new Error("socket hang up");
  });
  assert.equal((await talk({}, { signal: caller.signal })).answer.error?.code, "draining");
});

test("a closing gateway waits for its turns until its deadline, and starts none", async () => {
  const [found, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const store = createMemoryStore();
  await store.commit({ turns: [makeTurn({ id: `resp_${"c".repeat(48)}`, owner: "ann", output: [assistant("hm")] })] });
  const findTurn: SessionStore["findTurn"] = async (owner, id) => found.promise.then(() => store.findTurn(owner, id));
  const slow: Script = async function* () {
    yield [{ type: "text", text: "half" }];
    await go.promise;
  };
  const { ask, gateway } = createScene(slow, { ...store, findTurn });
  const running = listen(await ask({}));
  const resolving = ask({ items: [{ type: "reference", id: `msg_${"c".repeat(48)}0000` }] });
  await gateway.close(Promise.resolve());
  let isClosed = false;
  const closed = gateway.close(new Promise(() => {})).then(() => (isClosed = true));
  found.resolve();
  await assert.rejects(resolving, { code: "draining" });
  await new Promise(setImmediate);
  assert.equal(isClosed, false);
  go.resolve();
  await running;
  await closed;
});

test("counting tokens starts no session that others would continue", async () => {
  const { talk, gateway, store } = createScene();
  const ask = {
    model: "m",
    items: [user("hi")],
    itemsParam: "messages",
    settings: { tools: [] },
    stream: false,
  } as const;
  const caller = { turnId: "resp_1", owner: "ann", hint: "user:u", signal: new AbortController().signal };
  await gateway.countTokens({ ...ask, keep: "in-session" }, caller);
  const first = (await talk({}, { hint: "user:u" })).reply.about.session;
  await store.deleteSession("ann", first!);
  assert.notEqual((await talk({}, { hint: "user:u" })).reply.about.session, first);
});

test("a turn that fails when it is placed lets the next one proceed, and the gateway close", async () => {
  const { talk, gateway } = createScene();
  await assert.rejects(talk({ items: [output("nope")] }, { hint: "user:u" }));
  await talk({ items: [user("one")] }, { hint: "user:u" });
  await gateway.close(new Promise(() => {}));
});

test("nothing is stored if the caller disconnects at the last moment", async () => {
  const caller = new AbortController();
  const { talk, ask } = createScene(async function* () {
    yield [{ type: "text", text: "almost" }];
    caller.abort(new Error("gone"));
  });
  const answer = await listen(await ask({ items: [user("one")] }, { hint: "user:u", signal: caller.signal }));
  assert.equal(answer.status, "failed");
  const { seen } = await talk({ items: [user("two")] }, { hint: "user:u" });
  assert.deepEqual(seen, [user("two")]);
});

test("a turn whose session has moved on meanwhile fails and is not stored", async () => {
  const store = createMemoryStore();
  let hasMoved = false;
  const commit: SessionStore["commit"] = async (turns) => !hasMoved && store.commit(turns);
  const { talk } = createScene(reply, { ...store, commit });
  const { about } = (await talk({}, { hint: "user:u" })).reply;
  hasMoved = true;
  for (const [continued, hint] of [
    [{}, "user:u"],
    [{ previousId: about.id }],
    [{ conversationId: about.session }],
  ] as const) {
    const { error } = (await talk(continued, { hint })).answer;
    assert.deepEqual([error?.code, error?.retryAfterSeconds], ["session_busy", 1]);
  }
});

test("what a running turn continues is in use until the turn is over", async () => {
  const { ask, talk, gateway } = createScene();
  const { about } = (await talk({ keep: "yes" })).reply;
  const running = await ask({ previousId: about.id, keep: "yes" });
  assert.deepEqual([about.session, [...gateway.inUse()]], [undefined, [about.id]]);
  await listen(running);
  assert.deepEqual([...gateway.inUse()], []);
});

test("a turn whose implicit session was deleted meanwhile can be sent again", async () => {
  const store = createMemoryStore();
  const forgetful: Script = async function* () {
    yield [{ type: "text", text: "half" }];
    const session = await store.findSession("ann", "user:u");
    if (session !== undefined) await store.deleteSession("ann", session.id);
  };
  const { talk } = createScene(forgetful, store);
  assert.equal((await talk({}, { hint: "user:u" })).answer.status, "completed");
  assert.equal((await talk({}, { hint: "user:u" })).answer.error?.code, "session_busy");
  assert.equal((await talk({}, { hint: "user:u" })).answer.status, "completed");
});

test("more items than allowed are refused, and the error names the setting to change", async () => {
  const { talk } = createScene();
  await assert.rejects(talk({ items: Array.from({ length: 11 }, () => user("hi")) }), {
    code: "too_many_messages",
    message:
      "'messages' comes to 11 messages, calls and outputs; at most 10 are allowed (gateway.http.limits.max_messages).",
  });
});

test("an output that arrives after the conversation continued is placed after its call", async () => {
  let calls = true;
  const { talk } = createScene((turn) =>
    replay([calls ? callDeltas : [{ type: "text", text: `answer ${turn.items.length}` }]]),
  );
  await talk({ items: [user("go")] }, { hint: "user:u" });
  calls = false;
  await talk({ items: [user("well?")] }, { hint: "user:u" });
  const { seen } = await talk({ items: [output("c1"), user("here")] }, { hint: "user:u" });
  assert.deepEqual(seen, [user("go"), called("c1"), output("c1"), user("well?"), assistant("answer 2"), user("here")]);
});

test("a turn by response id and one by hint on the same thread wait for each other, and neither is lost", async () => {
  const { talk, adapter } = createScene();
  const first = await talk({ items: [user("one")] }, { hint: "user:u" });
  const [hinted, branched] = await Promise.all([
    talk({ items: [user("two")] }, { hint: "user:u" }),
    talk({ items: [user("three")], keep: "yes", previousId: first.reply.about.id }),
  ]);
  assert.deepEqual([hinted.answer.status, branched.answer.status], ["completed", "completed"]);
  assert.equal(adapter.turns.length, 3);
});

test("a request by response id that has waited in vain, since the thread moved on, blocks nobody in it", async () => {
  const gates = { two: Promise.withResolvers<void>(), branch: Promise.withResolvers<void>() };
  const { ask, talk, gateway } = createScene(async function* ({ items }) {
    const last = items.at(-1);
    const asked = last?.type === "message" ? String(last.content) : "";
    yield [{ type: "text", text: "re: " }];
    await gates[asked as keyof typeof gates]?.promise;
    yield [{ type: "text", text: asked }];
  });
  const first = await talk({ items: [user("one")] }, { hint: "user:u" });
  const second = talk({ items: [user("two")] }, { hint: "user:u" });
  const waiting = ask({ items: [user("branch")], previousId: first.reply.about.id });
  while (gateway.load().waiting === 0) await new Promise(setImmediate);
  gates.two.resolve();
  await second;
  const branched = listen(await waiting);
  assert.equal((await talk({ items: [user("three")] }, { hint: "user:u" })).answer.status, "completed");
  gates.branch.resolve();
  assert.equal((await branched).status, "completed");
});

test("a reply that is never read lets the next turn proceed once it is returned", async () => {
  const { ask, talk } = createScene();
  const unread = await ask({}, { hint: "user:u" });
  await unread.events.return();
  await talk({}, { hint: "user:u" });
});

test("a stored turn lets the next one proceed, however long its caller takes to read its end", async () => {
  const { ask, talk } = createScene(() => replay([[{ type: "text", text: "one" }], [{ type: "text", text: " two" }]]));
  const slow = await ask({}, { hint: "user:u" });
  const ends = (step: IteratorResult<readonly Event[], void>) => step.value?.at(-1)?.type === "turn-end";
  while (!ends(await slow.events.next()));
  const { seen } = await talk({ items: [user("and?")] }, { hint: "user:u" });
  assert.deepEqual(seen, [user("hi"), assistant("one two"), user("and?")]);
  assert.equal((await slow.events.next()).done, true);
});

test("store: false reports no session that does not exist", async () => {
  const { talk } = createScene();
  const { reply } = await talk({ keep: "no" }, { hint: "user:u" });
  assert.equal(reply.about.session, undefined);
});

test("a caller that has already disconnected does not wait at all", async () => {
  const { ask } = createScene();
  const gone = AbortSignal.abort(new Error("gone"));
  await assert.rejects(ask({}, { hint: "user:u", signal: gone }), /gone/);
});
