/** What a WebSocket refuses, and how it ends: upgrades, bad frames, limits, a stopping gateway. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { call } from "../harness/client.ts";
import { authorization, openGateway, say, shareGateway } from "../harness/house.ts";
import { dial, refusalOf, textOf } from "../harness/websocket.ts";
import { askWell, hold } from "./outlive.ts";

const tokens = [{ name: "talker", token: "sk-talker-0123456789", endpoints: ["compat_chat"] }];
const open = shareGateway({ http: { tokens }, script: [say("hi")], limits: { drain_timeout_ms: 0 } });

for (const [what, headers, status, code] of [
  ["without a token", {}, 401, "missing_api_key"],
  ["with a wrong token", { authorization: "Bearer sk-wrong" }, 401, "invalid_api_key"],
  ["with a token for another endpoint", { "x-api-key": tokens[0]!.token }, 403, "endpoint_not_allowed"],
] as const) {
  test(`an upgrade ${what} is refused with ${status}`, async () => {
    const refused = await refusalOf((await open()).address, headers);
    assert.deepEqual([refused.status, refused.code], [status, code]);
    assert.ok(refused.headers["x-request-id"]);
    assert.equal(refused.headers["www-authenticate"], status === 401 ? "Bearer" : undefined);
  });
}

test("an upgrade is refused with 426 where WebSocket is switched off, and HTTP works", async (context) => {
  const { address } = await openGateway(context, { http: { websocket: false } });
  const refused = await refusalOf(address);
  assert.deepEqual([refused.status, refused.code], [426, "upgrade_required"]);
  assert.equal((await refusalOf(address, {})).status, 401);
  await askWell(address, { on: "responses", say: "hi", stream: true });
});

test("an upgrade is refused with 404 where the endpoint is off", async (context) => {
  const { address } = await openGateway(context, { http: { endpoints: { compat_chat: true } } });
  const refused = await refusalOf(address);
  assert.deepEqual([refused.status, refused.code], [404, "endpoint_disabled"]);
});

test("a GET without an upgrade is not allowed", async () => {
  const { status, headers, body } = await call((await open()).address, "GET", "/v1/responses");
  assert.deepEqual([status, headers.get("allow"), body.error.type], [405, "POST", "invalid_request_error"]);
});

const key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
for (const [what, fields] of Object.entries({
  "no key": "connection: upgrade\r\nsec-websocket-version: 13\r\n",
  "another version": `connection: upgrade\r\n${key}sec-websocket-version: 7\r\n`,
  "no upgrade among its connection options": `connection: close\r\n${key}sec-websocket-version: 13\r\n`,
})) {
  test(`an upgrade that has ${what} is refused in the one error shape`, async () => {
    const { port } = new URL((await open()).address);
    const socket = connect(Number(port), "127.0.0.1");
    const start = `GET /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nupgrade: websocket\r\n`;
    socket.write(`${start}${fields}\r\n`);
    let text = "";
    for await (const piece of socket) text += String(piece);
    assert.match(text, /^HTTP\/1\.1 400 /);
    const { error } = JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1));
    assert.deepEqual([error.type, error.code], ["invalid_request_error", "malformed_http"]);
  });
}

const create = { type: "response.create", model: "m", input: "hi" };
const nested = JSON.stringify({ ...create, input: 0 }).replace(":0", `:${"[".repeat(100)}${"]".repeat(100)}`);
const wrong: readonly (readonly [what: string, frame: object | string, code: string, param: string | null])[] = [
  ["is not JSON", "{", "invalid_json", null],
  ["is empty", "", "invalid_json", null],
  ["is not an object", "[]", "invalid_type", null],
  ["is nested too deeply", nested, "json_too_deep", null],
  ["has no type", { model: "m", input: "hi" }, "missing_required_parameter", "type"],
  ["has an unknown type", { type: "response.unknown" }, "invalid_value", "type"],
  ["has no model", { type: "response.create", input: "hi" }, "missing_required_parameter", "model"],
  ["has a field out of range", { ...create, temperature: 3 }, "decimal_above_max_value", "temperature"],
  ["has a field of another type", { ...create, generate: 1 }, "invalid_type", "generate"],
  ["wants the background", { ...create, background: true }, "unsupported_parameter", "background"],
  [
    "continues an unknown response",
    { ...create, previous_response_id: "resp_no" },
    "previous_response_not_found",
    "previous_response_id",
  ],
];
for (const [what, frame, code, param] of wrong) {
  test(`a frame that ${what} is answered with one error, and the connection stays usable`, async (context) => {
    const client = await dial(context, (await open()).address);
    client.send(frame);
    const [answer, ...rest] = await client.answer();
    assert.deepEqual([answer?.type, answer?.status, rest], ["error", 400, []]);
    const { error } = answer!;
    assert.deepEqual([error?.code, error?.type, error?.param], [code, "invalid_request_error", param]);
    assert.ok(error?.message);
    client.create({ stream: true });
    assert.equal(textOf(await client.answer()), "hi");
  });
}

test("a binary frame is read as a text frame is", async (context) => {
  const client = await dial(context, (await open()).address);
  client.socket.send(Buffer.from("{"));
  assert.equal((await client.answer())[0]?.error?.code, "invalid_json");
  client.create();
  assert.equal(textOf(await client.answer()), "hi");
});

test("an error of the model's server has its status, and its code is a string", async (context) => {
  const { address } = await openGateway(context, {
    // oxlint-disable-next-line require-yield
    async *script() {
      throw new Error("It broke.");
    },
  });
  const client = await dial(context, address);
  client.create();
  const [answer] = await client.answer();
  assert.deepEqual([answer?.type, typeof answer?.error?.code], ["error", "string"]);
  assert.ok(answer!.status! >= 500);
});

test("a frame larger than a body may be closes the connection with 1009", async (context) => {
  const { address } = await openGateway(context, { limits: { max_body_bytes: 1000 }, script: [say("hi")] });
  const other = await dial(context, address);
  const client = await dial(context, address);
  client.create({ input: "x".repeat(1000) });
  assert.equal((await client.closed).code, 1009);
  other.create();
  assert.equal(textOf(await other.answer()), "hi");
});

test("of a flood of requests some are answered and the rest refused, and the connection stays usable", async (context) => {
  const held = hold();
  const { address, model } = await openGateway(context, { script: held.script });
  const client = await dial(context, address);
  for (let sent = 0; sent < 300; sent++) client.create();
  await held.begun;
  await client.flushed();
  held.go();
  let [answered, refused] = [0, 0];
  while (answered + refused < 300) {
    const { type, status, error } = await client.next();
    if (type === "response.completed") answered++;
    if (type !== "error") continue;
    assert.deepEqual([status, error?.code], [429, "session_busy"]);
    refused++;
  }
  assert.equal(answered, model.turns.length);
  assert.ok(answered < 100, `${answered} waited`);
  client.create();
  assert.equal(textOf(await client.answer()), "one two");
});

test("bad frames that arrive together do not keep other requests waiting", async (context) => {
  const { address } = await open();
  const client = await dial(context, address);
  for (let sent = 0; sent < 500; sent++) client.send("{");
  await askWell(address, { on: "responses", say: "hi" });
  for (let told = 0; told < 500; told++) assert.equal((await client.next()).error?.code, "invalid_json");
});

test("every request on a connection counts against its token's rate", async (context) => {
  const { address } = await openGateway(context, {
    limits: { requests_per_minute: 1, burst: 2 },
    script: [say("hi")],
    now: () => new Date("2030-01-01T00:00:00Z"),
  });
  const client = await dial(context, address);
  for (let tries = 0; tries < 3; tries++) client.create();
  const answers = [await client.answer(), await client.answer(), await client.answer()];
  const [refused] = answers.at(-1)!;
  assert.deepEqual([refused?.status, refused?.error?.code], [429, "rate_limit_exceeded"]);
  assert.equal(textOf(answers[0]!), "hi");
  assert.equal((await refusalOf(address)).code, "rate_limit_exceeded");
});

test("a token that expires starts no more responses on the connection that it opened", async (context) => {
  let at = new Date("2030-01-01T00:00:00Z");
  const short = { name: "short", token: "sk-short-0123456789", expires_at: "2030-01-01T00:10:00Z" };
  const { address, model } = await openGateway(context, {
    http: { tokens: [short] },
    script: [say("hi")],
    now: () => at,
  });
  const client = await dial(context, address, { "x-api-key": short.token });
  client.create();
  assert.equal(textOf(await client.answer()), "hi");
  at = new Date("2030-01-01T00:20:00Z");
  client.create();
  assert.equal((await client.answer())[0]?.error?.code, "invalid_api_key");
  assert.equal(model.turns.length, 1);
});

test("a response on a connection takes one of the turns that may run at once, and gives it back", async (context) => {
  const held = hold();
  const { address } = await openGateway(context, { script: held.script, limits: { max_concurrent_turns: 1 } });
  const [one, other] = [await dial(context, address), await dial(context, address)];
  one.create();
  await held.begun;
  other.create();
  const [refused] = await other.answer();
  assert.deepEqual([refused?.status, refused?.error?.code], [503, "overloaded"]);
  held.go();
  await one.answer();
  one.create();
  assert.equal(textOf(await one.answer()), "one two");
});

test("a stopping gateway lets a response end, refuses what waits, and closes every connection with 1001", async (context) => {
  const held = hold();
  const { address, close } = await openGateway(context, { script: held.script });
  const [idle, busy] = [await dial(context, address), await dial(context, address)];
  for (let sent = 0; sent < 3; sent++) busy.create();
  await held.begun;
  await busy.flushed();
  const closing = close();
  assert.equal((await idle.closed).code, 1001);
  held.go();
  assert.equal(textOf(await busy.answer()), "one two");
  for (let waiting = 0; waiting < 2; waiting++) {
    const [refused] = await busy.answer();
    assert.deepEqual([refused?.status, refused?.error?.code], [503, "draining"]);
  }
  assert.equal((await busy.closed).code, 1001);
  await closing;
});

test("a response that outlasts the drain time is stopped, and its client is told", async (context) => {
  const held = hold();
  const { address, close } = await openGateway(context, { script: held.script, limits: { drain_timeout_ms: 20 } });
  const client = await dial(context, address);
  client.create();
  await held.begun;
  const closing = close();
  assert.equal((await client.answer()).at(-1)?.type, "response.failed");
  assert.equal((await client.closed).code, 1001);
  await Promise.all([closing, held.aborted]);
});

test("a client that never answers the close does not delay a stop", async (context) => {
  const { address, close } = await openGateway(context);
  const asleep = await dial(context, address);
  asleep.socket.pause();
  await close();
});
