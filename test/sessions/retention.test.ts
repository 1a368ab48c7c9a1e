/** What is left of a conversation when some of it was deleted, forgotten or does not fit. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import { createModelNames } from "../../src/core/route/models.ts";
import { createRoute } from "../../src/core/route/route.ts";
import type { Ask } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { usual } from "../core/route-lanes.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter, say } from "../scripted.ts";

const newId = createIds(() => new Date());
const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const talk = (...texts: string[]): Item[] => texts.flatMap((text) => [user(text), assistant(`re: ${text}`)]);

const dayMs = 24 * 3_600_000;

interface Options {
  readonly maxTurnsPerThread?: number;
  readonly maxCharactersPerThread?: number;
  readonly contextWindow?: number;
  /** A model that takes as many tokens, each a character, and does not say so beforehand. */
  readonly takes?: number;
}

function open({ contextWindow, takes = Infinity, ...limits }: Options = {}) {
  const scripted = createScriptedAdapter(async function* (turn) {
    if (tokensOf(turn.items) > takes) throw tooLong();
    const last = turn.items.at(-1);
    const lastText = last?.type === "message" && typeof last.content === "string" ? last.content : "a tool";
    if (lastText.startsWith("THINK")) yield [{ type: "reasoning", text: "hm" }];
    if (!lastText.startsWith("CALL")) return yield say(`re: ${lastText}`);
    yield [
      { type: "tool-call", index: 0, callId: `call_${lastText.length}`, name: "f" },
      { type: "tool-arguments", index: 0, text: "{}" },
    ];
  });
  const lane = { ...usual, name: "a", adapter: scripted, models: createModelNames({}), contextWindow };
  const clock = { time: new Date("2026-02-03T04:05:06.789Z") };
  const now = () => clock.time;
  const store = createMemoryStore({ now });
  const route = { lanes: [lane], defaultLane: "a", now, random: () => 0, wait: async () => {} };
  const gateway = makeGateway({ adapter: createRoute(route), store, now, limits });
  const ask = async (items: readonly Item[], rest: Partial<Ask> = {}, hint: string | null = "user:u") => {
    const { about, events } = await gateway.answer(
      { model: "m", items, itemsParam: "input", settings: { tools: [] }, stream: false, keep: "in-session", ...rest },
      { turnId: newId("resp"), owner: "ann", hint: hint ?? undefined, signal: new AbortController().signal },
    );
    await Array.fromAsync(events);
    return { about, seen: scripted.turns.at(-1)?.items ?? [] };
  };
  /** Lets days pass, and prunes what was not used in the last three of them. */
  const wait = async (days: number) => {
    clock.time = new Date(+clock.time + days * dayMs);
    return (await store.prune({ idleBefore: new Date(+clock.time - 3 * dayMs) })).turns;
  };
  return { gateway, store, ask, wait, turns: scripted.turns };
}

function tokensOf(items: readonly Item[]): number {
  return items.reduce((sum, item) => sum + 4 + textOf(item).length, 0);
}

function textOf(item: Item): string {
  if (item.type === "reasoning") return item.text;
  const said = item.type === "message" ? item.content : item.type === "tool-output" ? item.output : "";
  return String(said);
}

function tooLong(): GatewayError {
  return new GatewayError("adapter_bad_request", "It is too long.", { wireCode: "context_length_exceeded" });
}

suite("a thread that exceeds its limit", () => {
  test("loses its oldest turns, and continues", async () => {
    const { ask, store } = open({ maxTurnsPerThread: 3 });
    const first = await ask([user("one")]);
    for (const word of ["two", "three", "four"]) await ask([user(word)]);
    const { seen, about } = await ask([user("five")]);
    assert.equal(about.history, "continued");
    assert.deepEqual(seen, [...talk("two", "three", "four"), user("five")]);
    assert.equal(await store.findTurn("ann", first.about.id), undefined);
    assert.equal((await store.readPath(about.id)).length, 3);
  });

  test("counts earlier history that a client shows as a turn", async () => {
    const { ask, store } = open({ maxTurnsPerThread: 2 });
    await ask([user("one")]);
    const shown = [...talk("one"), user("two"), assistant("as they say"), user("three")];
    const { seen, about } = await ask(shown);
    assert.deepEqual(seen, shown);
    assert.equal((await store.readPath(about.id)).length, 2);
  });

  test("still shows the model everything that a resending client shows", async () => {
    const { ask } = open({ maxTurnsPerThread: 2 });
    const words = ["one", "two", "three", "four", "five"];
    for (let said = 0; said < words.length; said++) {
      const shown = [...talk(...words.slice(0, said)), user(words[said] ?? "")];
      const { seen, about } = await ask(shown);
      assert.deepEqual(seen, shown);
      assert.equal(about.history, said === 0 ? "new" : "matched");
    }
  });
});

suite("a thread that has too many characters", () => {
  const long = (word: string) => word.padEnd(1_000, ".");

  test("loses its oldest turns, and continues, in a session or outside of any", async () => {
    for (const isInSession of [true, false]) {
      const { ask, store } = open({ maxCharactersPerThread: 5_000 });
      const ids: string[] = [];
      const say = async (word: string) => {
        const { about, seen } = isInSession
          ? await ask([user(word)])
          : await ask([user(word)], { previousId: ids.at(-1), keep: "yes" }, null);
        ids.push(about.id);
        return seen;
      };
      for (const word of ["one", "two", "three"]) await say(long(word));
      assert.deepEqual(await say("four"), [...talk(long("two"), long("three")), user("four")]);
      assert.equal(await store.findTurn("ann", ids[0]!), undefined);
      assert.deepEqual(await say("five"), [...talk(long("two"), long("three"), "four"), user("five")]);
    }
  });

  test("counts instructions that its client resends only once, until they must be stored again", async () => {
    const { ask, store } = open({ maxCharactersPerThread: 5_000 });
    const instructions: Item = { type: "message", role: "system", content: "x".repeat(3_000) };
    for (const [word, kept] of [
      ["one", ["one"]],
      ["two", ["one", "two"]],
      ["three", ["one", "two", "three"]],
      ["four".padEnd(780, "."), ["two", "three", "four"]],
      ["five".padEnd(780, "."), ["five"]],
    ] as const) {
      const { about } = await ask([instructions, user(word)]);
      const path = await store.readPath(about.id);
      const said = path.track.talk.filter((item) => item.type === "message" && item.role === "user");
      assert.deepEqual(
        said.map((item) => textOf(item).replaceAll(".", "")),
        kept,
      );
      assert.deepEqual(path.steering, [instructions]);
      assert.ok(path.track.sizes.at(-1)! <= 5_000);
    }
  });

  test("keeps its newest turn, however long that is, with what its client showed before it", async () => {
    const { ask, store } = open({ maxCharactersPerThread: 5_000 });
    await ask([user("one")]);
    const [shown, newest] = [talk("two".padEnd(6_000, ".")), user("three".padEnd(6_000, "."))];
    const { about, seen } = await ask([...talk("one"), ...shown, newest]);
    assert.deepEqual(seen, [...talk("one"), ...shown, newest]);
    assert.equal((await store.readPath(about.id)).length, 2);
    const next = await ask([user("four")], { previousId: about.id }, null);
    assert.deepEqual(next.seen.slice(0, 3), [...shown, newest]);
    assert.equal((await store.readPath(next.about.id)).length, 1);
  });

  test("shows no half of a tool call whose other half was forgotten", async () => {
    const { ask } = open({ maxCharactersPerThread: 5_000 });
    await ask([user("CALL")]);
    await ask([{ type: "tool-output", kind: "function", callId: "call_4", output: "x".repeat(6_000) }]);
    assert.deepEqual((await ask([user("two")])).seen, [assistant("re: a tool"), user("two")]);
  });
});

for (const shownExchanges of [1, 2, 3, 5]) {
  test(`a thread of two turns stays one when its client shows the last ${shownExchanges} exchanges`, async () => {
    const { ask, store } = open({ maxTurnsPerThread: 2 });
    const words = ["one", "two", "three", "four", "five", "six", "seven"];
    for (let said = 0; said < words.length; said++) {
      const shown = [...talk(...words.slice(Math.max(0, said - shownExchanges), said)), user(words[said] ?? "")];
      const { seen, about } = await ask(shown);
      assert.deepEqual(seen.slice(-shown.length), shown);
      assert.equal(about.history, said === 0 ? "new" : "matched");
    }
    const records = await Array.fromAsync(store.exportRecords());
    assert.equal(records.filter(({ type }) => type === "turn").length, 2);
  });
}

suite("an abandoned thread in an active session", () => {
  test("is forgotten when it is old, and is foreign to a client that shows it then", async () => {
    const { ask, wait, store } = open();
    await ask([user("one")]);
    const left = await ask([...talk("one"), user("two")]);
    const counts: number[] = [];
    for (const day of ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]) {
      counts.push(await wait(1));
      await ask([user(day)]);
      assert.equal((await ask([...talk(day), user("and then?")])).about.history, "matched");
    }
    // From then on as much is pruned each day as is added.
    assert.deepEqual(counts, [0, 0, 0, 2, 2, 2]);
    assert.equal(await store.findTurn("ann", left.about.id), undefined);
    const again = await ask([...talk("one", "two"), user("three")]);
    assert.equal(again.about.history, "foreign");
    assert.deepEqual(again.seen, [...talk("one", "two"), user("three")]);
    assert.equal(again.about.session, left.about.session);
  });

  test("is forgotten only up to where another branches off", async () => {
    const { ask, wait } = open();
    const first = await ask([user("one")]);
    await ask([...talk("one"), user("two")]);
    await wait(2);
    const branch = await ask([...talk("one"), user("other")]);
    await wait(2);
    const next = await ask([user("three")], { previousId: branch.about.id }, null);
    assert.deepEqual(next.seen, [...talk("one", "other"), user("three")]);
    const again = await ask([...talk("one", "two"), user("four")]);
    assert.deepEqual(again.seen, [...talk("one", "two"), user("four")]);
    assert.equal((await ask([user("five")], { previousId: first.about.id }, null)).seen.length, 3);
  });

  test("does not affect a client that sends only new items: its thread stays complete, however old it is", async () => {
    const { ask, wait } = open();
    const words = ["one", "two", "three", "four", "five", "six"];
    for (const [said, word] of words.entries()) {
      const { seen } = await ask([user(word)]);
      assert.deepEqual(seen, [...talk(...words.slice(0, said)), user(word)]);
      assert.equal(await wait(2), 0);
    }
  });
});

suite("a deleted turn", () => {
  test("is not seen by later turns, which continue", async () => {
    const { ask, gateway } = open();
    await ask([user("one")]);
    const second = await ask([user("two")]);
    await ask([user("three")]);
    await gateway.forget("ann", second.about.id);
    const { seen } = await ask([user("four")]);
    assert.deepEqual(seen, [...talk("one", "three"), user("four")]);
  });

  test("that was the newest makes the one before it the newest", async () => {
    const { ask, gateway } = open();
    await ask([user("one")]);
    const second = await ask([user("two")]);
    await gateway.forget("ann", second.about.id);
    const { seen, about } = await ask([user("three")]);
    assert.equal(about.history, "continued");
    assert.deepEqual(seen, [...talk("one"), user("three")]);
  });

  test("removes its half of a tool call, and the other half is not shown alone", async () => {
    const { ask, gateway } = open();
    await ask([user("one")]);
    const called = await ask([user("CALL")]);
    const output: Item = { type: "tool-output", kind: "function", callId: "call_4", output: "42" };
    const answered = await ask([output]);
    await gateway.forget("ann", called.about.id);
    const { seen } = await ask([user("two")], { previousId: answered.about.id }, null);
    assert.deepEqual(seen, [...talk("one"), assistant("re: a tool"), user("two")]);
  });
});

suite("a conversation that is longer than the context window", () => {
  const words = ["one", "two", "three", "four", "five", "six"];

  test("in a session is shown without its middle, and the answer says how much was omitted", async () => {
    const { ask } = open({ contextWindow: 120 });
    let last: Awaited<ReturnType<typeof ask>> | undefined;
    for (const word of words) last = await ask([user(`${word} ${"x".repeat(10)}`)]);
    assert.ok(last !== undefined && last.about.omittedItems > 0);
    assert.equal(last.about.contextItems, last.seen.length);
    assert.equal(last.seen.length + last.about.omittedItems, 2 * words.length - 1);
    assert.deepEqual(last.seen.at(-1), user(`six ${"x".repeat(10)}`));
    assert.equal(last.about.truncation, "auto");
  });

  test("is refused when the caller forbids omissions", async () => {
    const { ask } = open({ contextWindow: 120 });
    const long = words.flatMap((word) => talk(`${word} ${"x".repeat(30)}`));
    await assert.rejects(ask([...long, user("now")], { truncation: "disabled" }), {
      code: "context_length_exceeded",
      status: 400,
      param: "input",
    });
  });

  test("leaves room for the model's answer, unless the newest message needs it", async () => {
    const { ask } = open({ contextWindow: 120 });
    for (const word of words) {
      const { seen } = await ask([user(`${word} ${"x".repeat(10)}`)]);
      assert.ok(tokensOf(seen) <= 90, "a quarter of the window is free");
    }
    const { seen } = await ask([user("y".repeat(100))]);
    assert.deepEqual(seen, [user("y".repeat(100))]);
    // A request that allows a longer answer than there is room for is not refused.
    const brief = await ask([user("brief")], { settings: { tools: [], maxOutputTokens: 120 } });
    assert.deepEqual(brief.seen.at(-1), user("brief"));
    assert.ok(brief.seen.length > 1 && tokensOf(brief.seen) <= 60, "and not everything is omitted for it");
    const strict = ask(
      [user("strict")],
      { settings: { tools: [], maxOutputTokens: 120 }, truncation: "disabled" },
      null,
    );
    await assert.rejects(strict, /an answer of fewer than 120 tokens/);
  });

  test("leaves as much room as the caller allows for the answer", async () => {
    const { ask } = open({ contextWindow: 120 });
    const asked = words.map((word) => user(`${word} ${"x".repeat(10)}`));
    for (const item of asked) await ask([item]);
    const { seen } = await ask([user("now")], { settings: { tools: [], maxOutputTokens: 60 } });
    assert.deepEqual(seen, [asked[0], user("now")]);
  });

  test("is passed on in full where neither the caller nor a session requires a limit", async () => {
    const { ask } = open({ contextWindow: 20 });
    const { seen, about } = await ask([...talk("one", "two"), user("three")], {}, null);
    assert.equal(seen.length, 5);
    assert.equal(about.omittedItems, 0);
  });

  test("is refused when even its newest message does not fit", async () => {
    const { ask } = open({ contextWindow: 20 });
    await assert.rejects(ask([user("x".repeat(100))]), { code: "context_length_exceeded" });
  });
});

suite("a conversation that the model finds too long", () => {
  const words = ["one", "two", "three", "four", "five", "six", "seven", "eight"].map((word) => word.padEnd(10, "."));

  test("in a session loses its middle, and goes on", async () => {
    const { ask } = open({ takes: 120 });
    for (const [index, word] of words.entries()) {
      const { seen, about } = await ask([user(word)]);
      assert.deepEqual(seen.at(-1), user(word));
      assert.equal(about.contextItems, seen.length);
      assert.equal(seen.length + about.omittedItems, 2 * index + 1);
      assert.ok(seen.length > 1 || index === 0, "not more is left out than must be");
    }
  });

  test("is not refused with each turn, until the gateway forgets what was too long", async () => {
    const { ask, gateway, turns } = open({ takes: 120 });
    for (const word of words) await ask([user(word)]);
    const asked = turns.length;
    await ask([user("nine")]);
    assert.equal(turns.length, asked + 1);
    gateway.forgetOld();
    await ask([user("ten")]);
    assert.ok(turns.length > asked + 2);
  });

  test("is not refused with each turn outside of sessions, either", async () => {
    const { ask, turns } = open({ takes: 120 });
    let previousId: string | undefined;
    for (const word of words) {
      const { about } = await ask([user(word)], { previousId, truncation: "auto", keep: "yes" }, null);
      previousId = about.id;
    }
    assert.equal(turns.length, words.length + 1);
  });

  test("says nothing of how much other sessions may hold", async () => {
    const { ask } = open({ takes: 120 });
    for (const word of words) await ask([user(word)]);
    for (const word of words.slice(0, 3)) await ask([user(word)], {}, "user:v");
    const { seen } = await ask([user("now")], {}, "user:v");
    assert.deepEqual(seen, [...talk(...words.slice(0, 3)), user("now")]);
  });

  test("loses half of what can be spared, however long its instructions are", async () => {
    const { ask } = open({ takes: 400 });
    const instructions: Item = { type: "message", role: "system", content: "x".repeat(200) };
    for (const [index, word] of words.entries()) {
      const { seen } = await ask([instructions, user(word)]);
      assert.deepEqual([seen[0], seen.at(-1)], [instructions, user(word)]);
      assert.ok(seen.length > 2 || index === 0, "not more is left out than must be");
    }
  });

  test("loses older steps of an agent, even if the newest is longer than they are", async () => {
    const { ask } = open({ takes: 100 });
    const step = (callId: string, length: number): Item[] => [
      { type: "tool-call", kind: "function", callId, name: "f", arguments: "{}" },
      { type: "tool-output", kind: "function", callId, output: "x".repeat(length) },
    ];
    const { seen } = await ask([user("task"), ...step("a", 30), ...step("b", 60)], { truncation: "auto" }, null);
    assert.deepEqual(seen, [user("task"), ...step("b", 60)]);
  });

  test("loses all that it can spare, if the newest message takes nearly all there is", async () => {
    const { ask } = open({ takes: 120 });
    for (const word of words.slice(0, 3)) await ask([user(word)]);
    const { seen, about } = await ask([user("x".repeat(110))]);
    assert.deepEqual(seen, [user("x".repeat(110))]);
    assert.equal(about.omittedItems, 6);
  });

  test("fails as the model says if its newest message alone is too long, and the session goes on", async () => {
    const { ask } = open({ takes: 120 });
    await ask([user("one")]);
    await assert.rejects(ask([user("x".repeat(130))]), {
      wireCode: "context_length_exceeded",
      message: "It is too long.",
    });
    assert.deepEqual((await ask([user("two")])).seen, [...talk("one"), user("two")]);
  });

  test("is fitted by what the model takes, if that is less than its configured window", async () => {
    const { ask } = open({ takes: 80, contextWindow: 160 });
    for (const word of words) assert.deepEqual((await ask([user(word)])).seen.at(-1), user(word));
  });

  test("is never sent beyond its configured window, even if its newest message was too long before", async () => {
    const { ask, turns } = open({ takes: 80, contextWindow: 160 });
    for (const word of words) await ask([user(word)]);
    await assert.rejects(ask([user("x".repeat(130))]), { code: "adapter_bad_request" });
    assert.ok(turns.every(({ items }) => tokensOf(items) <= 160));
    const asked = turns.length;
    await assert.rejects(ask([user("x".repeat(170))]), { code: "context_length_exceeded" });
    assert.equal(turns.length, asked);
  });

  test("is its caller's to shorten, if the caller has shown it all", async () => {
    const { ask, turns } = open({ takes: 120 });
    const long = [...talk(...words), user("now")];
    await assert.rejects(ask(long), { wireCode: "context_length_exceeded" });
    await assert.rejects(ask(long, {}, null), { wireCode: "context_length_exceeded" });
    assert.equal(turns.length, 2);
    const { seen } = await ask(long, { truncation: "auto" }, null);
    assert.deepEqual(seen.at(-1), user("now"));
  });

  test("is its caller's to shorten, even if the gateway has added what the model thought", async () => {
    const { ask } = open({ takes: 120 });
    const first = user("THINK");
    await ask([first]);
    const { seen } = await ask([first, assistant("re: THINK"), user("then")]);
    assert.ok(seen.some(({ type }) => type === "reasoning"));
    await assert.rejects(ask([...talk("THINK", "then"), user("x".repeat(100))]), {
      wireCode: "context_length_exceeded",
    });
  });

  test("is not shortened against its caller's wish", async () => {
    const { ask, turns } = open({ takes: 120 });
    for (const word of words.slice(0, 4)) await ask([user(word)]);
    const asked = turns.length;
    await assert.rejects(ask([user("x".repeat(100))], { truncation: "disabled" }), { code: "adapter_bad_request" });
    assert.equal(turns.length, asked + 1);
  });
});
