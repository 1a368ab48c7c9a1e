/** Turns and items of every kind are the same after an import and another export, and are told as they were before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { call, tellWell } from "../harness/client.ts";
import { openGateway, seenBy } from "../harness/house.ts";
import { exportArchive, importArchive, sessionIds } from "./aid.ts";
import { sayEveryKind } from "./every-kind.ts";

/** Without the store's own keys, which stand before those that came with the archive. */
const withoutHead = (archive: string): string => archive.slice(archive.indexOf("\n"));

/** Each store seals with its own key. */
const withoutSeals = (raw: string): string => raw.replaceAll(/portico2[\w.-]+/g, "sealed");

const linesOf = (archive: string) =>
  archive
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("an archive with turns of every kind is the same when it is exported where it was imported", async (context) => {
  const here = await openGateway(context);
  await sayEveryKind(context, here);
  const archive = await exportArchive(here);
  const there = await openGateway(context);
  const { status, raw } = await importArchive(there, archive);
  assert.equal(status, 200, raw);
  assert.equal(withoutHead(await exportArchive(there)), withoutHead(archive));
  const statuses = new Set<unknown>();
  const types = new Set<unknown>();
  for (const { type, id, told, input, answer } of linesOf(archive)) {
    if (type !== "turn") continue;
    statuses.add(told?.status);
    for (const item of [...input, ...answer]) types.add(item?.type);
    for (const path of [`/v1/responses/resp_${id}`, `/v1/responses/resp_${id}/input_items`]) {
      const [before, after] = [await call(here.address, "GET", path), await call(there.address, "GET", path)];
      assert.deepEqual([after.status, withoutSeals(after.raw)], [before.status, withoutSeals(before.raw)]);
    }
  }
  assert.deepEqual(statuses, new Set(["completed", "incomplete", "failed", "cancelled", undefined]));
  const all = ["message", "reasoning", "compaction", "tool-call", "tool-output", "other", undefined];
  assert.deepEqual(types, new Set(all));
});

const text = fc.string({ unit: "binary", maxLength: 8 });
const some = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const list = <Value>(value: fc.Arbitrary<Value>) => fc.array(value, { maxLength: 3 });
const fields = fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });
const ours = { dialect: fc.constantFrom("chat", "responses"), source: some(text), fields };
const extra = fc.record(ours);
const added = { extra: some(extra) };
const of = <Fields>(type: string, more: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> }) =>
  fc.record({ type: fc.constant(type), ...more });
const annotation = fc.record({ type: text, fields });
const part = fc.oneof(
  of("text", { text, logprobs: some(list(fc.jsonValue())), annotations: some(list(annotation)), ...added }),
  of("refusal", { text, ...added }),
  of("image", { url: some(text), fileId: some(text), detail: some(text), ...added }),
  of("audio", { data: text, format: text, ...added }),
  of("file", { fileId: some(text), data: some(text), url: some(text), name: some(text), ...added }),
  of("other", { extra }),
);
const content = fc.oneof(
  text,
  text.map((end) => `\u0001${end}`),
  fc.constant("long ".repeat(300)),
  list(part),
);
const named = { name: text, description: some(text), deferred: some(fc.boolean()) };
const functionTool = of("function", { ...named, parameters: some(fields), strict: some(fc.boolean()) });
const { tool } = fc.letrec((tie) => ({
  tool: fc.oneof(
    { maxDepth: 2 },
    functionTool,
    of("custom", { ...named, format: some(fc.jsonValue()) }),
    of("other", { name: some(text), search: some(functionTool), group: some(tie("group")), extra }),
  ),
  group: fc.record({ name: text, description: some(text), tools: list(tie("tool")) }),
}));
const kind = fc.constantFrom("function", "custom", "search");
const callId = text.map((id) => `call_${id}`);
const role = fc.constantFrom("system", "developer", "user", "assistant");
const exchange = fc.record({ side: fc.constantFrom("model", "tools"), id: text });
const item = fc.option(
  fc.oneof(
    of("message", { id: some(text), role, content, name: some(text), ...added }),
    of("reasoning", { id: some(text), summary: list(text), text, encrypted: some(text), ...added }),
    of("tool-call", { id: some(text), kind, callId, name: text, group: some(text), arguments: text, ...added }),
    of("tool-output", { id: some(text), kind, callId, output: content, tools: some(list(tool)), ...added }),
    of("compaction", { id: some(text), summary: text, encrypted: some(text) }),
    of("other", { id: some(text), extra, exchange: some(exchange), tools: some(list(tool)) }),
  ),
);

test("items with any fields that the core knows are imported, exported again and told", async (context) => {
  const here = await openGateway(context);
  await tellWell(here.address, { on: "responses", say: "one", more: { user: "ann" } });
  const lines = linesOf(await exportArchive(here));
  const turn = lines[2];
  const items = fc.sample(item, { numRuns: 400, seed: 1 });
  const { id } = turn;
  for (const fields of [{ input: items }, { answer: items }]) {
    const archive = `${lines
      .with(2, { ...turn, ...fields })
      .map((line) => JSON.stringify(line))
      .join("\n")}\n`;
    const there = await openGateway(context);
    const { status, raw } = await importArchive(there, archive);
    assert.equal(status, 200, raw);
    assert.equal(withoutHead(await exportArchive(there)), withoutHead(archive));
    assert.equal((await sessionIds(there)).length, 1);
    for (const path of ["", "/input_items", "?stream=true"])
      assert.equal((await call(there.address, "GET", `/v1/responses/resp_${id}${path}`)).status, 200, path);
  }
});

test("a session and a turn that come twice in an archive count once", async (context) => {
  const here = await openGateway(context);
  for (const say of ["one", "two"]) await tellWell(here.address, { on: "chat", say, more: { user: "ann" } });
  const archive = await exportArchive(here);
  const lines = archive.trimEnd().split("\n");
  const there = await openGateway(context);
  const { body } = await importArchive(there, [...lines.slice(0, -1), ...lines.slice(1)].join("\n"));
  assert.deepEqual(body, { object: "import", sessions: 1, turns: 2 });
  assert.equal(withoutHead(await exportArchive(there)), withoutHead(archive));
});

test("a session whose tip was deleted while its archive was written is imported, and begins anew", async (context) => {
  const here = await openGateway(context);
  for (const say of ["one", "two"]) await tellWell(here.address, { on: "chat", say, more: { user: "ann" } });
  const lines = (await exportArchive(here)).trimEnd().split("\n");
  const there = await openGateway(context);
  assert.equal((await importArchive(there, lines.toSpliced(3, 1).join("\n"))).body.turns, 1);
  await tellWell(there.address, { on: "chat", say: "three", more: { user: "ann" } });
  assert.deepEqual(seenBy(there.model.turns.at(-1)), ["user: three"]);
});
