/** How the frame turns deltas into events: items follow one another, and no tool call loses arguments, however they arrive. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { GatewayError } from "../../src/core/errors.ts";
import type { Delta, Event } from "../../src/core/event.ts";
import { createFrame } from "../../src/core/frame.ts";
import { type Item, textOf } from "../../src/core/item.ts";
import type { Answer, Finish } from "../../src/core/turn.ts";

interface Framed {
  readonly events: readonly Event[];
  readonly answer: Answer;
  readonly failure: GatewayError | undefined;
}

/** Frames deltas in batches of a size, and ends the turn. */
function frame(deltas: readonly Delta[], batchSize = deltas.length, reason?: GatewayError): Framed {
  const made = createFrame("0a");
  const events: Event[] = [];
  for (let at = 0; at < deltas.length; at += batchSize) made.accept(deltas.slice(at, at + batchSize), events);
  const { failure } = made;
  return { events, failure, answer: made.end(reason, 1, events) };
}

/** Items as they were told, in short: `text Hi`, `look {"at":1}`; `half …` if they were broken off. */
function told({ events }: Framed): readonly string[] {
  return events.flatMap((event) => {
    if (event.type !== "item-end") return [];
    return `${event.whole ? "" : "half "}${describe(event.item)}`;
  });
}

function describe(item: Item): string {
  switch (item.type) {
    case "message":
      return `text ${textOf(item.content)}`;
    case "reasoning":
      return ["thought", item.text, item.encrypted, item.extra && "signed"].filter(Boolean).join(" ");
    case "tool-call":
      return `${item.name} ${item.arguments}`;
    default:
      return item.type;
  }
}

const call = (index: number, name: string, kind?: "custom"): Delta => ({ type: "tool-call", index, name, kind });
const more = (index: number, text: string): Delta => ({ type: "tool-arguments", index, text });
const text = (said: string): Delta => ({ type: "text", text: said });
const thought = (said: string): Delta => ({ type: "reasoning", text: said });
const finish = (reason: Finish): Delta => ({ type: "finish", reason });
const extra = { dialect: "chat", fields: { mark: 1 } } as const;

/** The first half of a call, and the rest of its arguments. */
const half = [call(0, "look"), more(0, '{"at"')];
const rest = more(0, ":1}");
const whole = 'look {"at":1}';

const interleaved: readonly (readonly [what: string, deltas: readonly Delta[], expected: readonly string[]])[] = [
  ["text", [...half, text("H"), text("i"), rest], [whole, "text Hi"]],
  ["text before every piece", [call(0, "f"), text("a"), more(0, "{"), text("b"), more(0, "}")], ["f {}", "text ab"]],
  ["a refusal", [...half, { type: "refusal", text: "No." }, rest], [whole, "text No."]],
  ["reasoning", [...half, thought("Hm."), rest], [whole, "thought Hm."]],
  ["sealed reasoning", [...half, { type: "reasoning-seal", encrypted: "x" }, rest], [whole, "thought x"]],
  [
    "signed reasoning",
    [...half, thought("Hm."), { type: "reasoning-extra", extra }, rest],
    [whole, "thought Hm. signed"],
  ],
  ["a signature", [...half, { type: "reasoning-extra", extra }, rest], [whole, "thought signed"]],
  ["a compaction", [...half, { type: "compaction", summary: "x" }, rest], [whole, "compaction"]],
  ["an item of the dialect", [...half, { type: "other", extra }, rest], [whole, "other"]],
  ["two messages", [...half, text("a"), { type: "message-end" }, text("b"), rest], [whole, "text a", "text b"]],
  ["another call", [...half, call(1, "hear"), rest, more(1, "{}")], [whole, "hear {}"]],
  ["half of another call", [...half, call(1, "hear"), more(1, "{"), rest, more(1, "}")], [whole, "hear {}"]],
  ["a call of a custom tool", [...half, call(1, "run", "custom"), more(1, "ls"), rest], [whole, "run ls"]],
  [
    "half of a call, and text",
    [...half, call(1, "hear"), more(1, "{"), text("Hi"), rest, more(1, "}"), thought("Hm.")],
    [whole, "hear {}", "text Hi", "thought Hm."],
  ],
  [
    "two other calls in turns",
    [...half, call(1, "b"), call(2, "c"), more(2, "{"), more(1, "{"), rest, more(2, "}"), more(1, "}")],
    [whole, "b {}", "c {}"],
  ],
];

for (const [what, deltas, expected] of interleaved) {
  test(`a call whose arguments go on after ${what} is told whole, and first`, () => {
    const framed = frame(deltas);
    assert.deepEqual(told(framed), expected);
    assert.deepEqual([framed.answer.status, framed.failure], ["completed", undefined]);
  });
}

test("an annotation, and the end of a message, wait with their text", () => {
  const annotation = { type: "url_citation", fields: { url: "https://a.test/" } };
  const { answer } = frame([...half, text("Hi"), { type: "annotation", annotation }, { type: "message-end" }, rest]);
  const [, message] = answer.items;
  assert.deepEqual(message?.type === "message" && message.content, [
    { type: "text", text: "Hi", annotations: [annotation] },
  ]);
});

/** What is told after each batch: texts, and the names of other events. */
function tellEach(...batches: readonly (readonly Delta[])[]): readonly (readonly string[])[] {
  const made = createFrame("0a");
  return batches.map((deltas) => {
    const events: Event[] = [];
    made.accept(deltas, events);
    return events.map((event) => (event.type === "item-delta" ? event.text : event.type));
  });
}

test("waiting deltas are told as soon as anything follows a call that is now complete", () => {
  assert.deepEqual(tellEach(half, [text("H")], [rest], [text("i")]), [
    ["item-start", '{"at"'],
    [],
    [":1}"],
    ["item-end", "item-start", "H", "i"],
  ]);
  assert.deepEqual(tellEach([...half, call(1, "hear"), rest], [more(1, "{")], [more(1, "}")]), [
    ["item-start", '{"at"', ":1}"],
    ["item-end", "item-start", "{"],
    ["}"],
  ]);
});

const objects = [
  "{}",
  "[]",
  "null",
  ' {"a":1} \n',
  '{"a":"}","b":[{"c":"]"}]}',
  '{"a":"\\"}","b":"\\\\"}',
  '{"é":"😀"}',
];

test("arguments are complete where their JSON ends, and not before", () => {
  const isOver = (written: string) => tellEach([call(0, "f"), more(0, written)], [text("Hi")])[1]?.includes("Hi");
  for (const written of objects) {
    assert.equal(isOver(written), true, written);
    for (let at = 0; at < written.trimEnd().length; at++) assert.equal(isOver(written.slice(0, at)), false, written);
  }
  for (const written of ["{a:1}", "{}{", "{}x", "}", "{]", "1", '"a"', "ls"])
    assert.equal(isOver(written), false, written);
});

test("arguments are told in full, wherever they are cut", () => {
  for (const written of objects) {
    for (let at = 1; at < written.trimEnd().length; at++) {
      const deltas = [call(0, "f"), more(0, written.slice(0, at)), text("Hi"), more(0, written.slice(at))];
      assert.deepEqual(told(frame(deltas)), [`f ${written}`, "text Hi"], `cut at ${at}`);
    }
  }
});

test("a call that was complete, and then goes on, is complete no more", () => {
  const annotation: Delta = { type: "annotation", annotation: { type: "url_citation", fields: {} } };
  const framed = frame([call(0, "f"), more(0, "{}"), annotation, more(0, "{"), text("Hi"), more(0, "}")]);
  assert.deepEqual([told(framed), framed.failure], [["f {}{}", "text Hi"], undefined]);
});

test("arguments that never become whole JSON hold the rest back only until the end of the turn", () => {
  for (const written of ["", " ", "{", "ls", '"', "}", "{a:1}", "{}{", "1"]) {
    const framed = frame([call(0, "f"), more(0, written), call(1, "g"), text("Hi")]);
    const filled = written.trim() === "" ? `${written}{}` : written;
    assert.deepEqual(told(framed), [`f ${filled}`, "g {}", "text Hi"]);
  }
});

test("a call number that is used again means the newest call", () => {
  const deltas = [call(0, "f"), more(0, "{}"), call(0, "g"), call(0, "h"), more(0, '{"a":1}')];
  assert.deepEqual(told(frame(deltas)), ["f {}", "g {}", 'h {"a":1}']);
  const waiting = [...half, call(1, "g"), call(1, "h"), rest, text("Hi"), more(1, '{"a":1}')];
  assert.deepEqual(told(frame(waiting)), [whole, "g {}", 'h {"a":1}', "text Hi"]);
});

test("what belongs to the turn as a whole does not wait", () => {
  const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 };
  const notes = { fingerprint: "fp" };
  const said: Delta[] = [
    { type: "usage", usage },
    { type: "notes", notes },
    { type: "message-extra", extra },
  ];
  const { answer } = frame([...half, text("Hi"), ...said, finish("length")]);
  assert.deepEqual([answer.usage, answer.notes, answer.extra, answer.finish], [usage, notes, extra, "length"]);
});

test("when the turn is broken off, half a call is told as half, and what waits behind it is dropped", () => {
  const waiting = [...half, call(1, "hear"), more(1, "{}"), text("Hi")];
  for (const reason of ["length", "content-filter"] as const) {
    const framed = frame([...waiting, finish(reason)]);
    assert.deepEqual(told(framed), ['half look {"at"']);
    assert.deepEqual([framed.answer.status, framed.answer.isBrokenOff], ["incomplete", true]);
  }
  assert.deepEqual(told(frame(waiting, 1, new GatewayError("adapter_error", "No."))), ['half look {"at"']);
  const interrupted = frame([...waiting, finish("interrupted")]);
  assert.deepEqual([told(interrupted), interrupted.answer.items], [['half look {"at"'], []]);
});

const stray: readonly (readonly [what: string, deltas: readonly Delta[], message: RegExp])[] = [
  ["a call that text has ended", [...half, rest, text("Hi"), more(0, "{}")], /'look', which was over/],
  ["a call that another call has ended", [...half, rest, call(1, "g"), more(0, "}")], /'look', which was over/],
  ["a call that had waited", [...half, call(1, "g"), more(1, "{}"), rest, text("Hi"), more(1, "!")], /'g', which was/],
  ["a custom call that text has ended", [call(3, "run", "custom"), more(3, "l"), text("Hi"), more(3, "s")], /'run'/],
  ["a custom call that a call has ended", [call(3, "run", "custom"), call(4, "run", "custom"), more(3, "s")], /'run'/],
  ["a call that never began", [text("Hi"), more(0, "{}")], /never began/],
  ["a call that never began, by a negative number", [text("Hi"), more(-1, "{}")], /never began/],
];

for (const [what, deltas, message] of stray) {
  test(`arguments for ${what} fail the turn, and everything after them is ignored`, () => {
    const until = frame(deltas);
    assert.equal(until.failure?.code, "adapter_protocol");
    assert.match(until.failure.message, message);
    const { status, error, usage } = until.answer;
    assert.deepEqual([status, error, usage], ["failed", until.failure, undefined]);
    const usageLater = { inputTokens: 1, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 };
    const after = frame([...deltas, text("x"), call(9, "x"), more(9, "{}"), { type: "usage", usage: usageLater }]);
    assert.deepEqual(after, until);
  });
}

test("the reason for which a turn is ended takes precedence over stray arguments", () => {
  const reason = new GatewayError("cancelled", "The turn was cancelled.");
  const { answer } = frame([text("Hi"), more(0, "{}")], 1, reason);
  assert.deepEqual([answer.status, answer.error], ["cancelled", reason]);
});

test("empty arguments, and marks, for a call that is over are ignored", () => {
  const mark: Delta = { type: "tool-extra", index: 0, extra };
  const framed = frame([more(0, ""), mark, ...half, rest, text("Hi"), more(0, ""), mark]);
  assert.deepEqual([told(framed), framed.failure], [[whole, "text Hi"], undefined]);
});

/** Arguments as a model writes them, most of them JSON objects, in pieces. */
const pieces: fc.Arbitrary<readonly string[]> = fc
  .oneof(
    {
      weight: 4,
      arbitrary: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })).map((one) => JSON.stringify(one)),
    },
    fc.constantFrom("", "{", "ls -l", "null", '{"a":', "{}}"),
  )
  .chain((written) => {
    const cuts = fc.array(fc.nat(written.length), { maxLength: 6 });
    return cuts.map((at) => {
      const ends = [...at.toSorted((one, other) => one - other), written.length];
      return ends.map((end, number) => written.slice(ends[number - 1] ?? 0, end));
    });
  });

const kind = fc.constantFrom(undefined, undefined, "custom" as const);
/** The deltas of one call, which keep their order. */
const callDeltas = fc.tuple(kind, pieces).map(([of, written]) => (index: number): Delta[] => {
  return [call(index, `f${index}`, of), ...written.map((piece) => more(index, piece))];
});
const others: fc.Arbitrary<Delta> = fc.constantFrom<Delta[]>(
  text("a"),
  text(""),
  thought("b"),
  { type: "refusal", text: "c" },
  { type: "message-end" },
  { type: "reasoning-seal", encrypted: "x" },
  { type: "reasoning-extra", extra },
  { type: "annotation", annotation: { type: "url_citation", fields: {} } },
  { type: "other", extra },
  { type: "compaction", summary: "s" },
);

/** Sequences whose members keep their order, in any order among each other. */
function interleave(sequences: readonly (readonly Delta[])[]): fc.Arbitrary<Delta[]> {
  const order = sequences.flatMap((sequence, number) => sequence.map(() => number));
  return fc.shuffledSubarray(order, { minLength: order.length }).map((shuffled) => {
    const next = sequences.map((sequence) => sequence.values());
    return shuffled.flatMap((number) => next[number]?.next().value ?? []);
  });
}

const turns: fc.Arbitrary<Delta[]> = fc
  .tuple(
    fc.array(callDeltas, { minLength: 1, maxLength: 4 }),
    fc.array(others, { maxLength: 6 }),
    fc.constantFrom<Delta[][]>([], [], [finish("length")], [finish("interrupted")]),
  )
  .chain(([calls, between, end]) =>
    interleave([...calls.map((one, index) => one(index)), ...between.map((one) => [one])]).map((all) => [
      ...all,
      ...end,
    ]),
  );

/** Throws unless items follow one another, each begins and ends once, and has the texts of its deltas. */
function checkGrammar({ events, answer }: Framed): void {
  let open: { readonly item: Item; written: string } | undefined;
  let count = 0;
  for (const event of events) {
    switch (event.type) {
      case "item-start":
        assert.deepEqual([open, event.index], [undefined, count], "an item begins when the one before it has ended");
        open = { item: event.item, written: "" };
        break;
      case "item-delta":
        assert.ok(open !== undefined && event.index === count, "a delta belongs to the open item");
        if (event.kind === "arguments") open.written += event.text;
        break;
      case "item-end":
        assert.ok(open !== undefined && event.index === count, "only the open item ends");
        assert.deepEqual([event.item.type, event.item.id], [open.item.type, open.item.id]);
        if (event.item.type === "tool-call") assert.equal(event.item.arguments, open.written);
        open = undefined;
        count += 1;
        break;
      default:
        assert.fail(`the frame tells no ${event.type}`);
    }
  }
  assert.equal(open, undefined, "every item ends");
  const ends = events.flatMap((event) => (event.type === "item-end" ? event : []));
  const dropped = answer.finish === "interrupted" && ends.at(-1)?.whole === false && answer.items.length < count;
  const kept = dropped ? ends.slice(0, -1) : ends;
  assert.deepEqual(
    answer.items,
    kept.map(({ item }) => item),
  );
}

test("whatever arrives in whatever order, items follow one another and each ends once", () => {
  fc.assert(
    fc.property(turns, (deltas) => checkGrammar(frame(deltas))),
    { numRuns: 1_000 },
  );
});

test("the same deltas make the same events, in batches of any size", () => {
  fc.assert(
    fc.property(turns, fc.integer({ min: 1, max: 5 }), (deltas, size) => {
      const once = frame(deltas);
      assert.deepEqual(frame(deltas), once);
      assert.deepEqual(frame(deltas, size), once);
    }),
    { numRuns: 500 },
  );
});

test("a call that is told as whole has all the arguments that were sent for it, or the turn fails", () => {
  const runs = { whole: 0, failed: 0 };
  fc.assert(
    fc.property(turns, (deltas) => {
      const { events, answer, failure } = frame(deltas);
      runs[failure === undefined ? "whole" : "failed"] += 1;
      assert.equal(answer.error, failure);
      if (failure !== undefined) return;
      for (const event of events) {
        if (event.type !== "item-end" || event.item.type !== "tool-call" || !event.whole) continue;
        const { name, arguments: written, kind: of } = event.item;
        const said = deltas.map((delta) =>
          delta.type === "tool-arguments" && name === `f${delta.index}` ? delta.text : "",
        );
        const all = said.join("");
        assert.equal(written, all === "" && of !== "custom" ? "{}" : all);
      }
    }),
    { numRuns: 1_000 },
  );
  assert.ok(runs.whole > 100 && runs.failed > 0, "the cases have both in them");
});

test("function calls with JSON objects never fail a turn, and all are told", () => {
  const objects = fc.array(
    pieces.filter((written) => /^\{".*\}$|^\{\}$/s.test(written.join(""))),
    { minLength: 1, maxLength: 4 },
  );
  const deltas = fc.tuple(objects, fc.array(others, { maxLength: 6 })).chain(([calls, between]) => {
    const made = calls.map((written, index) => [
      call(index, `f${index}`),
      ...written.map((piece) => more(index, piece)),
    ]);
    const all = interleave([...made, ...between.map((one) => [one])]);
    return fc.record({ all, lines: fc.constant(calls.map((written, index) => `f${index} ${written.join("")}`)) });
  });
  fc.assert(
    fc.property(deltas, ({ all, lines }) => {
      const framed = frame(all);
      assert.equal(framed.failure, undefined);
      const calls = framed.answer.items.filter(({ type }) => type === "tool-call").map(describe);
      assert.deepEqual(calls.toSorted(), lines.toSorted());
    }),
    { numRuns: 500 },
  );
});
