/** Turns of several steps in which the client runs tools: what it shows between them belongs to one turn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import type { Tool } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter } from "../scripted.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const output = (callId: string): Item => ({ type: "tool-output", kind: "function", callId, output: `said ${callId}` });
const call = (callId: string): Item => {
  return { type: "tool-call", kind: "function", callId, name: "look", arguments: "{}" };
};

/**
 * The model calls a tool when asked to look, twice at once if asked to, reasons after each call if asked to think, and
 * calls it again when the tool says so. Its answer is blank if asked to hush.
 */
function createScene(hint: { readonly hint: string; readonly hintsAtTalk?: boolean }, store = createMemoryStore()) {
  let calls = 0;
  const adapter = createScriptedAdapter(async function* ({ items }) {
    const last = items.at(-1)!;
    const said = last.type === "message" ? last.content : last.type === "tool-output" ? last.output : "";
    const isLook = String(said).startsWith("look");
    if (!isLook) return yield [{ type: "text", text: said === "hush" ? " " : "well" }];
    for (let index = 0; index < (String(said).startsWith("look twice") ? 2 : 1); index += 1) {
      yield [
        { type: "tool-call", index, callId: `c${(calls += 1)}`, name: "look" },
        { type: "tool-arguments", index, text: "{}" },
      ];
      if (String(said).endsWith("think")) yield [{ type: "reasoning", text: `hm ${index}` }];
    }
  });
  const newId = createIds(() => new Date());
  const gateway = makeGateway({ adapter, store });
  const sayWith = async (
    tools: readonly Tool[],
    ...items: readonly Item[]
  ): Promise<{ readonly history: string | undefined; readonly seen: readonly Item[] }> => {
    const ask = { model: "m", items, itemsParam: "messages", settings: { tools }, stream: false } as const;
    const caller = { turnId: newId("resp"), owner: "ann", ...hint, signal: new AbortController().signal };
    const { about, events } = await gateway.answer({ ...ask, keep: "in-session" }, caller);
    await Array.fromAsync(events);
    return { history: about.history, seen: (adapter.turns.at(-1)?.items ?? []).map(bare) };
  };
  return Object.assign((...items: readonly Item[]) => sayWith([], ...items), { with: sayWith });
}

function bare(item: Item): Item {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined)) as unknown as Item;
}

const talk = { hint: "header:x-session-id:kitchen", hintsAtTalk: true };
const speaker = { hint: "user:ann" };
const kinds = { "a header": talk, "a `user`": speaker };

for (const [kind, hint] of Object.entries(kinds)) {
  for (const [name, open] of Object.entries({ memory: createMemoryStore, sqlite: openSqlite })) {
    test(`${name}, ${kind}: a client that sends only new items may show the steps of its turn, and nothing is forgotten`, async (context) => {
      const store = open();
      context.after(() => store.close());
      const say = createScene(hint, store);
      await say(user("I am Ann."));
      const before = [user("I am Ann."), assistant("well")];
      assert.deepEqual((await say(user("look up"))).seen, [...before, user("look up")]);
      const step = [user("look up"), call("c1"), output("c1")];
      assert.deepEqual(await say(...step), { history: "matched", seen: [...before, ...step] });
      const after = [...before, ...step, assistant("well"), user("Who am I?")];
      assert.deepEqual(await say(user("Who am I?")), { history: "continued", seen: after });
    });
  }

  test(`${kind}: a client that sends only new items may show just the call and its output`, async () => {
    const say = createScene(hint);
    await say(user("I am Ann."));
    await say(user("look up"));
    const seen = [user("I am Ann."), assistant("well"), user("look up"), call("c1"), output("c1")];
    assert.deepEqual(await say(call("c1"), output("c1")), { history: "matched", seen });
    assert.deepEqual((await say(user("Who am I?"))).seen, [...seen, assistant("well"), user("Who am I?")]);
  });

  test(`${kind}: a client that also shows an older question shows its history, and is treated so from then on`, async () => {
    const say = createScene(hint);
    await say(user("I am Ann."));
    const history = [user("I am Ann."), assistant("well")];
    await say(...history, user("look up"));
    const step = [...history, user("look up"), call("c1"), output("c1")];
    assert.deepEqual(await say(...step), { history: "matched", seen: step });
    assert.deepEqual(await say(user("Hello")), { history: "new", seen: [user("Hello")] });
  });
}

test("a client that shows everything but a blank answer shows its history too", async () => {
  const say = createScene(speaker);
  await say(user("hush"));
  await say(user("look up"));
  const { history } = await say(user("hush"), user("look up"), call("c1"), output("c1"));
  assert.equal(history, "matched");
  assert.deepEqual(await say(user("Hello")), { history: "new", seen: [user("Hello")] });
});

test("a step is recognised by its call, even if its text has changed or was asked before", async () => {
  const say = createScene(talk);
  await say(user("look up"));
  await say(user("look up"), call("c1"), output("c1"));
  await say(user("I am Ann."));
  const { seen } = await say(user("look up"));
  const step = [user("<reminder> look up"), assistant("Let me see."), call("c2"), output("c2")];
  assert.deepEqual(await say(...step), { history: "matched", seen: [...seen, call("c2"), output("c2")] });
  const same = [user("look up"), call("c3"), output("c3")];
  const later = await say(user("look up"));
  assert.deepEqual(await say(...same), { history: "matched", seen: [...later.seen, call("c3"), output("c3")] });
});

test("a message after a tool's output belongs to the same turn, and does not count as a history", async () => {
  const say = createScene(talk);
  await say(user("I am Ann."));
  await say(user("look up"));
  const step = [user("look up"), call("c1"), output("c1"), user("Be brief.")];
  const before = [user("I am Ann."), assistant("well"), ...step];
  assert.deepEqual(await say(...step), { history: "matched", seen: before });
  const after = [...before, assistant("well"), user("Who am I?")];
  assert.deepEqual(await say(user("Who am I?")), { history: "continued", seen: after });
});

test("a client may show parallel calls one by one, each with its output, and the model sees all of them", async () => {
  const before = [user("I am Ann."), assistant("well")];
  for (const earlier of [[], before]) {
    const say = createScene(talk);
    if (earlier.length > 0) await say(user("I am Ann."));
    await say(user("look twice"));
    const step = [user("look twice"), call("c1"), output("c1"), call("c2"), output("c2")];
    const seen = [...earlier, user("look twice"), call("c1"), call("c2"), output("c1"), output("c2")];
    assert.deepEqual(await say(...step), { history: "matched", seen });
    assert.deepEqual((await say(user("And now?"))).seen, [...seen, assistant("well"), user("And now?")]);
  }
});

test("the model sees once what it thought after each of them", async () => {
  const say = createScene(talk);
  await say(user("look twice and think"));
  const [first, second] = ["hm 0", "hm 1"].map((text): Item => ({ type: "reasoning", summary: [], text }));
  const step = [user("look twice and think"), call("c1"), first!, output("c1"), call("c2"), second!, output("c2")];
  const calls = [call("c1"), first!, call("c2"), second!];
  assert.deepEqual((await say(...step)).seen, [user("look twice and think"), ...calls, output("c1"), output("c2")]);
});

for (const [kind, hint] of Object.entries(kinds)) {
  test(`${kind}: a client may show those of earlier steps one by one too, and nothing before them is forgotten or changed`, async () => {
    const say = createScene(hint);
    const before = [user("I am Ann."), assistant("well")];
    await say(user("I am Ann."));
    const question: readonly Item[] = [
      { type: "message", role: "user", content: "Please:", name: "Ann" },
      user("look twice"),
    ];
    await say(...question);
    const lookAgain: Item = { type: "tool-output", kind: "function", callId: "c2", output: "look twice" };
    const step = [...question, call("c1"), output("c1"), call("c2"), lookAgain];
    await say(...step);
    const seen = [...before, ...question, call("c1"), call("c2"), output("c1"), lookAgain];
    seen.push(call("c3"), call("c4"), output("c3"), output("c4"));
    const next = [...step, call("c3"), output("c3"), call("c4"), output("c4")];
    assert.deepEqual(await say(...next), { history: "matched", seen });
    assert.deepEqual((await say(user("And now?"))).seen, [...seen, assistant("well"), user("And now?")]);
  });
}

for (const [kind, hint] of Object.entries(kinds)) {
  test(`${kind}: what a client inserts into the steps that it shows leaves what came before as it was`, async () => {
    const say = createScene(hint);
    await say(user("I am Ann."));
    const named: Item = { type: "message", role: "user", content: "Please:", name: "Ann" };
    const before = [user("I am Ann."), assistant("well"), named, user("look up")];
    const lookAgain = (callId: string): Item => ({ type: "tool-output", kind: "function", callId, output: "look up" });
    const steps = [named, user("look up")];
    for (const callId of ["c1", "c2", "c3"]) {
      assert.deepEqual((await say(...steps)).seen.slice(0, 4), before);
      if (callId !== "c1") steps.push(user("Remember the rules."));
      steps.push(call(callId), callId === "c3" ? output(callId) : lookAgain(callId));
    }
    const { history, seen } = await say(...steps);
    assert.deepEqual({ history, before: seen.slice(0, 4) }, { history: "matched", before });
    assert.deepEqual((await say(user("Who am I?"))).seen, [...seen, assistant("well"), user("Who am I?")]);
  });
}

test("what a client says between parallel calls reaches the model", async () => {
  const say = createScene(talk);
  await say(user("I am Ann."));
  await say(user("look twice"));
  const step = [user("look twice"), call("c1"), output("c1"), user("Be brief."), call("c2"), output("c2")];
  assert.deepEqual((await say(...step)).seen.at(-1), user("Be brief."));
});

test("a step that shows more than is stored does not match what is stored", async () => {
  const say = createScene(talk);
  await say(user("look up"));
  const step = [user("look up"), call("c1"), output("c1"), call("x2"), output("x2")];
  assert.deepEqual((await say(...step)).seen, step);
});

test("a client's extras beside a call in a step reach the model", async () => {
  const say = createScene(talk);
  await say(user("I am Ann."));
  await say(user("look up"));
  const extra = { dialect: "chat", fields: { reasoning_content: "Hm" } } as const;
  const carrier: Item = { type: "message", role: "assistant", content: "", extra };
  const { seen } = await say(user("look up"), carrier, call("c1"), output("c1"));
  assert.deepEqual(seen.slice(-4), [user("look up"), carrier, call("c1"), output("c1")]);
});

test("a header names one conversation, which continues when its first turn had several steps", async () => {
  const say = createScene(talk);
  await say(user("look up"));
  const step = [user("look up"), call("c1"), output("c1")];
  assert.deepEqual(await say(...step), { history: "matched", seen: step });
  assert.deepEqual((await say(user("And now?"))).seen, [...step, assistant("well"), user("And now?")]);
});

test("a `user` may have several conversations at once, so such a client counts as one that shows its history", async () => {
  const say = createScene(speaker);
  await say(user("look up"));
  await say(user("look up"), call("c1"), output("c1"));
  assert.deepEqual(await say(user("And now?")), { history: "new", seen: [user("And now?")] });
});

test("a call's id from another conversation is not matched where clients show their history", async () => {
  const say = createScene(speaker);
  await say(user("look up"));
  await say(user("look down"));
  await say(user("look up"), call("c1"), output("c1"));
  const step = [user("look down"), call("c2"), output("c2")];
  assert.deepEqual(await say(...step), { history: "foreign", seen: step });
});

for (const [kind, hint] of Object.entries(kinds)) {
  test(`${kind}: a client that leaves its tool steps out of its history is foreign once, and each exchange is stored once more`, async () => {
    const store = createMemoryStore();
    const say = createScene(hint, store);
    const told: Item[] = [];
    const stored: number[] = [];
    for (const [index, history] of ["new", "foreign", "forked", "forked", "forked"].entries()) {
      const asked = [...told, user(`look ${index}`)];
      assert.deepEqual(await say(...asked), { history, seen: asked });
      const step = [...asked, call(`c${index + 1}`), output(`c${index + 1}`)];
      assert.deepEqual(await say(...step), { history: "matched", seen: step });
      told.push(user(`look ${index}`), assistant("well"));
      const records = await Array.fromAsync(store.exportRecords());
      const turns = records.flatMap((record) => (record.type === "turn" ? [record.turn] : []));
      stored.push(turns.reduce((sum, turn) => sum + turn.input.length + turn.output.length, 0));
    }
    assert.deepEqual(stored, [4, 10, 16, 22, 28]);
  });
}

test("a title that is requested before a conversation starts is not part of it", async () => {
  const say = createScene(talk);
  const title = [system("You make titles."), user("A title for this:"), user("Mend it")];
  assert.equal((await say(...title)).history, "new");
  const first = [system("You write code."), user("Mend it")];
  assert.deepEqual(await say(...first), { history: "new", seen: first });
  const next = [...first, assistant("well"), user("Thanks")];
  assert.deepEqual(await say(...next), { history: "matched", seen: next });
});

test("a title requested afterwards is not part of it, and a client that sends only new items continues the conversation", async () => {
  const first = [system("You write code."), user("Mend it")];
  for (const title of [
    [system("You make titles."), user("Mend it")],
    [system("You make titles."), user("A title for this:"), user("Mend it")],
  ]) {
    const say = createScene(talk);
    await say(...first);
    assert.deepEqual(await say(...title), { history: "new", seen: title });
    const seen = [...first, assistant("well"), user("Thanks")];
    assert.deepEqual(await say(user("Thanks")), { history: "continued", seen });
  }
  const say = createScene(talk);
  await say(system("You make titles."), user("A title for this:"), user("Mend it"));
  await say(...first);
  assert.deepEqual((await say(user("Thanks"))).seen, [...first, assistant("well"), user("Thanks")]);
});

test("a title is not part of it either when the first question was never answered and is sent with the next", async () => {
  const say = createScene(talk);
  await say(system("You make titles."), user("A title for this:"), user("Mend it"));
  const next = [system("You write code."), user("Mend it"), user("Or that")];
  assert.deepEqual(await say(...next), { history: "new", seen: next });
});

test("repeating a message under the same instructions, or a new message under others, continues the conversation", async () => {
  for (const next of [
    [system("Be brief."), user("Mend it")],
    [system("It is noon."), user("And this")],
    [user("Mend it")],
  ]) {
    const say = createScene(talk);
    await say(system("Be brief."), user("Mend it"));
    assert.equal((await say(...next)).history, "continued");
  }
});

test("a repeated question continues a conversation that had no instructions, or more than one turn, under any", async () => {
  const say = createScene(talk);
  await say(user("Mend it"));
  assert.equal((await say(system("You write code."), user("Mend it"))).history, "continued");
  assert.equal((await say(system("You make titles."), user("Mend it"))).history, "continued");
});

test("a changing clock in the instructions does not make the same words another conversation", async () => {
  const say = createScene(talk);
  await say(system("Now: 9:59"), user("hi"));
  assert.equal((await say(system("Now: 10:00"), user("hi"))).history, "continued");
  const talked = [user("hi"), assistant("well"), user("hi"), assistant("well"), user("What did I say?")];
  const last = system("It is 10:02");
  assert.deepEqual((await say(last, user("What did I say?"))).seen, [last, ...talked]);
});

test("of a title and a conversation with the same question, the one with tools is the conversation", async () => {
  const say = createScene(talk);
  const agent = system("You cook with what is there.");
  await say(system("Make a title"), user("rice?"));
  await say.with(tools, agent, user("rice?"));
  const { seen } = await say.with(tools, agent, user("pasta?"));
  assert.deepEqual(seen, [agent, user("rice?"), assistant("well"), user("pasta?")]);
});

test("a client may shorten the steps of a first turn, as nothing precedes them", async () => {
  for (const short of [
    [user("look up"), call("c1"), { ...output("c1"), output: "[cleared]" }, call("c2"), output("c2")],
    [user("In short: all is well."), call("c2"), output("c2")],
  ] as const) {
    const say = createScene(talk);
    await say(user("look up"));
    await say(user("look up"), call("c1"), output("c1"), user("look on"));
    assert.deepEqual((await say(...short)).seen, short);
    assert.deepEqual((await say(user("And now?"))).seen, [...short, assistant("well"), user("And now?")]);
  }
});

test("a question that is sent with every output, without its calls, is shown once", async () => {
  const say = createScene(talk);
  await say(user("I am Ann."));
  await say(user("look up"));
  const again: Item = { type: "tool-output", kind: "function", callId: "c1", output: "look again" };
  const seen = [user("I am Ann."), assistant("well"), user("look up"), call("c1"), again];
  assert.deepEqual((await say(user("look up"), again)).seen, seen);
  assert.deepEqual((await say(user("look up"), again, output("c2"))).seen, [...seen, call("c2"), output("c2")]);
  const after = [...seen, call("c2"), output("c2"), assistant("well"), user("Thanks")];
  assert.deepEqual((await say(user("Thanks"))).seen, after);
});

test("it is shown once late in a conversation too, and what is said after it or between the outputs is kept", async () => {
  for (const more of [[], [user("Hurry."), output("c2")]]) {
    const say = createScene(talk);
    for (const text of ["I am Ann.", "I cook."]) await say(user(text));
    const { seen } = await say(user("look up"));
    const again: Item = { type: "tool-output", kind: "function", callId: "c1", output: "look again" };
    if (more.length > 0) await say(again);
    const steps = [call("c1"), again, ...(more.length > 0 ? [call("c2"), output("c2"), user("Hurry.")] : [])];
    assert.deepEqual((await say(user("look up"), again, ...more, user("Thanks"))).seen, [
      ...seen,
      ...steps,
      user("Thanks"),
    ]);
  }
});

test("an output for an abandoned call, or a second one for an answered call, reaches the model", async () => {
  const say = createScene(talk);
  await say(user("look up"));
  await say(user("look down"));
  const told = [user("look up"), call("c1"), output("c1"), user("look down"), call("c2"), output("c2")];
  assert.deepEqual((await say(output("c1"), output("c2"))).seen, told);
  const second: Item = { type: "tool-output", kind: "function", callId: "c2", output: "No, this." };
  const { seen } = await say(second);
  assert.ok(seen.some((item) => item.type === "tool-output" && item.output === "No, this."));
});

const tools: readonly Tool[] = [{ type: "function", name: "look" }];

function openSqlite() {
  return createSqliteStore({ file: ":memory:" });
}
