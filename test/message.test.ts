/** A program's message in a channel is validated like a request, its answer is read once, and it is logged. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { type Adapter, type Message, openPortico } from "../src/index.ts";
import { readMessage } from "../src/message.ts";
import { makeFolder } from "./gateway.ts";
import { say, usage } from "./scripted.ts";

type Line = Readonly<Record<string, unknown>>;

const mine: Adapter = {
  async *stream({ items, settings }) {
    const last = items.at(-1);
    if (last?.type === "message" && last.content === "break") throw new Error("out of order");
    yield [...say(settings.instructions ?? "well"), { type: "usage", usage }];
    if (last?.type === "message" && last.content === "break off") throw new Error("out of order");
  },
};

async function open(context: TestContext) {
  const lines: Line[] = [];
  const causes: Line[] = [];
  const log = {
    info: (fields: object, message: string) => void lines.push({ ...fields, message }),
    error: (fields: object, message: string) => void causes.push({ ...fields, message }),
  };
  const settings = { gateway: { auth: { token: "k".repeat(32) }, sessions: { store: "memory:" } } };
  const portico = await openPortico(settings, { folder: makeFolder(context), env: {}, log, adapters: { mine } });
  context.after(() => portico.close());
  return { portico, lines, causes };
}

const wrong: readonly (readonly [field: string, message: unknown, told: RegExp])[] = [
  ["message", undefined, /^Invalid type for 'message': expected an object, but got nothing instead\.$/],
  ["message.content", {}, /^Missing required parameter: 'message\.content'\.$/],
  ["message.content", { content: 42 }, /expected a string or an array of parts, but got an integer/],
  ["message.content[1]", { content: [{ type: "text", text: "a" }, "b"] }, /expected an object, but got a string/],
  ["message.content[0].text", { content: [{ type: "text" }] }, /^Missing required parameter/],
  ["message.content[0].type", { content: [{ type: "image_url" }] }, /'text', 'refusal', 'image', 'audio', 'file'/],
  ["message.content[0].url", { content: [{ type: "image", url: {} }] }, /expected a string, but got an object/],
  ["message.content[0].url", { content: [{ type: "image", detail: "low" }] }, /^Missing required parameter/],
  ["message.content[0].fileId", { content: [{ type: "file", name: "a.txt" }] }, /^Missing required parameter/],
  ["message.session", { content: "a", session: 42 }, /expected a string, but got an integer/],
  ["message.owner", { content: "a", owner: {} }, /expected a string, but got an object/],
  ["message.model", { content: "a", model: "" }, /empty string/],
  ["message.instructions", { content: "a", instructions: ["b"] }, /expected a string, but got an array/],
  ["message.signal", { content: "a", signal: 1_000 }, /expected an AbortSignal, but got an integer/],
];

for (const [field, message, told] of wrong) {
  test(`an invalid message is refused with the name of its field: ${JSON.stringify(message)}`, async (context) => {
    const { portico } = await open(context);
    await assert.rejects(portico.talk(message as Message), { name: "GatewayError", param: field, message: told });
  });
}

test("parts are accepted, with any of their sources", () => {
  const content: Message["content"] = [
    { type: "text", text: "What is this?" },
    { type: "image", url: "https://a.example/b.png", detail: "low" },
    { type: "image", fileId: "file_1" },
    { type: "audio", data: "AAAA", format: "wav" },
    { type: "file", data: "data:text/plain;base64,AAAA", name: "a.txt" },
    { type: "file", url: "https://a.example/b.pdf" },
  ];
  assert.equal(readMessage({ content }).content, content);
});

test("a signal must be able to say that it has aborted, and when it does", () => {
  for (const signal of [{ aborted: false }, { addEventListener() {} }]) {
    assert.throws(() => readMessage({ content: "a", signal }), { param: "message.signal" });
  }
});

test("null counts as absent", async (context) => {
  const { portico } = await open(context);
  const message = { content: "hi", session: null, owner: null, model: null, instructions: null, signal: null };
  const talk = await portico.talk(message as unknown as Message);
  assert.deepEqual([talk.about.history, talk.about.model, await talk.text()], ["stateless", "mine", "well"]);
  assert.throws(() => readMessage({ content: null }), { message: "Missing required parameter: 'message.content'." });
});

test("the model gets the instructions of a message", async (context) => {
  const { portico } = await open(context);
  assert.equal(await (await portico.talk({ content: "hi", instructions: "Be brief." })).text(), "Be brief.");
});

test("an answer that breaks off fails for its reader, after what it said", async (context) => {
  const { portico } = await open(context);
  const pieces: string[] = [];
  const read = async () => {
    for await (const piece of await portico.talk({ content: "break off" })) pieces.push(piece);
  };
  await assert.rejects(read(), { name: "GatewayError" });
  assert.deepEqual(pieces, ["well"]);
});

test("an answer can be read only once, and a second reader gets an error", async (context) => {
  const { portico } = await open(context);
  const talk = await portico.talk({ content: "hi" });
  assert.equal(await talk.text(), "well");
  await assert.rejects(talk.text(), TypeError);
  await assert.rejects(Array.fromAsync(talk), /^TypeError: An answer can be read only once/);
});

test("a message has a line in the log, with its usage", async (context) => {
  const { portico, lines } = await open(context);
  const { about, text } = await portico.talk({ content: "hi", session: "s", owner: "ann" });
  await text();
  const [line] = lines;
  const { id: turnId, session } = about;
  const { ms, ...rest } = line ?? {};
  assert.ok(typeof ms === "number" && ms >= 0);
  assert.deepEqual(JSON.parse(JSON.stringify(rest)), {
    turnId,
    owner: "ann",
    model: "mine",
    adapter: "mine",
    upstreamModel: "mine",
    session,
    history: "new",
    inputTokens: 3,
    cachedTokens: 0,
    outputTokens: 2,
    message: "turn",
  });
});

test("a failed message is logged with its cause and its turn's id; an abandoned one as cancelled", async (context) => {
  const { portico, lines, causes } = await open(context);
  const failing = await portico.talk({ content: "break" });
  await assert.rejects(failing.text(), { name: "GatewayError" });
  const [cause] = causes;
  assert.equal(cause?.["turnId"], failing.about.id);
  assert.match(String(cause?.["err"]), /out of order/);
  const left = await portico.talk({ content: "hi" });
  await left[Symbol.asyncIterator]().return?.();
  await assert.rejects(portico.talk({ content: "hi", signal: AbortSignal.abort() }), { code: "cancelled" });
  assert.deepEqual(
    lines.map(({ code }) => code),
    [cause?.["code"], "cancelled", "cancelled"],
  );
});

test("a signal that is not the platform's own cancels a turn too", async (context) => {
  const { portico } = await open(context);
  const target = Object.assign(new EventTarget(), { aborted: true });
  await assert.rejects(portico.talk({ content: "hi", signal: target as unknown as AbortSignal }), {
    code: "cancelled",
  });
});

test("a log that throws affects nothing, and an incomplete one is refused at once", async (context) => {
  const fail = () => {
    throw new Error("the disk is full");
  };
  const settings = { gateway: { auth: { token: "k".repeat(32) }, sessions: { store: "memory:" } } };
  const given = { folder: makeFolder(context), env: {}, adapters: { mine } };
  const portico = await openPortico(settings, { ...given, log: { info: fail, error: fail } });
  context.after(() => portico.close());
  assert.equal(await (await portico.talk({ content: "hi" })).text(), "well");
  const late = await openPortico(settings, { ...given, log: { info: async () => fail(), error: fail } });
  context.after(() => late.close());
  assert.equal(await (await late.talk({ content: "hi" })).text(), "well");
  const half = { info: () => {} } as unknown as NonNullable<Parameters<typeof openPortico>[1]>["log"];
  await assert.rejects(openPortico(settings, { ...given, log: half }), /^TypeError: log\.error must be a function/);
});

test("however many gateways a program opens, there is one exit listener", async (context) => {
  const before = process.listenerCount("exit");
  const folder = makeFolder(context);
  const settings = { gateway: { auth: { token: "k".repeat(32) }, sessions: { store: "memory:" } } };
  const opened = await Promise.all(
    Array.from({ length: 12 }, () => openPortico(settings, { folder, env: {}, adapters: { mine } })),
  );
  assert.equal(process.listenerCount("exit"), before + 1);
  await Promise.all(opened.map((portico) => portico.close()));
  assert.equal(process.listenerCount("exit"), before);
});
