/**
 * What a caller's version of a conversation carries besides its text, where the model sees what is remembered of it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";
import type { Dialect, Extra, Item, Message, Part, ToolCall, ToolOutput } from "../../src/core/item.ts";
import { withExtras } from "../../src/core/place/extras.ts";
import { talkFrom, toPath } from "../../src/core/place/path.ts";
import { sideOf, toRuns } from "../../src/core/place/runs.ts";
import type { PathTurn } from "../../src/core/store.ts";
import { distort } from "../sessions/distortions.ts";
import { drain, open } from "./asking.ts";

const chat = (fields: Extra["fields"]): Extra => ({ dialect: "chat", fields });
const user = (content: Message["content"]): Message => ({ type: "message", role: "user", content });
const assistant = (content: string, extra?: Extra): Message => ({
  type: "message",
  role: "assistant",
  content,
  ...(extra && { extra }),
});
const call = (callId: string, extra?: Extra): ToolCall => ({
  type: "tool-call",
  kind: "function",
  callId,
  name: "f",
  arguments: "{}",
  ...(extra && { extra }),
});
const output = (callId: string, text: ToolOutput["output"] = "done", extra?: Extra): ToolOutput => ({
  type: "tool-output",
  kind: "function",
  callId,
  output: text,
  ...(extra && { extra }),
});
const reasoning: Item = { type: "reasoning", summary: [], text: "hm" };
const thought = chat({ reasoning_content: "hm" });
const marked = (text: string) => [{ type: "text", text, extra: chat({ cache_control: {} }) }] as const;

/** A model that reasons, and calls a tool when it receives `CALL`. */
function createScene(dialect: Dialect = "chat", signed: Extra = chat({ signature: "s" })) {
  const { adapter, answer, store } = open(async function* ({ items }) {
    const last = items.at(-1);
    const lastText = last?.type === "message" && typeof last.content === "string" ? last.content : "output";
    const called: Delta = { type: "tool-call", index: 0, callId: "c1", name: "f", extra: signed };
    const said: readonly Delta[] =
      lastText === "CALL"
        ? [called, { type: "tool-arguments", index: 0, text: "{}" }]
        : [{ type: "text", text: `re: ${lastText}` }];
    yield [{ type: "reasoning", text: "hm" }, ...said];
  });
  return async (...items: Item[]) => {
    const settings = { tools: [], native: { dialect, fields: {} } };
    const { about, events } = await answer({ items, settings, keep: "in-session" }, { hint: "user:u" });
    await drain({ about, events });
    const kept = talkFrom(await store.readPath(about.id), 0);
    return { history: about.history, seen: plain(adapter.turns.at(-1)?.items), kept: plain(kept) };
  };
}

/** Without fields that are undefined. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

test("extras beside a call in the caller's message reach the model with what is remembered, and are not stored", async () => {
  const say = createScene();
  await say(user("CALL"));
  const step = await say(user("CALL"), assistant("", thought), call("c1"), output("c1"));
  assert.equal(step.history, "matched");
  const signed = call("c1", chat({ signature: "s" }));
  assert.deepEqual(step.seen, [user("CALL"), assistant("", thought), reasoning, signed, output("c1")]);
  assert.deepEqual(step.kept, [user("CALL"), reasoning, signed, output("c1"), reasoning, assistant("re: output")]);
  const bare = await say(user("CALL"), call("c1"), output("c1"), assistant("re: output"), user("two"));
  assert.equal(bare.history, "matched");
  assert.deepEqual(bare.seen, [...(step.kept as Item[]), user("two")]);
});

test("fields and names appear where the caller shows them, and the caller's value of a field takes precedence", async () => {
  const say = createScene();
  await say(user("CALL"));
  await say(user("CALL"), call("c1"), output("c1"));
  const third = await say(
    { ...user("CALL"), name: "ann" },
    call("c1", chat({ signature: "t", more: 1 })),
    output("c1", "done", chat({ name: "f" })),
    assistant("re: output", thought),
    user("two"),
  );
  assert.equal(third.history, "matched");
  assert.deepEqual(third.seen, [
    { ...user("CALL"), name: "ann" },
    reasoning,
    call("c1", chat({ signature: "t", more: 1 })),
    output("c1", "done", chat({ name: "f" })),
    reasoning,
    assistant("re: output", thought),
    user("two"),
  ]);
});

test("a branch from an earlier turn has the extras too", async () => {
  const say = createScene();
  await say(user("CALL"));
  await say(user("CALL"), call("c1"), output("c1"));
  const again = await say(user("CALL"), assistant("", thought), call("c1"), output("c1", "another"));
  assert.equal(again.history, "forked");
  const signed = call("c1", chat({ signature: "s" }));
  assert.deepEqual(again.seen, [user("CALL"), assistant("", thought), reasoning, signed, output("c1", "another")]);
});

test("a cache mark that a caller has moved is no longer at its previous place", async () => {
  const say = createScene();
  const first = [user(marked("one")), assistant("re: output")];
  const second = [user(marked("two")), assistant("re: output")];
  await say(user(marked("one")));
  assert.deepEqual((await say(...first, user(marked("two")))).seen, [
    first[0],
    reasoning,
    first[1],
    user(marked("two")),
  ]);
  const third = await say(user("one"), assistant("re: output"), ...second, user(marked("three")));
  assert.equal(third.history, "matched");
  assert.deepEqual(third.seen, [
    user("one"),
    reasoning,
    first[1],
    second[0],
    reasoning,
    second[1],
    user(marked("three")),
  ]);
});

test("a field that a caller no longer shows is no longer seen, even if it was stored with the caller's item", async () => {
  const say = createScene();
  await say(user("CALL"));
  const marked = await say(user("CALL"), call("c1"), output("c1", "done", chat({ cache_control: {} })));
  const signed = call("c1", chat({ signature: "s" }));
  assert.deepEqual(marked.seen, [user("CALL"), reasoning, signed, output("c1", "done", chat({ cache_control: {} }))]);
  const bare = await say(user("CALL"), call("c1"), output("c1"), assistant("re: output"), user("two"));
  assert.equal(bare.history, "matched");
  const answered = [reasoning, assistant("re: output"), user("two")];
  assert.deepEqual(bare.seen, [user("CALL"), reasoning, signed, output("c1"), ...answered]);
});

test("fields added by another dialect remain, as the caller could not show them", async () => {
  const signed: Extra = { dialect: "responses", fields: { caller: "direct" } };
  const say = createScene("chat", signed);
  await say({ ...user("CALL"), extra: signed });
  const step = await say(user("CALL"), call("c1", chat({ signature: "mine" })), output("c1"));
  assert.equal(step.history, "matched");
  assert.deepEqual(step.seen, [{ ...user("CALL"), extra: signed }, reasoning, call("c1", signed), output("c1")]);
});

test("an unanswered call is omitted together with what its message carried", async () => {
  const say = createScene();
  await say(user("CALL"));
  const later = await say(user("CALL"), assistant("", thought), call("c1"), user("never mind"));
  assert.equal(later.history, "matched");
  assert.deepEqual(later.seen, [user("CALL"), reasoning, user("never mind")]);
});

test("the extras of a message without text appear once, before the first of its calls", () => {
  const calls = [call("c1"), call("c2")];
  const path = toPath([{ id: "1", input: [user("CALL")], output: calls } as unknown as PathTurn]);
  const account = [user("CALL"), assistant("", thought), ...calls];
  assert.deepEqual(plain(withExtras(talkFrom(path, 0), path, account, "chat")), account);
});

test("messages that the caller splits differently are seen as it shows them", async () => {
  const say = createScene();
  await say(user("one"), user("more"));
  const merged = { ...user("one\n\nmore"), name: "ann" };
  const { history, seen } = await say(merged, assistant("re: more"), user("two"));
  assert.equal(history, "matched");
  assert.deepEqual(seen, [merged, reasoning, assistant("re: more"), user("two")]);
});

const word = fc.constantFrom("yes", " indeed", "two\nlines", "", "more\n\nlines \n");
const callId = fc.constantFrom("a", "b", "c");
const fromModel = fc.oneof(
  word.map((text) => assistant(text)),
  callId.map((id) => call(id)),
  fc.constant(reasoning),
);
const fromCaller = fc.oneof(
  word.map(user),
  fc.tuple(callId, word).map(([id, text]) => output(id, text)),
);
const turnsArbitrary = fc.array(fc.tuple(fc.array(fromCaller, { maxLength: 4 }), fc.array(fromModel)), {
  minLength: 1,
  maxLength: 5,
});
const distortion = fc.record({
  blanks: fc.boolean(),
  lineEnds: fc.boolean(),
  parts: fc.boolean(),
  merge: fc.boolean(),
  withoutReasoning: fc.constant(true),
  serialise: fc.boolean(),
  reorder: fc.boolean(),
  rename: fc.constant(false),
  salt: fc.nat(100),
});

test("all extras that a caller shows are seen once and with the same text, which stays unchanged", () => {
  const property = fc.property(turnsArbitrary, distortion, fc.nat(), (turns, spelling, salt) => {
    const path = toPath(
      turns.map(([asked, said], index) => ({ id: `${index}`, input: asked, output: said }) as unknown as PathTurn),
    );
    const remembered = talkFrom(path, 0);
    const account = distort(structuredClone(remembered), spelling).map((item, index) =>
      (salt >> (index % 30)) % 2 === 0 ? item : ({ ...item, extra: chat({ [`field${index}`]: index }) } as Item),
    );
    const [ours, theirs] = [toRuns(remembered), toRuns(account)];
    fc.pre(ours.length === theirs.length && ours.every(({ canon }, index) => canon === theirs[index]?.canon));
    const seen = withExtras(remembered, path, account, "chat");
    assert.deepEqual(canonsOf(seen), canonsOf(remembered));
    assert.deepEqual(
      seen.filter(({ type }) => type === "reasoning"),
      remembered.filter(({ type }) => type === "reasoning"),
    );
    const [carried, shown] = [fieldsByRun(seen), fieldsByRun(account)];
    for (const [index, fields] of shown.entries()) assert.deepEqual(carried[index], fields);
  });
  fc.assert(property, { seed: 20260101, numRuns: 2000 });
});

function canonsOf(items: readonly Item[]): readonly string[] {
  return toRuns(items).map(({ side, canon }) => `${side} ${canon}`);
}

/** The fields that the items of each run have, with the types of those items. */
function fieldsByRun(items: readonly Item[]): readonly (readonly string[])[] {
  return toRuns(items).map(({ side, end }) => {
    const before = items.slice(0, end);
    const start = before.findLastIndex((item) => ![side, undefined].includes(sideOf(item))) + 1;
    const fields = before
      .slice(start)
      .flatMap((item) =>
        "extra" in item ? Object.keys(item.extra?.fields ?? {}).map((key) => `${item.type} ${key}`) : [],
      );
    return fields.toSorted();
  });
}

test("an image's detail and a file's name are what the caller shows now", async () => {
  const say = createScene();
  const look = (detail?: string, name?: string) =>
    user([
      { type: "text", text: "look" },
      { type: "image", url: "http://127.0.0.1/1.png", ...(detail && { detail }) },
      { type: "file", fileId: "file_1", ...(name && { name }) },
    ]);
  await say(look("low", "a.pdf"));
  for (const shown of [look("high", "a.pdf"), look("low", "b.pdf"), look()]) {
    const { seen, history } = await say(shown, assistant("re: output"), user("and?"));
    assert.match(String(history), /matched|forked/);
    assert.deepEqual((seen as unknown[])[0], shown);
  }
});

test("a file's new name is seen even if nothing else has changed", async () => {
  const say = createScene();
  const read = (name: string) => user([{ type: "file", fileId: "file_1", name }]);
  await say(read("a.pdf"));
  const { seen } = await say(read("b.pdf"), assistant("re: output"), user("and?"));
  assert.deepEqual((seen as unknown[])[0], read("b.pdf"));
});

test("a text keeps another dialect's extras beside an image whose detail the caller has changed", async () => {
  const text = { type: "text", text: "look" } as const;
  const image = { type: "image", url: "http://127.0.0.1/1.png" } as const;
  const added = { ...text, extra: { dialect: "responses", fields: { note: 1 } } } as const;
  const path = toPath([
    {
      id: "resp_1",
      owner: "ann",
      session: "conv_1",
      parent: undefined,
      createdAt: new Date(0),
      model: "m",
      input: [user([added, { ...image, detail: "low" }])],
      output: [assistant("yes")],
      status: "completed",
      usage: undefined,
      digest: "d",
      exchange: undefined,
    },
  ]);
  const see = (shown: Part, dialect: Dialect) => {
    const account = [user([shown, { ...image, detail: "high" }]), assistant("yes")];
    return plain(withExtras(talkFrom(path, 0), path, account, dialect)[0]);
  };
  assert.deepEqual(see(text, "chat"), plain(user([added, { ...image, detail: "high" }])));
  // Its own it could have shown, and what it does show counts.
  assert.deepEqual(see(text, "responses"), plain(user([text, { ...image, detail: "high" }])));
  const marked = { ...text, extra: { dialect: "chat", fields: { cached: true } } } as const;
  assert.deepEqual(see(marked, "chat"), plain(user([marked, { ...image, detail: "high" }])));
});
