import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError, toGatewayError } from "../../src/core/errors.ts";
import type { Event } from "../../src/core/event.ts";
import { type Ending, failedTurn, frame } from "../../src/core/frame/frame.ts";
import type { Extra } from "../../src/core/item.ts";
import type { Answer } from "../../src/core/turn.ts";
import { worked } from "../worked.ts";

async function* replay(batches: readonly (readonly Delta[])[], failure?: Error): AsyncGenerator<readonly Delta[]> {
  yield* batches;
  if (failure !== undefined) throw failure;
}

function createEnding(settle: (answer: Answer) => Promise<void> = async () => {}): Ending & { ends: number } {
  const ending = { settle, explain: toGatewayError, ends: 0, end: () => void ending.ends++, now: () => new Date(0) };
  return ending;
}

async function collect(
  batches: readonly (readonly Delta[])[],
  failure?: Error,
  ending = createEnding(),
): Promise<Event[]> {
  const events: Event[] = [];
  for await (const batch of frame("resp_1", replay(batches, failure), ending)) events.push(...batch);
  return events;
}

function answerOf(events: readonly Event[]): Answer {
  const last = events.at(-1);
  assert.equal(last?.type, "turn-end");
  return (last as Extract<Event, { type: "turn-end" }>).answer;
}

const call = (index: number, name: string, callId?: string): Delta => ({ type: "tool-call", index, name, callId });
const args = (index: number, text: string): Delta => ({ type: "tool-arguments", index, text });

test("text becomes one message with a start, deltas and an end", async () => {
  const events = await collect([[{ type: "text", text: "Good " }], [{ type: "text", text: "day" }]]);
  const item = { type: "message", role: "assistant", content: "Good day" };
  assert.deepEqual(events.slice(0, -1), [
    { type: "turn-start" },
    { type: "item-start", index: 0, item: { type: "message", role: "assistant", content: [] } },
    { type: "item-delta", index: 0, kind: "text", part: 0, text: "Good ", logprobs: undefined },
    { type: "item-delta", index: 0, kind: "text", part: 0, text: "day", logprobs: undefined },
    { type: "item-end", index: 0, item, whole: true },
  ]);
  assert.deepEqual(answerOf(events).items, [item]);
  assert.equal(answerOf(events).status, "completed");
});

test("an adapter that emits nothing yields a completed answer without items", async () => {
  const events = await collect([]);
  assert.deepEqual(
    events.map((event) => event.type),
    ["turn-start", "turn-end"],
  );
  assert.deepEqual(answerOf(events).items, []);
});

test("empty text starts no message", async () => {
  assert.deepEqual(
    answerOf(await collect([[{ type: "text", text: "" }, call(0, "f"), args(0, "{}")]])).items.length,
    1,
  );
});

test("empty reasoning is ignored and does not split a message", async () => {
  const silent: Delta = { type: "reasoning", text: "" };
  const events = await collect([[{ type: "text", text: "Hel" }, silent], [{ type: "text", text: "lo" }], [silent]]);
  assert.deepEqual(answerOf(events).items, [{ type: "message", role: "assistant", content: "Hello" }]);
});

test("deltas without content produce no batch and no piece of a call", async () => {
  const sizes: number[] = [];
  const said = [[call(0, "f", "a"), args(0, "")], [args(0, "")], [args(0, "{}")]];
  for await (const batch of frame("resp_1", replay(said), createEnding())) sizes.push(batch.length);
  assert.deepEqual(sizes, [2, 1, 2]);
});

test("the end of a message leaves open a call that started after it", async () => {
  const events = await collect([
    [{ type: "text", text: "Hm" }, call(0, "f", "a"), args(0, "{")],
    [{ type: "message-end" }, args(0, "}")],
  ]);
  const [, item] = answerOf(events).items;
  assert.equal(item?.type === "tool-call" && item.arguments, "{}");
});

test("a refusal after text is a second part of the same message", async () => {
  const events = await collect([
    [
      { type: "text", text: "Well, " },
      { type: "refusal", text: "no." },
    ],
  ]);
  assert.deepEqual(answerOf(events).items, [
    {
      type: "message",
      role: "assistant",
      content: [
        { type: "text", text: "Well, " },
        { type: "refusal", text: "no." },
      ],
    },
  ]);
});

test("calls whose arguments arrive interleaved are emitted one after the other, unmixed and complete", async () => {
  const events = await collect([
    [call(0, "first", "a"), args(0, '{"x"')],
    [call(1, "second", "b"), args(1, '{"y":')],
    [args(0, ":1}"), args(1, "2}"), call(2, "third"), args(2, "{}")],
  ]);
  assert.deepEqual(
    answerOf(events).items.map((item) => item.type === "tool-call" && [item.callId, item.name, item.arguments]),
    [
      ["a", "first", '{"x":1}'],
      ["b", "second", '{"y":2}'],
      ["call_12", "third", "{}"],
    ],
  );
  assert.equal(answerOf(events).finish, "tool-calls");
  let open: number | undefined;
  for (const event of events) {
    if (event.type === "item-start") assert.equal(open, undefined);
    if (event.type === "item-start") open = event.index;
    if (event.type === "item-delta") assert.equal(event.index, open);
    if (event.type === "item-end") open = undefined;
  }
});

test("a call is streamed as soon as the one before it is complete", async () => {
  const begun: number[] = [];
  const said = [[call(0, "first", "a"), args(0, "{}")], [call(1, "second", "b")], [args(1, "{}")]];
  for await (const batch of frame("resp_1", replay(said), createEnding())) {
    begun.push(batch.filter(({ type }) => type === "item-start").length);
  }
  assert.deepEqual(begun, [1, 1, 0, 0]);
});

test("interleaved inputs of custom tools are kept separate too", async () => {
  const custom = (index: number): Delta => ({
    type: "tool-call",
    index,
    name: "patch",
    callId: `c${index}`,
    kind: "custom",
  });
  const events = await collect([[custom(0), args(0, "{}"), custom(1), args(1, "x"), args(0, "b")]]);
  assert.deepEqual(
    answerOf(events).items.map((item) => item.type === "tool-call" && item.arguments),
    ["{}b", "x"],
  );
});

test("a call without arguments emits an empty object before its end, unless it is free text or was cut off", async () => {
  const events = await collect([[call(0, "look", "a"), call(1, "listen", "b"), args(1, " ")]]);
  const told = events.filter((event) => event.type === "item-delta").map(({ index, text }) => [index, text]);
  assert.deepEqual(told, [
    [0, "{}"],
    [1, " "],
    [1, "{}"],
  ]);
  const written = (answer: Answer) => answer.items.map((item) => item.type === "tool-call" && item.arguments);
  assert.deepEqual(written(answerOf(events)), ["{}", " {}"]);
  const custom = await collect([[{ type: "tool-call", index: 0, name: "note", kind: "custom" }]]);
  assert.deepEqual(written(answerOf(custom)), [""]);
  for (const broken of [
    await collect([[call(0, "look")], [{ type: "finish", reason: "length" }]]),
    await collect([[call(0, "look")]], new GatewayError("adapter_error", "It broke off.")),
  ]) {
    assert.deepEqual(written(answerOf(broken)), [""]);
  }
});

test("arguments for a call that is not open fail the turn instead of being lost, unless they are blank", async () => {
  for (const open of [{ type: "text", text: "Hm" } as const, call(0, "f")]) {
    const events = await collect([[open], [args(3, "{}")]]);
    assert.equal(answerOf(events).error?.code, "adapter_protocol");
  }
  const late = await collect([
    [call(3, "f"), args(3, "{")],
    [{ type: "text", text: "Hm" }, args(3, "}")],
  ]);
  assert.equal(answerOf(late).error?.code, "adapter_protocol");
  const extra = { dialect: "chat", fields: { one: 1 } } as const;
  const blank = await collect([[{ type: "text", text: "Hm" }, args(3, " "), { type: "tool-extra", index: 3, extra }]]);
  assert.equal(answerOf(blank).status, "completed");
});

test("the index of a finished call may be reused for another one", async () => {
  const events = await collect([
    [call(0, "first"), args(0, "{"), call(1, "second"), args(1, "{}"), { type: "text", text: "Hm" }],
    [call(1, "third"), args(1, '{"x":1}')],
  ]);
  assert.deepEqual(
    answerOf(events).items.flatMap((item) => (item.type === "tool-call" ? [[item.name, item.arguments]] : [])),
    [
      ["first", "{"],
      ["second", "{}"],
      ["third", '{"x":1}'],
    ],
  );
});

test("a delta with very many log probabilities is processed completely", async () => {
  const logprobs = Array.from({ length: 200_000 }, (_, index) => index);
  const events = await collect([
    [{ type: "text", text: "a", logprobs }],
    [{ type: "text", text: "b", logprobs: [-1] }],
  ]);
  const [message] = answerOf(events).items;
  const part = message?.type === "message" && typeof message.content !== "string" ? message.content[0] : undefined;
  assert.equal(part?.type === "text" && part.logprobs?.length, 200_001);
});

test("reasoning, text and a call are three items in the order in which they started", async () => {
  const events = await collect([
    [
      { type: "reasoning", text: "hm" },
      { type: "reasoning", text: "Sum", summary: 4 },
      { type: "reasoning-seal", encrypted: "x" },
    ],
    [{ type: "text", text: "So" }, call(0, "f"), args(0, "{}")],
  ]);
  assert.deepEqual(
    answerOf(events).items.map((item) => item.type),
    ["reasoning", "message", "tool-call"],
  );
  assert.deepEqual(answerOf(events).items[0], { type: "reasoning", summary: ["Sum"], text: "hm", encrypted: "x" });
});

test("a summary's sections are emitted in order and never reopened, however the adapter numbers them", async () => {
  const sections = [1, 1, 2, 1].map((summary, at): Delta => ({ type: "reasoning", text: `${at}`, summary }));
  const events = await collect([sections]);
  assert.deepEqual(answerOf(events).items, [{ type: "reasoning", summary: ["01", "2", "3"], text: "" }]);
  assert.deepEqual(
    events.filter((event) => event.type === "item-delta").map((event) => event.part),
    [0, 0, 1, 2],
  );
});

test("being cut off by length takes precedence over a tool call, and the open item is incomplete", async () => {
  const events = await collect([[call(0, "f"), args(0, '{"x'), { type: "finish", reason: "length" }]]);
  assert.equal(answerOf(events).finish, "length");
  assert.equal(answerOf(events).status, "incomplete");
  assert.equal(events.find((event) => event.type === "item-end")?.whole, false);
});

test("an answer that stopped for tool calls but has none counts as stopped", async () => {
  const events = await collect([
    [
      { type: "text", text: "hi" },
      { type: "finish", reason: "tool-calls" },
    ],
  ]);
  assert.equal(answerOf(events).finish, "stop");
});

test("a failure before the first delta is thrown, and there is no answer to abandon", async () => {
  const ending = Object.assign(createEnding(), { abandon: () => assert.fail("there is no answer") });
  await assert.rejects(collect([], new GatewayError("adapter_error", "no"), ending), { code: "adapter_error" });
  assert.equal(ending.ends, 1);
});

test("a failure after the first delta closes what is open and ends the turn as failed, once", async () => {
  const settled: Answer[] = [];
  const ending = createEnding(async (answer) => void settled.push(answer));
  const events = await collect([[{ type: "text", text: "Half" }]], new GatewayError("adapter_error", "broke"), ending);
  assert.deepEqual(
    events.map((event) => event.type),
    ["turn-start", "item-start", "item-delta", "item-end", "turn-end"],
  );
  assert.equal(answerOf(events).status, "failed");
  assert.equal(answerOf(events).error?.message, "broke");
  assert.deepEqual(settled, []);
});

test("a failure drops the calls that were still waiting for the one before them", async () => {
  const events = await collect([[call(0, "first", "a"), args(0, "{"), call(1, "second")]], new Error("broken"));
  const { items, brokenOff } = answerOf(events);
  assert.deepEqual([items.map((item) => item.type === "tool-call" && item.callId), brokenOff], [["a"], 0]);
});

test("an answer that cannot be stored ends as failed, never as a false success", async () => {
  const ending = createEnding(async () => {
    throw new GatewayError("store_unavailable", "disk full");
  });
  const answer = answerOf(await collect([[{ type: "text", text: "Hi" }]], undefined, ending));
  assert.equal(answer.status, "failed");
  assert.equal(answer.error?.code, "store_unavailable");
});

test("the answer is settled before its end is emitted", async () => {
  const order: string[] = [];
  const ending = createEnding(async () => void order.push("settled"));
  for await (const batch of frame("resp_1", replay([[{ type: "text", text: "Hi" }]]), ending)) {
    if (batch.some((event) => event.type === "turn-end")) order.push("told");
  }
  assert.deepEqual(order, ["settled", "told"]);
});

test("a failed answer is abandoned before its end is emitted", async () => {
  const order: string[] = [];
  const ending: Ending = {
    ...createEnding(),
    async abandon({ status }) {
      await new Promise(setImmediate);
      order.push(status);
    },
  };
  const said = replay([[{ type: "text", text: "Half" }]], new GatewayError("adapter_error", "broke"));
  for await (const batch of frame("resp_1", said, ending)) {
    if (batch.some((event) => event.type === "turn-end")) order.push("told");
  }
  assert.deepEqual(order, ["failed", "told"]);
});

test("a consumer that stops reading closes the adapter's stream and leaves the queue", async () => {
  let closed = false;
  async function* endless(): AsyncGenerator<readonly Delta[]> {
    try {
      for (;;) yield [{ type: "text", text: "more " }];
    } finally {
      closed = true;
    }
  }
  const ending = createEnding();
  const abandoned: Answer[] = [];
  const events = frame("resp_1", endless(), { ...ending, abandon: async (answer) => void abandoned.push(answer) });
  await events.next();
  await events.return();
  assert.equal(closed, true);
  assert.equal(ending.ends, 1);
  assert.deepEqual(
    abandoned.map(({ error, items, brokenOff }) => [error?.code, items, brokenOff]),
    [["client_closed", [{ type: "message", role: "assistant", content: "more " }], 0]],
  );
});

test("a turn that failed before it started has a start and one failed end", () => {
  const events = failedTurn(new GatewayError("adapter_timeout", "late"), new Date(0));
  assert.deepEqual(
    events.map((event) => event.type),
    ["turn-start", "turn-end"],
  );
  assert.equal(answerOf(events).status, "failed");
});

const deltas = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text: fc.string() }),
  fc.record({ type: fc.constant("refusal" as const), text: fc.string() }),
  fc.record({
    type: fc.constant("reasoning" as const),
    text: fc.string(),
    summary: fc.option(fc.nat(3), { nil: undefined }),
  }),
  fc.record({ type: fc.constant("finish" as const), reason: fc.constantFrom("stop" as const, "length" as const) }),
);

/** Calls with complete JSON arguments, split and interleaved, with each call's own pieces in order. */
const interleavedCalls = fc
  .array(
    fc.tuple(
      fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
      fc.nat(10),
    ),
    { maxLength: 4 },
  )
  .chain((calls) => {
    const order = calls.flatMap((_call, index) => [index, index, index]);
    return fc.shuffledSubarray(order, { minLength: order.length }).map((shuffled) => {
      const told = new Map<number, number>();
      return shuffled.map((index): Delta => {
        const [json, at] = calls[index]!;
        const step = told.get(index) ?? 0;
        told.set(index, step + 1);
        if (step === 0) return call(index, `f${index}`, `id${index}`);
        return args(index, step === 1 ? json.slice(0, at) : json.slice(at));
      });
    });
  });

test("whatever an adapter emits, the events are well formed and add up to the answer", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(deltas)), interleavedCalls, fc.boolean(), async (before, calls, fails) => {
      const batches = [...before, calls];
      const first = [{ type: "text" as const, text: "." }];
      const events = await collect([first, ...batches], fails ? new Error("broken") : undefined);
      assert.equal(events[0]?.type, "turn-start");
      assert.equal(events.filter((event) => event.type === "turn-end").length, 1);
      const answer = answerOf(events);
      const ended = events.filter((event) => event.type === "item-end");
      assert.deepEqual(
        ended.map((event) => event.item),
        answer.items,
      );
      assert.deepEqual(
        ended.map((event) => event.index),
        answer.items.map((_item, index) => index),
      );
      const told = events
        .filter((event) => event.type === "item-delta")
        .map((event) => event.text)
        .join("");
      const inAnswer = answer.items.flatMap((item) => {
        if (item.type === "tool-call") return item.arguments;
        if (item.type !== "message") return [];
        return typeof item.content === "string"
          ? item.content
          : item.content.map((part) => ("text" in part ? part.text : ""));
      });
      const reasoned = events
        .filter((event) => event.type === "item-delta")
        .filter((event) => event.kind === "reasoning" || event.kind === "summary")
        .reduce((length, event) => length + event.text.length, 0);
      assert.equal(told.length - reasoned, inAnswer.join("").length);
      if (fails) return;
      const names = new Set(
        calls.map((delta) => (delta.type === "tool-call" ? delta.name : undefined)).filter(Boolean),
      );
      assert.equal(answer.items.filter((item) => item.type === "tool-call").length, names.size);
      for (const item of answer.items) if (item.type === "tool-call") JSON.parse(item.arguments);
    }),
    { numRuns: 300 },
  );
});

test("an item of another dialect is opened and closed at once, after the calls that had to wait", async () => {
  const extra = { dialect: "responses", fields: { type: "web_search_call", id: "ws_1" } } as const;
  const events = await collect([[call(0, "a"), args(0, "{"), call(1, "b"), args(1, "{}"), { type: "other", extra }]]);
  const { items } = answerOf(events);
  assert.deepEqual(
    items.map(({ type }) => type),
    ["tool-call", "tool-call", "other"],
  );
  assert.deepEqual(events.slice(-3, -1), [
    { type: "item-start", index: 2, item: { type: "other", extra } },
    { type: "item-end", index: 2, item: { type: "other", extra }, whole: true },
  ]);
});

test("a dialect's extras of a call are emitted with its start or as they arrive, and stored with it", async () => {
  const extra = (fields: object) => ({ dialect: "chat", fields: { ...fields } }) as const;
  const events = await collect([
    [
      { ...call(0, "a", "c"), extra: extra({ one: 1 }) },
      args(0, "{"),
      { type: "tool-extra", index: 0, extra: extra({ one: 1, two: 2 }) },
    ],
    [args(0, "}"), { type: "tool-extra", index: 0, extra: extra({ two: 2 }) }],
  ] as Delta[][]);
  const told = events.flatMap((event) => (event.type === "item-delta" ? [event.extra?.fields ?? event.text] : []));
  assert.deepEqual(told, ["{", { two: 2 }, "}"]);
  const start = events.find((event) => event.type === "item-start");
  assert.ok(start?.item.type === "tool-call");
  assert.deepEqual(start.item.extra, extra({ one: 1 }));
  const [inAnswer] = answerOf(events).items;
  assert.ok(inAnswer?.type === "tool-call");
  assert.deepEqual(inAnswer.extra, extra({ one: 1, two: 2 }));
});

test("an annotation belongs to the text before it; one without a text is dropped", async () => {
  const note = (url: string): Delta => ({ type: "annotation", annotation: { type: "url_citation", fields: { url } } });
  const events = await collect([
    [note("lost"), { type: "text", text: "Hi" }, note("a")],
    [{ type: "text", text: "!" }, note("b"), call(0, "f"), note("lost")],
  ]);
  const [message, called] = answerOf(events).items;
  assert.equal(called?.type === "tool-call" && called.arguments, "{}");
  assert.ok(message?.type === "message" && typeof message.content !== "string");
  const annotations = ["a", "b"].map((url) => ({ type: "url_citation", fields: { url } }));
  assert.deepEqual(message.content, [{ type: "text", text: "Hi!", annotations }]);
});

test("two messages of one answer stay separate, each with its dialect's extras", async () => {
  const extra = { dialect: "responses", fields: { phase: "commentary" } } as const;
  const events = await collect([
    [
      { type: "text", text: "Let me see." },
      { type: "message-end", extra },
    ],
    [{ type: "text", text: "42." }],
  ]);
  const items = events.flatMap((event) => (event.type === "item-end" ? [event.item] : []));
  assert.deepEqual(items, [
    { type: "message", role: "assistant", content: "Let me see.", extra },
    { type: "message", role: "assistant", content: "42." },
  ]);
});

test("a dialect's extras of a message are emitted with its start, and kept even if the message is cut off", async () => {
  const extra = { dialect: "responses", fields: { phase: "commentary" } } as const;
  const other = { dialect: "responses", fields: { phase: "final_answer" } } as const;
  for (const reason of ["stop", "length"] as const) {
    const events = await collect([
      [{ type: "refusal", text: "No", extra }],
      [
        { type: "refusal", text: ".", extra: other },
        { type: "finish", reason },
      ],
    ]);
    const items = events.flatMap((event) => ("item" in event ? [event.item] : []));
    assert.deepEqual(items, [
      { type: "message", role: "assistant", content: [], extra },
      { type: "message", role: "assistant", content: [{ type: "refusal", text: "No." }], extra },
    ]);
  }
});

test("a seal ends its reasoning, so each reasoning item has its own, even one that shows no text", async () => {
  const events = await collect([
    [
      { type: "reasoning", text: "Hm." },
      { type: "reasoning-seal", encrypted: "one" },
    ],
    [
      { type: "reasoning", text: "Well." },
      { type: "reasoning-seal", encrypted: "two" },
      { type: "reasoning-seal", encrypted: "three" },
    ],
  ]);
  const seals = events.flatMap((event) =>
    event.type === "item-end" && event.item.type === "reasoning" ? [event.item.encrypted] : [],
  );
  assert.deepEqual(seals, ["one", "two", "three"]);
});

test("what signs reasoning is kept only with the whole of it", async () => {
  const extra = { dialect: "chat", fields: { reasoning_details: [{ text: "Hm" }] } } as const;
  const begun: Delta[] = [
    { type: "reasoning", text: "Hm" },
    { type: "reasoning-extra", extra },
  ];
  const reasoning = { type: "reasoning", summary: [], text: "Hm" };
  assert.deepEqual(answerOf(await collect([begun])).items, [{ ...reasoning, extra }]);
  const cutOff = await collect([[...begun, { type: "finish", reason: "length" }]]);
  assert.deepEqual(answerOf(cutOff).items, [reasoning]);
  assert.deepEqual(answerOf(await collect([begun], new Error("broken"))).items, [reasoning]);
});

test("what signs reasoning without a text is an item of its own, after an answer that it follows", async () => {
  const extra = { dialect: "chat", fields: { reasoning_details: [{ text: "Hm" }] } } as const;
  const signed = { type: "reasoning", summary: [], text: "", extra };
  const said = { type: "message", role: "assistant", content: "Hi" };
  const text: Delta = { type: "text", text: "Hi" };
  const signature: Delta = { type: "reasoning-extra", extra };
  assert.deepEqual(answerOf(await collect([[signature, text]])).items, [signed, said]);
  assert.deepEqual(answerOf(await collect([[text, signature]])).items, [said, signed]);
  assert.deepEqual(answerOf(await collect([[text, signature, { type: "finish", reason: "length" }]])).items, [said]);
});

test("what an adapter says about itself adds up, and of each field the last value counts", async () => {
  const extra = (fields: Extra["fields"]): Extra => ({ dialect: "chat", fields });
  const events = await collect([
    [{ type: "notes", notes: { fingerprint: "fp_1", extra: extra({ one: 1, two: 1 }) } }],
    [{ type: "notes", notes: { serviceTier: "flex", extra: extra({ two: 2 }) } }],
    [{ type: "notes", notes: { serviceTier: "default" } }],
  ]);
  assert.deepEqual(answerOf(events).notes, {
    fingerprint: "fp_1",
    serviceTier: "default",
    extra: extra({ one: 1, two: 2 }),
  });
});

test("twenty thousand parallel calls are emitted in seconds, not in minutes", async () => {
  const calls = Array.from({ length: 20_000 }, (_, index): Delta => ({ type: "tool-call", index, name: "look" }));
  const written = calls.map((_, index): Delta => ({ type: "tool-arguments", index, text: `{"at":${index}}` }));
  const started = worked();
  const events = await collect([calls, written]);
  assert.ok(worked() - started < 3000);
  const ends = events.filter((event) => event.type === "item-end");
  assert.deepEqual([ends.length, ends.every(({ whole }) => whole)], [20_000, true]);
});

test("other choices have starts, deltas and ends of their own beside the turn's first answer", async () => {
  const events = await collect([
    [
      { type: "text", text: "Blue", choice: 2 },
      { type: "text", text: "Red" },
    ],
    [
      { ...call(0, "paint"), choice: 2 },
      { ...args(0, "{}"), choice: 2 },
      { type: "finish", reason: "length" },
    ],
  ]);
  assert.equal(
    events.map((event) => `${"choice" in event ? event.choice : 0} ${event.type}`).join(", "),
    "0 turn-start, 2 item-start, 2 item-delta, 0 item-start, 0 item-delta, 2 item-end, 2 item-start, 2 item-delta, " +
      "0 item-end, 2 item-end, 0 turn-end",
  );
  const { items, others, finish, status } = answerOf(events);
  const message = { type: "message", role: "assistant", content: "Blue" };
  assert.deepEqual([items.length, finish, status], [1, "length", "incomplete"]);
  const painted = { type: "tool-call", kind: "function", callId: "call_1_2_1", name: "paint", arguments: "{}" };
  assert.deepEqual(others, [
    { finish: "stop", items: [] },
    { finish: "tool-calls", items: [message, painted] },
  ]);
});

test("open items of other choices are closed as incomplete when the turn fails", async () => {
  const events = await collect([[{ type: "text", text: "Bl", choice: 1 }]], new Error("gone"));
  const last = events.at(-2);
  assert.deepEqual(last, {
    type: "item-end",
    index: 0,
    item: { type: "message", role: "assistant", content: "Bl" },
    whole: false,
    choice: 1,
  });
  assert.equal(answerOf(events).status, "failed");
});
