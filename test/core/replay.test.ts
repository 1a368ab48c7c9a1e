/** A stored turn can be replayed, event for event. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError, toGatewayError } from "../../src/core/errors.ts";
import type { Event } from "../../src/core/event.ts";
import { removed } from "../../src/core/item.ts";
import { frame } from "../../src/core/frame/frame.ts";
import { createStreamTracker } from "../../src/core/frame/stream-tracker.ts";
import { createPiecesRecorder, maxPieces } from "../../src/core/frame/pieces.ts";
import { toUnthreadedTurn } from "../../src/core/turn-record.ts";
import {
  interrupted,
  isExact,
  replayInBatches,
  replayTurn,
  sizeOfReplay,
  toAbout,
  toAnswer,
} from "../../src/core/frame/replay.ts";
import type { StoredTurn } from "../../src/core/store.ts";
import { about } from "../protocols/script.ts";
import { batches } from "../protocols/deltas.ts";
import { worked } from "../worked.ts";

/** The events, and the turn as a store would return it. */
async function tell(
  said: readonly (readonly Delta[])[],
  failure?: GatewayError,
): Promise<{ readonly events: readonly Event[]; readonly turn: StoredTurn }> {
  async function* say(): AsyncGenerator<readonly Delta[]> {
    yield* said;
    if (failure !== undefined) throw failure;
  }
  const ending = { settle: async () => {}, explain: toGatewayError, end: () => {}, now: () => new Date(5) };
  const events: Event[] = [];
  for await (const batch of frame(about.id, say(), ending)) events.push(...batch);
  const end = events.at(-1);
  if (end?.type !== "turn-end") throw new Error("the turn has no end");
  const turnRecord = { owner: "ann", about, memo: () => "memo", background: false, isReplayable: true };
  const { told, ...rest } = toUnthreadedTurn(turnRecord, [], end.answer);
  const turn = JSON.parse(JSON.stringify({ ...rest, told }));
  return { events, turn: { ...turn, createdAt: about.createdAt, told: { ...turn.told, endedAt: new Date(5) } } };
}

/** Undefined fields count as absent, as they do in JSON. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

const isItemEnd = ({ type }: Event): boolean => type === "item-end";

/** The text of each part, however split; a dialect's extras of a call are compared with its item. */
function wordsOf(events: readonly Event[]): unknown {
  const words: Record<string, { text: string; beside: unknown[] }> = {};
  for (const event of events) {
    if (event.type !== "item-delta" || event.kind === "extra") continue;
    const { index, kind, part, text, logprobs = [], annotation } = event;
    const said = (words[`${index} ${kind} ${part}`] ??= { text: "", beside: [] });
    said.text += text;
    said.beside.push(...logprobs, ...(annotation === undefined ? [] : [annotation]));
  }
  return plain(words);
}

suite("a replayed turn", () => {
  test("is the same, event for event, however it was split", async () => {
    await fc.assert(
      fc.asyncProperty(batches, async (said) => {
        const { events, turn } = await tell(said);
        assert.deepEqual(plain([...replayTurn(turn)]), plain(events));
      }),
      { numRuns: 300 },
    );
  });

  test("is the same when it failed midway", async () => {
    const details = { param: "model", wireCode: "slow", retryAfterSeconds: 7 };
    const failure = new GatewayError("adapter_timeout", "Nothing came.", details);
    const { events, turn } = await tell(
      [[{ type: "text", text: "Half a" }], [{ type: "text", text: " word" }]],
      failure,
    );
    assert.deepEqual(plain([...replayTurn(turn)]), plain(events));
    const { error } = toAnswer(turn);
    assert.equal(error?.status, 504);
    assert.equal(error?.wireCode, "slow");
    assert.equal(error?.param, "model");
    assert.equal(error?.retryAfterSeconds, 7);
  });

  test("carries the log probabilities of each piece", async () => {
    const { events, turn } = await tell([
      [{ type: "text", text: "One", logprobs: [{ token: "One" }] }],
      [{ type: "text", text: " two", logprobs: [{ token: " t" }, { token: "wo" }] }],
      [{ type: "text", text: " three" }],
    ]);
    assert.deepEqual(plain([...replayTurn(turn)]), plain(events));
  });

  test("is the same, and fast, when a dialect adds thousands of fields to a call one by one", async () => {
    const extra = (key: string) => ({ dialect: "chat", fields: { [key]: 1 } }) as const;
    const start = worked();
    const { events, turn } = await tell([
      [{ type: "tool-call", index: 0, name: "f", extra: extra("first") }],
      Array.from({ length: 10_000 }, (_, at) => ({ type: "tool-extra", index: 0, extra: extra(`field${at}`) })),
    ]);
    const again = [...replayTurn(turn)];
    assert.ok(worked() - start < 5_000);
    assert.equal(events.length, 10_005);
    assert.deepEqual(plain(again), plain(events));
  });

  test("has a message's extras at its start if they were known then, otherwise at its end", async () => {
    const extra = { dialect: "responses", fields: { phase: "commentary" } } as const;
    const other = { dialect: "responses", fields: { phase: "final_answer" } } as const;
    const early = await tell([[{ type: "text", text: "Hi", extra }], [{ type: "message-end", extra: other }]]);
    assert.deepEqual(plain([...replayTurn(early.turn)]), plain(early.events));
    const late = await tell([[{ type: "text", text: "Hi" }], [{ type: "message-end", extra }]]);
    assert.deepEqual(plain([...replayTurn(late.turn)]), plain(late.events));
    assert.notDeepEqual(plain(late.events), plain(early.events));
  });

  test("has no text twice, and no other, if an archive describes pieces that it does not have", async () => {
    const { turn } = await tell([[{ type: "text", text: "Good", logprobs: [{ token: "Good" }] }]]);
    const pieces = [
      [
        { kind: "text", part: 0, lengths: [2, 9], logprobs: [1, 1] },
        { kind: "text", part: 1, lengths: [4], logprobs: [1] },
        { kind: "summary", part: 0, lengths: [4] },
        { kind: "annotation", part: 3, lengths: [0] },
        { kind: "extra", part: 0, lengths: [1] },
      ],
    ] as const;
    const events = [...replayTurn({ ...turn, told: turn.told && { ...turn.told, pieces } })];
    const deltas = events.flatMap((event) => (event.type === "item-delta" ? [[event.text, event.logprobs]] : []));
    assert.deepEqual(deltas, [
      ["Go", [{ token: "Good" }]],
      ["od", []],
      ["", []],
      ["", undefined],
      ["", undefined],
      ["", undefined],
    ]);
  });

  test("can be resumed in the middle unless its events, or their order, are not known", async () => {
    const { turn } = await tell([[{ type: "text", text: "Good" }]]);
    const told = turn.told ?? assert.fail("nothing was told");
    const gone = { ...turn, told: { ...told, pieces: undefined } };
    assert.equal(isExact(turn), true);
    assert.equal(isExact(gone), false);
    assert.equal(isExact({ ...gone, output: [] }), true);
    assert.equal(isExact({ ...turn, output: [...turn.output, removed] }), false);
    assert.equal(isExact({ ...turn, told: { ...told, others: [{ finish: "stop", items: [] }] } }), false);
  });

  test("takes as much room as its answer and what was told of it, not what was asked", async () => {
    const { turn } = await tell([[{ type: "text", text: "Good" }]]);
    const asked = { type: "message", role: "user", content: "x".repeat(1_000) } as const;
    assert.equal(sizeOfReplay({ ...turn, input: [asked] }), sizeOfReplay(turn));
    const added = { ...turn, output: [...turn.output, { ...asked, role: "assistant" as const }] };
    assert.ok(sizeOfReplay(added) >= sizeOfReplay(turn) + 1_000);
    const told = turn.told && { ...turn.told, memo: "x".repeat(1_000) };
    assert.ok(sizeOfReplay({ ...turn, told }) >= sizeOfReplay(turn) + 900);
  });

  test("comes in batches of few events, however short they are", async () => {
    const { turn } = await tell([Array.from({ length: 996 }, () => ({ type: "text", text: "a" }))]);
    const sizes = (await Array.fromAsync(replayInBatches(turn))).map(({ length }) => length);
    assert.deepEqual(sizes, [500, 500]);
    const rest = (await Array.fromAsync(replayInBatches(turn, 400))).map(({ length }) => length);
    assert.deepEqual(rest, [500, 100]);
  });

  test("has one piece per part when the pieces are no longer stored", async () => {
    const { turn } = await tell([[{ type: "text", text: "Good" }], [{ type: "text", text: " day" }]]);
    const events = [...replayTurn({ ...turn, told: turn.told && { ...turn.told, pieces: undefined } })];
    const deltas = events.filter((event) => event.type === "item-delta");
    assert.deepEqual(
      deltas.map(({ text }) => text),
      ["Good day"],
    );
  });

  test("has all of its content when the pieces are no longer stored, each text at once", async () => {
    await fc.assert(
      fc.asyncProperty(batches, async (said) => {
        const { events, turn } = await tell(said);
        const again = [...replayTurn({ ...turn, told: turn.told && { ...turn.told, pieces: undefined } })];
        assert.deepEqual(plain(again.filter(isItemEnd)), plain(events.filter(isItemEnd)));
        assert.deepEqual(wordsOf(again), wordsOf(events));
      }),
      { numRuns: 60 },
    );
  });

  test("emits nothing twice, whatever pieces an archive describes", async () => {
    const said: readonly Delta[] = [
      { type: "reasoning", text: "hm" },
      { type: "text", text: "Good day" },
      { type: "tool-call", index: 0, name: "f" },
      { type: "tool-arguments", index: 0, text: "{}" },
    ];
    const { turn } = await tell([said]);
    const kinds = ["text", "refusal", "reasoning", "summary", "arguments"] as const;
    const segments = kinds.flatMap((kind) => [0, 1, 2].map((part) => ({ kind, part, lengths: [5, 90] })));
    const events = [...replayTurn({ ...turn, told: turn.told && { ...turn.told, pieces: Array(3).fill(segments) } })];
    const words = events.flatMap((event) => (event.type === "item-delta" && event.text !== "" ? [event.text] : []));
    assert.deepEqual(words, ["hm", "Good ", "day", "{}"]);
  });

  test("is replayed piece by piece up to a limit, and whole beyond it", () => {
    const recorder = createPiecesRecorder();
    recorder.beginItem(false);
    for (let count = 0; count < maxPieces; count += 1) recorder.record({ kind: "text", part: 0, text: "a" });
    assert.equal(recorder.toPieces()?.[0]?.[0]?.lengths.length, maxPieces);
    recorder.record({ kind: "text", part: 0, text: "a" });
    assert.ok(recorder.toPieces() === undefined);
  });

  test("has said the same before its first word, even of a session that does not exist", async () => {
    const { turn } = await tell([[{ type: "text", text: "Hi" }]]);
    const begun = { session: "conv_2", omittedItems: 2, truncation: "auto" } as const;
    const told = turn.told && { ...turn.told, ...begun };
    assert.deepEqual(toAbout({ ...turn, session: undefined, told }), { ...about, ...begun });
  });

  test("that was left running has failed as interrupted", async () => {
    const { turn } = await tell([[{ type: "text", text: "Hi" }]]);
    const answer = toAnswer({ ...turn, status: "running", output: [] });
    assert.equal(answer.status, "failed");
    assert.equal(answer.error?.code, interrupted.code);
  });

  test("of a release that stored less has what was stored", async () => {
    const { turn } = await tell([[{ type: "text", text: "Hi" }]]);
    const old: StoredTurn = { ...turn, told: undefined };
    assert.deepEqual(toAbout(turn), about);
    assert.deepEqual(toAbout(old), { ...about, history: undefined, contextItems: undefined });
    assert.equal(toAnswer(old).finish, "stop");
    assert.equal(toAnswer(old).brokenOff, undefined);
    assert.equal(toAnswer({ ...old, status: "incomplete" }).finish, "length");
    assert.equal(toAnswer({ ...old, status: "incomplete" }).brokenOff, 0);
    const sealed = { type: "reasoning", summary: [], text: "", encrypted: "seal" } as const;
    const outputs = [sealed, { ...sealed, encrypted: undefined }].map((last) => [...old.output, last]);
    const ends = outputs.map((output) => toAnswer({ ...old, status: "incomplete", output }).brokenOff);
    assert.deepEqual(ends, [undefined, 1]);
    assert.equal([...replayTurn(old)].at(-1)?.type, "turn-end");
  });
});

suite("a turn that was followed on another gateway and interrupted", () => {
  test("is closed as if it had failed at its origin, however much of it arrived in whatever pieces", async () => {
    const failure = new GatewayError("interrupted", "It stopped.");
    await fc.assert(
      fc.asyncProperty(batches, async (said) => {
        fc.pre(said.flat().length > 0);
        const { events } = await tell(said, failure);
        const end = events.at(-1);
        const closed = events.at(-2);
        assert.ok(end?.type === "turn-end");
        const closing = closed?.type === "item-end" && !closed.whole ? 2 : 1;
        const tracker = createStreamTracker();
        for (const event of JSON.parse(JSON.stringify(events.slice(0, -closing)))) tracker.accept([event]);
        assert.equal(tracker.count, events.length - closing);
        const own = { ...end, answer: { ...end.answer, pieces: undefined } };
        const stored = { ...end.answer, items: [], places: [1], brokenOff: undefined };
        assert.deepEqual(plain(tracker.finish(stored)), plain([...events.slice(-closing, -1), own]));
      }),
      { numRuns: 300 },
    );
  });
});
