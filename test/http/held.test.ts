/**
 * What one token can use of the gateway: turns without a request, connections and memory, each limited and released.
 */
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { connect, type Socket } from "node:net";
import { suite, test, type TestContext } from "node:test";
import { callerLeft } from "../../src/core/errors.ts";
import type { Event } from "../../src/core/event.ts";
import { unplaced } from "../../src/core/ports.ts";
import type { Answer } from "../../src/core/turn.ts";
import { holdFollower } from "../../src/http/followers.ts";
import { createHoldings, toHeldBytes } from "../../src/http/held.ts";
import type { HttpReply } from "../../src/http/reply.ts";
import { sendStream, sendWhole } from "../../src/http/send.ts";
import { checkRepeated, holdRest, holdWhole } from "../../src/http/unread.ts";
import { createBox, say, type Script, toToken, token } from "../scripted.ts";
import { dial, refusalOf, textOf } from "./websocket-client.ts";

const operator = "sk-operator";
const tokens = [
  toToken("sk-app", { owner: "app", maxConcurrentTurns: 1 }),
  toToken(operator, { opens: new Set(["operator"]) }),
  toToken(token),
];

const authorized = `host: x\r\nauthorization: Bearer ${token}`;

interface Call {
  readonly body?: object;
  readonly bearer?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

async function ask(address: string, path: string, { body, bearer = "sk-app", headers = {}, signal }: Call = {}) {
  const response = await fetch(`${address}/v1/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  return { status: response.status, headers: response.headers, response };
}

async function codeOf({ response }: Awaited<ReturnType<typeof ask>>): Promise<unknown> {
  const { error } = (await response.json()) as { readonly error?: { readonly code: string } };
  return error?.code;
}

/** How many bytes the gateway reports as held. */
async function readHeld(address: string): Promise<number> {
  const response = await fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${operator}` } });
  const [, bytes] = /^portico_held_bytes (\d+)$/m.exec(await response.text()) ?? [];
  assert.ok(bytes !== undefined, "the metric exists");
  return Number(bytes);
}

/** Waits until it holds no more than that. */
async function waitForRelease(address: string, most = 0): Promise<void> {
  while ((await readHeld(address)) > most);
}

/** A model that emits a word, and the rest on `finish`; `asked` resolves when it has received so many turns. */
function createSlowModel() {
  const going = Promise.withResolvers<void>();
  const seen = { turns: 0 };
  let news = Promise.withResolvers<void>();
  const script = async function* () {
    seen.turns++;
    news.resolve();
    news = Promise.withResolvers();
    yield say("a");
    await going.promise;
    yield say("b");
  };
  return {
    script,
    finish: going.resolve,
    async asked(wanted: number): Promise<void> {
      while (seen.turns < wanted) await news.promise;
    },
  };
}

suite("turns that continue without their request", () => {
  test("a background turn counts for its owner until it ends, and can be followed meanwhile", async (context) => {
    const model = createSlowModel();
    const address = await createBox(context, model.script, { settings: { tokens } }).listen();
    const background = { model: "m", input: "hi", background: true };
    const begun = await ask(address, "responses", { body: background });
    const { id } = (await begun.response.json()) as { readonly id: string };
    for (const body of [background, { model: "m", input: "hi" }]) {
      const refused = await ask(address, "responses", { body });
      assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "1"]);
      assert.equal(await codeOf(refused), "rate_limit_exceeded");
    }
    assert.equal((await ask(address, `responses/${id}`)).status, 200);
    const followed = await ask(address, `responses/${id}?stream=true`);
    assert.equal(followed.status, 200);
    assert.equal(
      (await ask(address, `responses/${id}?stream=true`)).status,
      429,
      "one follower is allowed, as one turn is",
    );
    assert.equal((await ask(address, "responses", { body: background, bearer: token })).status, 200);
    model.finish();
    assert.match(await followed.response.text(), /response\.completed/);
    assert.equal((await ask(address, "responses", { body: background })).status, 200);
  });

  test("a turn with an idempotency key counts after its caller has left, and a repeated request follows it", async (context) => {
    const model = createSlowModel();
    const address = await createBox(context, model.script, { settings: { tokens } }).listen();
    const body = { model: "m", input: "hi", stream: true };
    const leaving = new AbortController();
    const keyed = { body, headers: { "idempotency-key": "one" } };
    const first = await ask(address, "responses", { ...keyed, signal: leaving.signal });
    await model.asked(1);
    leaving.abort();
    await first.response.text().catch(() => {});
    const others = [{ body }, { body, headers: { "idempotency-key": "two" } }];
    for (const other of others) assert.equal((await ask(address, "responses", other)).status, 429);
    const again = await ask(address, "responses", keyed);
    assert.deepEqual([again.status, again.headers.get("x-portico-replayed")], [200, "true"]);
    model.finish();
    assert.match(await again.response.text(), /response\.completed/);
    assert.equal((await ask(address, "responses", others[1])).status, 200);
  });

  test("a background turn with an idempotency key is one turn", async (context) => {
    const model = createSlowModel();
    const address = await createBox(context, model.script, { settings: { tokens } }).listen();
    const body = { model: "m", input: "hi", background: true };
    const keyed = { body, headers: { "idempotency-key": "one" } };
    assert.equal((await ask(address, "responses", keyed)).status, 200);
    assert.equal((await ask(address, "responses", keyed)).status, 200);
    assert.equal((await ask(address, "responses", { body })).status, 429);
    model.finish();
  });
});

suite("WebSocket connections of a token with a limit of turns", () => {
  test("may be as many as its turns, and at least four", async (context) => {
    const many = toToken("sk-many", { owner: "many", maxConcurrentTurns: 6 });
    const address = await createBox(context, [say("hi")], { settings: { tokens: [...tokens, many] } }).listen();
    for (const [bearer, most] of [
      ["sk-app", 4],
      ["sk-many", 6],
    ] as const) {
      const headers = { authorization: `Bearer ${bearer}` };
      const clients = [];
      for (let count = 0; count < most; count++) clients.push(await dial(context, address, headers));
      const refused = await refusalOf(address, headers);
      assert.deepEqual([refused.status, refused.code], [429, "rate_limit_exceeded"]);
      clients[0]?.socket.close();
      await clients[0]?.closed;
      const next = await dial(context, address, headers);
      next.create();
      assert.equal(textOf(await next.answer()), "hi");
    }
    for (let count = 0; count < 8; count++) await dial(context, address);
  });
});

suite("memory", () => {
  test("an owner may hold as much as it leaves to the others, and the next owner finds room", () => {
    let most = 120;
    const held = createHoldings(() => most, "What is held");
    const fits = (owner: string, bytes: number): boolean => {
      try {
        held.check(owner, bytes);
        return true;
      } catch (thrown) {
        assert.equal((thrown as { code?: string }).code, "overloaded");
        return false;
      }
    };
    assert.ok(fits("a", 1_000), "a single owner always has room");
    const first = held.hold("a", 60);
    assert.deepEqual([fits("a", 1), fits("b", 60), fits("b", 61)], [false, true, false]);
    const second = held.hold("b", 20);
    assert.deepEqual([fits("b", 10), fits("b", 11), fits("c", 40)], [true, false, true]);
    second.add(40);
    assert.deepEqual([fits("c", 1), held.bytes], [false, 120]);
    most = 130;
    assert.ok(fits("c", 1), "the limit may change");
    most = 10;
    first.check(50);
    assert.equal(first.take(50), true, "what becomes less always has room");
    for (const each of [first, first, second]) each.release();
    second.add(50);
    assert.equal(held.bytes, 0, "what was released no longer counts");
  });

  test("ASCII text takes one byte per character, and any other text two", () => {
    assert.deepEqual([toHeldBytes("abc"), toHeldBytes("grün"), toHeldBytes("ā")], [3, 8, 2]);
  });

  const limits = { maxHeldBytes: 1_000_000 };

  test("a request is refused before its body while too much is held, and accepted after a release", async (context) => {
    const model = createSlowModel();
    const box = createBox(context, model.script, { settings: { tokens }, limits });
    const address = await box.listen();
    const body = { model: "m", input: "x".repeat(400_000), background: true };
    const begun = await ask(address, "responses", { body, bearer: token });
    assert.equal(begun.status, 200);
    const held = await readHeld(address);
    assert.ok(held > 400_000 && held < 401_000, `${held} bytes are held`);
    const refused = await ask(address, "responses", { body, bearer: token });
    assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "1"]);
    assert.match(await refused.response.text(), /gateway\.http\.limits\.max_held_bytes.*"code":"overloaded"/);
    assert.equal((await ask(address, "responses", { body })).status, 200, "another owner has room");
    model.finish();
    await waitForRelease(address);
    assert.equal((await ask(address, "responses", { body, bearer: token })).status, 200);
  });

  test("a body counts with the memory that it takes, however few characters it has", async (context) => {
    const model = createSlowModel();
    const address = await createBox(context, model.script, { settings: { tokens } }).listen();
    const body = {
      model: "m",
      input: "ā".repeat(40_000),
      background: true,
      own: Array.from({ length: 30_000 }, () => ({})),
    };
    await ask(address, "responses", { body });
    assert.ok((await readHeld(address)) > 30_000 * 64 + 2 * 40_000);
    model.finish();
  });

  test("what was prepared on a connection counts until the connection is closed", async (context) => {
    const address = await createBox(context, [say("hi")], { settings: { tokens }, limits }).listen();
    const [first, second] = [await dial(context, address), await dial(context, address)];
    const prepared = { generate: false, input: "x".repeat(200_000) };
    first.create(prepared);
    assert.equal((await first.answer()).at(-1)?.type, "response.completed");
    await waitForRelease(address, 201_000);
    second.create(prepared);
    const [refused] = await second.answer();
    assert.deepEqual([refused?.status, refused?.error?.code], [503, "overloaded"]);
    first.socket.close();
    await first.closed;
    await waitForRelease(address);
    second.create(prepared);
    assert.equal((await second.answer()).at(-1)?.type, "response.completed");
    second.create({ input: "hi", store: false });
    assert.equal(textOf(await second.answer()), "hi");
  });

  test("a frame, and what is remembered of it, counts with the memory that it takes, however few characters it has", async (context) => {
    const model = createSlowModel();
    const address = await createBox(context, model.script, { settings: { tokens } }).listen();
    const client = await dial(context, address);
    const own = Array.from({ length: 30_000 }, () => ({}));
    const input = [{ role: "user", content: "hi", own }];
    client.create({ generate: false, input });
    assert.equal((await client.answer()).at(-1)?.type, "response.completed");
    const remembered = await readHeld(address);
    assert.ok(remembered > 30_000 * 64, `${remembered} bytes are remembered`);
    client.create({ input });
    await model.asked(1);
    const held = await readHeld(address);
    assert.ok(held > 2 * 30_000 * 64, `${held} bytes are held`);
    model.finish();
  });

  test("waiting and running requests of a connection count until it is closed", async (context) => {
    const model = createSlowModel();
    const address = await createBox(context, model.script, { settings: { tokens }, limits }).listen();
    const client = await dial(context, address);
    for (let sent = 0; sent < 2; sent += 1) client.create({ input: "x".repeat(100_000) });
    await model.asked(1);
    while ((await readHeld(address)) < 200_000);
    const other = await dial(context, address);
    other.create({ input: "x".repeat(400_000) });
    const [refused] = await other.answer();
    assert.deepEqual([refused?.status, refused?.error?.code], [503, "overloaded"]);
    client.socket.terminate();
    await waitForRelease(address);
  });

  test("what a connection remembers of turns that are not stored counts too", async (context) => {
    const address = await createBox(context, [say("hi")], { settings: { tokens }, limits }).listen();
    const client = await dial(context, address);
    client.create({ store: false, input: "x".repeat(200_000) });
    const answer = await client.answer();
    assert.equal(textOf(answer), "hi");
    await waitForRelease(address, 201_000);
    assert.ok((await readHeld(address)) > 200_000);
    const input = [{ type: "function_call_output", call_id: "unknown", output: "" }];
    client.create({ store: false, previous_response_id: answer.at(-1)?.response?.id, input });
    assert.equal((await client.answer()).at(-1)?.status, 400, "what could not be continued is forgotten");
    await waitForRelease(address);
  });

  test("what the lanes of a connection remember counts together, until a lane is forgotten or the connection closed", async (context) => {
    const address = await createBox(context, [say("hi")], { settings: { tokens }, limits }).listen();
    const client = await dial(context, address);
    const remember = async (stream_id: string, input: string, previous_response_id?: string) => {
      client.create({ store: false, stream_id, input, previous_response_id });
      const answer = await client.answer();
      assert.equal(textOf(answer), "hi");
      return answer.at(-1)?.response?.id;
    };
    for (const lane of ["a", "b"]) await remember(lane, "more", await remember(lane, "x".repeat(60_000)));
    await waitForRelease(address, 121_000);
    assert.ok((await readHeld(address)) > 120_000);
    for (let lane = 0; lane < 15; lane++) await remember(`lane ${lane}`, "hi");
    await waitForRelease(address, 70_000);
    assert.ok((await readHeld(address)) > 60_000);
    client.socket.terminate();
    await waitForRelease(address);
  });

  test("remembered turns do not block requests: a client whose turn finds no room must send everything again", async (context) => {
    const settled = { settings: { tokens }, limits: { ...limits, maxHeldBytes: 1_200_000 } };
    const address = await createBox(context, [say("hi")], settled).listen();
    const clients = [];
    for (let count = 0; count < 3; count++) clients.push(await dial(context, address));
    const ids: (string | undefined)[] = [];
    for (const client of clients) {
      client.create({ store: false, input: "x".repeat(140_000) });
      const end = (await client.answer()).at(-1);
      assert.equal(end?.type, "response.completed");
      ids.push(end?.response?.id);
    }
    assert.ok((await readHeld(address)) < 300_000);
    const { status } = await ask(address, "responses", {
      body: { model: "m", input: "y".repeat(400_000) },
      bearer: token,
    });
    assert.equal(status, 200);
    clients[2]?.create({ store: false, input: "more", previous_response_id: ids[2] });
    assert.equal((await clients[2]?.answer())?.[0]?.error?.code, "previous_response_not_found");
    clients[0]?.create({ store: false, input: "more", previous_response_id: ids[0] });
    assert.equal(textOf((await clients[0]?.answer()) ?? []), "hi");
  });

  test("a single frame always has room, however large it is", async (context) => {
    const address = await createBox(context, [say("hi")], { settings: { tokens }, limits }).listen();
    const client = await dial(context, address);
    client.create({ input: "x".repeat(limits.maxHeldBytes - 10_000) });
    assert.equal(textOf(await client.answer()), "hi");
  });

  /** A request on a bare socket whose answer is not read. */
  async function leaveUnread(context: TestContext, address: string, request: string): Promise<Socket> {
    const socket = connect(Number(new URL(address).port), "127.0.0.1");
    context.after(() => socket.destroy());
    socket.on("error", () => {}).write(request);
    await once(socket, "readable");
    return socket;
  }

  test("an unread answer counts until it is read, and no other answer is loaded beyond the limit", async (context) => {
    const size = 12_000_000;
    const settled = { settings: { tokens }, limits: { maxHeldBytes: 5 * size } };
    const address = await createBox(context, [say("x".repeat(size))], settled).listen();
    const begun = await ask(address, "responses", { body: { model: "m", input: "hi" } });
    const { id } = (await begun.response.json()) as { readonly id: string };
    const request = `GET /v1/responses/${id} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-app\r\n\r\n`;
    // The second answer is queued behind the first on its connection, and sending it has not begun when that is closed.
    for (const end of ["resume", "destroy"] as const) {
      await waitForRelease(address);
      const unread = await leaveUnread(context, address, request.repeat(2));
      while ((await readHeld(address)) < 2 * size);
      const refused = await ask(address, `responses/${id}`);
      assert.equal(refused.status, 503);
      assert.match(await refused.response.text(), /max_held_bytes/);
      unread[end]();
    }
    await waitForRelease(address);
    const { status, response } = await ask(address, `responses/${id}`);
    assert.equal(status, 200);
    // Closing would wait for its reader.
    await response.body?.cancel();
  });

  test("no answer is sent again beyond the limit, whole or as a stream, by its id or by its key", async (context) => {
    const size = 6_000_000;
    const settled = { settings: { tokens }, limits: { maxHeldBytes: 8 * size } };
    const address = await createBox(context, [say("x".repeat(size))], settled).listen();
    const keyed = async (key: string, stream: boolean) => {
      const body = { model: "m", input: "hi", stream };
      const headers = { "idempotency-key": key };
      const answered = await ask(address, "responses", { body, bearer: token, headers });
      const [id = ""] = /resp_[0-9a-z]+/.exec(await answered.response.text()) ?? [];
      const text = JSON.stringify(body);
      const head = `idempotency-key: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}`;
      return { id, again: `POST /v1/responses HTTP/1.1\r\n${head}\r\n${authorized}\r\n\r\n${text}` };
    };
    const whole = await keyed("whole", false);
    const stream = await keyed("stream", true);
    const followed = `GET /v1/responses/${stream.id}?stream=true HTTP/1.1\r\n${authorized}\r\n\r\n`;
    for (const request of [followed, whole.again, stream.again]) {
      await waitForRelease(address);
      const unread = [];
      const statuses = [];
      while (unread.length < 6 && statuses.at(-1) !== 503) {
        const socket = await leaveUnread(context, address, request);
        statuses.push(Number(String(socket.read(12)).slice(9)));
        unread.push(socket);
      }
      assert.equal(statuses[0], 200);
      assert.equal(statuses.at(-1), 503);
      for (const socket of unread) socket.destroy();
    }
  });

  test("whoever follows a running answer waits for room, and gets all of it when others have read theirs", async (context) => {
    const size = 6_000_000;
    const held = Promise.withResolvers<void>();
    context.after(() => held.resolve());
    const script = async function* () {
      yield say("a");
      await held.promise;
      yield say("x".repeat(size));
    };
    const settled = { settings: { tokens }, limits: { maxHeldBytes: 3 * size } };
    const address = await createBox(context, script, settled).listen();
    const begun = await ask(address, "responses", {
      body: { model: "m", input: "hi", background: true },
      bearer: token,
    });
    const { id } = (await begun.response.json()) as { readonly id: string };
    const request = `GET /v1/responses/${id}?stream=true HTTP/1.1\r\n${authorized}\r\n\r\n`;
    const followers = [];
    while (followers.length < 2) followers.push(await leaveUnread(context, address, request));
    held.resolve();
    while ((await readHeld(address)) === 0);
    const ends = followers.map(async (socket) => {
      let end = "";
      for await (const bytes of socket) {
        end = end.slice(-20) + String(bytes).slice(-100);
        if (end.includes("[DONE]")) return;
      }
      assert.fail("a stream was cut");
    });
    await Promise.all(ends);
  });

  /** A reply of which nothing is unread, to a caller that follows a running answer. */
  function replyTo(stalledClientTimeoutMs: number): HttpReply {
    const request = { token: toToken(token), terms: { limits: { stalledClientTimeoutMs } } };
    return { raw: { writableLength: 0, socket: {} }, request } as unknown as HttpReply;
  }

  const long: readonly Event[] = [{ type: "item-delta", index: 0, kind: "text", part: 0, text: "x".repeat(500_000) }];

  test("a follower waits for room only for a time, and not if its caller has left", async () => {
    const held = createHoldings(() => 1_000_000, "answers");
    const other = held.hold("other", 900_000);
    const left = new AbortController();
    const late = holdFollower(held, replyTo(1), left.signal);
    await assert.rejects(async () => late.room(long), { code: "overloaded" });
    /** Of what a file may say. */
    const longest = 2_147_483_647;
    const follower = holdFollower(held, replyTo(longest), left.signal);
    const waiting = follower.room(long);
    assert.equal(held.bytes, 900_000);
    other.add(-100_000);
    await new Promise(setImmediate);
    assert.equal(held.bytes, 800_000, "that was not enough");
    other.release();
    await waiting;
    assert.equal(held.bytes, 500_000);
    held.hold("other", 500_000);
    const leaving = assert.rejects(async () => late.room(long), { code: "client_closed" });
    left.abort(callerLeft());
    await leaving;
  });

  test("a follower that waits for room no longer holds what its caller has read meanwhile", async () => {
    const held = createHoldings(() => 1_000_000, "answers");
    const other = held.hold("other", 600_000);
    const reply = replyTo(60_000);
    const unread = { writableLength: 300_000, writableNeedDrain: true, socket: { setTimeout() {} } };
    const response = Object.assign(new EventEmitter(), unread);
    Object.assign(reply, { raw: response });
    const follower = holdFollower(held, reply, new AbortController().signal);
    follower.sent();
    assert.equal(held.bytes, 900_000);
    const waiting = follower.room(long);
    response.writableLength = 0;
    response.emit("drain");
    await new Promise(setImmediate);
    assert.equal(held.bytes, 600_000);
    other.release();
    await waiting;
    assert.equal(held.bytes, 500_000);
  });

  test("a follower that has read everything holds nothing while the model thinks", async () => {
    const held = createHoldings(() => 10_000_000, "answers");
    const limits = { heartbeatMs: 60_000, maxUnsentBytes: 1, stalledClientTimeoutMs: 60_000 };
    const response = Object.assign(new EventEmitter(), {
      headersSent: true,
      writableLength: 0,
      writableNeedDrain: true,
      socket: { setTimeout() {} },
      write: (told: string) => void (response.writableLength = told.length),
    });
    const request = { token: toToken(token), terms: { limits, held } };
    const about = { ...unplaced, id: "resp_1", createdAt: new Date(0), model: "m" };
    const thinking = Promise.withResolvers<void>();
    const events = (async function* () {
      yield long;
      await thinking.promise;
    })();
    const voice = { stream: () => () => "x".repeat(600_000), whole: () => "", memo: undefined };
    const answering = Promise.resolve({ about, events, isRepeated: true });
    const { signal } = new AbortController();
    const sending = sendStream({ answering, voice, numbering: undefined, named: about, signal }, {
      raw: response,
      request,
    } as unknown as HttpReply);
    await new Promise(setImmediate);
    assert.equal(held.bytes, 600_000);
    response.writableLength = 0;
    response.emit("drain");
    await new Promise(setImmediate);
    assert.equal(held.bytes, 0);
    thinking.resolve();
    await sending;
  });

  test("an earlier answer is sent again to whoever reads it while nothing else is held, however long it is", async (context) => {
    const size = 300_000;
    const settled = { settings: { tokens }, limits: { maxHeldBytes: size } };
    const address = await createBox(context, [say("x".repeat(size))], settled).listen();
    const call = {
      body: { model: "m", input: "hi", stream: true },
      bearer: token,
      headers: { "idempotency-key": "a" },
    };
    const told = await (await ask(address, "responses", call)).response.text();
    const [id = ""] = /resp_[0-9a-z]+/.exec(told) ?? [];
    await waitForRelease(address);
    assert.equal(await (await ask(address, "responses", call)).response.text(), told);
    await waitForRelease(address);
    const streamed = await ask(address, `responses/${id}?stream=true`, { bearer: token });
    assert.match(await streamed.response.text(), /response\.completed/);
  });

  test("a follower waits for room until others that stop reading are cut, which takes up to twice their time", async () => {
    const held = createHoldings(() => 1_000_000, "answers");
    const other = held.hold("other", 900_000);
    // First, so that on a busy machine it still ends before the time for waiting.
    setTimeout(other.release, 45);
    await holdFollower(held, replyTo(20), new AbortController().signal).room(long);
    assert.equal(held.bytes, 500_000);
  });

  test("a follower needs room for as many bytes as its text has, whatever its characters", async () => {
    const held = createHoldings(() => 1_000_000, "answers");
    held.hold("other", 900_000);
    const follower = holdFollower(held, replyTo(1), new AbortController().signal);
    const text: readonly Event[] = [{ type: "item-delta", index: 0, kind: "text", part: 0, text: "漢".repeat(60_000) }];
    await assert.rejects(async () => follower.room(text), { code: "overloaded" });
  });

  test("a follower holds the items that have ended until the end, which repeats them", async () => {
    const held = createHoldings(() => 10_000_000, "answers");
    const item = { type: "message", role: "assistant", content: "x".repeat(500_000) } as const;
    const other = held.hold("other", 9_900_000);
    const left = new AbortController();
    const reply = replyTo(60_000);
    const follower = holdFollower(held, reply, left.signal);
    const waiting = follower.room([{ type: "item-end", index: 0, item, whole: true }]);
    await new Promise(setImmediate);
    assert.equal(held.bytes, 9_900_000, "nothing while it waits");
    other.release();
    await waiting;
    assert.equal(held.bytes, 2_000_000, "three times in the text, and once kept");
    for (let count = 0; count < 2; count += 1) follower.sent();
    assert.equal(held.bytes, 500_000);
    assert.equal(follower.room(long), undefined);
    assert.equal(held.bytes, 1_000_000);
    follower.sent();
    assert.equal(held.bytes, 500_000);
    held.hold("other", 9_400_000);
    const short: Event = { type: "item-delta", index: 1, kind: "text", part: 0, text: "x" };
    assert.equal(follower.room([short]), undefined, "what the system takes at once needs no room");
    Object.assign(reply.raw, { writableLength: 64 * 1024 });
    const leaving = assert.rejects(async () => follower.room([short]), { code: "client_closed" });
    left.abort(callerLeft());
    await leaving;
    follower.release();
    assert.equal(held.bytes, 9_400_000);
  });

  test("a stored answer that is being sent again is not cut because others take the rest of the room", () => {
    const held = createHoldings(() => 1_000_000, "answers");
    const { signal } = new AbortController();
    const size = 80_000;
    held.hold("other", 100_000);
    const reply = replyTo(60_000);
    const follower = holdFollower(held, reply, signal, size);
    assert.equal(held.bytes, 100_000 + 5 * size, "the answer, its items as text, and the longest text it may become");
    held.hold("other", 1_000_000 - held.bytes);
    assert.throws(() => holdFollower(held, replyTo(60_000), signal, size), { code: "overloaded" });
    holdFollower(held, replyTo(60_000), signal, 1_000);
    assert.equal(follower.room(long), undefined);
    // Many short events are much longer as text.
    Object.assign(reply.raw, { writableLength: 10 * size });
    assert.equal(follower.room(long), undefined);
    follower.release();
  });

  test("an earlier answer that has no room is refused, and if it is the answer itself that is long, before its text is made", async () => {
    const held = createHoldings(() => 1_000_000, "answers");
    held.hold("other", 900_000);
    const request = { token: toToken(token), terms: { held } };
    const reply = { raw: { socket: {} }, request } as unknown as HttpReply;
    const about = { ...unplaced, id: "resp_1", createdAt: new Date(0), model: "m" };
    const sendAgain = (said: string, whole: () => string) => {
      const answer: Answer = {
        status: "completed",
        finish: "stop",
        items: [{ type: "message", role: "assistant", content: [{ type: "text", text: said }] }],
        usage: undefined,
        error: undefined,
        notes: {},
        endedAt: new Date(0),
        brokenOff: undefined,
        pieces: undefined,
      };
      const events = (async function* () {
        yield [{ type: "turn-end", answer } as const];
      })();
      return sendWhole({ about, events, isRepeated: true }, { whole }, reply);
    };
    const long = "x".repeat(200_000);
    const refused = { code: "overloaded" };
    await assert.rejects(
      sendAgain(long, () => assert.fail("its text was made")),
      refused,
    );
    // The tools of a request are part of it too.
    await assert.rejects(
      sendAgain("hi", () => long),
      refused,
    );
  });

  test("answers that wait for an earlier one on their connection count, however short they are", async (context) => {
    const model = createSlowModel();
    const size = 20_000;
    let turns = 0;
    const script: Script = async function* () {
      if (turns++ === 0) yield say("x".repeat(size));
      else yield* model.script();
    };
    const settled = { settings: { tokens }, limits: { maxHeldBytes: 20 * size } };
    const address = await createBox(context, script, settled).listen();
    const begun = await ask(address, "responses", { body: { model: "m", input: "hi" }, bearer: token });
    const { id } = (await begun.response.json()) as { readonly id: string };
    const body = JSON.stringify({ model: "m", input: "hi", stream: true });
    const head = `${authorized}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
    const lookup = `GET /v1/responses/${id} HTTP/1.1\r\n${authorized}\r\n\r\n`;
    const first = `POST /v1/responses HTTP/1.1\r\n${head}\r\n\r\n${body}`;
    const socket = await leaveUnread(context, address, first + lookup.repeat(30));
    while ((await readHeld(address)) < 9 * size);
    model.finish();
    let received = "";
    for await (const bytes of socket) {
      received += String(bytes);
      if (received.split(/"object":"response"|"code":"overloaded"/).length > 31) break;
    }
    assert.match(received, /max_held_bytes/);
    await waitForRelease(address);
  });

  test("without room only long answers to lookups are refused, and where little is held not even those", () => {
    const held = createHoldings(() => 300_000, "answers");
    const send = (length: number, { method = "GET", statusCode = 200, isKnown = true } = {}): number => {
      const response = Object.assign(new EventEmitter(), { socket: {}, closed: false, statusCode });
      const request = { method, token: isKnown ? toToken(token) : undefined };
      const before = held.bytes;
      holdWhole(held, { raw: response, request } as unknown as HttpReply, "x".repeat(length));
      const counted = held.bytes - before;
      response.emit("close");
      return counted;
    };
    const other = held.hold("other", 1_000);
    assert.equal(send(400_000), 400_000);
    other.add(299_000);
    assert.throws(() => send(100_000), { code: "overloaded" });
    assert.equal(send(100_000, { method: "POST" }), 100_000, "a turn has made it");
    assert.equal(send(100_000, { statusCode: 404 }), 100_000, "it says what is wrong");
    assert.equal(send(100_000, { isKnown: false }), 0, "it needs no token, so it is nobody's");
    assert.equal(send(10_000), 0, "the system takes it at once");
    checkRepeated(held, { raw: { socket: {} } } as unknown as HttpReply, 10_000);
  });

  test("an answer whose reader has disconnected does not count", () => {
    const held = createHoldings(() => 1_000_000, "answers");
    const response = Object.assign(new EventEmitter(), { writableLength: 100_000, closed: true });
    holdRest(held, { raw: response, request: { token: toToken(token) } } as unknown as HttpReply);
    assert.equal(held.bytes, 0);
    response.closed = false;
    holdRest(held, { raw: response, request: { token: toToken(token) } } as unknown as HttpReply);
    assert.equal(held.bytes, 100_000);
    response.emit("close");
    assert.equal(held.bytes, 0);
    response.writableLength = 1_000;
    holdRest(held, { raw: response, request: { token: toToken(token) } } as unknown as HttpReply);
    assert.equal(held.bytes, 0, "the system takes that at once");
  });

  test("the unread end of a stream counts until it is read", async (context) => {
    const size = 6_000_000;
    const box = createBox(context, [say("x".repeat(size))], { settings: { tokens } });
    const address = await box.listen();
    const body = JSON.stringify({ model: "m", input: "hi", stream: true });
    const head = `host: x\r\nauthorization: Bearer sk-app\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
    const unread = await leaveUnread(context, address, `POST /v1/responses HTTP/1.1\r\n${head}\r\n\r\n${body}`);
    while ((await readHeld(address)) < size) unread.read(1_000_000);
    unread.resume();
    await waitForRelease(address);
  });
});
