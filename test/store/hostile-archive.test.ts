/** An archive with one wrong field is refused as a whole, by line and path; what is imported can be used in every way. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { call, tellWell } from "../harness/client.ts";
import { call as toCall, type Gateway, openGateway, operatorToken } from "../harness/house.ts";
import { exportArchive, importArchive, sessionIds } from "./aid.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- a line, before anything changes it
type Line = any;

/** The head, a session with two turns, a conversation with one, the end. */
async function makeArchive(context: TestContext): Promise<readonly Line[]> {
  const gateway = await openGateway(context);
  const more = { user: "ann" };
  await tellWell(gateway.address, { on: "responses", say: "one", more });
  gateway.model.script = [toCall("call_1", "look")];
  await tellWell(gateway.address, { on: "responses", say: "two", more });
  const items = [{ role: "user", content: "said before" }];
  await call(gateway.address, "POST", "/v1/conversations", { items, metadata: { bed: "rose" } });
  const lines: Line[] = (await exportArchive(gateway))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  // Sessions are in the order of their ids, which have chance in them.
  const starts = lines.findIndex(({ kind }) => kind === "hinted");
  return starts === 1 ? lines : [lines[0], ...lines.slice(3, 6), ...lines.slice(1, 3), lines[6]];
}

const write = (lines: readonly Line[]): string => lines.map((line) => JSON.stringify(line)).join("\n");

/** Line 3, the first turn, is changed. */
const inTurn = (path: string, fields: object) => [`Line 3 .*'${path}'`, 3, () => fields] as const;
const withInput = (path: string, ...input: unknown[]) => inTurn(`input${path}`, { input });
const withPart = (path: string, part: unknown) =>
  withInput(`[0].content[0]${path}`, { type: "message", role: "user", content: [part] });
const withTold = (path: string, fields: object) =>
  [`Line 3 .*'told${path}'`, 3, ({ told }: Line) => ({ told: { ...told, ...fields } })] as const;
const inSession = (path: string, fields: object) => [`Line 2 .*'${path}'`, 2, () => fields] as const;

const message = { type: "message", role: "user", content: "hi" };
const reasoning = { type: "reasoning", summary: [], text: "" };
const toolCall = { type: "tool-call", kind: "function", callId: "c", name: "n", arguments: "{}" };
const output = { type: "tool-output", kind: "search", callId: "c", output: "" };
const key = (digit: string) => digit.repeat(25);
const isPath = (path: string): string => path.replaceAll(/[.[\]]/g, "\\$&");

interface Wrong {
  readonly [what: string]: readonly [
    message: string,
    line: number,
    change: (line: Line, lines: readonly Line[]) => object,
  ];
}

const wrong: Wrong = {
  "an item that is no object": withInput("[0]", 5),
  "an item in a list": withInput("[0]", [message]),
  "an item without a type": withInput("[0].type", { role: "user", content: "hi" }),
  "an item of an unknown type": withInput("[1].type", message, { ...message, type: "massage" }),
  "an item whose type is inherited by every object": withInput("[0].type", { type: "constructor" }),
  "a reference": withInput("[0].id", { type: "reference", id: "msg_1" }),
  "an item with an unknown field": withInput("[0].contents", { ...message, contents: 5 }),
  "a message without content": withInput("[0].content", { type: "message", role: "user" }),
  "a message with null as content": withInput("[0].content", { ...message, content: null }),
  "a message with an object as content": withInput("[0].content", { ...message, content: {} }),
  "a message of an unknown role": withInput("[0].role", { ...message, role: "root" }),
  "a message with a number as name": withInput("[0].name", { ...message, name: 5 }),
  "a message with a number as id": withInput("[0].id", { ...message, id: 5 }),
  "null among the parts": withPart("", null),
  "a part of an unknown type": withPart(".type", { type: "video" }),
  "a text part without text": withPart(".text", { type: "text" }),
  "a text part with an object as annotations": withPart(".annotations", { type: "text", text: "", annotations: {} }),
  "an annotation without fields": withPart(".annotations[0].fields", {
    type: "text",
    text: "",
    annotations: [{ type: "t" }],
  }),
  "a refusal with a list as text": withPart(".text", { type: "refusal", text: [] }),
  "an image with an object as url": withPart(".url", { type: "image", url: {} }),
  "audio without data": withPart(".data", { type: "audio", format: "wav" }),
  "a file with a number as name": withPart(".name", { type: "file", name: 5 }),
  "a part of another dialect without its fields": withPart(".extra", { type: "other" }),
  "additions of an unknown dialect": withInput("[0].extra.dialect", { ...message, extra: { dialect: "", fields: {} } }),
  "additions that are no object": withInput("[0].extra.fields", { ...message, extra: { dialect: "chat", fields: [] } }),
  "reasoning with a text as summary": withInput("[0].summary", { ...reasoning, summary: "s" }),
  "reasoning with null in its summary": withInput("[0].summary[1]", { ...reasoning, summary: ["", null] }),
  "reasoning with an object as seal": withInput("[0].encrypted", { ...reasoning, encrypted: {} }),
  "a call without an id": withInput("[0].callId", { ...toolCall, callId: undefined }),
  "a call with an object as arguments": withInput("[0].arguments", { ...toolCall, arguments: {} }),
  "a call of an unknown kind": withInput("[0].kind", { ...toolCall, kind: "toString" }),
  "an output without output": withInput("[0].output", { ...output, output: undefined }),
  "an output with null among its tools": withInput("[0].tools[0]", { ...output, tools: [null] }),
  "a tool without a name": withInput("[0].tools[0].name", { ...output, tools: [{ type: "function" }] }),
  "a tool of a group with wrong parameters": withInput("[0].tools[0].group.tools[0].parameters", {
    ...output,
    tools: [
      {
        type: "other",
        extra: { dialect: "responses", fields: {} },
        group: { name: "g", tools: [{ type: "function", name: "f", parameters: "p" }] },
      },
    ],
  }),
  "a compaction without a summary": withInput("[0].summary", { type: "compaction" }),
  "an item of a dialect without its fields": withInput("[0].extra", { type: "other" }),
  "half a pair of neither side": withInput("[0].exchange.side", {
    type: "other",
    extra: { dialect: "chat", fields: {} },
    exchange: { side: "left", id: "i" },
  }),
  "items that are no list": inTurn("input", { input: { 0: message } }),
  "no items": inTurn("answer", { answer: undefined }),
  "a wrong item in the answer": inTurn("answer[0].content", { answer: [{ ...message, content: 5 }] }),
  "an end that is a text": inTurn("told", { told: "completed" }),
  "no end, though there are items": inTurn("told", { told: undefined }),
  "an unknown status": withTold(".status", { status: "done" }),
  "an unknown finish": withTold(".finish", { finish: null }),
  "no notes": withTold(".notes", { notes: undefined }),
  "notes with an object as tier": withTold(".notes.serviceTier", { notes: { serviceTier: {} } }),
  "usage that is negative": withTold(".usage.inputTokens", { usage: { inputTokens: -1 } }),
  "an end without a moment": withTold(".endedAt", { endedAt: null }),
  "an end after the year 9999": withTold(".endedAt", { endedAt: 8e15 }),
  "an error with an object as message": withTold(".error.message", { error: { code: "overloaded", message: {} } }),
  "remarks that are no list": withTold(".remarks", { remarks: {} }),
  "a remark with a number": withTold(".remarks[0].what", { remarks: [{ type: "left-out", what: 5 }] }),
  "an unknown field of the end": withTold(".items", { items: [] }),
  "an echo that is no JSON": inTurn("echo", { echo: "\u0001qZkVx8C0t4n0Zz1o7oU3uH3wW-k" }),
  "an echo that is no list": inTurn("echo", { echo: "{}" }),
  "an echo of null": inTurn("echo", { echo: "[null,{}]" }),
  "an echo that is too deep": inTurn("echo", { echo: `[{},{"tools":${"[".repeat(9_000)}${"]".repeat(9_000)}}]` }),
  "a digest without a question": inTurn("question", { question: undefined }),
  "a question without a digest": inTurn("digest", { digest: undefined }),
  "a digest with blanks": inTurn("digest", { digest: "a b" }),
  "a digest of a megabyte": inTurn("digest", { digest: "a".repeat(1e6) }),
  "a model that is no text": inTurn("model", { model: ["m"] }),
  "a date with no such day": inTurn("createdAt", { createdAt: "2026-02-30T00:00:00.000Z" }),
  "a date of a year with five digits": inTurn("createdAt", { createdAt: "+010000-01-01T00:00:00.000Z" }),
  "a date of a year alone": inTurn("createdAt", { createdAt: "2026" }),
  "a turn with an unknown field": inTurn("record", { record: { idempotency: null } }),
  "a turn with a key that sets prototypes": inTurn("__proto__", JSON.parse('{"__proto__":{"type":"turn"}}')),
  "a turn that follows itself": [`Line 3 .*'parent'`, 3, ({ id }) => ({ parent: id })],
  "a turn that follows a later one": [`Line 3 .*'parent'`, 3, (_line, lines) => ({ parent: lines[3].id })],
  "a turn that follows one of another session": [`Line 6 .*'parent'`, 6, (_line, lines) => ({ parent: lines[2].id })],
  "a turn of another session": [`Line 6 .*'id'`, 6, (_line, lines) => ({ id: lines[2].id })],
  "a turn whose id begins like another's": [
    `Line 4 .*'id'`,
    4,
    (_line, lines) => ({ id: lines[2].id.slice(0, 13).padEnd(25, "0"), parent: undefined }),
  ],
  "a tip of another session": [`Line 2 .*'tip'`, 2, (_line, lines) => ({ tip: lines[5].id })],
  "a session whose id begins like another's": [
    `Line 5 .*'id'`,
    5,
    (_line, lines) => ({ id: lines[1].id.slice(0, 18).padEnd(53, "0") }),
  ],
  "one session of two owners": [`Line 5 .*'owner'`, 5, (_line, lines) => ({ id: lines[1].id, owner: "ben" })],
  "a session of an unknown kind": inSession("kind", { kind: "secret" }),
  "an owner without a name": inSession("owner", { owner: "" }),
  "a session without metadata": inSession("metadata", { metadata: undefined }),
  "metadata with a number": inSession("metadata", { metadata: { a: 5 } }),
  "metadata in a list": inSession("metadata", { metadata: ["a"] }),
  "more metadata than HTTP accepts": inSession("metadata", { metadata: { a: "x".repeat(513) } }),
  "a session used after the year 9999": inSession("usedAt", { usedAt: "+275760-09-13T00:00:00.000Z" }),
  "a flag that is a number": inSession("shows", { shows: 1 }),
  "a tip that is no key": inSession("tip", { tip: "x" }),
  "a version that cannot be a text": ["Line 1 .*version", 1, () => ({ version: { toString: 5 } })],
  "a key that is no secret": ["Line 1 .*'sealKeys'", 1, () => ({ sealKeys: [key("a")] })],
  "more keys than a hint can be tried with": [
    "Line 1 .*'hintKeys'",
    1,
    () => ({ hintKeys: Array(1_001).fill("a".repeat(64)) }),
  ],
  "an end with an unknown field": ["Line 7 .*'more'", 7, () => ({ more: 1 })],
};

test("an archive with a wrong field is refused by line and path, and the gateway works on as before", async (context) => {
  const lines = await makeArchive(context);
  const gateway = await openGateway(context);
  const before = await exportArchive(gateway);
  for (const [what, [expected, at, change]] of Object.entries(wrong)) {
    const line = lines[at - 1];
    const changed = Object.assign(Object.create(null), line, change(line, lines));
    const { status, body } = await importArchive(gateway, write(lines.with(at - 1, changed)));
    assert.equal(status, 400, `${what}: ${JSON.stringify(body)}`);
    const [where = "", path] = expected.split("'");
    const named = new RegExp(path === undefined ? where : `${where}'${isPath(path)}'`);
    assert.match(body.error.message, named, what);
    assert.match(body.error.message, /Nothing was imported\.$/, what);
    assert.deepEqual(await sessionIds(gateway), [], what);
    assert.equal(await exportArchive(gateway), before, what);
    await tellWell(gateway.address, { on: "responses", say: "go on", more: { store: false } });
  }
  assert.equal((await importArchive(gateway, write(lines))).body.turns, 3);
});

test("an archive that is nested too deeply is refused, wherever the depth is", async (context) => {
  const lines = await makeArchive(context);
  const gateway = await openGateway(context);
  const deep = "[".repeat(20_000) + "]".repeat(20_000);
  for (const [at, field] of ["version", "metadata", "input", "told"].entries()) {
    const text = JSON.stringify({ ...lines[at === 0 ? 0 : at === 1 ? 1 : 2], [field]: "HERE" }).replace('"HERE"', deep);
    const number = Math.min(at + 1, 3);
    const archive = write(lines)
      .split("\n")
      .with(number - 1, text)
      .join("\n");
    const { status, body } = await importArchive(gateway, archive);
    assert.equal(status, 400, field);
    assert.match(body.error.message, new RegExp(`Line ${number} .*nested deeper than 500 levels`));
  }
  assert.deepEqual(await sessionIds(gateway), []);
});

const others = [null, 5, "x", "", {}, [], [null], undefined];

/** Each field of a line, and of what is in it, with each of the other values. */
function* changesOf(value: Line): Generator<Line> {
  if (typeof value !== "object" || value === null) return;
  const copy = (): Line => (Array.isArray(value) ? [...value] : { ...value });
  for (const name of Object.keys(value)) {
    for (const other of others) yield Object.assign(copy(), { [name]: other });
    for (const changed of changesOf(value[name])) yield Object.assign(copy(), { [name]: changed });
  }
}

test("whichever field of a turn is changed, it is refused, or all that was imported can be used", async (context) => {
  const lines = await makeArchive(context);
  const turn = lines[2];
  const { echo } = turn;
  const answer = [...turn.answer, { ...reasoning, encrypted: "e" }];
  const told = { ...turn.told, remarks: [{ type: "left-out", what: "w" }], error: failure };
  const changes = [...changesOf({ ...turn, answer, told })].concat(
    [...changesOf(JSON.parse(echo))].map((changed) => ({ ...turn, echo: JSON.stringify(changed) })),
  );
  const gateway = await openGateway(context);
  let imported = 0;
  for (const changed of changes.filter((_, at) => at % 13 === 0)) {
    const archive = write(lines.with(2, changed));
    const { status, raw } = await importArchive(gateway, archive);
    if (status === 400) continue;
    assert.equal(status, 200, raw);
    imported += 1;
    await use(gateway, turn.id, JSON.stringify(changed));
    for (const id of await sessionIds(gateway))
      await call(gateway.address, "DELETE", `/operator/sessions/${id}`, undefined, { token: operatorToken });
  }
  assert.ok(imported > 5, `${imported} were imported`);
});

const failure = { code: "overloaded", message: "m", param: null, wireCode: "overloaded" };

/** Everything that can be done with a turn, as its owner and as the operator. */
async function use(gateway: Gateway, id: string, what: string): Promise<void> {
  const of = { token: operatorToken };
  const path = `/v1/responses/resp_${id}`;
  const body = { model: "any", input: "go on" };
  const { body: list } = await call(gateway.address, "GET", "/operator/sessions", undefined, of);
  const answers = [
    await call(gateway.address, "GET", `/operator/sessions/${list.data[0].id}`, undefined, of),
    await call(gateway.address, "GET", "/operator/export", undefined, of),
    await call(gateway.address, "GET", path),
    await call(gateway.address, "GET", `${path}/input_items`),
    await call(gateway.address, "GET", `${path}?stream=true`),
    await call(gateway.address, "POST", "/v1/responses", { ...body, previous_response_id: `resp_${id}` }),
    await call(gateway.address, "POST", "/v1/responses", { ...body, user: "ann" }),
    await call(gateway.address, "GET", "/operator/sessions", undefined, of),
  ];
  for (const { status, raw } of answers) assert.ok(status < 500, `${what}: ${status} ${raw}`);
}

test("a text that was sealed for something else is refused as reasoning and as a compaction", async (context) => {
  const gateway = await openGateway(context);
  const items = [{ ...message, content: 5 }, { ...reasoning, text: 5 }, { ...reasoning, summary: [5] }, 5, toolCall];
  for (const sealed of items) {
    await tellWell(gateway.address, { on: "responses", say: "hi", more: { user: JSON.stringify(sealed) } });
    const turns = (await exportArchive(gateway)).split("\n").filter((line) => line.includes('"turn"'));
    const seals = turns.map((line) => JSON.parse(JSON.parse(line).echo)[0].user);
    for (const encrypted_content of seals) {
      for (const type of ["reasoning", "compaction"]) {
        const input = [
          { type, summary: [], encrypted_content },
          { role: "user", content: "hi" },
        ];
        const { status, body } = await call(gateway.address, "POST", "/v1/responses", { model: "any", input });
        assert.deepEqual([status, body.error?.code], [400, "invalid_encrypted_content"], JSON.stringify(sealed));
      }
    }
  }
});
