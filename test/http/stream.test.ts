import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { request as send, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { unplaced } from "../../src/core/ports.ts";
import { createSseWriter } from "../../src/http/client.ts";
import type { HttpReply } from "../../src/http/reply.ts";
import { sendStream } from "../../src/http/send.ts";
import { authorization, type Box, createBox, readEvents, say } from "../scripted.ts";
import { startStopwatch } from "../stopwatch.ts";

const headers = { authorization, "content-type": "application/json" };
const paths = {
  "/v1/chat/completions": { model: "m", stream: true, messages: [{ role: "user", content: "hi" }] },
  "/v1/responses": { model: "m", stream: true, input: "hi" },
} as const;
type Path = keyof typeof paths;
const bothPaths = Object.keys(paths) as Path[];

async function ask(address: string, path: Path, body: object = {}, more: object = {}): Promise<IncomingMessage> {
  const request = send(address + path, { method: "POST", headers: { ...headers, ...more } }).end(
    JSON.stringify({ ...paths[path], ...body }),
  );
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return response;
}

async function readAll(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return text;
}

/** A promise with its handle, with which the test lets the scripted adapter continue. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

for (const path of bothPaths) {
  test(`${path}: deltas reach the caller at once, not at the end`, async (context) => {
    const later = gate();
    const box = createBox(context, async function* () {
      yield say("first");
      await later.opened;
      yield say("second");
    });
    const response = await ask(await box.listen(), path);
    const { "content-type": type, "cache-control": caching, "x-accel-buffering": buffering } = response.headers;
    assert.deepEqual([type, caching, buffering], ["text/event-stream; charset=utf-8", "no-cache, no-transform", "no"]);
    assert.match(String(response.headers["openai-processing-ms"]), /^\d+$/);
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.includes("first")) later.open();
    });
    await once(response, "end");
    assert.match(text, /first[^]*second/);
    assert.equal(readEvents(text).at(-1), "[DONE]");
  });

  test(`${path}: an adapter that fails before its first word is reported with a status`, async (context) => {
    const box = createBox(context, async function* (): AsyncGenerator<readonly Delta[]> {
      throw new GatewayError("adapter_rate_limit", "slow down", { retryAfterSeconds: 7 });
    });
    const response = await ask(await box.listen(), path);
    assert.equal(response.statusCode, 429);
    assert.equal(response.headers["retry-after"], "7");
    assert.match(await readAll(response), /"type":"rate_limit_error","param":null,"code":"adapter_rate_limit"/);
  });

  test(`${path}: an adapter that fails later is reported by exactly one terminal event`, async (context) => {
    const box = createBox(context, async function* () {
      yield say("half");
      throw new GatewayError("adapter_error", "broke");
    });
    const response = await ask(await box.listen(), path);
    assert.equal(response.statusCode, 200);
    const events = readEvents(await readAll(response));
    assert.equal(events.at(-1), "[DONE]");
    assert.match(events.at(-2) ?? "", /broke/);
    assert.equal(
      events.filter((event) => /finish_reason":"|response\.(completed|failed|incomplete)"/.test(event)).length,
      path === "/v1/responses" ? 1 : 0,
    );
  });

  test(`${path}: heartbeats open the stream while the adapter is silent, and a failure is then sent as an event`, async (context) => {
    const box = createBox(
      context,
      async function* (_turn, signal): AsyncGenerator<readonly Delta[]> {
        await heartbeats.opened;
        signal.throwIfAborted();
        throw new GatewayError("adapter_timeout", "too late");
      },
      { limits: { heartbeatMs: 20 } },
    );
    const heartbeats = gate();
    const response = await ask(await box.listen(), path);
    assert.equal(response.statusCode, 200);
    assert.equal(response.headers["x-portico-history"], path === "/v1/responses" ? "new" : "stateless");
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.startsWith(": heartbeat\n\n: heartbeat\n\n")) heartbeats.open();
    });
    await once(response, "end");
    const events = readEvents(text);
    assert.match(events.join("\n"), /too late/);
    assert.equal(events.at(-1), "[DONE]");
  });

  for (const stream of [true, false]) {
    test(`${path}: a caller that disconnects from a ${stream ? "stream" : "whole answer"} aborts the adapter within 100 ms`, async (context) => {
      const started = gate();
      const aborted = Promise.withResolvers<void>();
      const box = createBox(context, async function* (_turn, signal) {
        signal.addEventListener("abort", () => aborted.resolve(), { once: true });
        yield say("one");
        started.open();
        await once(signal, "abort");
      });
      const request = send((await box.listen()) + path, { method: "POST", headers });
      request.on("error", () => {});
      request.end(JSON.stringify({ ...paths[path], stream }));
      await started.opened;
      const watch = startStopwatch();
      request.destroy();
      await aborted.promise;
      const tookMs = watch.stop();
      assert.ok(tookMs < 100, `${tookMs} ms`);
    });
  }
}

test("a request that waits for its session is kept alive by heartbeats, then sees the previous answer", async (context) => {
  const first = gate();
  let turns = 0;
  const box = createBox(
    context,
    async function* () {
      if (turns++ === 0) await first.opened;
      yield say("done");
    },
    { limits: { heartbeatMs: 20 } },
  );
  const address = await box.listen();
  const one = ask(address, "/v1/chat/completions", { user: "u", stream: false });
  await untilTurns(box, 1);
  const two = await ask(address, "/v1/responses", { user: "u" });
  assert.equal(two.statusCode, 200);
  first.open();
  const text = await readAll(two);
  assert.match(text, /^: heartbeat\n\n/);
  assert.match(text, /response\.completed/);
  await readAll(await one);
  assert.equal(box.adapter.turns[1]?.items.length, 3);
});

test("a request that fails while it waits for its session is told why in the stream that heartbeats have opened", async (context) => {
  const box = createBox(
    context,
    async function* (_turn, signal) {
      await once(signal, "abort");
      yield* [];
      throw new Error("aborted");
    },
    { limits: { heartbeatMs: 5, drainTimeoutMs: 30 } },
  );
  const address = await box.listen();
  const one = ask(address, "/v1/chat/completions", { user: "u", stream: false });
  await untilTurns(box, 1);
  const two = await ask(address, "/v1/responses", { user: "u" });
  const [text] = await Promise.all([readAll(two), box.close()]);
  assert.match(text, /^: heartbeat\n\n/);
  const { type, response } = JSON.parse(readEvents(text).at(-2) ?? "");
  assert.deepEqual([type, response.model], ["response.failed", "m"]);
  assert.match(response.id, /^resp_/);
  assert.match(response.error.message, /^The gateway is shutting down/);
  assert.equal((await one).statusCode, 503);
});

async function untilTurns(box: Box, count: number): Promise<void> {
  while (box.adapter.turns.length < count) await new Promise(setImmediate);
}

/** A caller that sends a request and then reads nothing. */
async function askAndStall(
  context: TestContext,
  address: string,
  rest: object = {},
): Promise<ReturnType<typeof connect>> {
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  socket.on("error", () => {});
  socket.pause();
  const body = JSON.stringify({ ...paths["/v1/chat/completions"], ...rest });
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await once(socket, "connect");
  return socket;
}

test("a caller that does not read pauses the adapter, and is cut off when nothing is sent", async (context) => {
  const piece = "x".repeat(64 * 1024);
  let said = 0;
  const ended = gate();
  const box = createBox(
    context,
    async function* () {
      try {
        for (;;) {
          said += piece.length;
          yield say(piece);
        }
      } finally {
        ended.open();
      }
    },
    { limits: { maxUnsentBytes: 256 * 1024, stalledClientTimeoutMs: 300 } },
  );
  await askAndStall(context, await box.listen());
  await ended.opened;
  // The buffers of the loopback socket come on top of what the gateway holds.
  assert.ok(said < 16 * 1024 * 1024, `${said} bytes were produced for a caller that reads none`);
});

test("a slow caller that does read gets everything", async (context) => {
  const pieces = 200;
  const piece = "y".repeat(32 * 1024);
  const box = createBox(
    context,
    async function* () {
      for (let count = 0; count < pieces; count++) yield say(piece);
    },
    { limits: { maxUnsentBytes: 64 * 1024, stalledClientTimeoutMs: 5000 } },
  );
  const response = await ask(await box.listen(), "/v1/chat/completions");
  await new Promise(setImmediate);
  const text = await readAll(response);
  assert.equal(text.split(piece).length - 1, pieces);
  assert.equal(readEvents(text).at(-1), "[DONE]");
});

test("a caller that reads gets everything, however small the limit of unsent bytes", async (context) => {
  const piece = "y".repeat(20 * 1024);
  const box = createBox(context, [say(piece), say(piece), say(piece)], {
    limits: { maxUnsentBytes: 1, stalledClientTimeoutMs: 300 },
  });
  const text = await readAll(await ask(await box.listen(), "/v1/chat/completions"));
  assert.equal(text.split(piece).length - 1, 3);
  assert.equal(readEvents(text).at(-1), "[DONE]");
});

test("closing lets a running turn end and refuses new requests, on open connections too", async (context) => {
  const later = gate();
  const box = createBox(context, async function* () {
    yield say("one ");
    await later.opened;
    yield say("two");
  });
  const address = await box.listen();
  const open = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => open.destroy());
  await once(open, "connect");
  const response = await ask(address, "/v1/chat/completions");
  const closing = box.close();
  await assert.rejects(ask(address, "/v1/chat/completions"));
  open.write(`GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n\r\n`);
  assert.match(await text(open), /^HTTP\/1\.1 503 [^]*connection: close\r\n[^]*"code":"draining"/);
  later.open();
  assert.match(await readAll(response), /one [^]*two[^]*\[DONE\]/);
  await closing;
});

test("closing lets a client read to the end what is already written for it", async (context) => {
  const long = "x".repeat(8 * 1024 * 1024);
  const box = createBox(context, [say(long)]);
  const socket = connect(Number(new URL(await box.listen()).port), "127.0.0.1");
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await once(socket, "readable");
  const closing = box.close();
  const answer = await text(socket);
  assert.ok(answer.includes(long), `${answer.length} characters have arrived`);
  await closing;
});

test("closing cancels a turn at the drain timeout, and tells its caller why", async (context) => {
  const box = createBox(
    context,
    async function* (_turn, signal) {
      yield say("one ");
      await once(signal, "abort");
      throw new Error("aborted");
    },
    { limits: { drainTimeoutMs: 30 } },
  );
  const response = await ask(await box.listen(), "/v1/responses");
  const [text] = await Promise.all([readAll(response), box.close()]);
  assert.match(text, /The gateway is shutting down/);
  assert.equal(readEvents(text).at(-1), "[DONE]");
});

test("closing lets a turn finish under the longest drain timeout there is", async (context) => {
  const released = gate();
  const box = createBox(
    context,
    async function* () {
      yield say("one ");
      await released.opened;
      yield say("two");
    },
    { limits: { drainTimeoutMs: 2_147_483_647 } },
  );
  const response = await ask(await box.listen(), "/v1/responses");
  const answer = readAll(response);
  const closing = box.close();
  // A timer that cannot wait that long would fire before this one.
  await new Promise((resolve) => setTimeout(resolve, 5));
  released.open();
  assert.match(await answer, /"text":"one two"[^]*event: response\.completed/);
  await closing;
});

for (const [what, body, more] of [
  ["has an idempotency key", {}, { "idempotency-key": "k" }],
  ["runs in the background", { background: true }, {}],
] as const) {
  test(`closing sends the end of a turn that ${what} to its followers`, async (context) => {
    const box = createBox(
      context,
      async function* (_turn, signal) {
        yield say("one ");
        await once(signal, "abort");
        throw signal.reason;
      },
      { limits: { drainTimeoutMs: 30 } },
    );
    const response = await ask(await box.listen(), "/v1/responses", body, more);
    const [text] = await Promise.all([readAll(response), box.close()]);
    assert.match(text, /event: response\.failed[^]*The gateway was stopped while this turn ran[^]*data: \[DONE\]\n\n$/);
  });
}

test("closing answers a whole request with an idempotency key with draining and Retry-After", async (context) => {
  const begun = gate();
  const box = createBox(
    context,
    async function* (_turn, signal) {
      begun.open();
      yield say("one ");
      await once(signal, "abort");
      throw signal.reason;
    },
    { limits: { drainTimeoutMs: 30 } },
  );
  const asking = ask(await box.listen(), "/v1/responses", { stream: false }, { "idempotency-key": "k" });
  await begun.opened;
  const [response] = await Promise.all([asking, box.close()]);
  assert.deepEqual([response.statusCode, response.headers["retry-after"]], [503, "5"]);
  assert.match(await readAll(response), /"code":"draining"/);
});

test("closing does not wait for a body that arrives very slowly", async (context) => {
  const box = createBox(context, [say("hi")], { limits: { drainTimeoutMs: 20 } });
  const socket = connect(Number(new URL(await box.listen()).port), "127.0.0.1");
  context.after(() => socket.destroy());
  socket.on("error", () => {});
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{`,
  );
  const drip = setInterval(() => socket.write(" "), 20);
  context.after(() => clearInterval(drip));
  await once(socket, "connect");
  await new Promise(setImmediate);
  await box.close();
});

test("closing does not wait for a connection without a request", { timeout: 10_000 }, async (context) => {
  const box = createBox(context, [say("hi")], { limits: { drainTimeoutMs: 60_000 } });
  const port = Number(new URL(await box.listen()).port);
  for (const beginning of ["", "POST /v1/chat/comp"]) {
    const socket = connect(port, "127.0.0.1");
    context.after(() => socket.destroy());
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.write(beginning);
  }
  await (await fetch(`http://127.0.0.1:${port}/healthz`)).text();
  await box.close();
});

test("a caller that does not read its whole answer is cut off when nothing is sent", async (context) => {
  const box = createBox(context, [say("z".repeat(32 * 1024 * 1024))], { limits: { stalledClientTimeoutMs: 200 } });
  await askAndStall(context, await box.listen(), { stream: false });
  await untilTurns(box, 1);
  while (!box.logged.some(({ message }) => message === "request")) await new Promise(setImmediate);
  assert.match(JSON.stringify(box.logged), /"status":499/);
});

test("all events of one batch are sent in one write", async (context) => {
  const box = createBox(context, [say("a", "b", "c")]);
  const socket = connect(Number(new URL(await box.listen()).port), "127.0.0.1");
  context.after(() => socket.destroy());
  const body = JSON.stringify(paths["/v1/responses"]);
  socket.write(
    `POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  // A client would join them: on the wire each write is a chunk, and only its frame has carriage returns.
  const chunks = [...(await text(socket)).matchAll(/\r\n[0-9a-f]+\r\n([^\r]+)/g)].map(([, chunk = ""]) => chunk);
  assert.ok(chunks.some((chunk) => /"delta":"a"[^]*"delta":"b"[^]*"delta":"c"/.test(chunk)));
  for (const chunk of chunks) assert.match(chunk, /\n\n$/);
});

test("a stream that fails between two events is cut: a failure behind its content would pass for its end", async () => {
  const done: string[] = [];
  const raw = {
    headersSent: false,
    writableLength: 0,
    writeHead: () => void (raw.headersSent = true),
    write: (told: string) => done.push(told),
    end: (told: string) => done.push(told),
    destroy: () => done.push("cut"),
  };
  const limits = { heartbeatMs: 60_000, maxUnsentBytes: 1, stalledClientTimeoutMs: 1 };
  const terms = { limits, now: () => new Date(0), journal: { report() {} } };
  const reply = { raw, request: { terms }, elapsedMs: 0, handOver() {}, headers: {} };
  const events = (async function* () {
    yield [{ type: "turn-queued" } as const];
    throw new GatewayError("overloaded", "There is no room.");
  })();
  const about = { ...unplaced, id: "resp_1", createdAt: new Date(0), model: "m" };
  const voice = { stream: () => () => "data: hi\n\n", whole: () => "", memo: undefined };
  const { signal } = new AbortController();
  await sendStream(
    { answering: Promise.resolve({ about, events }), voice, numbering: undefined, named: about, signal },
    reply as unknown as HttpReply,
  );
  assert.deepEqual(done, ["data: hi\n\n", "cut"]);
});

test("a long text is passed on as bytes, of which no copy is kept while the caller reads", () => {
  const written: unknown[] = [];
  const keep = (sent: unknown) => written.push(sent);
  const response = { headersSent: true, write: keep, end: keep } as unknown as ServerResponse;
  const limits = { heartbeatMs: 60_000, maxUnsentBytes: 1, stalledClientTimeoutMs: 1 };
  const writer = createSseWriter(response, () => {}, limits);
  const long = "ä".repeat(70_000);
  for (const told of ["short", long]) void writer.write(told);
  writer.end(long);
  assert.deepEqual(written, ["short", Buffer.from(long), Buffer.from(long)]);
});

test("heartbeats are sent while there is nothing else to send or to read, and open the stream", (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const done: string[] = [];
  const response = {
    headersSent: false,
    writableLength: 0,
    write: (told: string) => done.push(told),
    flushHeaders: () => done.push("flushed"),
  };
  const open = (): void => {
    response.headersSent = true;
    done.push("opened");
  };
  const limits = { heartbeatMs: 10, maxUnsentBytes: 1, stalledClientTimeoutMs: 1 };
  const writer = createSseWriter(response as unknown as ServerResponse, open, limits);
  const beat = (): string[] => {
    context.mock.timers.tick(limits.heartbeatMs);
    return done.splice(0);
  };
  const heartbeat = ": heartbeat\n\n";
  assert.deepEqual([beat(), beat()], [["opened", heartbeat], [heartbeat]]);
  for (const told of ["hi", ""]) void writer.write(told);
  assert.deepEqual([beat(), beat()], [["hi", "flushed"], [heartbeat]]);
  response.writableLength = 1;
  assert.deepEqual(beat(), []);
  writer.stop();
});

test("a caller may have so many bytes unread before it is waited for, and any time once it has read them", async () => {
  const times: number[] = [];
  const socket = { setTimeout: (ms: number) => times.push(ms) };
  const response = Object.assign(new EventEmitter(), {
    headersSent: true,
    writableLength: 5,
    writableNeedDrain: true,
    /** An earlier answer has the connection. */
    socket: null as unknown,
    write() {},
  });
  const limits = { heartbeatMs: 60_000, maxUnsentBytes: 5, stalledClientTimeoutMs: 100 };
  const writer = createSseWriter(response as unknown as ServerResponse, () => {}, limits);
  assert.equal(writer.write("a"), undefined);
  response.writableLength = 6;
  for (let time = 0; time < 2; time++) {
    const waiting = writer.write("a");
    if (response.socket === null) response.emit("socket", (response.socket = socket));
    response.emit("drain");
    await waiting;
  }
  assert.deepEqual(times, [100, 0, 100, 0]);
  assert.deepEqual(response.eventNames(), []);
  writer.stop();
});
