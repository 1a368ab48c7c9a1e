/** Compaction of conversations, and the length of a conversation, without HTTP. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { type ErrorCode, GatewayError, type ToldWindow } from "../../src/core/errors.ts";
import type { Event } from "../../src/core/event.ts";
import type { Caller, GatewayParts } from "../../src/core/gateway.ts";
import type { Item } from "../../src/core/item.ts";
import type { Adapter } from "../../src/core/ports.ts";
import type { Answer, Ask, Turn } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter, say, type Script, usage } from "../scripted.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const call: Item = { type: "tool-call", kind: "function", callId: "c", name: "f", arguments: "{}" };
const output: Item = { type: "tool-output", kind: "function", callId: "c", output: "7" };

function createScene(
  script: Script,
  adapter: Partial<Adapter> = {},
  more: Pick<Partial<GatewayParts>, "tokenCounter"> = {},
) {
  const scripted = createScriptedAdapter(script);
  const store = createMemoryStore();
  const newId = createIds(() => new Date());
  const gateway = makeGateway({ adapter: { ...scripted, ...adapter }, store, now: () => new Date(0), ...more });
  const toAsk = (ask: Partial<Ask>): Ask => ({
    model: "m",
    items: [user("hi")],
    itemsParam: "input",
    settings: { tools: [] },
    stream: true,
    keep: "yes",
    ...ask,
  });
  const toCaller = (caller: Partial<Caller>): Caller => ({
    turnId: newId("resp"),
    owner: "ann",
    hint: undefined,
    signal: new AbortController().signal,
    ...caller,
  });
  const ask = (asked: Partial<Ask>, caller: Partial<Caller> = {}) => gateway.answer(toAsk(asked), toCaller(caller));
  return {
    turns: scripted.turns,
    store,
    gateway,
    ask,
    async talk(asked: Partial<Ask>, caller: Partial<Caller> = {}) {
      const { about, events } = await ask(asked, caller);
      const told: Event[] = [];
      for await (const batch of events) for (const event of batch) told.push(event);
      const last = told.at(-1);
      assert.ok(last?.type === "turn-end");
      const answer: Answer = last.answer;
      return { id: about.id, history: about.history, told, answer };
    },
    count: (asked: Partial<Ask>, caller: Partial<Caller> = {}) => gateway.countTokens(toAsk(asked), toCaller(caller)),
  };
}

/** Answers a request for a summary with one, and everything else with a word. */
const model: Script = async function* (turn) {
  const last = turn.items.at(-1);
  const isDemand = last?.type === "message" && JSON.stringify(last.content).includes("Write a summary");
  yield [{ type: "reasoning", text: "hm" }];
  yield isDemand ? say("We ", "met.") : say("Hello");
  yield [
    { type: "usage", usage },
    { type: "finish", reason: "stop" },
  ];
};

suite("a compacted conversation", () => {
  test("is the only item of the answer, emitted once it is complete", async () => {
    const { talk } = createScene(model);
    const { told, answer } = await talk({ compacts: true });
    const item = { type: "compaction", summary: "We met." } as const;
    assert.deepEqual(told.slice(0, -1), [
      { type: "turn-start" },
      { type: "item-start", index: 0, item },
      { type: "item-end", index: 0, item, whole: true },
    ]);
    assert.deepEqual(answer.items, [item]);
    assert.deepEqual([answer.status, answer.usage], ["completed", usage]);
  });

  test("uses neither the format nor the tools that items of the conversation set", async () => {
    const { talk, turns } = createScene(model);
    const extra = { dialect: "responses", fields: { type: "configuration_update" } } as const;
    const items: Item[] = [
      { type: "other", extra, updates: { format: { type: "json" } }, steers: true },
      { type: "other", extra, tools: [{ type: "function", name: "f" }], steers: true },
      user("hi"),
    ];
    await talk({ items, compacts: true });
    const [turn] = turns;
    assert.equal(turn?.settings.format, undefined);
    assert.deepEqual(turn?.settings.tools, []);
    assert.deepEqual(turn?.items.slice(0, -1), [user("hi")]);
  });

  test("is requested from the model after the whole conversation, in plain text and without tools", async () => {
    const { talk, turns } = createScene(model);
    await talk({
      items: [user("hi"), call, output],
      compacts: true,
      settings: {
        instructions: "Be kind.",
        tools: [{ type: "function", name: "f" }],
        toolChoice: { type: "required" },
        parallelToolCalls: true,
        format: { type: "json" },
        temperature: 0.5,
        native: { dialect: "responses", fields: { tools: [{ type: "function", name: "f" }] } },
      },
    });
    const [turn] = turns;
    assert.deepEqual(turn?.items.slice(0, -1), [user("hi"), call, output]);
    const demand = turn?.items.at(-1);
    assert.ok(demand?.type === "message" && demand.role === "user");
    for (const topic of ["fact", "decision", "open", "name", "number", "results of tools"]) {
      assert.ok(String(demand.content).includes(topic), topic);
    }
    const { instructions, tools, toolChoice, parallelToolCalls, format, temperature, native } = turn?.settings ?? {};
    assert.deepEqual([instructions, tools, temperature], ["Be kind.", [], 0.5]);
    assert.deepEqual([toolChoice, parallelToolCalls, format, native], [undefined, undefined, undefined, undefined]);
  });

  test("omits a call that still waits for its output", async () => {
    const { talk, turns } = createScene(model);
    await talk({ items: [user("hi"), call], compacts: true });
    assert.deepEqual(turns[0]?.items.slice(0, -1), [user("hi")]);
    const answered = [user("hi"), call, output, user("again")];
    await talk({ items: [...answered, { ...call }], compacts: true });
    assert.deepEqual(turns[1]?.items.slice(0, -1), answered, "even if its id was used before");
  });

  test("replaces everything before it for all following turns", async () => {
    const { talk, turns } = createScene(model);
    const first = await talk({ items: [user("one")] });
    const short = await talk({ items: [], previousId: first.id, compacts: true });
    await talk({ items: [user("two")], previousId: short.id });
    assert.deepEqual(turns.at(-1)?.items, [{ type: "compaction", summary: "We met." }, user("two")]);
  });

  test("is replayed exactly as it was emitted", async () => {
    const { talk, gateway } = createScene(model);
    const { id, told } = await talk({ compacts: true }, { memo: () => "how it is told" });
    const { follow } = (await gateway.recall("ann", id))!;
    const again: Event[] = [];
    for await (const batch of follow(new AbortController().signal)) for (const event of batch) again.push(event);
    assert.deepEqual(again, told);
  });

  const failures: readonly (readonly [name: string, deltas: readonly Delta[]])[] = [
    ["nothing", []],
    ["blanks", say(" ", "\n")],
    ["a refusal", [{ type: "refusal", text: "No." }]],
    ["a call", [{ type: "tool-call", index: 0, callId: "c", name: "f" }]],
    ["half of it", [...say("We"), { type: "finish", reason: "length" }]],
  ];
  for (const [name, deltas] of failures) {
    test(`fails when the model says ${name}, and the conversation is not replaced`, async () => {
      const { talk, store } = createScene([deltas]);
      const { id, answer } = await talk({ compacts: true });
      assert.deepEqual([answer.status, answer.error?.code, answer.items], ["failed", "adapter_protocol", []]);
      assert.equal(await store.findTurn("ann", id), undefined);
    });
  }

  test("fails with the model's error: thrown before its first word, in the answer after it", async () => {
    const failing = (words: readonly Delta[]) =>
      createScene(async function* () {
        if (words.length > 0) yield words;
        throw new GatewayError("adapter_error", "It broke.");
      });
    await assert.rejects(failing([]).talk({ compacts: true }), { code: "adapter_error" });
    const { answer } = await failing(say("We")).talk({ compacts: true });
    assert.deepEqual([answer.status, answer.error?.code, answer.items], ["failed", "adapter_error", []]);
  });

  test("is refused before the model is asked if the conversation has no content", async () => {
    const { talk, turns } = createScene(model);
    const items: Item[] = [{ type: "message", role: "system", content: "Be kind." }];
    await assert.rejects(talk({ items, compacts: true }), { code: "invalid_value", param: "input" });
    assert.equal(turns.length, 0);
  });

  test("stops the model when its caller stops reading", async () => {
    let isLeft = false;
    const { ask } = createScene(async function* () {
      try {
        for (;;) yield say("on and on ");
      } finally {
        isLeft = true;
      }
    });
    const { events } = await ask({ compacts: true });
    assert.deepEqual((await events.next()).value, [{ type: "turn-start" }]);
    await events.return();
    assert.equal(isLeft, true);
  });
});

suite("a conversation that is too long to be compacted at once", () => {
  /** A model that takes so many tokens, each a character, and whose summary counts what it has read. */
  const taking = (tokens: number, contextWindow?: ToldWindow) =>
    async function* ({ items }: Turn): AsyncIterable<readonly Delta[]> {
      if (tokensOf(items) > tokens)
        throw new GatewayError("adapter_bad_request", "Too long.", {
          wireCode: "context_length_exceeded",
          contextWindow,
        });
      yield say(`Summary of ${items.length - 1}.`);
      yield [{ type: "usage", usage }];
    };
  const tokensOf = (items: readonly Item[]) =>
    items.reduce((sum, item) => sum + 4 + ("content" in item ? item.content.length : JSON.stringify(item).length), 0);
  const system: Item = { type: "message", role: "system", content: "Be kind." };
  const long = (count: number): Item[] => [
    system,
    ...Array.from({ length: count }, (_, index): Item[] => [
      user(`question ${index} `.padEnd(600, "x")),
      { type: "message", role: "assistant", content: `answer ${index} `.padEnd(300, "x") },
    ]).flat(),
  ];

  /** What each accepted question was about, without the question itself. */
  function read(turns: readonly Turn[], tokens: number): (readonly Item[])[] {
    return turns.flatMap(({ items }) => (tokensOf(items) <= tokens ? [items.slice(0, -1)] : []));
  }

  test("is read in parts, each with the system messages and the summary of those before it", async () => {
    const { talk, turns } = createScene(taking(4_000));
    const items = long(5);
    const { answer } = await talk({ items, compacts: true });
    const parts = read(turns, 4_000);
    assert.deepEqual(
      parts.flatMap((part) => part.filter((item) => item.type === "message" && item.role !== "system")),
      items.slice(1),
    );
    assert.ok(parts.length > 1 && parts.every(([first]) => first === system));
    for (const [index, part] of parts.entries()) {
      const summary = `Summary of ${parts[index - 1]?.length}.`;
      assert.deepEqual(part[1], index === 0 ? items[1] : { type: "compaction", summary });
    }
    assert.deepEqual(answer.items, [{ type: "compaction", summary: `Summary of ${parts.at(-1)?.length}.` }]);
    assert.equal(answer.usage?.inputTokens, parts.length * usage.inputTokens, "what it has cost is the sum");
  });

  test("has cost what each part has, even if not each reports all of it", async () => {
    let parts = 0;
    const { talk } = createScene(
      async function* () {
        parts += 1;
        yield say("Summary.");
        yield [{ type: "usage", usage: { ...usage, reasoningTokens: 1, cacheWriteTokens: parts > 2 ? undefined : 7 } }];
      },
      { contextWindow: () => 4_000 },
    );
    const { answer } = await talk({ items: long(5), compacts: true });
    assert.ok(parts > 2);
    const { outputTokens, reasoningTokens, cacheWriteTokens } = answer.usage!;
    assert.deepEqual([outputTokens, reasoningTokens, cacheWriteTokens], [parts * usage.outputTokens, parts, 14]);
  });

  test("is read in parts of the size that the model takes, by its server's word or its configuration", async () => {
    const told = createScene(taking(4_000, { tokens: 4_000 }));
    await told.talk({ items: long(5), compacts: true });
    assert.equal(told.turns.length, 1 + read(told.turns, 4_000).length);
    const known = createScene(taking(4_000), { contextWindow: () => 4_000 });
    for (const hint of [undefined, "h"]) await known.talk({ items: long(5), compacts: true }, { hint });
    assert.equal(known.turns.length, 2 * read(told.turns, 4_000).length);
  });

  test("is not divided between a call and its output", async () => {
    const { talk, turns } = createScene(taking(2_500));
    const steps = ["a", "b", "c"].flatMap((callId): Item[] => [
      { ...call, callId, arguments: "x".repeat(400) },
      { ...output, callId, output: "x".repeat(400) },
    ]);
    await talk({ items: [user("task".padEnd(700, "x")), ...steps], compacts: true });
    const calls = read(turns, 2_500).map((part) => part.filter(({ type }) => type.startsWith("tool")).length);
    assert.deepEqual(calls, [0, 2, 2, 2]);
  });

  test("is not asked about without end if its tokens are estimated otherwise each time", async () => {
    for (const contextWindow of [undefined, { tokens: 4_000 }]) {
      // Like the real one, it only extrapolates what exceeds a budget.
      const tokenCounter = async () => {
        let counted = 0;
        return (text: string) => (counted++ < 12 ? text.length : Math.ceil(text.length / 4));
      };
      let asked = 0;
      const script = taking(4_000, contextWindow);
      const { talk } = createScene(
        (turn) => {
          assert.ok(++asked < 20);
          return script(turn);
        },
        {},
        { tokenCounter },
      );
      await talk({ items: long(8), compacts: true });
    }
  });

  test("is refused before any part is read, if there would be too many", async () => {
    const { talk, turns } = createScene(taking(4_000, { tokens: 4_000 }));
    const refused = talk({ items: long(60), compacts: true });
    await assert.rejects(refused, { code: "context_length_exceeded", param: "input" });
    assert.equal(turns.length, 1);
  });

  test("is read in few parts, however many steps it has, if they are short", async () => {
    const { talk, turns } = createScene(taking(4_000, { tokens: 4_000 }));
    const step = [user("x".repeat(100)), { ...system, role: "assistant" } as const];
    await talk({ items: Array.from({ length: 40 }, () => step).flat(), compacts: true });
    assert.ok(turns.length < 10, `${turns.length} parts`);
  });

  test("is read step by step, if its instructions leave less than the usual room for an answer", async () => {
    const { talk, turns } = createScene(taking(4_000), { contextWindow: () => 4_000 });
    const settings = { tools: [], instructions: "x".repeat(2_500) };
    const said: Item[] = [user("x".repeat(200)), { type: "message", role: "assistant", content: "x".repeat(200) }];
    await talk({ items: [system, ...said], settings, compacts: true });
    assert.equal(turns.length, 2);
  });

  test("is refused as the model says, if a single message is too long", async () => {
    const { talk, turns } = createScene(taking(4_000));
    await assert.rejects(talk({ items: [user("x".repeat(5_000))], compacts: true }), { message: "Too long." });
    assert.equal(turns.length, 1);
  });

  test("is refused unread, if a single message is longer than the window that is known", async () => {
    const { talk, turns } = createScene([say("The end of it.")], { contextWindow: () => 4_000 });
    const refused = talk({ items: [user("x".repeat(5_000))], compacts: true });
    await assert.rejects(refused, { code: "context_length_exceeded", param: "input" });
    assert.equal(turns.length, 0);
  });

  test("is refused as the model says, if the answer leaves no room for any part", async () => {
    const { talk } = createScene(taking(4_000, { tokens: 4_000, answer: 4_000 }));
    await assert.rejects(talk({ items: long(5), compacts: true }), { message: "Too long." });
  });
});

suite("a conversation that is compacted before it is answered", () => {
  const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
  const system: Item = { type: "message", role: "system", content: "Be kind." };
  const long = (word: string) => word.padEnd(600, ".");
  const limit = { compactsBeyond: { tokens: 1_000, param: "own_field" } };
  const summary: Item = { type: "compaction", summary: "We met." };
  const native = { dialect: "responses", fields: {}, offers: ["own_field"] } as const;
  const settings = { tools: [], native };
  const steps = (count: number) =>
    Array.from({ length: count }, (_, index): Item[] => [
      { ...call, callId: `c${index}` },
      { ...output, callId: `c${index}`, output: long(`${index}`) },
    ]).flat();

  test("has its newest question behind the summary, in this turn and in whatever continues it", async () => {
    const { talk, turns, gateway } = createScene(model);
    const first = await talk({ items: [system, user(long("one"))], settings, ...limit });
    assert.deepEqual([turns.length, first.answer.items.length], [1, 2], "it was short enough");
    const memo = () => "how it is told";
    const asked = { items: [user(long("two"))], previousId: first.id, settings, ...limit };
    const { id, told, answer } = await talk(asked, { memo });
    assert.deepEqual(turns[1]?.items.slice(0, -1), [system, user(long("one")), ...first.answer.items]);
    const seen = [system, summary, user(long("two"))];
    assert.deepEqual([turns.length, turns[2]?.items], [3, seen]);
    assert.deepEqual(turns[2]?.settings.native?.offers, [], "nobody need be told that it is left out");
    assert.deepEqual(answer.items, [{ ...summary, kept: [system, user(long("two"))] }, ...first.answer.items]);
    assert.deepEqual([answer.usage?.inputTokens, answer.usage?.outputTokens], [6, 4], "what both have cost");
    const { about, follow } = (await gateway.recall("ann", id))!;
    const again: Event[] = [];
    for await (const batch of follow(new AbortController().signal)) for (const event of batch) again.push(event);
    assert.deepEqual(JSON.parse(JSON.stringify(again)), JSON.parse(JSON.stringify(told)));
    assert.deepEqual([about.contextItems, about.omittedItems], [3, 0]);
    await talk({ items: [user("three")], previousId: id, settings });
    assert.deepEqual(turns.at(-1)?.items, [...seen, ...first.answer.items, user("three")]);
  });

  test("goes on from the compaction, whether its client shows nothing, all, or only what followed it", async () => {
    const { talk, turns } = createScene(async function* (turn, signal, tell) {
      for await (const batch of model(turn, signal, tell)) yield batch.filter(({ type }) => type !== "reasoning");
    });
    const before = [user(long("one")), assistant("Hello"), user(long("two"))];
    for (const [hint, keep] of [
      ["h", "yes"],
      [undefined, "no"],
    ] as const) {
      const { answer } = await talk({ items: before, keep, ...limit }, { hint });
      const after: readonly Item[] = [summary, user(long("two")), assistant("Hello"), user("three")];
      const shown = { all: before.concat(answer.items), since: answer.items, nothing: [] };
      for (const [name, items] of Object.entries(shown)) {
        if (name === "nothing" && hint === undefined) continue;
        await talk({ items: [...items, user("three")], keep: "no" }, { hint, alwaysResends: false, neverShows: true });
        assert.deepEqual(turns.at(-1)?.items, after, `${hint} ${name}`);
      }
    }
  });

  test("keeps the steps since its question, or only the newest if they are long", async () => {
    const { talk, turns } = createScene(model);
    const before = [user(long("one")), assistant("Hello")];
    const short = [user("two"), call, output];
    const next: Item[] = [
      { ...call, callId: "d" },
      { ...output, callId: "d" },
    ];
    for (const since of [short, short.concat(next)]) {
      await talk({ items: [...before, user(long("one")), ...since], ...limit });
      assert.deepEqual(turns.at(-1)?.items, [summary, ...since]);
    }
    const items = [user("task"), ...steps(4)];
    await talk({ items, ...limit });
    assert.deepEqual(turns.at(-2)?.items.slice(0, -1), items.slice(0, -2), "the summary needs the question too");
    assert.deepEqual(turns.at(-1)?.items, [summary, user("task"), ...items.slice(-2)]);
  });

  test("has every system message once, and one summary, however often it is compacted", async () => {
    const { talk, turns } = createScene(model);
    for (const task of [[system], [user("task"), system]]) {
      const all = steps(9);
      const { id } = await talk({ items: [...task, ...all.slice(0, 8)], ...limit });
      const { answer } = await talk({ items: all.slice(8), previousId: id, ...limit });
      const said: readonly Item[] = task.concat(all.slice(-2)).filter((item) => item !== system);
      assert.deepEqual(turns.at(-1)?.items, [system, summary, ...said]);
      assert.deepEqual(answer.items[0], { ...summary, kept: [system, ...said] });
    }
    const short = [user("go on"), { ...summary, summary: "They met." }, call, output];
    await talk({ items: [user(long("one")), user(long("two")), ...short], ...limit });
    assert.deepEqual(turns.at(-1)?.items, [summary, ...short], "a summary that the new one has not read stays");
  });

  test("is not compacted at every step because its question alone is too long", async () => {
    const { talk, turns } = createScene(model);
    const items = [user(long("task").repeat(3)), ...steps(1), call, output];
    await talk({ items, ...limit });
    assert.deepEqual(turns.at(-2)?.items.slice(0, -1), items.slice(0, -2));
    const asked = turns.length;
    const short: Item[] = [call, output, { ...call, callId: "d" }, { ...output, callId: "d" }];
    await talk({ items: [summary, ...items.slice(0, 1), ...short], ...limit });
    assert.equal(turns.length, asked + 1);
  });

  test("has the system messages of then only where earlier ones apply", async () => {
    const { talk, turns } = createScene(model);
    const before = [user(long("one")), assistant("Hello"), user(long("two"))];
    const { answer } = await talk({ items: [system, ...before], ...limit }, { hint: "h" });
    const after = [summary, user(long("two")), ...answer.items.slice(1), user("three")];
    const neverShows = { hint: "h", neverShows: true };
    const asked = { items: [user("three")], keep: "no" } as const;
    await talk(asked, neverShows);
    assert.deepEqual(turns.at(-1)?.items, [system, ...after]);
    await talk({ ...asked, settings: { tools: [], instructions: "Be brief." } }, neverShows);
    assert.deepEqual(turns.at(-1)?.items, after);
    const shown = { ...asked, items: [...before, ...answer.items, user("three")] };
    await talk(shown, { hint: "h", alwaysResends: true });
    assert.deepEqual(turns.at(-1)?.items, after);
    const brief = { settings: { tools: [], instructions: "Be brief." } };
    const since = [...answer.items, user("three")];
    for (const alwaysResends of [false, true]) {
      const note: Item = { type: "message", role: "developer", content: "Hurry." };
      const { answer: next } = await talk({ items: since, ...brief }, { hint: "h", alwaysResends });
      assert.deepEqual(turns.at(-1)?.items, [system, ...after], "it has dropped them with what was said");
      const noted = [...next.items, note, user("four")];
      const { answer: last } = await talk({ items: [...since, ...noted], ...brief }, { hint: "h", alwaysResends });
      assert.deepEqual(turns.at(-1)?.items, [system, ...after, ...noted]);
      await talk({ items: [...since, ...noted, ...last.items, user("five")] }, { hint: "h", alwaysResends });
      assert.deepEqual(turns.at(-1)?.items, [system, ...after, ...noted, ...last.items, user("five")]);
    }
  });

  test("is not mistaken for another that goes on with the same words after its own compaction", async () => {
    const { talk, turns } = createScene(model);
    const caller = { hint: "h" };
    const since: Item[][] = [];
    for (const name of ["red", "blue"]) {
      const items = [user(long(`one ${name}`)), assistant("Hello"), user(long(name))];
      const { answer } = await talk({ items, ...limit }, caller);
      since.push([...answer.items, user("three")]);
    }
    for (let turn = 1; turn <= 2; turn += 1) {
      for (const [index, name] of ["red", "blue"].entries()) {
        const items = since[index]!;
        const { history, answer } = await talk({ items }, caller);
        assert.deepEqual(turns.at(-1)?.items, [summary, user(long(name)), ...items.slice(1)], `${name} ${turn}`);
        if (turn > 1) assert.equal(history, "matched", name);
        items.push(...answer.items, user("four"));
      }
    }
  });

  test("takes the outputs of the calls that follow the compaction, even if all of the answer is sent again", async () => {
    const { talk, turns } = createScene(async function* (turn, signal, tell) {
      const isFirst = turn.items.at(-1)?.type === "message" && turn.items[0]?.type === "compaction";
      if (isFirst) yield [{ type: "tool-call", index: 0, callId: "c", name: "f" }];
      else yield* model(turn, signal, tell);
    });
    const items = [user(long("one")), assistant("Hello"), user(long("two"))];
    const { id, answer } = await talk({ items, ...limit });
    for (const again of [[], answer.items]) {
      await talk({ items: [...again, output], previousId: id });
      assert.deepEqual(turns.at(-1)?.items, [summary, user(long("two")), call, output]);
    }
  });

  test("is answered as it is if there is nothing or little to compact", async () => {
    const { talk, turns } = createScene(model);
    const question = user(long("task").repeat(3));
    for (const items of [
      [system, question],
      [question, ...steps(1)],
      [system, summary, question],
      [{ ...system, content: long("Be kind.") }, question],
      [{ ...summary, summary: long("We met.") }, question],
    ]) {
      await talk({ items, ...limit });
      assert.deepEqual(turns.at(-1)?.items, items);
    }
    assert.equal(turns.length, 5);
    const items = [user("one"), assistant("Hello"), user("two")];
    await talk({ items, settings: { tools: [], instructions: long("Be kind.").repeat(2) }, ...limit });
    assert.equal(turns.length, 6, "instructions alone exceed the limit");
    const before = [user(long("one")), assistant("Hello"), user(long("two")), assistant("Hello")];
    for (const [size, asked] of [
      [900_000, 2],
      [1_100_000, 1],
    ] as const) {
      turns.length = 0;
      const image = { type: "image", url: `data:image/png;base64,${"A".repeat(size)}` } as const;
      await talk({ items: [...before, { type: "message", role: "user", content: [image] }], ...limit });
      assert.equal(turns.length, asked, "a large picture would come along for ever");
    }
  });

  test("is compacted when it fills the context window, if no limit is given; without one, that is left out", async () => {
    const items = [user(long("one")), assistant(long("Hello")), user(long("two"))];
    const { param } = limit.compactsBeyond;
    for (const [window, asked] of [
      [2_400, 2],
      [2_500, 1],
      [undefined, 1],
    ] as const) {
      const { talk, turns } = createScene(model, { contextWindow: () => window });
      await talk({ items, settings, compactsBeyond: { param } });
      const offers = window === undefined ? [param] : [];
      assert.deepEqual([turns.length, turns.at(-1)?.settings.native?.offers], [asked, offers]);
    }
  });

  test("is left to an adapter that speaks the caller's dialect", async () => {
    const items = [user(long("one")), assistant("Hello"), user(long("two"))];
    const { talk, turns } = createScene(model, { speaks: ["responses"] });
    await talk({ items, settings, ...limit });
    assert.deepEqual([turns.length, turns[0]?.settings.native], [1, native]);
  });

  test("is not lost, nor is what it has cost, if the model then says nothing", async () => {
    let asked = 0;
    const { talk } = createScene(async function* (turn, signal, tell) {
      if (++asked === 1) yield* model(turn, signal, tell);
    });
    const question = user(long("two"));
    const { answer } = await talk({ items: [user(long("one")), assistant("Hello"), question], ...limit });
    assert.deepEqual([answer.items, answer.usage], [[{ ...summary, kept: [question] }], usage]);
  });

  test("fails before its first word, whether the summary or the answer does", async () => {
    for (const failing of [1, 2]) {
      let asked = 0;
      const { talk, store } = createScene(async function* (turn, signal, tell) {
        if (++asked === failing) {
          if (failing === 1) yield say("We");
          throw new GatewayError("adapter_error", "It broke.");
        }
        yield* model(turn, signal, tell);
      });
      const items = [user(long("one")), assistant("Hello"), user(long("two"))];
      await assert.rejects(talk({ items, ...limit }, { turnId: "resp_1" }), { code: "adapter_error" });
      assert.deepEqual([asked, await store.findTurn("ann", "resp_1")], [failing, undefined]);
    }
  });

  test("stops the model when its caller leaves", async () => {
    const leaving = new AbortController();
    let isLeft = false;
    const { ask } = createScene(async function* (_turn, signal) {
      try {
        for (;;) {
          yield say("on and on ");
          leaving.abort(new GatewayError("client_closed", "Gone."));
          signal.throwIfAborted();
        }
      } finally {
        isLeft = true;
      }
    });
    const items = [user(long("one")), assistant("Hello"), user(long("two"))];
    const { events } = await ask({ items, ...limit }, { signal: leaving.signal });
    await assert.rejects(events.next(), { code: "client_closed" });
    assert.equal(isLeft, true);
  });
});

suite("the token count of a request", () => {
  const tokensPerItem = 4;

  test("is estimated from the items, the instructions and the tools", async () => {
    const { count, turns } = createScene(model);
    assert.deepEqual(await count({}), { tokens: tokensPerItem + "hi".length, isExact: false });
    const tool = { type: "function", name: "f" } as const;
    const { tokens } = await count({ settings: { instructions: "Be kind.", tools: [tool] } });
    const texts = ["hi", "Be kind.", JSON.stringify(tool)];
    assert.equal(tokens, texts.length * tokensPerItem + texts.join("").length);
    assert.equal(turns.length, 0);
  });

  test("is exact where the adapter can count", async () => {
    const { count } = createScene(model, { countTokens: async ({ items }) => items.length * 100 });
    assert.deepEqual(await count({ items: [user("a"), user("b")] }), { tokens: 200, isExact: true });
  });

  test("is refused for more items than a turn may have", async () => {
    const items = Array.from({ length: 5_000 }, () => user("a"));
    await assert.rejects(createScene(model).count({ items }), { code: "too_many_messages" });
  });

  test("is estimated while the adapter's server is down, but what the server says of the request or of our key is told", async () => {
    const fail = (code: ErrorCode) => {
      const counting = { countTokens: () => Promise.reject(new GatewayError(code, "No.")) };
      return createScene(model, counting).count({ items: [user("a")] });
    };
    const estimate = await createScene(model).count({ items: [user("a")] });
    assert.equal(estimate.isExact, false);
    for (const code of ["adapter_error", "adapter_timeout", "adapter_protocol", "overloaded"] as const) {
      assert.deepEqual(await fail(code), estimate);
    }
    const told = ["adapter_bad_request", "adapter_rate_limit", "adapter_refused", "internal_error", "client_closed"];
    for (const code of told as ErrorCode[]) {
      await assert.rejects(fail(code), { code });
    }
  });

  test("includes everything that the model would see, whatever the request continues", async () => {
    const { talk, count, store } = createScene(model, { countTokens: async ({ items }) => items.length });
    const first = await talk({ items: [user("one")], keep: "yes" }, { hint: "h" });
    const session = (await store.findTurn("ann", first.id))?.session;
    const seen = ["question", "reasoning", "answer", "next question"].length;
    assert.equal((await count({ previousId: first.id })).tokens, seen);
    assert.equal((await count({ conversationId: session })).tokens, seen);
    assert.equal((await count({}, { hint: "h" })).tokens, seen);
    assert.equal((await count({})).tokens, 1);
  });

  test("is available while another turn of the thread runs, and stores nothing", async () => {
    const gate = Promise.withResolvers<void>();
    const { ask, talk, count, store } = createScene(async function* (turn, signal, tell) {
      if (turn.items.length > 1) {
        yield say("wait");
        await gate.promise;
      }
      yield* model(turn, signal, tell);
    });
    const first = await talk({}, { hint: "h" });
    const running = await ask({ items: [user("slow")] }, { hint: "h" });
    await running.events.next();
    await count({ items: [user("next")] }, { hint: "h" });
    assert.equal((await store.findSession("ann", "h"))?.tip, first.id);
    gate.resolve();
    await running.events.return();
  });

  test("is refused for a request that continues an unknown response", async () => {
    const { count } = createScene(model);
    await assert.rejects(count({ previousId: "resp_0" }), { code: "previous_response_not_found" });
  });
});
