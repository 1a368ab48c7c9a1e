/** An archive's turns can be replayed: what could not is refused before anything is imported. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readArchive } from "../src/archive/read.ts";
import { writeArchive } from "../src/archive/write.ts";
import { toGatewayError } from "../src/core/errors.ts";
import type { Event } from "../src/core/event.ts";
import { frame } from "../src/core/frame/frame.ts";
import { replayTurn } from "../src/core/frame/replay.ts";
import { type Item, removed } from "../src/core/item.ts";
import { toUnthreadedTurn } from "../src/core/turn-record.ts";
import type { ArchiveRecord, StoredTurn, Told } from "../src/core/store.ts";
import { about } from "./protocols/script.ts";
import { batches } from "./protocols/deltas.ts";
import { everyItem, fullTold, gather, makeTurn, replay } from "./stores/making.ts";

const store: ArchiveRecord = { type: "store", hintKey: Buffer.alloc(32, 7).toString("base64url") };
const memo = '{"reasoning":{"effort":null,"summary":null},"user":null}';
const told: Told = { ...fullTold, pieces: [], memo };
const output: readonly Item[] = [
  {
    type: "message",
    role: "assistant",
    content: [
      { type: "text", text: "Blue.", annotations: [{ type: "url_citation", fields: {} }], logprobs: [{ token: "B" }] },
      { type: "refusal", text: "No." },
    ],
  },
  { type: "reasoning", summary: ["Rain", "or not"], text: "Hm." },
  {
    type: "tool-call",
    kind: "function",
    callId: "call_1",
    name: "look",
    arguments: "{}",
    extra: { dialect: "chat", fields: { a: 1, b: 2 } },
  },
  removed,
  { type: "message", role: "assistant", content: "Green." },
];
const pieces: Told["pieces"] = [
  [
    { kind: "text", part: 0, lengths: [1, 4], logprobs: [1, 0] },
    { kind: "annotation", part: 0, lengths: [0] },
    { kind: "refusal", part: 1, lengths: [3] },
  ],
  [
    { kind: "reasoning", part: 0, lengths: [2] },
    { kind: "summary", part: 1, lengths: [6] },
    { kind: "reasoning", part: 0, lengths: [1] },
  ],
  [
    { kind: "extra", part: 0, lengths: [1] },
    { kind: "arguments", part: 0, lengths: [1, 1] },
  ],
  [{ kind: "text", part: 7, lengths: [900] }],
  [{ kind: "text", part: 0, lengths: [6] }],
];

/** The turn of an archive that contains this, whatever that is. */
function read(turn: object): Promise<StoredTurn> {
  return readLine(JSON.stringify({ type: "turn", ...turn }));
}

async function readLine(line: string): Promise<StoredTurn> {
  async function* toBytes(): AsyncGenerator<Uint8Array> {
    const [first = "", end = ""] = await Array.fromAsync(writeArchive(replay([store])));
    yield Buffer.from(`${first}${line}\n${end}`);
  }
  const [, record] = await gather(readArchive(toBytes()));
  assert.ok(record?.type === "turn");
  return record.turn;
}

test("whatever was emitted in whatever pieces is imported from an archive and replayed the same", async () => {
  await fc.assert(
    fc.asyncProperty(batches, async (said) => {
      async function* say() {
        yield* said;
      }
      const ending = { settle: async () => {}, explain: toGatewayError, end: () => {}, now: () => new Date(5) };
      const events: Event[] = [];
      for await (const batch of frame(about.id, say(), ending)) events.push(...batch);
      const end = events.at(-1);
      assert.ok(end?.type === "turn-end");
      const turnRecord = { owner: "ann", about, memo: () => memo, background: false, isReplayable: true };
      const again = [...replayTurn(await read(toUnthreadedTurn(turnRecord, everyItem, end.answer)))];
      assert.deepEqual(JSON.parse(JSON.stringify(again)), JSON.parse(JSON.stringify(events)));
    }),
    { numRuns: 200 },
  );
});

test("the pieces of every kind of item are imported, including those of an item that was deleted since", async () => {
  const turn = makeTurn({ input: everyItem, output, told: { ...told, pieces } });
  assert.deepEqual(await read(turn), JSON.parse(JSON.stringify(turn), toDates));
});

function isToolOutput({ type }: Item): boolean {
  return type === "tool-output";
}

function toDates(key: string, value: unknown): unknown {
  return key.endsWith("At") ? new Date(String(value)) : value;
}

test("a turn that was running when it was exported has failed where it is imported", async () => {
  const turn = makeTurn({ status: "running", told });
  const { status, told: then } = await read(turn);
  assert.deepEqual([status, then?.failure?.code, then?.endedAt], ["failed", "interrupted", turn.createdAt]);
});

test("a turn that could not be replayed is refused, and the error names its line and field", async () => {
  const item = (value: object) => ({ output: [value] });
  const said = (part: object) => item({ type: "message", role: "assistant", content: [part] });
  const offered = (tool: object) => ({ input: [{ ...everyItem[9], tools: [tool] }] });
  const other = { type: "other", extra: { dialect: "responses", fields: {} } };
  const updated = (updates: object) => ({ input: [{ ...other, updates }] });
  const wrong = (change: object) => ({ told: { ...told, ...change } });
  const cut = (index: number, kind: string, part: number, ...lengths: number[]) =>
    wrong({ pieces: pieces.with(index, [{ kind, part, lengths } as never]) });
  const text = { type: "text", text: "" };
  const call = { type: "tool-call", kind: "function", callId: "call_1", name: "look", arguments: "{}" };
  for (const [place, change] of [
    ["id", { id: 'resp_"1' }],
    ["id", { id: "resp_\\1" }],
    ["owner", { owner: "" }],
    ["createdAt", { createdAt: "yesterday" }],
    ["exchange", { exchange: "\r" }],
    ["gap", { gap: 1 }],
    ["model", { model: 5 }],
    ["input", { input: {} }],
    ["usage.outputTokens", { usage: { ...makeTurn({}).usage, outputTokens: -1 } }],
    ["usage.cacheWriteTokens", { usage: { ...makeTurn({}).usage, cacheWriteTokens: 0.5 } }],
    ["told.endedAt", wrong({ endedAt: "now" })],
    ["told.finish", wrong({ finish: "never" })],
    ["told.omittedItems", wrong({ omittedItems: "1" })],
    ["told.truncation", wrong({ truncation: "yes" })],
    ["told.failure.message", wrong({ failure: { ...told.failure, message: 5 } })],
    ["told.failure.retryAfterSeconds", wrong({ failure: { ...told.failure, retryAfterSeconds: -1 } })],
    ["told.failure.code", wrong({ failure: { code: "nope", message: "" } })],
    ["told.failure.code", wrong({ failure: { code: "constructor", message: "" } })],
    ["told.failure.retryAfterSeconds", wrong({ failure: { ...told.failure, retryAfterSeconds: "1\r\nx: y" } })],
    ["told.failure.wireCode", wrong({ failure: { ...told.failure, wireCode: {} } })],
    ["told.failure.param", wrong({ failure: { ...told.failure, param: [] } })],
    ["told.notes.serviceTier", wrong({ notes: { serviceTier: {} } })],
    ["told.background", wrong({ background: "yes" })],
    ["told.others.0.finish", wrong({ others: [{ finish: "never", items: [] }] })],
    ["told.others.0.items.0", wrong({ others: [{ finish: "stop", items: [everyItem.find(isToolOutput)] }] })],
    ["told.brokenOff", wrong({ brokenOff: -1 })],
    ["told.remarks.0", wrong({ remarks: [{ type: "tried", adapter: "a", code: "nope" }] })],
    ["told.remarks.0", wrong({ remarks: [{ type: "left-out" }] })],
    ["told.memo", wrong({ memo: "{{{" })],
    ["told.memo", wrong({ memo: "null" })],
    ["told.memo", wrong({ memo: "{}" })],
    ["told.memo", wrong({ memo: '{"reasoning":{"summary":null},"user":7}' })],
    ["told.memo", wrong({ memo: "[".repeat(5_000) + "]".repeat(5_000) })],
    ["told.memo", wrong({ memo: memo.replace("{", `{"a":${"[".repeat(3_000)}${"]".repeat(3_000)},`) })],
    ["output.0", said({ type: "text", text: "", logprobs: 5 })],
    ["output.0", said({ type: "image", url: 5 })],
    ["output.0", said({ type: "file", data: {} })],
    ["output.0", said({ type: "audio", data: "" })],
    ["output.0", said({ ...text, annotations: [{ type: "url_citation" }] })],
    ["output.0", said({ ...text, extra: { dialect: "morse", fields: {} } })],
    ["output.0", said({ ...text, extra: { dialect: "chat", fields: [] } })],
    ["output.0", item({ type: "message", role: "robot", content: "" })],
    ["output.0", item({ type: "reasoning", text: "" })],
    ["output.0", item({ ...call, callId: undefined })],
    ["output.0", item({ ...call, name: undefined })],
    ["output.0", item({ ...call, arguments: undefined })],
    ["output.0", item({ ...other, exchange: { side: "nobody", id: "1" } })],
    ["output.0", item({ ...other, words: 5 })],
    ["output.0", item({ ...other, steers: 1 })],
    ["output.0", item({ type: "compaction" })],
    ["output.0", item({ type: "compaction", summary: "", kept: [{ type: "message", role: "robot", content: "" }] })],
    ["output.0", item({ type: "tool-output", kind: "function", callId: "call_1" })],
    ["input.0", offered({ type: "function", name: "f", description: 5 })],
    ["input.0", offered({ type: "function", name: "f", parameters: [] })],
    ["input.0", offered({ ...other, search: { type: "function", name: "f", description: [] } })],
    ["input.0", offered({ ...other, group: { name: "g", tools: [{ ...other, group: { name: "h", tools: 5 } }] } })],
    ["input.0", updated([])],
    ["input.0", updated({ reasoningEffort: {} })],
    ["input.0", updated({ format: 7 })],
    ["input.0", updated({ format: { type: "schema", name: "n" } })],
    ["told.pieces.0.0.kind", cut(0, "zzz", 0, 1)],
    ["told.pieces.0.0.part", cut(0, "text", -1, 1)],
    ["told.pieces.0.0.lengths.0", cut(0, "text", 0, -1)],
    ["told.pieces.0.0.logprobs", wrong({ pieces: [[{ kind: "text", part: 0, lengths: [1], logprobs: 5 }]] })],
    [
      "told.pieces",
      wrong({ pieces: [[{ kind: "text", part: 0, lengths: Array.from({ length: 100_001 }, () => 0) }]] }),
    ],
    [
      "told.pieces",
      wrong({ pieces: [Array.from({ length: 100_001 }, () => ({ kind: "text", part: 0, lengths: [] }))] }),
    ],
  ] as const) {
    await assert.rejects(read({ ...makeTurn({ input: everyItem, output, told }), ...change }), {
      code: "invalid_value",
      message: new RegExp(`^Line 2 of the archive has an invalid field: '${place}[.\\w]*' .*Nothing was imported`),
    });
  }
});

test("a line that is nested too deeply, or has millions of objects, is refused before it is parsed", async () => {
  const nested = (levels: number) => JSON.parse(`${"[".repeat(levels)}"[[\\"[["${"]".repeat(levels)}`);
  const extra = (value: unknown) =>
    makeTurn({ input: [{ type: "other", extra: { dialect: "chat", fields: { value } } }] });
  const turn = extra(nested(990));
  assert.deepEqual((await read(turn)).input, turn.input);
  await assert.rejects(read(extra(nested(3_000))), /^GatewayError: Line 2 of the archive is nested deeper than 3000 /);
  const many = JSON.stringify({ type: "turn", ...extra("many") }).replace('"many"', `[${"[],".repeat(4_000_000)}[]]`);
  await assert.rejects(readLine(many), /Line 2 of the archive has more than 4000000 objects and lists/);
});

test("groups of tools within groups are checked too, up to a depth of eight", async () => {
  const inGroups = (groups: number, tool: object): object => {
    if (groups === 0) return tool;
    const group = { name: "g", tools: [inGroups(groups - 1, tool)] };
    return { type: "other", extra: { dialect: "responses", fields: {} }, group };
  };
  const offer = (groups: number, tool: object) => ({
    ...makeTurn({}),
    input: [{ ...everyItem[9], tools: [inGroups(groups, tool)] }],
  });
  await read(offer(8, { type: "custom", name: "run" }));
  for (const turn of [offer(8, { type: "custom", name: 5 }), offer(9, { type: "custom", name: "run" })]) {
    await assert.rejects(read(turn), /^GatewayError: Line 2 .*'input.0.*has no known form/);
  }
});
