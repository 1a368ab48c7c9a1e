/** Calls and their outputs as the model sees them, however a request was placed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import { pairTools } from "../../src/core/place/tools.ts";
import type { Ask } from "../../src/core/turn.ts";
import type { Script } from "../scripted.ts";
import { worked } from "../worked.ts";
import { drain, open } from "./asking.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const developer = (content: string): Item => ({ type: "message", role: "developer", content });
const call = (callId: string): Item => {
  return { type: "tool-call", kind: "function", callId, name: "look", arguments: "{}" };
};
const output = (callId: string, said = "seen"): Item => {
  return { type: "tool-output", kind: "function", callId, output: said };
};

/** What the model sees of a request that follows one in which it called `c1` and `c2`. */
async function see(by: "nothing" | "response" | "conversation", told: readonly Item[]): Promise<readonly Item[]> {
  const { adapter, answer, gateway } = open([
    [
      { type: "tool-call", index: 0, callId: "c1", name: "look" },
      { type: "tool-arguments", index: 0, text: "{}" },
      { type: "tool-call", index: 1, callId: "c2", name: "look" },
      { type: "tool-arguments", index: 1, text: "{}" },
    ],
  ]);
  const { id: conversationId } = await gateway.conversations.create("ann", {}, { turnId: "resp_0", items: [] });
  const first = await answer({ items: [user("look")], ...(by === "conversation" && { conversationId }) });
  await drain(first);
  const next: Record<typeof by, Partial<Ask>> = {
    nothing: { items: [user("look"), call("c1"), call("c2"), ...told] },
    response: { items: told, previousId: first.about.id },
    conversation: { items: told, conversationId },
  };
  await drain(await answer(next[by]));
  return adapter.turns
    .at(-1)!
    .items.map(({ type, ...item }) =>
      type === "tool-call" && "callId" in item ? call(item.callId) : ({ type, ...item } as Item),
    );
}

const before = [user("look"), call("c1"), call("c2")];
for (const by of ["nothing", "response", "conversation"] as const) {
  test(`${by}: an output that arrives after other messages is placed after its call`, async () => {
    const seen = await see(by, [output("c1"), user("wait"), output("c2")]);
    assert.deepEqual(seen, [...before, output("c2"), output("c1"), user("wait")]);
  });

  test(`${by}: a call that is sent along with its output is shown once`, async () => {
    const seen = await see(by, [call("c1"), output("c1"), call("c2"), output("c2")]);
    assert.deepEqual(seen, [...before, output("c1"), output("c2")]);
  });

  test(`${by}: a call that is sent with different spacing of its arguments is shown once too`, async () => {
    const spaced = (callId: string): Item => ({ ...call(callId), arguments: "{ }" }) as Item;
    const seen = await see(by, [spaced("c1"), output("c1"), spaced("c2"), output("c2")]);
    assert.deepEqual(seen, [...before, output("c1"), output("c2")]);
  });

  test(`${by}: a call with the id of one that has its output is a different call`, async () => {
    const seen = await see(by, [output("c1"), output("c2"), call("c1"), output("c1", "more")]);
    assert.deepEqual(seen, [...before, output("c1"), output("c2"), call("c1"), output("c1", "more")]);
  });

  test(`${by}: an output that is sent again is shown once, and one with different text is not lost`, async () => {
    const seen = await see(by, [output("c1"), output("c2"), output("c1"), output("c2", "looked again")]);
    assert.deepEqual(seen, [...before, output("c1"), output("c2"), output("c2", "looked again")]);
  });
}

/**
 * A conversation with a model that calls `c1` and `c2` when asked to look, also by an output, and wants an approval when
 * asked to act; else it counts its answers.
 */
async function startLooking(by: "conversation" | "hint") {
  let answers = 0;
  const { adapter, answer, gateway } = open(async function* ({ items }) {
    const last = items.at(-1);
    const said = last?.type === "message" ? last.content : last?.type === "tool-output" ? last.output : "";
    if (said === "act") return yield [{ type: "other", ...approvalRequest }];
    if (said !== "look") return yield [{ type: "text", text: `answer ${(answers += 1)}` }];
    for (const [index, callId] of ["c1", "c2"].entries()) {
      yield [
        { type: "tool-call", index, callId, name: "look" },
        { type: "tool-arguments", index, text: "{}" },
      ];
    }
  });
  const { id } = await gateway.conversations.create("ann", {}, { turnId: "resp_0", items: [] });
  const [at, caller] =
    by === "hint" ? [{}, { hint: "header:x-session-id:1", hintsAtTalk: true }] : [{ conversationId: id }, {}];
  /** What the model sees. */
  return async (...items: readonly Item[]) => {
    await drain(await answer({ items, ...at }, caller));
    return adapter.turns.at(-1)!.items.map(toWords);
  };
}

const approvalRequest = {
  extra: { dialect: "responses", fields: { type: "mcp_approval_request", id: "r1" } },
  exchange: { side: "model", id: "r1" },
} as const;

const outputs = [output("c1"), output("c2")];
const sentAgain = {
  alone: outputs,
  "with their calls": [...before.slice(1), ...outputs],
  "each after its call": [call("c1"), output("c1"), call("c2"), output("c2")],
  "with all of their turn": [...before, ...outputs],
};
for (const by of ["conversation", "hint"] as const) {
  for (const [sent, items] of Object.entries(sentAgain)) {
    test(`${by}: outputs that are sent again ${sent} are answered anew, in place of an answer that was lost`, async () => {
      const tell = await startLooking(by);
      await tell(user("hello"));
      await tell(user("look"));
      const seen = await tell(...items);
      assert.deepEqual(await tell(...items), seen);
      assert.deepEqual(await tell(...items), seen);
      const after = [...seen, ["message", "answer 4"], ["message", "thanks"]];
      assert.deepEqual(await tell(user("thanks")), after);
    });
  }

  test(`${by}: outputs are not sent again if they differ, or come with something new`, async () => {
    for (const news of [
      [output("c1"), output("c2", "more")],
      [output("c1"), output("c2"), user("go on")],
    ]) {
      const tell = await startLooking(by);
      await tell(user("look"));
      await tell(output("c1"), output("c2"));
      assert.ok((await tell(...news)).some(([, said]) => said === "answer 1"));
    }
  });

  test(`${by}: outputs are not sent again if the model has made calls with the same ids since`, async () => {
    const tell = await startLooking(by);
    const outputs = [output("c1", "look"), output("c2", "look")];
    await tell(user("look"));
    await tell(...outputs);
    assert.equal((await tell(...outputs)).length, 9);
  });

  test(`${by}: outputs of later calls with the same ids may be sent again too`, async () => {
    const tell = await startLooking(by);
    await tell(user("look"));
    await tell(...before.slice(1), output("c1", "look"), output("c2", "look"));
    const seen = await tell(...before.slice(1), ...outputs);
    assert.equal(seen.length, 9);
    assert.deepEqual(await tell(...before.slice(1), ...outputs), seen);
  });
}

test("conversation: a question that led to calls may be asked again if that was lost, but nothing else may be asked", async () => {
  for (const earlier of [[], [user("hello")]]) {
    const tell = await startLooking("conversation");
    for (const item of earlier) await tell(item);
    const seen = await tell(user("look"));
    assert.deepEqual(await tell(user("look")), seen);
    for (const other of [
      [user("look"), user("now")],
      [developer("Be brief."), user("look")],
    ]) {
      await assert.rejects(tell(...other), { code: "tool_call_mismatch" });
    }
    const after = [...seen, ["tool-call", ""], ["tool-call", ""], ["tool-output", "seen"], ["tool-output", "seen"]];
    assert.deepEqual(await tell(output("c1"), output("c2")), after);
  }
});

test("conversation: a question that led to a request for approval may be meant when it is asked again", async () => {
  const tell = await startLooking("conversation");
  await tell(user("act"));
  assert.deepEqual(await tell(user("act")), [
    ["message", "act"],
    ["other", ""],
    ["message", "act"],
  ]);
});

test("conversation: outputs that were added to it stay where they are, even if they are sent again", async () => {
  const { answer, gateway } = open([[{ type: "text", text: "done" }]]);
  const { id } = await gateway.conversations.create("ann", {}, { turnId: "resp_0", items: before });
  await gateway.conversations.append("ann", id, { turnId: "resp_1", items: outputs }, new AbortController().signal);
  const added = await gateway.conversations.places("ann", id);
  await drain(await answer({ items: outputs, conversationId: id }));
  assert.deepEqual((await gateway.conversations.places("ann", id)).slice(0, added.length), added);
});

test("hint: one exchange is still enough to be matched by after an answer was lost", async () => {
  const tell = await startLooking("hint");
  for (const items of [[user("look")], outputs, outputs]) await tell(...items);
  const seen = await tell(user("thanks"));
  const answer: Item = { type: "message", role: "assistant", content: "answer 3" };
  const after = [...seen, ["message", "answer 3"], ["message", "bye"]];
  assert.deepEqual(await tell(user("thanks"), answer, user("bye")), after);
});

/** What the model sees of a request that shows all of this and continues nothing, or has only a hint. */
async function seeAlone(items: readonly Item[], hint?: string): Promise<readonly Item[]> {
  const { adapter, answer } = open([[{ type: "text", text: "done" }]]);
  await drain(await answer({ items, keep: "in-session" }, { hint }));
  return adapter.turns.at(-1)!.items;
}

for (const by of ["response", "conversation"] as const) {
  test(`${by}: a question that is sent with every output is shown once`, async () => {
    const seen = await see(by, [user("look"), output("c1"), output("c2")]);
    assert.deepEqual(seen, [...before, output("c1"), output("c2")]);
    const other = await see(by, [user("And look here"), output("c1"), output("c2")]);
    assert.deepEqual(other, [...before, output("c1"), output("c2"), user("And look here")]);
  });
}

/** Emits how many outputs it has received, reasons, and calls again, always with the same id. */
const lookAgain: Script = async function* ({ items }) {
  const step = items.filter(({ type }) => type === "tool-output").length;
  yield [
    { type: "reasoning", text: "hm" },
    { type: "text", text: `look ${step}` },
    { type: "tool-call", index: 0, callId: "c0", name: "look" },
    { type: "tool-arguments", index: 0, text: "{}" },
  ];
};

for (const by of ["response", "conversation"] as const) {
  test(`${by}: a turn that is resent with every step, including the model's text, is shown once`, async () => {
    const { adapter, answer, gateway } = open(lookAgain);
    const { id: conversationId } = await gateway.conversations.create("ann", {}, { turnId: "resp_0", items: [] });
    const turn: Item[] = [{ type: "message", role: "system", content: "Be brief." }, user("go")];
    let previousId: string | undefined;
    for (const step of [0, 1, 2]) {
      const at = by === "conversation" ? { conversationId } : { previousId };
      const answered = await answer({ items: [...turn], ...at });
      await drain(answered);
      previousId = answered.about.id;
      assert.deepEqual(adapter.turns.at(-1)!.items.map(toWords), turn.map(toWords));
      turn.push(
        { type: "reasoning", summary: [], text: "hm" },
        { type: "message", role: "assistant", content: `look ${step}` },
        call("c0"),
        output("c0", "the same each time"),
      );
    }
  });
}

test("an earlier output that is resent abbreviated stays as it was given", async () => {
  const { adapter, answer } = open(lookAgain);
  const first = await answer({ items: [user("go")] });
  await drain(first);
  const second = await answer({ items: [output("c0", "a long story")], previousId: first.about.id });
  await drain(second);
  const shown = [
    user("go"),
    call("c0"),
    output("c0", "a long …"),
    { type: "message", role: "assistant", content: "look 1" } as Item,
    call("c0"),
    output("c0", "more"),
  ];
  await drain(await answer({ items: shown, previousId: second.about.id }));
  const given = adapter.turns.at(-1)!.items.flatMap((item) => (item.type === "tool-output" ? [item.output] : []));
  assert.deepEqual(given, ["a long story", "more"]);
});

for (const [sent, resent] of Object.entries({ alone: [], "with their calls": [call("c0")] })) {
  test(`no output is lost when a model gives every call of a turn the same id and a client sends the outputs ${sent}`, async () => {
    const { adapter, answer } = open(lookAgain);
    let previousId: string | undefined;
    for (const items of [[user("go")], [...resent, output("c0", "one")], [...resent, output("c0", "two")]]) {
      const answered = await answer({ items, previousId });
      await drain(answered);
      previousId = answered.about.id;
    }
    const given = adapter.turns.at(-1)!.items.flatMap((item) => (item.type === "tool-output" ? [item.output] : []));
    assert.deepEqual(given, ["one", "two"]);
  });
}

test("what the model said beside its call is shown once to a client that resends it, however it trims the text", async () => {
  const { adapter, answer } = open([
    [
      { type: "text", text: "One moment. " },
      { type: "message-end" },
      { type: "tool-call", index: 0, callId: "c1", name: "look" },
      { type: "tool-arguments", index: 0, text: "{}" },
      { type: "text", text: "Wait." },
    ],
  ]);
  const first = await answer({ items: [user("go")] });
  await drain(first);
  const [before, after] = ["One moment.", "Wait."].map((content): Item => ({
    type: "message",
    role: "assistant",
    content,
  }));
  const items = [user("go"), before!, call("c1"), after!, output("c1")];
  await drain(await answer({ items, previousId: first.about.id }));
  const seen = adapter.turns.at(-1)!.items.map(toWords);
  assert.deepEqual(
    seen,
    [user("go"), { ...before, content: "One moment. " } as Item, call("c1"), after!, output("c1")].map(toWords),
  );
});

test("only what a client resends is left out: new reasoning and other instructions stay", async () => {
  const { adapter, answer } = open(lookAgain);
  const first = await answer({ items: [{ type: "message", role: "system", content: "Be brief." }, user("go")] });
  await drain(first);
  const thought = (text: string): Item => ({ type: "reasoning", summary: [], text });
  const system: Item = { type: "message", role: "system", content: "Be kind." };
  const items = [system, user("go"), thought("hm"), call("c0"), thought("So."), output("c0")];
  await drain(await answer({ items, previousId: first.about.id }));
  const words = adapter.turns.at(-1)!.items.map((item) => (item.type === "reasoning" ? item.text : toWords(item)[1]));
  assert.deepEqual(words, ["Be brief.", "go", "hm", "look 0", "", "seen", "Be kind.", "So."]);
});

const toWords = (item: Item) => [item.type, "content" in item ? item.content : "output" in item ? item.output : ""];

const said: Item = { type: "message", role: "assistant", content: "done" };
for (const hint of [undefined, "garden"]) {
  const where = hint === undefined ? "without a session" : "in a session";
  test(`${where}: no output is lost when models reuse the same call ids in every answer`, async () => {
    const items = [user("A"), call("c0"), output("c0"), said, user("B"), call("c0"), output("c0")];
    assert.deepEqual(await seeAlone(items, hint), items);
    const both = [call("c0"), call("c1"), output("c0"), output("c1")];
    assert.deepEqual(await seeAlone([user("A"), ...both, ...both], hint), [user("A"), ...both, ...both]);
  });

  test(`${where}: a late output is placed only after the newest call with its id`, async () => {
    const first = [user("A"), call("c0"), output("c0", "one"), said, user("B"), call("c0")];
    const seen = await seeAlone([...first, user("wait"), output("c0", "two")], hint);
    assert.deepEqual(seen, [...first, output("c0", "two"), user("wait")]);
  });

  test(`${where}: two calls with one id in one answer get an output each, in order`, async () => {
    const other: Item = { type: "tool-call", kind: "function", callId: "c0", name: "listen", arguments: "{}" };
    const items = [user("A"), call("c0"), other, output("c0", "one"), output("c0", "two")];
    assert.deepEqual(await seeAlone(items, hint), items);
  });
}

test("an unanswered call does not take the output of a later one with the same id", async () => {
  const items = [user("A"), call("c0"), user("B"), call("c0"), output("c0")];
  assert.deepEqual(await seeAlone(items), items);
  assert.deepEqual(await seeAlone(items, "garden"), [user("A"), user("B"), call("c0"), output("c0")]);
});

test("answers with one id for all of their calls take no longer to pair, however many there are", () => {
  const steps = Array.from({ length: 40_000 }, () => [call("c0"), output("c0")]).flat();
  const calls = Array.from({ length: 10_000 }, (_, at): Item => ({ ...call("c0"), arguments: `${at}` }) as Item);
  const parallel = calls.concat(calls.map(() => output("c0")));
  const started = worked();
  assert.equal(pairTools(steps).items, steps);
  assert.equal(pairTools(parallel).open.size, 0);
  assert.ok(worked() - started < 1000);
});

test("a thousand calls with one id take no longer to distinguish than with a thousand ids", async () => {
  const calls = Array.from({ length: 1000 }, (_, index): Item => {
    const written = JSON.stringify({ text: `${"x".repeat(2000)}${index}` });
    return { type: "tool-call", kind: "function", callId: "c0", name: "write", arguments: written };
  });
  const started = worked();
  assert.equal((await seeAlone([user("A"), ...calls])).length, 1001);
  assert.ok(worked() - started < 1000);
});
