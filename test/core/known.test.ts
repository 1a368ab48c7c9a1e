import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import type { Item } from "../../src/core/item.ts";
import { createChain } from "../../src/core/place/chain.ts";
import { findKnown } from "../../src/core/place/known.ts";
import { toPath } from "../../src/core/place/path.ts";
import { toRuns } from "../../src/core/place/runs.ts";
import type { StoredTurn } from "../../src/core/store.ts";
import { distort } from "../sessions/distortions.ts";

const session = "conv_1";
const chain = createChain((text) => hash("sha256", text, "base64url").slice(0, 22));

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const call = (callId: string, name = "f"): Item => ({
  type: "tool-call",
  kind: "function",
  callId,
  name,
  arguments: '{"a":1,"b":[2]}',
});
const output = (callId: string, text: string): Item => ({
  type: "tool-output",
  kind: "function",
  callId,
  output: text,
});

/** The turns of a thread, with the digests that the gateway gives them. */
function toTurns(turns: readonly (readonly [input: readonly Item[], output: readonly Item[]])[]): StoredTurn[] {
  const path: StoredTurn[] = [];
  for (const [index, [input, said]] of turns.entries()) {
    path.push({
      id: `resp_${index}`,
      owner: "ann",
      session,
      parent: path.at(-1)?.id,
      createdAt: new Date(0),
      model: "m",
      input,
      output: said,
      status: "completed",
      usage: undefined,
      ...chain.mark(session, toPath(path), input, said),
    });
  }
  return path;
}

const itemsOf = (path: readonly StoredTurn[]) => path.flatMap(({ input, output: said }) => [...input, ...said]);

const known = (items: readonly Item[], turns: readonly StoredTurn[]) =>
  findKnown({ items, end: items.length }, toPath(turns));

const path = toTurns([
  [[user("one")], [assistant("first")]],
  [[user("two")], [call("c1"), call("c2", "g")]],
  [[output("c2", "late"), output("c1", "soon")], [assistant("third")]],
]);
const [, second, third] = path;

test("a history that is shown word for word is recognised to its end", () => {
  assert.deepEqual(known(itemsOf(path), path), { length: 8, digest: third?.digest, start: 0 });
});

test("a history with other spellings, ids and parts is recognised as well", () => {
  const shown = [
    { type: "message", role: "system", content: "Be brief." } as const,
    { type: "message", role: "user", content: [{ type: "text", text: "one  \r\n" }] } as const,
    assistant("first\n"),
    user("two"),
    { ...call("mine-1"), arguments: '{ "b": [2], "a": 1 }' } as Item,
    call("mine-2", "g"),
    output("mine-2", "late"),
    output("mine-1", "soon"),
    assistant("third"),
  ];
  assert.deepEqual(known(shown, path), { length: 9, digest: third?.digest, start: 1 });
});

test("a history that differs is recognised up to the turn before the difference", () => {
  const changed = itemsOf(path).with(7, assistant("another"));
  assert.deepEqual(known(changed, path), { length: 5, digest: second?.digest, start: 0 });
  assert.equal(known([user("One"), assistant("first")], path), undefined);
  assert.equal(known([user("one")], path), undefined);
  assert.equal(known([user("one"), user("first"), user("again"), assistant("what?")], path), undefined);
});

test("what a hosted tool did is recognised by its id, and what it was given by its content", () => {
  const hosted = (side: "model" | "tools", id: string, fields: object): Item => ({
    type: "other",
    extra: { dialect: "responses", fields: { ...fields } },
    exchange: { side, id },
  });
  const [did, given] = [hosted("model", "h1", { status: "completed" }), hosted("tools", "h1", { b: 1, a: 2 })];
  const turns = toTurns([
    [[user("one")], [did]],
    [[given], [assistant("done")]],
  ]);
  const [first, second] = turns;
  const shown = [user("one"), hosted("model", "h1", {}), hosted("tools", "h1", { a: 2, b: 1 }), assistant("done")];
  assert.deepEqual(known(shown, turns), { length: 4, digest: second?.digest, start: 0 });
  const other = shown.with(2, hosted("tools", "h1", { a: 3 }));
  assert.deepEqual(known(other, turns), { length: 2, digest: first?.digest, start: 0 });
  assert.equal(known(shown.with(1, hosted("model", "h2", {})), turns), undefined);
});

test("the outputs of two calls are not confused", () => {
  const swapped = itemsOf(path).with(5, output("c1", "late")).with(6, output("c2", "soon"));
  assert.equal(known(swapped, path)?.digest, second?.digest);
});

test("a message that the caller adds after an answer belongs to that answer, so it is not recognised", () => {
  assert.equal(known([user("one"), assistant("first"), assistant("and more")], path), undefined);
});

test("nothing is recognised after a deleted or compacted turn", () => {
  const [first] = path;
  const gap = [first!, { ...second!, gap: true }, third!];
  assert.equal(known(itemsOf(path), gap)?.digest, first?.digest);
  const short = [first!, { ...second!, output: [...second!.output, { type: "compaction", summary: "s" } as const] }];
  assert.equal(known(itemsOf(path), short)?.digest, first?.digest);
});

test("an answer of several messages is recognised by a caller that got it as one text followed by its calls", () => {
  const several = toTurns([
    [[user("one")], [assistant("Let me check."), call("c1"), assistant("Done."), call("c2", "g")]],
    [
      [output("c1", "x"), output("c2", "y")],
      [assistant("Well. "), assistant("Yes.")],
    ],
  ]);
  const told = [
    user("one"),
    assistant("Let me check.Done."),
    call("mine-1"),
    call("mine-2", "g"),
    output("mine-1", "x"),
    output("mine-2", "y"),
    assistant("Well. Yes."),
  ];
  assert.deepEqual(known(told, several), { length: 7, digest: several[1]?.digest, start: 0 });
  const noted = told.toSpliced(1, 0, { type: "message", role: "system", content: "NOTE" });
  assert.deepEqual(known(noted, several), { length: 8, digest: several[1]?.digest, start: undefined });
  assert.equal(known(told.with(6, assistant("Well. No.")), several)?.digest, several[0]?.digest);
  assert.equal(known(told.with(3, call("mine-2", "h")), several), undefined);
  assert.equal(known(told.toSpliced(3, 1), several), undefined);
});

const word = fc.constantFrom("yes", "no", " indeed", "two\nlines", "", "more\n\nlines \n");
const callId = fc.constantFrom("a", "b");
const fromModel = fc.oneof(
  word.map(assistant),
  callId.map((id) => call(id)),
  fc.constant<Item>({ type: "reasoning", summary: ["s"], text: "" }),
);
const fromCaller = fc.oneof(
  word.map(user),
  fc.tuple(callId, word).map(([id, text]) => output(id, text)),
  fc.constant<Item>({ type: "message", role: "system", content: "s" }),
);
const someItems = fc.array(fc.oneof(fromModel, fromCaller), { maxLength: 4 });
const someWord = fc.constantFrom(assistant("yes"), call("a"));
/** A question and its answer, or a history that was shown. */
const turnArbitrary = fc.oneof(
  fc
    .tuple(fc.array(fromCaller, { maxLength: 3 }), fc.array(fromModel, { maxLength: 2 }), someWord)
    .map(([asked, said, last]) => [asked, [...said, last]] as const),
  fc.tuple(someItems, someWord).map(([shown, last]) => [[...shown, last], []] as const),
);
const distortion = fc.record({
  blanks: fc.boolean(),
  lineEnds: fc.boolean(),
  parts: fc.boolean(),
  merge: fc.boolean(),
  withoutReasoning: fc.boolean(),
  serialise: fc.boolean(),
  reorder: fc.boolean(),
  rename: fc.boolean(),
  salt: fc.nat(100),
});

test("outputs in another order than their calls have one digest, even if a caller had shown the calls", () => {
  const turns = toTurns([
    [[user("one"), assistant("first"), user("two"), call("c1"), call("c2", "g")], []],
    [[output("c2", "late"), output("c1", "soon")], [assistant("third")]],
  ]);
  assert.equal(turns.at(-1)?.digest, chain.follow(session, toRuns(itemsOf(turns))).at(-1));
});

test("a turn after a shown history gets its digest without reading more of it than its last answer", () => {
  let looks = 0;
  const counted: Item = {
    type: "message",
    role: "user",
    get content() {
      looks += 1;
      return "one";
    },
  };
  const shown = toPath(toTurns([[[counted, assistant("first"), user("two"), assistant("second")], []]]));
  looks = 0;
  chain.mark(session, shown, [], [assistant("third")]);
  assert.equal(looks, 0);
});

test("a turn after one that was stored without a digest, as older archives have it, is found by its history", () => {
  const [first, ...rest] = path;
  const undigested = toPath([{ ...first!, digest: undefined }]);
  const { input, output: said, digest } = rest[0]!;
  assert.equal(chain.mark(session, undigested, input, said).digest, digest);
});

test("a history recognised by comparison has the same digest as by hashing", () => {
  let count = 0;
  const property = fc.property(
    fc.array(turnArbitrary, { minLength: 1, maxLength: 5 }),
    someItems,
    distortion,
    (turns, behind, spelling) => {
      const thread = toTurns(turns);
      const shown = [...distort(itemsOf(thread), spelling), ...behind];
      const found = known(shown, thread);
      if (found === undefined) return;
      count += 1;
      const beginning = toRuns(shown.slice(0, found.length));
      assert.equal(chain.follow(session, beginning).at(-1) ?? session, found.digest);
      // No run extends past its end.
      assert.deepEqual(toRuns(shown).slice(0, beginning.length), beginning);
    },
  );
  fc.assert(property, { seed: 20260101, numRuns: 2000 });
  assert.ok(count > 500, `only ${count} beginnings were recognised`);
});

test("items that were compared before are not compared again", () => {
  let looks = 0;
  const shownBy = (item: Item): Item =>
    ({
      ...item,
      get content() {
        looks += 1;
        return item.type === "message" ? item.content : "";
      },
    }) as Item;
  const turns = toTurns(Array.from({ length: 50 }, (_, index) => [[user(`q${index}`)], [assistant(`a${index}`)]]));
  const thread = toPath(turns);
  const shown = itemsOf(turns).map(shownBy);
  assert.equal(findKnown({ items: shown, end: 60 }, thread)?.length, 60);
  looks = 0;
  assert.equal(findKnown({ items: shown.slice(), end: 100 }, thread)?.length, 100);
  assert.ok(looks < 50, `${looks} looks`);
  looks = 0;
  const other = shown.with(10, user("something else"));
  assert.equal(findKnown({ items: other, end: 100 }, thread)?.length, 10);
  assert.equal(findKnown({ items: [user("q0"), ...shown.slice(1)], end: 100 }, thread)?.length, 100);
});

test("what was compared before changes nothing in what is recognised", () => {
  const steps = Array.from({ length: 12 }, (_, index) => [
    [[user(`q${index}`)], [call("a"), call(`b${index}`)]] as const,
    [[output(`b${index}`, "x"), output("a", "y")], [assistant("yes")]] as const,
  ]).flat();
  let count = 0;
  const property = fc.property(
    fc.array(turnArbitrary, { maxLength: 4 }),
    fc.option(distortion, { freq: 1 }),
    fc.integer({ min: 40, max: 100 }),
    fc.nat(100),
    fc.option(fc.oneof(fromModel, fromCaller)),
    (turns, spelling, percentBefore, percentChanged, change) => {
      const thread = toTurns([...steps, ...turns]);
      const shown = spelling === null ? itemsOf(thread) : distort(itemsOf(thread), spelling);
      const before = Math.floor((shown.length * percentBefore) / 100);
      const changed = Math.floor((shown.length * percentChanged) / 100);
      const items = change === null ? shown.slice() : shown.toSpliced(changed, 1, change);
      const compared = toPath(thread);
      findKnown({ items: shown, end: before }, compared);
      if (compared.track.agreed !== undefined) count += 1;
      for (const end of [items.length, before]) {
        assert.deepEqual(findKnown({ items, end }, compared), findKnown({ items, end }, toPath(thread)));
      }
    },
  );
  fc.assert(property, { seed: 20260102, numRuns: 200 });
  assert.ok(count > 60, `only ${count} were remembered`);
});
