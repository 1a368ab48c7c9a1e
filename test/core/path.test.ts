import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Item, removed } from "../../src/core/item.ts";
import { withoutKnown } from "../../src/core/place/again.ts";
import { assembleContext } from "../../src/core/place/context.ts";
import { mergeSteering } from "../../src/core/place/steering.ts";
import { namesCall } from "../../src/core/place/calls.ts";
import { joinCalls } from "../../src/core/place/joined-calls.ts";
import {
  countBeyond,
  extend,
  noPath,
  type Path,
  surplusOf,
  talkFrom,
  toPath,
  turnsOf,
} from "../../src/core/place/path.ts";
import type { Place } from "../../src/core/place/place.ts";
import { withOwnIds } from "../../src/core/place/shown.ts";
import type { StoredTurn } from "../../src/core/store.ts";
import type { Ask } from "../../src/core/turn.ts";
import { say } from "../scripted.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { worked } from "../worked.ts";
import { drain, open } from "./asking.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });
const call = (callId: string, written = "{}"): Item => {
  return { type: "tool-call", kind: "function", callId, name: "f", arguments: written };
};
const output = (callId: string): Item => ({ type: "tool-output", kind: "function", callId, output: callId });

let turns = 0;

function makeTurn(input: readonly Item[], said: readonly Item[], wanted: Partial<StoredTurn> = {}): StoredTurn {
  return {
    id: `resp_${(turns += 1)}`,
    owner: "ann",
    session: "conv_1",
    parent: undefined,
    createdAt: new Date(0),
    model: "m",
    input,
    output: said,
    status: "completed",
    usage: undefined,
    digest: "d",
    exchange: undefined,
    ...wanted,
  };
}

test("two branches of a path never see each other, and neither does the path they branch from", () => {
  const [one, two, left, right] = ["one", "two", "left", "right"].map((word) =>
    makeTurn([user(word)], [assistant(`${word}!`)]),
  ) as [StoredTurn, StoredTurn, StoredTurn, StoredTurn];
  const trunk = extend(extend(noPath, one), two);
  const branches = [extend(trunk, left), extend(trunk, right)] as const;
  const further = extend(branches[0], right);
  assert.deepEqual(turnsOf(trunk), [one, two]);
  assert.deepEqual(turnsOf(branches[0]), [one, two, left]);
  assert.deepEqual(turnsOf(branches[1]), [one, two, right]);
  assert.deepEqual(turnsOf(further), [one, two, left, right]);
  assert.deepEqual(talkFrom(trunk, 2), [user("two"), assistant("two!")]);
  assert.deepEqual(talkFrom(branches[1], 4), [user("right"), assistant("right!")]);
  assert.deepEqual(extend(noPath, two), toPath([two]));
  assert.equal(noPath.track.turns.length, 0);
});

/** A path of which everything is known but what was said. */
function unread(path: Path): Path {
  const track = new Proxy(path.track, {
    get: () => assert.fail("a long thread must not be read or copied for this"),
  });
  return { ...path, track };
}

test("a turn that sends only what is new, or that resends words alone, does not read its thread to find its place", () => {
  const answered = unread(toPath([makeTurn([system("S"), user("one")], [assistant("yes")])]));
  assert.deepEqual(withoutKnown([user("two")], answered), [user("two")]);
  const shown = { items: [user("one"), assistant("yes"), user("two")], end: 2 };
  assert.equal(withOwnIds(shown, shown.end, answered), shown);
  const called = unread(toPath([makeTurn([user("one")], [call("c1"), call("c2")])]));
  const outputs = [output("c1"), output("c2")];
  assert.deepEqual(withoutKnown(outputs, called), outputs);
});

test("a turn that brings more of its history than the thread has extends the thread without copying it", async () => {
  const store = createMemoryStore();
  const { answer } = open(async function* () {
    yield say("yes");
  }, store);
  const ask = async (...items: readonly Item[]) => {
    const reply = await answer({ items }, { hint: "user:ann" });
    await drain(reply);
    return store.readPath(reply.about.id);
  };
  const before = await ask(user("one"));
  const after = await ask(user("one"), assistant("yes"), user("two"), assistant("no"), user("three"));
  assert.equal(after.length, 3);
  assert.equal(after.track, before.track);
});

test("a turn without instructions leaves those in force as they are", () => {
  const { steering } = toPath([makeTurn([system("S"), user("one")], [assistant("yes")])]);
  assert.equal(mergeSteering(steering, []), steering);
});

test("the surplus of a path contains nothing of a path that extends it", () => {
  const [one, two] = ["one", "two"].map((word) => makeTurn([user(word)], [])) as [StoredTurn, StoredTurn];
  const short = extend(noPath, one);
  const long = extend(short, two);
  assert.deepEqual(surplusOf(short, 2), [one]);
  assert.deepEqual(surplusOf(long, 2), [one, two]);
  assert.deepEqual(surplusOf(long, 0), []);
});

test("a path loses as many of its oldest turns as a size requires, and counts nothing of a path that extends it", () => {
  const [one, two, three] = ["one", "two", "three"].map((word) => makeTurn([user(word)], [])) as StoredTurn[];
  const short = extend(extend(noPath, one!, 10), two!, 20);
  const long = extend(short, three!, 30);
  const branch = extend(short, three!, 1_000);
  const counts = (path: Path) => [1_000, 60, 59, 50, 49, 30, 29, 0, -1].map((size) => countBeyond(path, size));
  assert.deepEqual(counts(noPath), [0, 0, 0, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual(counts(short), [0, 0, 0, 0, 0, 0, 1, 2, 2]);
  assert.deepEqual(counts(long), [0, 0, 1, 1, 2, 2, 3, 3, 3]);
  assert.deepEqual(counts(branch), [2, 3, 3, 3, 3, 3, 3, 3, 3]);
});

test("a turn whose size nobody knows counts with about as many characters as its JSON has", () => {
  const annotation = { type: "url_citation", fields: { url: "https://example.org", start_index: 1, is_new: true } };
  const turn = makeTurn(
    [
      user("one"),
      { ...output("c1"), extra: { dialect: "chat", fields: { deep: [[{ a: null }], "x".repeat(500)] } } } as Item,
    ],
    [call("c1"), { ...assistant(""), content: [{ type: "text", text: "yes", annotations: [annotation] }] } as Item],
  );
  const size = JSON.stringify(turn.input).length + JSON.stringify(turn.output).length;
  const path = toPath([turn]);
  assert.equal(countBeyond(path, size * 1.05), 0);
  assert.equal(countBeyond(path, size * 0.95), 1);
});

test("a path is settled up to the first call that has no output yet", () => {
  const settled = (...said: readonly Item[]) => toPath(said.map((item) => makeTurn([item], []))).settled;
  assert.equal(settled(user("a"), assistant("b")), 2);
  assert.equal(settled(user("a"), call("1"), call("2"), output("2"), output("1"), assistant("b")), 6);
  assert.equal(settled(user("a"), call("1"), output("1"), call("2")), 3);
  assert.equal(settled(user("a"), call("1"), user("never mind"), assistant("b"), user("c")), 1);
  assert.equal(settled(user("a"), call("1"), call("2"), output("1"), assistant("b"), output("2")), 1);
  assert.equal(settled(user("a"), output("x"), assistant("b")), 1);
  assert.equal(settled(user("a"), call("1"), call("1", "{}{}"), output("1"), assistant("b")), 1);
  assert.equal(settled(user("a"), call("1"), output("1"), call("1"), output("1"), assistant("b")), 6);
});

test("a path knows its newest system messages, and whether something is missing", () => {
  const path = toPath([
    makeTurn([system("old"), user("a")], [assistant("b")]),
    makeTurn([system("new"), user("c")], [assistant("d")]),
    makeTurn([user("e")], [assistant("f")]),
  ]);
  assert.deepEqual(path.steering, [system("new")]);
  assert.equal(path.talkLength, 6);
  assert.equal(path.isAbridged, false);
  assert.equal(extend(path, makeTurn([user("g")], [], { gap: true })).isAbridged, true);
  assert.equal(extend(path, makeTurn([], [{ type: "compaction", summary: "s" }])).isAbridged, true);
});

test("late outputs are placed after the calls of their own answer, however close the next answer's are", () => {
  const path = toPath([
    makeTurn([user("a")], [call("0")]),
    makeTurn([user("b")], [call("1"), call("2")]),
    makeTurn([output("0")], [call("3")]),
    makeTurn([output("1"), output("2")], [assistant("c")]),
  ]);
  const first = [user("a"), call("0"), output("0"), user("b")];
  const second = [call("1"), call("2"), output("1"), output("2"), call("3"), output("3"), assistant("c")];
  assert.deepEqual(see(path, [output("3")]), [...first, ...second]);
});

/** Turns of a conversation with calls answered at once, late, twice or never. */
const talkArbitrary = fc.array(
  fc.record({
    steers: fc.boolean(),
    asks: fc.boolean(),
    says: fc.boolean(),
    calls: fc.nat(2),
    /** Some models use an id for all of their calls, and may make the same one again. */
    names: fc.constantFrom("each", "one", "all alike"),
    /** Which of the calls so far get an output in this turn, counted from the newest. */
    answers: fc.array(fc.nat(4), { maxLength: 3 }),
  }),
  { minLength: 1, maxLength: 8 },
);

test("the model sees the same whether only the unsettled end of a thread is examined or all of it", () => {
  let shortened = 0;
  const property = fc.property(talkArbitrary, (talk) => {
    const called: string[] = [];
    const told = talk.map(({ steers, asks, says, calls, names, answers }) => {
      const input = answers.flatMap((back) => called.slice(-1 - back, called.length - back).map(output));
      if (steers) input.unshift(system(`${called.length}`));
      if (asks || input.length === 0) input.push(user(`${called.length}?`));
      const said: Item[] = says || calls === 0 ? [assistant(`${called.length}.`)] : [];
      for (let count = 0; count < calls; count += 1) {
        const callId = names === "each" ? `call_${called.length}` : "call";
        said.push(call(callId, names === "all alike" ? "{}" : `{"n":${called.length}}`));
        called.push(callId);
      }
      return [input, said] as const;
    });
    const [input] = told.at(-1) ?? [[]];
    const path = toPath(told.slice(0, -1).map(([asked, said]) => makeTurn(asked, said)));
    if (path.settled > 0) shortened += 1;
    for (const by of ["hint", "response"] as const)
      assert.deepEqual(see(path, input, by), see({ ...path, settled: 0 }, input, by));
  });
  fc.assert(property, { numRuns: 2_000 });
  assert.ok(shortened > 500, `only ${shortened} threads had a settled beginning`);
});

test("what was said long ago is not examined again when a request names what it continues", () => {
  let looks = 0;
  const seen = (item: Item): Item => {
    const { type } = item;
    return Object.defineProperty({ ...item }, "type", { get: () => ((looks += 1), type) });
  };
  const said = Array.from({ length: 500 }, () => makeTurn([seen(user("one"))], [seen(assistant("yes"))]));
  const path = toPath([...said, makeTurn([user("two")], [call("c1")])]);
  looks = 0;
  assert.equal(see(path, [output("c1")], "conversation").length, 1003);
  assert.equal(looks, 0);
});

test("the reasoning that a client resends with a step takes no longer to leave out, however much there is", () => {
  const path = toPath([makeTurn([user("look")], [call("c1")])]);
  const thoughts = Array.from({ length: 20_000 }, (): Item => ({ type: "reasoning", summary: [], text: "hm" }));
  const started = worked();
  const input = withoutKnown([user("look"), ...thoughts, call("c1"), output("c1")], path);
  assert.ok(worked() - started < 1000);
  assert.deepEqual(input, [output("c1")]);
});

function see(path: Path, input: readonly Item[], by: Place["by"] = "hint"): readonly Item[] {
  const place: Place = {
    history: "continued",
    path,
    base: [],
    input,
    session: undefined,
    move: undefined,
    by,
  };
  const ask: Ask<Item> = {
    model: "m",
    items: input,
    itemsParam: "input",
    settings: { tools: [] },
    stream: false,
    keep: "yes",
    needsOutputs: false,
  };
  return assembleContext(place, ask);
}

test("calls in a caller's own version get our ids, counted from the end, as far as they can be counted", () => {
  const turn = (callId: string, more?: Partial<StoredTurn>) => makeTurn([user("go")], [call(callId)], more);
  const items = ["x1", "x2", "x3"].flatMap((id) => [user("go"), call(id)]).concat(output("x3"));
  const idsOf = (...turns: readonly StoredTurn[]) =>
    withOwnIds({ items, end: 6 }, 6, toPath(turns)).items.flatMap((item) => ("callId" in item ? [item.callId] : []));
  assert.deepEqual(idsOf(turn("c1"), turn("c2"), turn("c3")), ["c1", "c2", "c3", "c3"]);
  assert.deepEqual(idsOf(turn("c2"), turn("c3")), ["x1", "c2", "c3", "c3"]);
  assert.deepEqual(idsOf(turn("c1"), turn("c3", { gap: true })), ["x1", "x2", "c3", "c3"]);
  assert.deepEqual(idsOf(turn("c2"), turn("", { gap: true, output: [removed, call("c3")] })), ["x1", "x2", "x3", "x3"]);
});

test("a caller names our calls if its last answer has some, and all of them are of the newest turn", () => {
  const path = toPath([makeTurn([user("go")], [call("c1"), call("c2")])]);
  const names = (...items: readonly Item[]) => namesCall({ items, end: items.length }, path);
  assert.ok(names(user("go"), call("old"), output("old"), assistant("so"), call("c1"), assistant("and"), call("c2")));
  assert.equal(names(user("go"), call("c1"), call("old")), false);
  assert.equal(names(user("go"), call("c1"), output("c1"), assistant("done")), false);
});

test("calls are joined only with those of their own answer, though others have the same ids", () => {
  const [one, two, three, four] = [call("c0", "[1]"), call("c1", "[2]"), call("c0", "[3]"), call("c1", "[4]")];
  const outputs = [output("c0"), output("c1")];
  const path = toPath([makeTurn([user("go")], [one, two]), makeTurn(outputs, [three, four])]);
  const join = (...items: readonly Item[]) => {
    const end = items.findLastIndex(({ type }) => type === "tool-call") + 1;
    return joinCalls({ items, end }, path).items;
  };
  // One call of the newest answer is left out.
  const some = [user("go"), one, two, ...outputs, three, output("c0")];
  assert.deepEqual(join(...some), some);
  const split = [user("go"), one, output("c0"), two, output("c1"), three, output("c0"), four, output("c1")];
  assert.deepEqual(join(...split), [user("go"), one, two, ...outputs, three, four, ...outputs]);
});

test("calls of one answer are joined, even if it gave them one id", () => {
  const calls = [call("c0", "[1]"), call("c0", "[2]")] as const;
  const path = toPath([makeTurn([user("go")], calls)]);
  const items = [user("go"), calls[0], output("c0"), calls[1], output("c0")];
  assert.deepEqual(joinCalls({ items, end: 4 }, path).items, [user("go"), ...calls, output("c0"), output("c0")]);
});
