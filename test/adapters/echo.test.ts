import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { createEcho } from "./made.ts";
import { countWords } from "../../src/adapters/echo/words.ts";
import type { Delta } from "../../src/core/delta.ts";
import type { Item } from "../../src/core/item.ts";
import type { Remark } from "../../src/core/ports.ts";
import type { Settings, Turn } from "../../src/core/turn.ts";

const adapter = createEcho({});
const never = new AbortController().signal;

function user(text: string): Item {
  return { type: "message", role: "user", content: text };
}

function turnOf(items: readonly Item[], settings: Partial<Settings> = {}): Turn {
  return { id: "resp_1", model: "echo", items, settings: { tools: [], ...settings }, stream: true };
}

async function collect(items: readonly Item[], settings: Partial<Settings> = {}, using = adapter): Promise<Delta[][]> {
  const batches: Delta[][] = [];
  for await (const batch of using.stream(turnOf(items, settings), never)) batches.push([...batch]);
  return batches;
}

function textIn(deltas: readonly Delta[], type: Delta["type"] = "text"): string {
  return deltas.map((delta) => (delta.type === type && "text" in delta ? delta.text : "")).join("");
}

function callsIn(deltas: readonly Delta[]): { name: string; text: string }[] {
  return deltas.flatMap((call) => {
    if (call.type !== "tool-call") return [];
    const mine = deltas.filter((delta) => delta.type === "tool-arguments" && delta.index === call.index);
    return [{ name: call.name, text: textIn(mine, "tool-arguments") }];
  });
}

const weather = { type: "function", name: "weather", parameters: { type: "object" } } as const;
const news = { type: "function", name: "news", parameters: { type: "object" } } as const;

function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
}

test("the echo adapter offers one model, echo", async () => {
  assert.deepEqual(await adapter.models?.(), ["echo"]);
});

test("the words joined are exactly the text, in one batch without a delay", async () => {
  for (const text of ["  two  blanks\n\tand lines\n", "one", " ", "naïve 😀 — text", ""]) {
    const batches = await collect([user(text)]);
    assert.equal(batches.length, 1);
    assert.equal(textIn(batches[0]!), text);
  }
  const [batch] = await collect([user("a b  c")]);
  assert.deepEqual(
    batch!.flatMap((delta) => (delta.type === "text" ? [delta.text] : [])),
    ["a ", "b  ", "c"],
  );
});

test("log probabilities are left out and reported", async () => {
  const remarks: Remark[] = [];
  for (const topLogprobs of [undefined, 0])
    for await (const _ of adapter.stream(turnOf([user("hi")], { topLogprobs }), never, (remark) =>
      remarks.push(remark),
    ));
  assert.deepEqual(remarks, [{ type: "left-out", what: "logprobs" }]);
});

test("a long text is emitted in several batches, so that its reader can keep up", async () => {
  const batches = await collect([user("REPEAT 2500 word")]);
  assert.equal(batches.length, 3);
  assert.equal(textIn(batches.flat()).length, 2500 * 5 - 1);
});

test("each word is a batch of its own when there is a delay", async () => {
  const batches = await collect([user("one two three")], {}, createEcho({ delay_ms: 1 }));
  assert.deepEqual(
    batches.map((batch) => textIn(batch)),
    ["one ", "two ", "three", ""],
  );
});

test("the last user message is answered, and without one the answer is empty", async () => {
  const talk = [user("first"), { type: "message", role: "assistant", content: "said" } as const, user("second")];
  assert.equal(textIn((await collect(talk)).flat()), "second");
  const [deltas] = await collect([{ type: "message", role: "system", content: "Be brief." }]);
  assert.deepEqual(
    deltas!.map(({ type }) => type),
    ["usage", "finish"],
  );
});

test("images, files and other parts are named in brackets only when there is no text", async () => {
  const parts = [
    { type: "image", url: "https://example.com/cat.png" },
    { type: "file", name: "report.pdf", fileId: "file_1" },
    { type: "file", fileId: "file_2" },
    { type: "other", extra: { dialect: "chat", fields: { type: "video_url", video_url: { url: "u" } } } },
  ] as const;
  const alone: Item = { type: "message", role: "user", content: parts };
  assert.equal(textIn((await collect([alone])).flat()), "[image] [file report.pdf] [file] [video_url]");
  const withText: Item = { type: "message", role: "user", content: [...parts, { type: "text", text: "look" }] };
  assert.equal(textIn((await collect([withText])).flat()), "look");
});

test("echo answers tool outputs with their text, and no longer follows the user's directives", async () => {
  const items: Item[] = [
    user("FAIL after 0 weather news"),
    { type: "tool-call", kind: "function", callId: "1", name: "weather", arguments: "{}" },
    { type: "tool-call", kind: "function", callId: "2", name: "news", arguments: "{}" },
    { type: "tool-output", kind: "function", callId: "1", output: "sunny" },
    { type: "tool-output", kind: "function", callId: "2", output: [{ type: "text", text: "all quiet" }] },
    { type: "message", role: "developer", content: "Be brief." },
  ];
  const deltas = (await collect(items, { tools: [weather, news] })).flat();
  assert.equal(textIn(deltas), "tool said: sunny\ntool said: all quiet");
  assert.deepEqual(callsIn(deltas), []);
});

test("a tool that is not offered is not called, whatever the text says", async () => {
  const tools = [news];
  const asked = await collect([user("CALL weather")], { tools });
  assert.deepEqual(callsIn(asked.flat()), []);
  const demanded = await collect([user("CALL weather")], { tools, toolChoice: { type: "required" } });
  assert.deepEqual(callsIn(demanded.flat()), [{ name: "news", text: "{}" }]);
});

test("tools are matched by whole words, and called in the order in which they are named", async () => {
  const tools = [weather, news];
  const named = await collect([user("the news, then the weather!")], { tools });
  assert.deepEqual(
    callsIn(named.flat()).map(({ name }) => name),
    ["news", "weather"],
  );
  const [finish] = named.flat().slice(-1);
  assert.deepEqual(finish, { type: "finish", reason: "tool-calls" });
  assert.deepEqual(callsIn((await collect([user("newspaper weather-vane")], { tools })).flat()), []);
});

test("a call's arguments are streamed in several pieces", async () => {
  const deltas = (await collect([user('CALL weather {"city":"Paris"}')], { tools: [weather] })).flat();
  assert.ok(deltas.filter(({ type }) => type === "tool-arguments").length > 1);
  assert.deepEqual(callsIn(deltas), [{ name: "weather", text: '{"city":"Paris"}' }]);
});

test("strict tools and formats have their optional properties filled in", async () => {
  const parameters = { type: "object", properties: { city: { type: "string" } } };
  for (const strict of [true, false]) {
    const deltas = (await collect([user("weather")], { tools: [{ ...weather, parameters, strict }] })).flat();
    assert.equal(callsIn(deltas)[0]?.text, strict ? '{"city":"text"}' : "{}");
    const format = { type: "schema", name: "answer", schema: parameters, strict } as const;
    assert.equal(textIn((await collect([user("hi")], { format })).flat()), strict ? '{"city": "text"}' : "{}");
  }
});

test("reasoning is emitted raw, or as a summary on request, and counts as output", async () => {
  const raw = (await collect([user("why not")], { reasoningEffort: "high" })).flat();
  assert.equal(textIn(raw, "reasoning"), "thinking about: why not");
  assert.ok(raw.every((delta) => delta.type !== "reasoning" || delta.summary === undefined));
  assert.deepEqual(
    raw.find(({ type }) => type === "usage"),
    {
      type: "usage",
      usage: { inputTokens: 2, cachedTokens: 0, outputTokens: 6, reasoningTokens: 4 },
    },
  );
  const summed = (await collect([user("why")], { reasoningEffort: "high", reasoningSummary: "auto" })).flat();
  assert.equal(textIn(summed, "reasoning"), "thinking about: why");
  assert.ok(summed.every((delta) => delta.type !== "reasoning" || delta.summary === 0));
  for (const reasoningEffort of ["none", "minimal"]) {
    assert.equal(textIn((await collect([user("why")], { reasoningEffort })).flat(), "reasoning"), "");
  }
});

test("the token limit includes reasoning, and an answer that just fits is not cut off", async () => {
  const finishOf = async (settings: Partial<Settings>) => (await collect([user("one two")], settings)).flat().at(-1);
  assert.deepEqual(await finishOf({ maxOutputTokens: 2 }), { type: "finish", reason: "stop" });
  assert.deepEqual(await finishOf({ maxOutputTokens: 1 }), { type: "finish", reason: "length" });
  const settings = { maxOutputTokens: 4, reasoningEffort: "low" };
  assert.equal(textIn((await collect([user("one two")], settings)).flat()), "");
  assert.deepEqual(await finishOf(settings), { type: "finish", reason: "length" });
});

test("input tokens are the words of all items and of the instructions", async () => {
  const items: Item[] = [
    { type: "message", role: "system", content: "be kind" },
    user("one two"),
    { type: "reasoning", summary: ["three"], text: "four five" },
    { type: "tool-call", kind: "function", callId: "1", name: "weather", arguments: '{"a": 1}' },
    { type: "tool-output", kind: "function", callId: "1", output: "nine" },
  ];
  const usage = (await collect(items, { instructions: "ten eleven" })).flat().find((delta) => delta.type === "usage");
  assert.equal(usage?.usage.inputTokens, 12);
});

test("an abort ends a pending delay at once, with an error and no timer left", { timeout: 10_000 }, async () => {
  for (const [delayMs, text] of [
    [60_000, "one two"],
    [0, "SLEEP 600000 late"],
  ] as const) {
    const before = activeTimers();
    const caller = new AbortController();
    const stream = createEcho({ delay_ms: delayMs }).stream(turnOf([user(text)]), caller.signal);
    const rejected = assert.rejects(Promise.resolve(stream[Symbol.asyncIterator]().next()), { code: "client_closed" });
    while (activeTimers() === before) await nextTick();
    caller.abort();
    await rejected;
    assert.equal(activeTimers(), before);
  }
});

test("a caller that has already disconnected gets no answer", async () => {
  const stream = adapter.stream(turnOf([user("hello")]), AbortSignal.abort());
  await assert.rejects(Promise.resolve(stream[Symbol.asyncIterator]().next()), { code: "client_closed" });
});

test("a reader that stops early leaves no timer behind", async () => {
  const before = activeTimers();
  for await (const batch of createEcho({ delay_ms: 1 }).stream(turnOf([user("one two three")]), never)) {
    assert.equal(textIn(batch), "one ");
    break;
  }
  assert.equal(activeTimers(), before);
});

test("a REPEAT that is too long is refused as a bad request", async () => {
  await assert.rejects(collect([user(`REPEAT 999999 ${"long ".repeat(10)}`)]), { code: "adapter_bad_request" });
});

test("a temporary failure says when to retry", async () => {
  for (const code of ["adapter_rate_limit", "overloaded"]) {
    await assert.rejects(collect([user(`ERROR ${code}`)]), { code, retryAfterSeconds: 1 });
  }
  await assert.rejects(collect([user("FAIL before")]), { code: "adapter_error", retryAfterSeconds: undefined });
});

test("a custom tool that is called without input gets the whole text", async () => {
  const tools = [{ type: "custom", name: "note" }] as const;
  assert.deepEqual(callsIn((await collect([user("milk\nCALL note")], { tools })).flat()), [
    { name: "note", text: "milk\nCALL note" },
  ]);
});

/** How often the event loop ran other work during this work. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let next = setImmediate(function turn() {
    turns += 1;
    next = setImmediate(turn);
  });
  try {
    await work;
  } finally {
    clearImmediate(next);
  }
  return turns;
}

test("a long text does not block the event loop: other work runs every thousand words", async () => {
  assert.ok((await turnsDuring(collect([user("ab ".repeat(20_000))]))) >= 19);
});

test("a text full of directives does not block the event loop", async () => {
  assert.ok((await turnsDuring(collect([user(`${"SLEEP 0 ".repeat(20_000)}word`)]))) >= 19);
});

test("counting the words of a long conversation does not block the event loop", async () => {
  assert.ok((await turnsDuring(countWords(Array.from({ length: 50 }, () => "a".repeat(100_000))))) >= 9);
  assert.ok((await turnsDuring(countWords(["a ".repeat(400_000)]))) >= 19);
});

test("words are separated by any Unicode white space", async () => {
  for (let code = 0; code < 0x10000; code += 1) {
    const text = `a${String.fromCharCode(code)}b`;
    if (/\s/.test(text) !== ((await countWords([text])) === 2)) assert.fail(`U+${code.toString(16)}`);
  }
  assert.equal(await countWords(["", " ", " one\n two ", "three"]), 3);
});

test("a text may ask for more calls than a function can take arguments", async () => {
  const [batch] = await collect([user("CALL weather {\n".repeat(250_000))], { tools: [weather], maxOutputTokens: 1 });
  assert.deepEqual(batch?.at(-1), { type: "finish", reason: "length" });
});
