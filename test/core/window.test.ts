import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { type Item, isSteering, type Part } from "../../src/core/item.ts";
import { createScriptedAdapter } from "../scripted.ts";
import type { Ask, Settings } from "../../src/core/turn.ts";
import { fitContext } from "../../src/core/window/fit.ts";
import { countItems, surelyFits } from "../../src/core/window/tokens.ts";
import { fitWindow, type Window } from "../../src/core/window/window.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });
const thought = (text: string): Item => ({ type: "reasoning", summary: [], text });
const compaction = (summary: string): Item => ({ type: "compaction", summary });
const output = (callId: string, text = "done"): Item => ({
  type: "tool-output",
  kind: "function",
  callId,
  output: text,
});
const call = (callId: string): Item => ({ type: "tool-call", kind: "function", callId, name: "f", arguments: "{}" });

/** One token per character keeps the sums simple. */
const count = (text: string): number => text.length;
const room = (tokens: number): Window => ({ tokens, reserve: 0 });
/** As much as these items take. */
const roomFor = (...items: readonly Item[]): Window => room(countItems(items, [], count));

suite("a conversation that is longer than the window", () => {
  const [task, first, second, third] = [user("the task"), assistant("one"), user("two"), assistant("re: two")];
  const last = user("three");
  const talk = [task, first, second, third, last];

  test("stays unchanged when it fits", () => {
    assert.deepEqual(fitWindow(talk, [], roomFor(...talk), count), talk);
  });

  test("loses its middle, a question together with its answer", () => {
    const tight = { tokens: roomFor(...talk).tokens - 1, reserve: 0 };
    assert.deepEqual(fitWindow(talk, [], tight, count), [task, second, third, last]);
    assert.deepEqual(fitWindow(talk, [], roomFor(task, third, last), count), [task, last]);
  });

  test("leaves room for the answer, the instructions and the tools", () => {
    const window = roomFor(...talk);
    assert.equal(fitWindow(talk, [], { ...window, reserve: 1 }, count)?.length, talk.length - 1);
    assert.equal(fitWindow(talk, ["be brief"], window, count)?.length, talk.length - 3);
    const more = { ...window, tokens: window.tokens + "be brief".length + 4 };
    assert.equal(fitWindow(talk, ["be brief"], more, count)?.length, talk.length);
  });

  test("keeps its system messages wherever they are", () => {
    const [brief, kind] = [system("be brief"), system("be kind")];
    const steered = [brief, task, first, kind, second, third, last];
    assert.deepEqual(fitWindow(steered, [], roomFor(brief, kind, task, last), count), [brief, task, kind, last]);
  });

  test("loses the task when it does not fit beside the newest message", () => {
    const long = user("a very long task indeed");
    const fitted = fitWindow([long, first, second, third, last], [], roomFor(second, third, last), count);
    assert.deepEqual(fitted, [second, third, last]);
  });

  test("does not fit when its newest message is too long by itself", () => {
    assert.equal(fitWindow(talk, [], room(roomFor(last).tokens - 1), count), undefined);
    assert.equal(fitWindow([], ["instructions"], room(5), count), undefined);
  });

  test("keeps everything since the newest user message", () => {
    const work = [
      task,
      thought("hm"),
      call("a"),
      call("b"),
      output("a"),
      output("b"),
      assistant("half done"),
      call("c"),
    ];
    const done = [...work, output("c", "a long output")];
    assert.deepEqual(fitWindow(done, [], roomFor(...done), count), done);
    assert.deepEqual(fitWindow([first, ...done], [], roomFor(...done), count), done);
  });

  test("loses the older steps since then if there is no room for all of them", () => {
    const step = (callId: string) => [thought("hm"), call(callId), output(callId)];
    const work = [task, first, last, user("and four"), ...step("a"), ...step("b"), ...step("c")];
    // The task stays too, if it fits; a step is removed as a whole.
    for (const steps of [work.slice(7), work.slice(10)]) {
      const left = [task, user("and four"), ...steps];
      assert.deepEqual(fitWindow(work, [], room(roomFor(...left).tokens + 1), count), left);
    }
    const short = compaction("so far");
    const left = [short, user("and four"), ...step("c")];
    assert.deepEqual(fitWindow([task, short, ...work.slice(3)], [], roomFor(...left), count), left);
    assert.equal(fitWindow(work, [], room(roomFor(user("and four"), ...step("c")).tokens - 1), count), undefined);
    const brief = system("be brief");
    const steered = [brief, ...work];
    const least = [brief, user("and four"), ...step("c")];
    assert.deepEqual(fitWindow(steered, [], roomFor(...least), count), least);
  });

  test("loses a tool call only together with its outputs, even with a late one", () => {
    const late = [task, first, user("look"), call("a"), user("well?"), output("a"), assistant("found"), last];
    assert.deepEqual(fitWindow(late, [], room(roomFor(...late.slice(2)).tokens - 1), count), [task, last]);
    const open = late.slice(0, 6);
    assert.equal(fitWindow(open, [], roomFor(...open.slice(3)), count), undefined);
    assert.deepEqual(fitWindow(open, [], roomFor(...open.slice(2)), count), open.slice(2));
  });

  test("loses a question of the model to its caller only together with the answer", () => {
    const other = (side: "model" | "tools", id: string): Item => {
      const fields = { type: side === "model" ? "mcp_approval_request" : "mcp_approval_response", id };
      return { type: "other", exchange: { side, id }, extra: { dialect: "responses", fields } };
    };
    const asked = [task, first, user("look"), other("model", "a"), user("go on"), other("tools", "a")];
    assert.equal(fitWindow(asked, [], roomFor(...asked.slice(3)), count), undefined);
    assert.deepEqual(fitWindow(asked, [], roomFor(...asked.slice(2)), count), asked.slice(2));
    const steps = [last, other("model", "a"), other("tools", "a"), other("model", "b"), other("tools", "b")];
    assert.deepEqual(fitWindow(steps, [], roomFor(last, ...steps.slice(3)), count), [last, ...steps.slice(3)]);
  });

  test("distinguishes calls of the same id in different answers", () => {
    const again = [task, call("0"), output("0"), second, call("0"), output("0"), last];
    const fitted = fitWindow(again, [], roomFor(task, ...again.slice(3)), count);
    assert.deepEqual(fitted, [task, ...again.slice(3)]);
  });

  test("keeps the newest compaction, which replaces everything before it", () => {
    const [old, fresh] = [compaction("long ago"), compaction("so far")];
    const short = [task, old, second, third, fresh, second, third, last];
    assert.deepEqual(fitWindow(short, [], roomFor(task, fresh, last), count), [task, fresh, last]);
    assert.deepEqual(fitWindow(short, [], roomFor(fresh, last), count), [fresh, last]);
  });

  test("keeps the newest compaction of a server, which only its own dialect knows, and then the newest of ours", () => {
    const fields = { type: "compaction", encrypted_content: "sealed" };
    const sealed: Item = { type: "other", extra: { dialect: "responses", fields } };
    const old = compaction("long ago");
    const found: Item = { type: "other", extra: { dialect: "responses", fields: { type: "web_search_call" } } };
    const short = [task, old, second, sealed, third, second, found, third, last];
    assert.deepEqual(fitWindow(short, [], roomFor(sealed, last), count), [sealed, last]);
    // An adapter of another dialect gets nothing of it.
    assert.deepEqual(fitWindow(short, [], roomFor(old, sealed, last), count), [old, sealed, last]);
  });

  test("is counted from its end, each text once, and only as far as it fits", () => {
    const long = [task, ...Array.from({ length: 50 }, (_, index) => [user(`q${index}`), assistant(`a${index}`)]), last];
    const counted: string[] = [];
    fitWindow(long.flat(), [], room(50), (text) => {
      counted.push(text);
      return text.length;
    });
    assert.deepEqual(counted, ["three", "the task", "a49", "q49", "a48", "q48", "a47"]);
  });
});

suite("the cost of a part", () => {
  const cost = (part: Part) => countItems([{ type: "message", role: "user", content: [part] }], [], count) - 4;
  const bytes = (size: number) => "A".repeat((size * 4) / 3);

  test("an image counts as a large one unless it is marked as small", () => {
    assert.equal(cost({ type: "image", url: "https://example.com/a.png" }), 1_105);
    assert.equal(cost({ type: "image", fileId: "file-1", detail: "low" }), 85);
  });

  test("a file costs by its size if its data is given, and a few pages otherwise", () => {
    assert.equal(cost({ type: "file", data: `data:text/plain;base64,${bytes(3_000)}` }), 755);
    assert.equal(cost({ type: "file", data: bytes(300_000) }), 7_500);
    assert.equal(cost({ type: "file", fileId: "file-1" }), 2_000);
  });

  test("audio costs by its duration", () => {
    assert.equal(cost({ type: "audio", format: "wav", data: bytes(96_000) }), 30);
    assert.equal(cost({ type: "audio", format: "mp3", data: bytes(12_000) }), 30);
  });

  test("encrypted content costs about what it represents", () => {
    const sealed: Item = { type: "reasoning", summary: ["not counted"], text: "", encrypted: bytes(300) };
    assert.equal(countItems([sealed], [], count), 79);
    assert.equal(countItems([{ type: "compaction", summary: "", encrypted: bytes(300) }], [], count), 79);
  });

  test("what signs reasoning costs nothing beside its words, and without them what it represents", () => {
    const extra = { dialect: "chat", fields: { reasoning_details: [{ data: bytes(300) }] } } as const;
    const signed: Item = { type: "reasoning", summary: [], text: "", extra };
    assert.equal(countItems([signed], [], count), 86);
    assert.equal(countItems([{ ...signed, text: "word ".repeat(100) }], [], count), 504);
  });

  test("reasoning costs its text and its summary, a name its letters", () => {
    assert.equal(cost({ type: "text", text: "four" }), 4);
    assert.equal(cost({ type: "refusal", text: "never" }), 5);
    assert.equal(countItems([{ type: "reasoning", summary: ["ab", "c"], text: "def" }], [], count), 10);
    assert.equal(countItems([{ ...user("hi"), name: "Ann" } as Item], [], count), 9);
  });

  test("content of one dialect costs its JSON text", () => {
    const extra = { dialect: "chat", fields: { a: 1 } } as const;
    assert.equal(cost({ type: "other", extra }), 7);
    assert.equal(countItems([{ type: "other", extra }], [], count), 11);
    assert.equal(countItems([{ ...output("a"), extra } as Item], [], count), 15);
    // An image that a hosted tool made is an image, however long its encoding.
    const fields = { type: "image_generation_call", result: "iVBORw0KGgo".repeat(20_000) };
    const beside = JSON.stringify({ ...fields, result: "" }).length;
    assert.equal(cost({ type: "other", extra: { dialect: "responses", fields } }), beside + 1_105);
  });
});

suite("for every conversation and window", () => {
  test("the result is a part of it in the same order, within the budget, and everything when everything fits", () => {
    forAll((items, fixed, window, fitted) => {
      const must = mustStay(items);
      const budget = window.tokens - window.reserve;
      const isAllNeeded = must.length === items.length && countItems(items, fixed, count) <= window.tokens;
      assert.equal(fitted?.length === items.length, isAllNeeded || countItems(items, fixed, count) <= budget);
      if (fitted === undefined) return;
      assert.deepEqual(placesOf(items, fitted), [...new Set(placesOf(items, fitted))].toSorted(ascending));
      assert.ok(countItems(fitted, fixed, count) <= window.tokens);
      // Only what must stay may use the tokens reserved for the answer.
      if (fitted.length > must.length) assert.ok(countItems(fitted, fixed, count) <= budget);
      if (fitted.length === items.length) assert.equal(fitted, items);
    });
  });

  test("the system messages and everything since the newest user message stay, or at least the last step, or nothing fits", () => {
    forAll((items, fixed, window, fitted) => {
      const all = mustStay(items);
      const must = countItems(all, fixed, count) <= window.tokens ? all : withoutSteps(items);
      const fits = countItems(must, fixed, count) <= window.tokens;
      assert.equal(fitted !== undefined, fits);
      if (fitted !== undefined) assert.deepEqual(new Set(must).difference(new Set(fitted)), new Set());
    });
  });

  test("a tool call and its output stay or are removed together", () => {
    forAll((items, _fixed, _window, fitted) => {
      if (fitted === undefined) return;
      const remaining = new Set(placesOf(items, fitted));
      for (const [place, callPlace] of pairsOf(items)) assert.equal(remaining.has(place), remaining.has(callPlace));
    });
  });

  test("the middle is removed: the rest is an end that starts with a question, and only the first items before it", () => {
    forAll((items, _fixed, _window, fitted) => {
      if (fitted === undefined || fitted.length === items.length) return;
      const remaining = new Set(placesOf(items, fitted));
      const isHead = (item: Item, place: number) =>
        isSteering(item) ||
        (isShort && place >= newestStart(items) && place < firstStep(items)) ||
        place === items.findIndex((other) => isQuestion(other)) ||
        place === items.findLastIndex((other) => other.type === "compaction");
      const lastGap = items.findLastIndex((_, place) => !remaining.has(place));
      const end = items.slice(lastGap + 1).find((item) => !isSteering(item) && item.type !== "compaction");
      const isShort = lastGap > newestStart(items);
      assert.ok(end === undefined || (isShort ? isOfModel(end) : isQuestion(end)));
      const before = items.slice(0, lastGap).filter((_, place) => remaining.has(place));
      assert.deepEqual(
        before.filter((item) => !isHead(item, items.indexOf(item))),
        [],
      );
    });
  });

  test("the same input has the same result", () => {
    forAll((items, fixed, window, fitted) => assert.deepEqual(fitWindow(items, fixed, window, count), fitted));
  });

  test("what surely fits does fit, even if every byte were a token", () => {
    const bytes = (text: string): number => Buffer.byteLength(text);
    const anyText = fc.array(fc.nat(0x10ffff)).map((codes) => String.fromCodePoint(...codes));
    fc.assert(
      fc.property(fc.array(itemOf(anyText), { maxLength: 6 }), fc.nat(200), (items, tokens) => {
        const most = countItems(items, ["fixed"], bytes);
        if (surelyFits(items, ["fixed"], tokens)) assert.ok(most <= tokens);
      }),
    );
    const ascii = [user("a".repeat(90))];
    assert.deepEqual([surelyFits(ascii, [], 94), surelyFits(ascii, [], 93)], [true, false]);
    assert.deepEqual([surelyFits([user("ää中")], [], 11), surelyFits([user("ää中")], [], 10)], [true, false]);
  });
});

/** Of what must stay, the middle steps can be removed. */
function withoutSteps(items: readonly Item[]): readonly Item[] {
  const starts = stepStarts(items);
  const last = starts.at(-1) ?? 0;
  return mustStay(items).filter((item) => {
    const place = items.indexOf(item);
    return isSteering(item) || place < firstStep(items) || place >= last;
  });
}

function firstStep(items: readonly Item[]): number {
  return stepStarts(items)[0] ?? items.length;
}

/** Where the model continues after the newest question, and no later tool output belongs to a call before it. */
function stepStarts(items: readonly Item[]): readonly number[] {
  return items.flatMap((item, place) => {
    const before = items[place - 1];
    const isNext = place > newestStart(items) && isOfModel(item) && before !== undefined && !isOfModel(before);
    return isNext && isWhole(items, place) ? [place] : [];
  });
}

function isOfModel(item: Item): boolean {
  return (
    item.type === "reasoning" || item.type === "tool-call" || (item.type === "message" && item.role === "assistant")
  );
}

function mustStay(items: readonly Item[]): readonly Item[] {
  return items.filter((item, index) => isSteering(item) || index >= newestStart(items));
}

type Check = (
  items: readonly Item[],
  fixed: readonly string[],
  window: Window,
  fitted: readonly Item[] | undefined,
) => void;

/** Any order of items, but each output has a call before it, as the gateway guarantees. */
function forAll(check: Check): void {
  const windows = fc.record({ tokens: fc.nat(160), reserve: fc.nat(10) });
  fc.assert(
    fc.property(
      conversations,
      fc.array(fc.string({ maxLength: 3 }), { maxLength: 2 }),
      windows,
      (items, fixed, window) => check(items, fixed, window, fitWindow(items, fixed, window, count)),
    ),
    { numRuns: 500 },
  );
}

function itemOf(texts: fc.Arbitrary<string>): fc.Arbitrary<Item> {
  const ids = fc.constantFrom("a", "b", "c");
  return fc.oneof(
    { weight: 4, arbitrary: texts.map(user) },
    { weight: 3, arbitrary: texts.map(assistant) },
    { weight: 1, arbitrary: texts.map(system) },
    { weight: 1, arbitrary: texts.map(thought) },
    { weight: 1, arbitrary: texts.map(compaction) },
    { weight: 2, arbitrary: ids.map(call) },
    { weight: 2, arbitrary: fc.tuple(ids, texts).map(([callId, text]) => output(callId, text)) },
  );
}

const conversations = fc.array(itemOf(fc.string({ maxLength: 8 })), { maxLength: 24 }).map((items) => {
  const called = new Set<string>();
  return items.filter((item) => {
    if (item.type === "tool-call") called.add(item.callId);
    return item.type !== "tool-output" || called.has(item.callId);
  });
});

function placesOf(items: readonly Item[], fitted: readonly Item[]): readonly number[] {
  return fitted.map((item) => items.indexOf(item));
}

const ascending = (one: number, other: number): number => one - other;

function isQuestion(item: Item | undefined): boolean {
  return item?.type === "message" && item.role === "user";
}

/** The positions of the outputs, each with that of the call before it. */
function pairsOf(items: readonly Item[]): readonly (readonly [number, number])[] {
  return items.flatMap((item, place) => {
    if (item.type !== "tool-output") return [];
    const isItsCall = (other: Item) => other.type === "tool-call" && other.callId === item.callId;
    return [[place, items.slice(0, place).findLastIndex(isItsCall)] as const];
  });
}

/** The newest question such that no tool output after it belongs to a call before it. */
function newestStart(items: readonly Item[]): number {
  return Math.max(
    0,
    items.findLastIndex((item, place) => isQuestion(item) && isWhole(items, place)),
  );
}

function isWhole(items: readonly Item[], start: number): boolean {
  return pairsOf(items).every(([place, callPlace]) => place < start || callPlace >= start);
}

suite("a request whose conversation must not be cut", () => {
  /** Of a model with a window of 100 tokens, each ten characters long. */
  const fit = (items: readonly Item[], settings: Partial<Settings> = {}): ReturnType<typeof fitContext> => {
    const adapter = { ...createScriptedAdapter([]), contextWindow: () => 100 };
    const tokenCounter = async () => (text: string) => Math.ceil(text.length / 10);
    const ask = { model: "m", items, itemsParam: "input", truncation: "disabled", stream: false, keep: "no" } as const;
    return fitContext(
      { adapter, tokenCounter },
      { ...ask, settings: { tools: [], ...settings } } satisfies Ask<Item>,
      items,
      "disabled",
    );
  };
  const long = [user("x".repeat(800))];

  test("is accepted if its tokens fit, though it has more characters than the window has tokens", async () => {
    assert.deepEqual(await fit(long), long);
    const full = [user("x".repeat(960))];
    assert.deepEqual(await fit(full), full);
    await assert.rejects(fit([user("x".repeat(961))]), { code: "context_length_exceeded", param: "input" });
  });

  test("is refused if its output schema takes the rest of the window", async () => {
    const format = { type: "schema", name: "s", schema: { description: "y".repeat(200) } } as const;
    await assert.rejects(fit(long, { format }), { code: "context_length_exceeded" });
  });

  test("is refused if its instructions or its tools take the rest of the window, hosted tools with all their fields", async () => {
    const description = "y".repeat(200);
    const search = { type: "other", extra: { dialect: "responses", fields: { type: "search", description } } } as const;
    const look = { type: "function", name: "look", description } as const;
    for (const settings of [{ instructions: description }, { tools: [look] }, { tools: [search] }]) {
      await assert.rejects(fit(long, settings), { code: "context_length_exceeded" });
    }
  });

  test("is told to ask for a shorter answer if only that does not fit", async () => {
    await assert.rejects(fit(long, { maxOutputTokens: 50 }), /Ask for an answer of fewer than 50 tokens, or set/);
    await assert.rejects(fit([user("x".repeat(1_200))], { maxOutputTokens: 50 }), /100 tokens\. Either set/);
  });
});

test("a conversation is not measured if its model has no known window, or if nobody has said that it may be cut", async () => {
  const items = [user("x".repeat(800))];
  const ask = { model: "m", items, itemsParam: "input", settings: { tools: [] }, stream: false, keep: "no" } as const;
  const tokenCounter = () => assert.fail("nothing is to be counted");
  const small = { ...createScriptedAdapter([]), contextWindow: () => 10 };
  assert.deepEqual(await fitContext({ adapter: small, tokenCounter }, ask, items, "disabled"), items);
  const unknown = { ...createScriptedAdapter([]), contextWindow: () => undefined };
  for (const truncation of ["auto", "disabled"] as const) {
    const fitted = await fitContext({ adapter: unknown, tokenCounter }, { ...ask, truncation }, items, truncation);
    assert.deepEqual(fitted, items);
  }
  const wide = { ...createScriptedAdapter([]), contextWindow: () => 10_000 };
  assert.deepEqual(await fitContext({ adapter: wide, tokenCounter }, ask, items, "auto"), items);
});

test("a conversation that may be cut loses what does not fit, though its caller has not said so", async () => {
  const items = [user("x".repeat(800)), user("new")];
  const ask = { model: "m", items, itemsParam: "input", settings: { tools: [] }, stream: false, keep: "no" } as const;
  const adapter = { ...createScriptedAdapter([]), contextWindow: () => 100 };
  const tokenCounter = async () => (text: string) => text.length;
  assert.deepEqual(await fitContext({ adapter, tokenCounter }, ask, items, "auto"), items.slice(1));
});

for (const [tokens, maxOutputTokens, reserve] of [
  [101, undefined, 25],
  [100_000, undefined, 4_096],
  [101, 30, 30],
  [101, 80, 50],
] as const) {
  const allowed = maxOutputTokens ?? "as many tokens as the model likes";
  test(`a window of ${tokens} tokens has room for ${reserve} of an answer that may have ${allowed}`, async () => {
    const adapter = { ...createScriptedAdapter([]), contextWindow: () => tokens };
    const fit = (left: number) => {
      const items = [user("o".repeat(tokens - left - 11)), user("new")];
      const settings = { tools: [], maxOutputTokens };
      const ask = { model: "m", items, itemsParam: "input", settings, stream: false, keep: "no" } as const;
      return fitContext({ adapter, tokenCounter: async () => count }, ask, items, "auto");
    };
    assert.equal((await fit(reserve)).length, 2);
    assert.equal((await fit(reserve - 1)).length, 1);
  });
}
