import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import type { Ask } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { createScriptedAdapter } from "../scripted.ts";
import { makeGateway } from "../making.ts";
import { open } from "./asking.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });
const output = (callId: string): Item => ({ type: "tool-output", kind: "function", callId, output: "done" });
const called = (callId: string): Item => ({ type: "tool-call", kind: "function", callId, name: "f", arguments: "{}" });

/**
 * A model that answers `re: <the last user text>`, in two messages on `SPLIT`, calls a tool on `CALL`, only reasons on
 * `BLANK`, and reasons once more on `HM`.
 */
function createScene(
  by: { readonly hint: string; readonly hintsAtTalk?: boolean } = { hint: "user:u" },
  store = createMemoryStore(),
) {
  const adapter = createScriptedAdapter(async function* (turn) {
    const last = turn.items.at(-1);
    const lastText = last?.type === "message" && typeof last.content === "string" ? last.content : "output";
    if (lastText.endsWith("BLANK")) yield [{ type: "reasoning", text: "Hm." }];
    else if (lastText.endsWith("SPLIT"))
      yield [{ type: "text", text: "re: " }, { type: "message-end" }, { type: "text", text: lastText }];
    else if (!lastText.startsWith("CALL")) yield [{ type: "text", text: `re: ${lastText}` }];
    else
      yield [
        { type: "tool-call", index: 0, callId: "c1", name: "f" },
        { type: "tool-arguments", index: 0, text: "{}" },
      ];
    if (lastText.endsWith("HM")) yield [{ type: "reasoning", text: "Hm." }];
  });
  const newId = createIds(() => new Date());
  const gateway = makeGateway({
    adapter,
    store,
    limits: { maxItems: 1000, maxQueuedPerThread: 16 },
    now: () => new Date(),
  });
  return async (items: readonly Item[], rest: Partial<Ask> = {}) => {
    const ask = {
      model: "m",
      items,
      itemsParam: "messages",
      settings: { tools: [] },
      stream: false,
      keep: "in-session",
      ...rest,
    } as const;
    const caller = { turnId: newId("resp"), owner: "ann", ...by, signal: new AbortController().signal };
    const { about, events } = await gateway.answer(ask, caller);
    await Array.fromAsync(events);
    return { history: about.history, seen: adapter.turns.at(-1)!.items, id: about.id };
  };
}

const talk = (...texts: string[]): Item[] => texts.flatMap((text) => [user(text), assistant(`re: ${text}`)]);

test("the model sees a history as its client spells it, in a thread that is cached or not, continued or branched off", async () => {
  const cached = createMemoryStore();
  const uncached = { ...createMemoryStore(), recallPath: async () => undefined };
  for (const store of [cached, uncached]) {
    const ask = createScene({ hint: "user:u" }, store);
    const shown = [user("one"), assistant("re: one")];
    await ask([user("one ")]);
    const next = await ask([...shown, user("two")]);
    assert.deepEqual([next.history, next.seen], ["matched", [...shown, user("two")]]);
    const branch = await ask([...shown, user("three")]);
    assert.deepEqual([branch.history, branch.seen], ["forked", [...shown, user("three")]]);
  }
});

test("a client that resends its history is matched, and the model sees each turn once", async () => {
  const say = createScene();
  assert.equal((await say([user("one")])).history, "new");
  const second = await say([...talk("one"), user("two")]);
  assert.equal(second.history, "matched");
  assert.deepEqual(second.seen, [...talk("one"), user("two")]);
  const third = await say([...talk("one", "two"), user("three")]);
  assert.equal(third.history, "matched");
  assert.deepEqual(third.seen, [...talk("one", "two"), user("three")]);
});

test("a history that was trimmed, merged or cut into parts on the client's side still matches", async () => {
  const say = createScene();
  await say([user("one "), user("more\r\n")]);
  const { history } = await say([
    user("one\n\nmore"),
    { type: "message", role: "assistant", content: [{ type: "text", text: "re: more " }] },
    user("two"),
  ]);
  assert.equal(history, "matched");
});

test("regenerating the last answer branches before it", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  const again = await say([...talk("one"), user("two")]);
  assert.equal(again.history, "forked");
  assert.deepEqual(again.seen, [...talk("one"), user("two")]);
});

test("an edited message branches where the histories diverge, and the model sees what was shown", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  await say([...talk("one", "two"), user("three")]);
  const shown = [...talk("one"), user("two, but better"), assistant("Hm."), user("four")];
  const edited = await say(shown);
  assert.equal(edited.history, "forked");
  assert.deepEqual(edited.seen, shown);
  const later = await say([...shown, assistant("re: four"), user("five")]);
  assert.equal(later.history, "matched");
  assert.deepEqual(later.seen, [...shown, assistant("re: four"), user("five")]);
});

test("an unknown history is used as shown, and is recognised from then on", async () => {
  const say = createScene();
  await say([user("one")]);
  const shown = [user("elsewhere"), assistant("indeed"), user("and now?")];
  const foreign = await say(shown);
  assert.equal(foreign.history, "foreign");
  assert.deepEqual(foreign.seen, shown);
  assert.equal((await say([...shown, assistant("re: and now?"), user("go on")])).history, "matched");
  assert.equal((await say(shown)).history, "forked");
});

test("a client that shows only the end of its history gets the whole thread", async () => {
  const say = createScene();
  for (const text of ["one", "two", "three"]) await say([user(text)]);
  const tail = await say([...talk("two", "three"), user("four")]);
  assert.equal(tail.history, "matched");
  assert.deepEqual(tail.seen, [...talk("one", "two", "three"), user("four")]);
});

test("a client that shows a different end of its history continues with what it shows", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  await say([...talk("one", "two"), user("three")]);
  const shown = [user("too"), assistant("re: two"), ...talk("three"), user("four")];
  assert.deepEqual((await say(shown)).seen, shown);
});

test("one exchange is enough to find a thread when the session has only one", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  assert.deepEqual((await say([...talk("two"), user("three")])).seen, [...talk("one", "two"), user("three")]);
});

test("one exchange is enough in a session that is a single conversation", async () => {
  const say = createScene({ hint: "header:x-session-id:kitchen", hintsAtTalk: true });
  await say([user("one")]);
  await say([user("two")]);
  const third = await say([...talk("two"), user("three")]);
  assert.equal(third.history, "matched");
  assert.deepEqual(third.seen, [...talk("one", "two"), user("three")]);
  assert.equal((await say([...talk("two", "three"), user("four")])).seen.length, 7);
});

for (const [kind, by] of Object.entries({
  "a header": { hint: "header:x-session-id:kitchen", hintsAtTalk: true },
  "a `user`": { hint: "user:u" },
})) {
  test(`${kind}: a client whose first question was answered again sees no more of the first answer once it shows its history`, async () => {
    let answers = 0;
    const { adapter, answer } = open(async function* () {
      yield [{ type: "text", text: `${(answers += 1)}` }];
    });
    const say = async (...items: readonly Item[]) => {
      const { about, events } = await answer({ items, keep: "in-session" }, by);
      await Array.fromAsync(events);
      return [about.history, adapter.turns.at(-1)!.items];
    };
    for (const text of ["hi", "hi", "hi"]) await say(user(text));
    const shown = [user("hi"), assistant("3"), user("who?")];
    assert.deepEqual(await say(...shown), ["foreign", shown]);
    const later = [...shown, assistant("4"), user("what?")];
    assert.deepEqual(await say(...later), ["matched", later]);
  });
}

test("a client that shows the end of a thread gets all of it, even if the end begins with its first question", async () => {
  const say = createScene({ hint: "header:x-session-id:kitchen", hintsAtTalk: true });
  for (const text of ["go on", "why?", "go on", "and then?"]) await say([user(text)]);
  const { seen } = await say([...talk("go on", "and then?"), user("stop")]);
  assert.deepEqual(seen, [...talk("go on", "why?", "go on", "and then?"), user("stop")]);
});

test("so does one that showed the beginning of the thread when the session was new", async () => {
  const say = createScene({ hint: "header:x-session-id:kitchen", hintsAtTalk: true });
  await say([...talk("go on", "why?"), user("go on")]);
  const { seen } = await say([...talk("go on"), user("stop")]);
  assert.deepEqual(seen, [...talk("go on", "why?", "go on"), user("stop")]);
});

test("one exchange is not enough when the session has several conversations", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("thanks")]);
  await say([user("another")]);
  const { history, seen } = await say([...talk("thanks"), user("secret?")]);
  assert.equal(history, "foreign");
  assert.deepEqual(seen, [...talk("thanks"), user("secret?")]);
});

test("a session whose clients resend their history starts a new thread for a request without one", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  const other = await say([user("hello")]);
  assert.equal(other.history, "new");
  assert.deepEqual(other.seen, [user("hello")]);
  assert.deepEqual((await say([...talk("hello"), user("more")])).seen, [...talk("hello"), user("more")]);
});

test("a tool's output continues the call that waits for it even in such a session", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("CALL")]);
  const { seen, history } = await say([output("c1")]);
  assert.equal(history, "continued");
  assert.deepEqual(seen, [...talk("one"), user("CALL"), called("c1"), output("c1")]);
});

test("it does so in a thread that began without a history there, with more said after the output", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  assert.equal((await say([user("CALL")])).history, "new");
  const { seen, history } = await say([output("c1"), user("and?")]);
  assert.equal(history, "continued");
  assert.deepEqual(seen, [user("CALL"), called("c1"), output("c1"), user("and?")]);
});

test("a blank answer is an answer: the question before it is not repeated", async () => {
  for (const hint of [undefined, { hint: "header:x-session-id:kitchen", hintsAtTalk: true }]) {
    const say = createScene(hint);
    await say([user("BLANK")]);
    const second = await say([system("Be brief."), user("BLANK"), assistant(""), user("two")]);
    assert.equal(second.history, "matched");
    const kinds = second.seen.map((item) =>
      item.type === "message" ? `${item.role} ${item.content as string}` : item.type,
    );
    assert.deepEqual(
      kinds.filter((kind) => kind !== "reasoning" && kind !== "assistant "),
      ["system Be brief.", "user BLANK", "user two"],
    );
    const third = await say([user("BLANK"), assistant(""), user("two"), assistant("re: two"), user("three")]);
    assert.equal(third.history, "matched");
    assert.equal(third.seen.filter((item) => item.type === "message" && item.role === "user").length, 3);
    const between = [user("BLANK"), assistant(""), user("two"), assistant("re: two"), user("BLANK")];
    assert.equal((await say(between)).history, "forked");
    const after = await say([...between, assistant(" "), user("four")]);
    assert.equal(after.history, "matched");
    assert.equal(after.seen.filter((item) => item.type === "message" && item.role === "user").length, 4);
  }
});

test("a question answered without text is not repeated for a caller that has nothing to show of its answer", async () => {
  const thought: Item = { type: "reasoning", summary: [], text: "Hm." };
  for (const between of [[], [thought]]) {
    const say = createScene();
    await say([user("BLANK")]);
    const second = await say([user("BLANK"), ...between, user("two")]);
    assert.equal(second.history, "continued");
    assert.deepEqual(
      second.seen.flatMap((item) => (item.type === "message" ? [item.content] : [])),
      ["BLANK", "two"],
    );
  }
  const say = createScene();
  await say([user("BLANK")]);
  // A caller that sends it alone asks it once more.
  assert.equal((await say([user("BLANK")])).seen.filter((item) => item.type === "message").length, 2);
});

test("nor is it repeated late in a conversation, sent below a system message", async () => {
  const say = createScene();
  for (const text of ["one", "two", "BLANK"]) await say([user(text)]);
  const { seen } = await say([system("Be brief."), user("BLANK"), user("four")]);
  assert.deepEqual(
    seen.filter(({ type }) => type === "message"),
    [system("Be brief."), ...talk("one", "two"), user("BLANK"), user("four")],
  );
});

test("several questions answered without text are not repeated, however they are split into messages", async () => {
  const say = createScene();
  await say([user("Look.\nBLANK")]);
  await say([user("Look."), user("BLANK"), user("BLANK")]);
  const third = await say([user("Look."), user("BLANK"), user("BLANK"), user("three")]);
  assert.equal(third.history, "continued");
  assert.deepEqual(
    third.seen.flatMap((item) => (item.type === "message" ? [item.content] : [])),
    ["Look.\nBLANK", "BLANK", "three"],
  );
});

test("a different question after an answer without text is kept in full", async () => {
  const say = createScene();
  await say([user("Look. BLANK")]);
  const others = ["Where", "isthatx", "now?"].map(user);
  const { seen, history } = await say(others);
  assert.equal(history, "continued");
  assert.deepEqual(
    seen.filter((item) => item.type === "message"),
    [user("Look. BLANK"), ...others],
  );
});

test("an answer of two messages is recognised as one text, though its question came with an exchange of the client's own", async () => {
  const say = createScene();
  await say([user("one")]);
  const history = [...talk("one"), user("two"), assistant("My own answer."), user("three SPLIT")];
  assert.equal((await say(history)).history, "forked");
  assert.equal((await say([...history, assistant("re: three SPLIT"), user("four")])).history, "matched");
});

test("the model sees a blank answer once, though a conversation other than the newest branches after it", async () => {
  const say = createScene();
  const history = [...talk("one"), user("two"), assistant("")];
  await say([...history, user("three")]);
  await say([...talk("one"), user("else")]);
  const edited = [...history, user("four")];
  assert.deepEqual((await say(edited)).seen, edited);
});

test("the model sees the reasoning of a blank answer once", async () => {
  const say = createScene();
  const reasoning: Item = { type: "reasoning", summary: [], text: "Hm." };
  const history = [...talk("one"), user("two"), reasoning, assistant("")];
  await say([...history, user("three")]);
  await say([...talk("one"), user("else")]);
  const edited = [...history, user("four")];
  assert.deepEqual((await say(edited)).seen, edited);
});

test("the model sees once the reasoning that an answer ends with", async () => {
  const reasoning: Item = { type: "reasoning", summary: [], text: "Hm." };
  const step = [user("CALL HM"), called("c1"), reasoning, output("c1")];
  const inHeader = { hint: "header:x-session-id:kitchen", hintsAtTalk: true };
  for (const hint of [undefined, inHeader]) {
    const say = createScene(hint);
    await say([user("one")]);
    await say([...talk("one"), user("CALL HM")]);
    assert.deepEqual((await say([...talk("one"), ...step])).seen, [...talk("one"), ...step]);
    const other = [...talk("one"), ...step.slice(0, -1), user("never mind")];
    const { history, seen } = await say(other);
    assert.equal(history, "forked");
    assert.deepEqual(seen, [...talk("one"), user("CALL HM"), reasoning, user("never mind")]);
  }
  const say = createScene(inHeader);
  const { id } = await say([user("CALL HM")]);
  assert.deepEqual((await say(step)).seen, step);
  assert.deepEqual((await say(step, { previousId: id })).seen, step);
  const said = [user("so HM"), assistant("re: so HM"), reasoning, user("two")];
  await say(said.slice(0, 1));
  assert.deepEqual((await say(said)).seen.slice(-4), said);
  assert.deepEqual((await say([...said.slice(0, -1), user("three")])).seen.slice(-4, -1), said.slice(0, -1));
});

test("a client that shows the end of its history is matched by it, even if an earlier answer was blank", async () => {
  const say = createScene({ hint: "header:x-session-id:kitchen", hintsAtTalk: true });
  await say([user("one")]);
  await say([...talk("one"), user("BLANK")]);
  await say([user("BLANK"), assistant(""), user("three")]);
  const fourth = await say([...talk("three"), user("four")]);
  assert.equal(fourth.history, "matched");
  assert.deepEqual(
    fourth.seen.flatMap((item) => (item.type === "message" && item.role === "user" ? [item.content] : [])),
    ["one", "BLANK", "three", "four"],
  );
});

test("an empty placeholder for the answer does not count as an answer", async () => {
  const say = createScene();
  await say([user("one")]);
  const second = await say([user("two"), assistant("")]);
  assert.equal(second.history, "continued");
  assert.deepEqual(second.seen.slice(0, 3), [...talk("one"), user("two")]);
});

test("nor does it below a history, or after an answer that nobody has replied to: there the model does not see it", async () => {
  const say = createScene();
  await say([user("one")]);
  assert.equal((await say([...talk("one"), user("two"), assistant("")])).history, "matched");
  assert.deepEqual((await say([...talk("one"), assistant(""), assistant(" ")])).seen, talk("one"));
});

test("a sentence that is said twice is seen twice", async () => {
  const say = createScene();
  await say([user("again")]);
  const { seen } = await say([...talk("again"), user("again")]);
  assert.deepEqual(seen, [...talk("again"), user("again")]);
});

test("tool calls and their outputs are matched like text, whatever their ids", async () => {
  const say = createScene();
  await say([user("CALL")]);
  const shown = [user("CALL"), called("other-id"), output("other-id")];
  const { history, seen } = await say([...shown]);
  assert.equal(history, "matched");
  assert.deepEqual(seen, [user("CALL"), called("c1"), { ...output("c1") }]);
});

test("a call shown with different arguments is a different call", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("CALL")]);
  const other: Item = { type: "tool-call", kind: "function", callId: "c1", name: "f", arguments: '{"a":1}' };
  const shown = [...talk("one"), user("CALL"), other, output("c1")];
  const { history, seen } = await say(shown);
  assert.equal(history, "forked");
  assert.deepEqual(seen, shown);
});

test("an output without a call is refused after a known history too", async () => {
  const say = createScene();
  await say([user("one")]);
  await assert.rejects(say([...talk("one"), output("c9")]), { code: "tool_call_mismatch", param: "messages" });
});

/** A call that only its dialect defines. */
const command: Item = {
  type: "other",
  extra: { dialect: "responses", fields: { type: "shell_call", call_id: "x" } },
  exchange: { side: "model", id: "x" },
};

test("an unanswered call is omitted after a known history too, including one that only its dialect defines", async () => {
  for (const open of [called("x"), command]) {
    const say = createScene();
    await say([user("one")]);
    const unanswered = [user("two"), assistant("re: two"), user("three")];
    const { history, seen } = await say([...talk("one"), ...unanswered.toSpliced(1, 0, open)]);
    assert.equal(history, "forked");
    assert.deepEqual(seen, [...talk("one"), ...unanswered]);
  }
});

test("a system message is not part of the match, and the request's own applies", async () => {
  const say = createScene();
  await say([system("be brief"), user("one")]);
  const { history, seen } = await say([system("be kind"), ...talk("one"), user("two")]);
  assert.equal(history, "matched");
  assert.deepEqual(seen, [system("be kind"), ...talk("one"), user("two")]);
  const third = await say([...talk("one", "two"), user("three")]);
  assert.deepEqual(third.seen, [system("be kind"), ...talk("one", "two"), user("three")]);
});

test("an end that two conversations share matches neither", async () => {
  const say = createScene();
  for (const first of ["one", "other"]) {
    await say([user(first)]);
    await say([...talk(first), user("hi")]);
    await say([...talk(first, "hi"), user("thanks")]);
  }
  const { history, seen } = await say([...talk("hi", "thanks"), user("which?")]);
  assert.equal(history, "foreign");
  assert.deepEqual(seen, [...talk("hi", "thanks"), user("which?")]);
});

test("the end of a history continues a thread that has no continuation yet, and branches after that", async () => {
  const say = createScene();
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  // The same answer twice, of which the newest is continued.
  for (const _ of [1, 2]) await say([...talk("one", "two"), user("three")]);
  await say([...talk("one", "two", "three"), user("four")]);
  assert.equal((await say([...talk("two", "three"), user("five")])).history, "matched");
  assert.equal((await say([...talk("two", "three"), user("six")])).history, "forked");
});

test("a thread that ends with the whole shown history is preferred to one that only starts with it", async () => {
  const say = createScene();
  for (const text of ["one", "hi", "two"]) await say([user(text)]);
  await say([...talk("one", "hi", "two"), user("three")]);
  await say([user("hi")]);
  const { history, seen } = await say([...talk("hi", "two", "three"), user("four")]);
  assert.equal(history, "matched");
  assert.deepEqual(seen, [...talk("one", "hi", "two", "three"), user("four")]);
});

test("a thread that equals the shown history is preferred to one that only ends with it", async () => {
  const say = createScene();
  await say([user("zero")]);
  await say([...talk("zero"), user("one")]);
  await say([...talk("zero", "one"), user("two")]);
  await say([user("one")]);
  await say([...talk("one"), user("two")]);
  const { history, seen } = await say([...talk("one", "two"), user("three")]);
  assert.equal(history, "matched");
  assert.deepEqual(seen, [...talk("one", "two"), user("three")]);
});

/** A model that calls a tool, with a new id each time, on a user message, and answers on its output. */
function createCaller() {
  let calls = 0;
  const scene = open(async function* (turn) {
    if (turn.items.at(-1)?.type === "tool-output") return yield [{ type: "text", text: "done" }];
    yield [{ type: "tool-call", index: 0, callId: `ours-${++calls}`, name: "f" }];
    yield [{ type: "tool-arguments", index: 0, text: "{}" }];
  });
  const send = async (...items: readonly Item[]) => {
    const { about, events } = await scene.answer({ items, keep: "in-session" }, { hint: "user:u" });
    await Array.fromAsync(events);
    return { ...about, seen: scene.adapter.turns.at(-1)?.items ?? [] };
  };
  return { ...scene, send };
}

test("an output of a client that gives all calls the same id answers the newest of them", async () => {
  const { send } = createCaller();
  await send(user("one"));
  const first = [user("one"), called("theirs"), output("theirs")];
  await send(...first);
  const second = [...first, assistant("done"), user("two")];
  await send(...second);
  const { seen, history } = await send(...second, called("theirs"), output("theirs"));
  assert.equal(history, "matched");
  assert.deepEqual(
    seen.map((item) => (item.type === "tool-call" || item.type === "tool-output" ? item.callId : item.type)),
    ["message", "ours-1", "ours-1", "message", "message", "ours-2", "ours-2"],
  );
});

test("an open call can still be answered after an earlier turn was deleted", async () => {
  const { send, gateway } = createCaller();
  const { id } = await send(user("one"));
  await send(user("two"));
  await send(user("three"));
  await gateway.forget("ann", id);
  const { seen, history } = await send(output("ours-2"));
  assert.equal(history, "continued");
  assert.deepEqual(seen, [user("two"), called("ours-2"), output("ours-2"), user("three")]);
});

test("a call whose output was deleted is omitted for a caller that continues a later turn by id", async () => {
  const { send, gateway, answer, adapter } = createCaller();
  await send(user("one"));
  const { id } = await send(output("ours-1"));
  const { id: previousId } = await send(user("two"));
  await gateway.forget("ann", id);
  await assert.rejects(answer({ previousId, items: [user("three")] }), { code: "tool_call_mismatch" });
  await Array.fromAsync((await answer({ previousId, items: [output("ours-2")] })).events);
  assert.deepEqual(adapter.turns.at(-1)?.items, [user("one"), user("two"), called("ours-2"), output("ours-2")]);
});

test("an answer that was cut off can be continued by its id", async () => {
  const { answer, adapter } = open([[{ type: "text", text: "half" }], [{ type: "finish", reason: "length" }]]);
  const cut = await answer();
  await Array.fromAsync(cut.events);
  await Array.fromAsync((await answer({ previousId: cut.about.id, items: [user("go on")] })).events);
  assert.equal(adapter.turns.at(-1)?.items.length, 3);
});

test("an output is stored under the stored id of its call, even after an earlier turn was deleted", async () => {
  const { send, gateway, answer, adapter } = createCaller();
  const { id } = await send(user("one"));
  const first = [user("one"), called("theirs-1"), output("theirs-1")];
  await send(...first);
  const second = [...first, assistant("done"), user("two")];
  await send(...second);
  await gateway.forget("ann", id);
  const third = await send(...second, called("theirs-2"), output("theirs-2"));
  assert.deepEqual(third.seen.slice(-2), [called("ours-2"), output("ours-2")]);
  await Array.fromAsync((await answer({ previousId: third.id, items: [user("four")] })).events);
  assert.deepEqual(adapter.turns.at(-1)?.items.slice(-4), [
    called("ours-2"),
    output("ours-2"),
    assistant("done"),
    user("four"),
  ]);
});

/** A model that makes parallel calls when asked something, and is done when it has their outputs. */
function createParallelScene() {
  const store = createMemoryStore();
  const adapter = createScriptedAdapter(async function* ({ items }) {
    if (items.length > 1) return yield [{ type: "text", text: "done" }];
    yield [0, 1, 2].map((index) => ({ type: "tool-call", index, callId: `c${index}`, name: `f${index}` }) as const);
  });
  const gateway = makeGateway({ adapter, store });
  const newId = createIds(() => new Date());
  const say = async (items: readonly Item[]) => {
    const ask = { model: "m", items, itemsParam: "messages", settings: { tools: [] }, stream: false } as const;
    const caller = { turnId: newId("resp"), owner: "ann", hint: "user:u", signal: new AbortController().signal };
    const { about, events } = await gateway.answer({ ...ask, keep: "in-session" }, caller);
    await Array.fromAsync(events);
    return about;
  };
  const callTo = (index: number): Item => {
    return { type: "tool-call", kind: "function", callId: `c${index}`, name: `f${index}`, arguments: "" };
  };
  const give = (index: number, text: string): Item => ({ ...output(`c${index}`), output: text }) as Item;
  return { store, say, callTo, give };
}

test("outputs whose calls were deleted are recognised in any order", async () => {
  const { store, say, callTo, give } = createParallelScene();
  const calls = [0, 1].map(callTo);
  const given = [give(0, "zero"), give(1, "one")];
  const first = await say([user("go")]);
  await say(given.toReversed());
  assert.equal(await store.deleteTurn("ann", first.id), true);
  const shown = [user("go"), ...calls, ...given, assistant("done"), user("next")];
  assert.equal((await say(shown)).history, "matched");
  const others = [give(0, "nought"), give(1, "one")];
  const edited = [user("go"), ...calls, ...others, assistant("done"), user("next"), assistant("done"), user("more")];
  assert.equal((await say(edited)).history, "foreign");
});

test("outputs in another order than their calls are recognised on a branch that is not the current one too", async () => {
  const { say, callTo, give } = createParallelScene();
  const asked = [user("go"), ...[0, 1, 2].map(callTo)];
  await say([user("go")]);
  await say([...asked, give(2, "two"), give(1, "one"), give(0, "zero")]);
  await say([...asked, give(0, "nought"), give(1, "one"), give(2, "two")]);
  const shown = [...asked, give(1, "one"), give(2, "two"), give(0, "zero"), assistant("done"), user("next")];
  assert.equal((await say(shown)).history, "matched");
});
