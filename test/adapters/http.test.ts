/** The upstream client over real loopback sockets. */
import assert from "node:assert/strict";
import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { type ServerResponse, createServer, request as httpRequest } from "node:http";
import { type AddressInfo, type Socket, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { createEventReader } from "../../src/adapters/http/events.ts";
import { startExchange } from "../../src/adapters/http/exchange.ts";
import type { Route } from "../../src/adapters/http/route.ts";
import { readTarget } from "../../src/adapters/http/target.ts";
import {
  type Upstream,
  type UpstreamOptions,
  type UpstreamResponse,
  createUpstream,
} from "../../src/adapters/http/upstream.ts";
import { readWhole } from "../../src/adapters/http/whole.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { answerJson, startUpstream, unknownHost } from "../upstream.ts";
import { startStopwatch } from "../stopwatch.ts";
import { standStill } from "../still.ts";

const never = new AbortController().signal;
const get = { method: "GET", path: "/x", headers: {} } as const;

function connectTo(baseUrl: string, more: Partial<UpstreamOptions> = {}): Upstream & AsyncDisposable {
  const limits = { connectMs: 5000, firstByteMs: 5000, idleMs: 5000 };
  const upstream = createUpstream({ baseUrl, environment: {}, ...limits, ...more });
  return { ...upstream, [Symbol.asyncDispose]: () => upstream.close() };
}

function textOf(response: UpstreamResponse): Promise<string> {
  return readWhole(response, 100 * 1024 * 1024);
}

function failsWith(code: string, wireCode = code, message = /./) {
  return (thrown: unknown) => {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    assert.equal(thrown.code, code);
    assert.equal(thrown.wireCode, wireCode);
    assert.match(thrown.message, message);
    return true;
  };
}

/** A server that accepts connections and never sends anything. */
async function startMute() {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.resume();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    server,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

test("a connection is kept alive and used again", async () => {
  await using server = await startUpstream(answerJson({ ok: true }));
  await using upstream = connectTo(server.url);
  for (let round = 0; round < 5; round++) {
    assert.equal(await textOf(await upstream.send(get, never)), '{"ok":true}');
    await nextTurn();
  }
  assert.equal(server.sockets.length, 1);
});

test("an answer that is left at its end keeps its connection, and one left earlier loses it", async () => {
  await using server = await startUpstream((_, response) => void response.write("first"));
  await using upstream = connectTo(server.url);
  const middle = await upstream.send(get, never);
  await middle.pull();
  middle.leave();
  const began = performance.now();
  await once(server.sockets[0]!, "close");
  assert.ok(performance.now() - began < 2000);

  server.script = answerJson("whole");
  await using another = connectTo(server.url);
  for (let round = 0; round < 5; round++) {
    const response = await another.send(get, never);
    await response.pull();
    response.leave();
    await nextTurn();
  }
  assert.equal(server.sockets.length, 2);
});

test("a thousand exchanges run in parallel, and none waits for another", async () => {
  const waiting: (() => void)[] = [];
  await using server = await startUpstream((_, response) => {
    waiting.push(() => response.end("done"));
    if (waiting.length === 1000) for (const answer of waiting) answer();
  });
  // The first waits for the last, on a busy machine for long.
  await using upstream = connectTo(server.url, { connectMs: 60_000, firstByteMs: 60_000 });
  const answers = await Promise.all(Array.from({ length: 1000 }, async () => textOf(await upstream.send(get, never))));
  assert.ok(answers.every((answer) => answer === "done"));
});

test("everything that arrived since the last pull is returned together", async () => {
  await using server = await startUpstream((_, response) => {
    for (let piece = 0; piece < 20; piece++) response.write(`piece ${piece};`);
    response.end();
  });
  await using upstream = connectTo(server.url);
  const response = await upstream.send(get, never);
  await nextTurn();
  await nextTurn();
  let pulls = 0;
  let text = "";
  for (let batch = await response.pull(); batch !== undefined; batch = await response.pull()) {
    pulls++;
    text += Buffer.concat(batch).toString();
  }
  assert.equal(text.split(";").length, 21);
  assert.ok(pulls <= 3, `${pulls} pulls`);
});

test("bytes that nobody pulls stay with the upstream", async () => {
  const size = 50 * 1024 * 1024;
  const block = Buffer.alloc(64 * 1024, "x");
  let stalled = false;
  await using server = await startUpstream(async (_, response) => {
    for (let sent = 0; sent < size; sent += block.length) {
      if (response.write(block)) continue;
      stalled = true;
      await once(response, "drain");
      stalled = false;
    }
    stalled = true;
    response.end();
  });
  let socket: Socket | undefined;
  const remember = (message: unknown) => (socket = (message as { socket: Socket }).socket);
  channel("undici:client:connected").subscribe(remember);
  await using upstream = connectTo(server.url, { idleMs: 300 });
  const response = await upstream.send(get, never);
  channel("undici:client:connected").unsubscribe(remember);
  // The upstream has stalled for good when nothing moves for many rounds of the event loop.
  for (let quiet = 0, seen = -1; quiet < 500; quiet++) {
    await nextTurn();
    if (socket!.bytesRead !== seen || !stalled) quiet = 0;
    seen = socket!.bytesRead;
  }
  assert.ok(socket!.bytesRead < 2 * 1024 * 1024, `${socket!.bytesRead} bytes were read`);
  // A slow reader does not make the upstream idle.
  const waitUntil = performance.now() + 400;
  while (performance.now() < waitUntil) await nextTurn();
  let bytes = 0;
  for (let batch = await response.pull(); batch !== undefined; batch = await response.pull()) {
    for (const buffer of batch) bytes += buffer.length;
  }
  assert.equal(bytes, size);
});

test("an abort while connecting closes the socket at once", async () => {
  await using mute = await startMute();
  // The TLS handshake never completes with a server that sends nothing.
  await using upstream = connectTo(`https://127.0.0.1:${mute.port}`);
  const caller = new AbortController();
  const sent = upstream.send(get, caller.signal);
  const [socket] = (await once(mute.server, "connection")) as [Socket];
  await closesAtOnce(socket, caller, sent);
});

test("an abort while waiting for the answer closes the socket at once", async () => {
  const arrived = Promise.withResolvers<void>();
  await using server = await startUpstream(() => arrived.resolve());
  await using upstream = connectTo(server.url);
  const caller = new AbortController();
  const sent = upstream.send(get, caller.signal);
  await arrived.promise;
  await closesAtOnce(server.sockets[0]!, caller, sent);
});

test("an abort in the middle of an answer closes the socket at once", async () => {
  await using server = await startUpstream((_, response) => void response.write("first"));
  await using upstream = connectTo(server.url);
  const caller = new AbortController();
  const response = await upstream.send(get, caller.signal);
  await response.pull();
  await closesAtOnce(server.sockets[0]!, caller, response.pull());
});

test("a request whose caller has already disconnected is not sent", async () => {
  await using server = await startUpstream();
  await using upstream = connectTo(server.url);
  await assert.rejects(upstream.send(get, AbortSignal.abort()), failsWith("client_closed"));
  assert.equal(server.received.length, 0);
});

async function closesAtOnce(socket: Socket, caller: AbortController, pending: Promise<unknown>): Promise<void> {
  const rejected = assert.rejects(pending, failsWith("client_closed"));
  const closed = once(socket, "close");
  const watch = startStopwatch();
  caller.abort();
  await rejected;
  await closed;
  const tookMs = watch.stop();
  assert.ok(tookMs < 100, `it took ${tookMs} ms`);
}

test("no connection in time is a connect timeout", async () => {
  await using mute = await startMute();
  await using upstream = connectTo(`https://127.0.0.1:${mute.port}`, { connectMs: 40 });
  await assert.rejects(upstream.send(get, never), failsWith("adapter_timeout", "adapter_connect_timeout"));
});

test("no first byte in time is a first byte timeout, with or without headers", async () => {
  await using server = await startUpstream(() => {});
  await using upstream = connectTo(server.url, { firstByteMs: 40, idleMs: 10 });
  const late = failsWith("adapter_timeout", "adapter_first_byte_timeout", /127\.0\.0\.1:\d+ .* 40 ms/);
  await assert.rejects(upstream.send(get, never), late);
  server.script = (_, response) => response.flushHeaders();
  const response = await upstream.send(get, never);
  await assert.rejects(response.pull(), late);
});

test("silence in the middle of an answer is an idle timeout", async () => {
  await using server = await startUpstream((_, response) => void response.write("first"));
  await using upstream = connectTo(server.url, { idleMs: 40 });
  const response = await upstream.send(get, never);
  await response.pull();
  await assert.rejects(response.pull(), failsWith("adapter_timeout", "adapter_idle_timeout"));
});

test("data that arrived while the gateway itself was blocked does not count as silence", async () => {
  let answer: ServerResponse | undefined;
  await using server = await startUpstream((_, response) => {
    answer = response;
    response.write("first ");
  });
  await using upstream = connectTo(server.url, { idleMs: 40 });
  const response = await upstream.send(get, never);
  await response.pull();
  answer!.end("second");
  standStill(100);
  assert.equal(await textOf(response), "second");
});

test("an answer that was complete while the gateway itself was blocked is not too late", async () => {
  const words = "x".repeat(200_000);
  let answer: ServerResponse | undefined;
  await using server = await startUpstream((_, response) => {
    answer = response;
    response.write("first ");
  });
  await using upstream = connectTo(server.url);
  const response = await upstream.send({ ...get, totalMs: 1000 }, never);
  await response.pull();
  answer!.end(words);
  standStill(1300);
  assert.equal(await textOf(response), words);
});

test("an answer that takes too long is a total timeout, even while it makes progress", async () => {
  await using server = await startUpstream((_, response) => {
    const timer = setInterval(() => response.write("more"), 5);
    response.on("close", () => clearInterval(timer));
  });
  await using upstream = connectTo(server.url, { idleMs: 5000 });
  const response = await upstream.send({ ...get, totalMs: 60 }, never);
  await assert.rejects(textOf(response), failsWith("adapter_timeout", "adapter_total_timeout"));
});

test("an answer larger than allowed is refused", async () => {
  await using server = await startUpstream((_, response) => void response.end("x".repeat(5000)));
  await using upstream = connectTo(server.url);
  const response = await upstream.send(get, never);
  await assert.rejects(readWhole(response, 4000), failsWith("adapter_protocol", "adapter_answer_too_large"));
});

test("a refused connection, a lost one and an unknown host are reported with the address", async () => {
  const gone = await startUpstream();
  await gone.close();
  await using refused = connectTo(gone.url);
  const { port } = gone;
  await assert.rejects(
    refused.send(get, never),
    failsWith("adapter_error", "adapter_error", new RegExp(`127.0.0.1:${port} refuses connections`)),
  );

  await using server = await startUpstream((_, response) => void response.socket!.destroy());
  await using lost = connectTo(server.url);
  await assert.rejects(
    lost.send(get, never),
    failsWith(
      "adapter_error",
      "adapter_error",
      /^Connection lost: the upstream at .* disconnected before its answer was complete/,
    ),
  );

  await using unknown = connectTo(`http://${unknownHost}/v1`);
  await assert.rejects(
    unknown.send(get, never),
    failsWith("adapter_error", "adapter_error", new RegExp(`${unknownHost}:80`)),
  );
});

test("a lost connection still delivers what had arrived", async () => {
  await using server = await startUpstream((_, response) => {
    response.write("first", () => response.socket!.destroy());
  });
  await using upstream = connectTo(server.url);
  const response = await upstream.send(get, never);
  assert.equal(Buffer.concat((await response.pull())!).toString(), "first");
  await assert.rejects(response.pull(), failsWith("adapter_error"));
});

/** An exchange whose bytes the test itself delivers, and why it was aborted. */
function startByHand(signal = never) {
  const aborts: unknown[] = [];
  const abort = (why: unknown) => void aborts.push(why);
  const controller = { paused: false, resume() {}, pause() {}, abort } as unknown as Dispatcher.DispatchController;
  let handler: Dispatcher.DispatchHandler = {};
  const route: Route = {
    dispatch: (_request, given) => void (handler = given),
    destroy: async () => {},
  };
  const limits = { connectMs: 5000, firstByteMs: 5000, idleMs: 5000 };
  const responding = startExchange(route, readTarget("http://127.0.0.1"), get, limits, setImmediate, signal);
  return {
    aborts,
    responding,
    start: () => handler.onRequestStart?.(controller, {}),
    head: (status: number) => handler.onResponseStart?.(controller, status, {}),
    send: (data: Buffer) => handler.onResponseData?.(controller, data),
    fail: (error: Error) => handler.onResponseError?.(controller, error),
  };
}

test("a response head that was received is delivered, even if its connection is lost before it is read", async () => {
  const { responding, start, head, send, fail } = startByHand();
  start();
  // An informational response, such as early hints, is not the answer.
  head(103);
  head(503);
  send(Buffer.from("busy"));
  fail(new Error("lost"));
  const response = await responding;
  assert.equal(response.status, 503);
  assert.equal(Buffer.concat((await response.pull())!).toString(), "busy");
  await assert.rejects(response.pull(), failsWith("adapter_error"));
});

test("an answer that was left is cut when it sends too much, however fast it does", async () => {
  const { aborts, responding, start, head, send } = startByHand();
  start();
  head(200);
  (await responding).leave();
  // Each chunk counts with 100 bytes more.
  for (const size of [32 * 1024 - 100, 32 * 1024 - 100]) send(Buffer.alloc(size));
  assert.deepEqual(aborts, []);
  send(Buffer.alloc(1));
  send(Buffer.alloc(1));
  assert.equal(aborts.length, 1);
});

test("a request that waits for a connection is not sent once its caller has disconnected", async () => {
  const caller = new AbortController();
  const { aborts, responding, start } = startByHand(caller.signal);
  caller.abort();
  await assert.rejects(responding, failsWith("client_closed"));
  start();
  assert.equal(aborts.length, 1);
});

test("answers that arrive at the same time are read in parallel", async () => {
  await using server = await startUpstream((_, response) => {
    response.end("word");
  });
  await using upstream = connectTo(server.url);
  const steps: string[] = [];
  async function exchange(name: string): Promise<void> {
    const response = await upstream.send(get, never);
    steps.push(`head ${name}`);
    await response.pull();
    steps.push(`word ${name}`);
  }
  // The first ones open the connections.
  await Promise.all([exchange("a"), exchange("b")]);
  steps.length = 0;
  await Promise.all([exchange("a"), exchange("b")]);
  assert.deepEqual(steps, ["head a", "head b", "word a", "word b"]);
});

test("a server that does not speak HTTP is a protocol error", async () => {
  await using other = await startMute();
  other.server.on("connection", (socket: Socket) => socket.once("data", () => socket.write("SSH-2.0-hello\r\n")));
  await using upstream = connectTo(`http://127.0.0.1:${other.port}`);
  await assert.rejects(upstream.send(get, never), failsWith("adapter_protocol"));
});

test("an interim answer is passed over, and one that was not asked for is reported as such", async () => {
  await using server = await startUpstream((_, response) => {
    response.writeProcessing();
    response.writeEarlyHints({ link: "</x>" });
    response.end("hello");
  });
  await using upstream = connectTo(server.url);
  assert.equal(await textOf(await upstream.send(get, never)), "hello");
  const said = failsWith("adapter_protocol", "adapter_protocol", /answered with status 100 or 101/);
  for (const head of ["100 Continue", "101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c"]) {
    server.script = (_, response) => void response.socket!.write(`HTTP/1.1 ${head}\r\n\r\n`);
    await assert.rejects(upstream.send(get, never), said);
  }
});

test("a server without TLS is reported with a hint to use http://", async () => {
  await using server = await startUpstream();
  await using upstream = connectTo(server.url.replace("http:", "https:"));
  await assert.rejects(
    upstream.send(get, never),
    failsWith("adapter_error", "adapter_error", /TLS with the upstream at .* failed .* write http:\/\/ in its URL\.$/),
  );
});

test("a unix socket is an upstream like any other, with its own path", async () => {
  const path = join(tmpdir(), `portico-${process.pid}.sock`);
  await using server = await startUpstream(answerJson("hello"), path);
  await using upstream = connectTo(`unix:${path}:/v1`);
  assert.equal(await textOf(await upstream.send(get, never)), '"hello"');
  assert.equal(server.received[0]?.path, "/v1/x");
});

test("a base URL keeps its path and its query, and is named without them", () => {
  assert.deepEqual(readTarget("https://models.example/openai/v1/?api-version=2"), {
    origin: "https://models.example",
    socketPath: undefined,
    pathPrefix: "/openai/v1",
    search: "?api-version=2",
    address: "models.example:443",
  });
  assert.equal(readTarget("http://[::1]:8080").address, "[::1]:8080");
  assert.equal(readTarget("unix:/run/model.sock").pathPrefix, "");
});

/** A proxy that forwards every request to one server, and refuses tunnels. */
async function startProxy(port: number) {
  const seen: string[] = [];
  const proxy = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    const { pathname } = new URL(request.url!);
    const onward = httpRequest({ host: "127.0.0.1", port, path: pathname, method: request.method! }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  proxy.on("connect", (request, socket) => {
    seen.push(`CONNECT ${request.url}`);
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    seen,
    async [Symbol.asyncDispose]() {
      proxy.close();
      proxy.closeAllConnections();
      await once(proxy, "close");
    },
  };
}

test("a proxy in the options carries every request", async () => {
  await using server = await startUpstream(answerJson("over the proxy"));
  await using proxy = await startProxy(server.port);
  await using upstream = connectTo("http://model.test/v1", { proxy: proxy.url });
  assert.equal(await textOf(await upstream.send(get, never)), '"over the proxy"');
  assert.deepEqual(proxy.seen, ["GET http://model.test/v1/x"]);
});

test("a proxy in the environment is used, except for loopback and the hosts in NO_PROXY", async () => {
  await using server = await startUpstream(answerJson("straight"));
  await using proxy = await startProxy(server.port);
  const environment = { HTTP_PROXY: proxy.url, NO_PROXY: unknownHost };
  await using proxied = connectTo("http://model.test", { environment });
  await textOf(await proxied.send(get, never));
  await using loopback = connectTo(server.url, { environment });
  await textOf(await loopback.send(get, never));
  for (const host of ["localhost", "[::1]"]) {
    await using silent = connectTo(`http://${host}:1`, { environment });
    await assert.rejects(silent.send(get, never), failsWith("adapter_error"));
  }
  await using excepted = connectTo(`http://${unknownHost}`, { environment });
  await assert.rejects(excepted.send(get, never), failsWith("adapter_error"));
  await using refused = connectTo("http://model.test", { environment, proxy: false, connectMs: 1000 });
  await assert.rejects(refused.send(get, never));
  assert.deepEqual(proxy.seen, ["GET http://model.test/x"]);
});

test("an https upstream is reached through a tunnel, and a proxy that refuses it is named", async () => {
  await using proxy = await startProxy(0);
  await using upstream = connectTo("https://model.test/v1", { environment: { https_proxy: proxy.url } });
  await assert.rejects(upstream.send(get, never), failsWith("adapter_error", "adapter_error", /proxy/));
  assert.deepEqual(proxy.seen, ["CONNECT model.test:443"]);
});

test("events are split on blank lines of either kind; comments, other fields and a missing blank are tolerated", () => {
  const reader = createEventReader(1000);
  const read = (text: string) => reader.read([Buffer.from(text)]);
  assert.deepEqual(read(': hello\n: {"a":1}\n\n'), []);
  assert.deepEqual(read("data: a\n\ndata:b\r\n\r\nevent: x\nid: 1\ndata: c\ndata:  d\n\n"), ["a", "b", "c\n d"]);
  assert.deepEqual(read("data: e"), []);
  assert.deepEqual(read("\r"), []);
  assert.deepEqual(read("\n\r\ndata: f"), ["e"]);
  assert.deepEqual(reader.end(), ["f"]);
});

test("a lone carriage return ends a line if it ends the first one", () => {
  const stream = Buffer.from('\ufeff: hello\r\rdata: a\rdata: b\r\r{"c":1}\revent: x\rdata: d\r\rdata: e');
  for (const bytes of [1, 2, 3, 9, 64]) {
    const reader = createEventReader(1024);
    const events: string[] = [];
    for (let from = 0; from < stream.length; from += bytes) {
      events.push(...reader.read([stream.subarray(from, from + bytes)]));
    }
    assert.deepEqual(events, ["a\nb", '{"c":1}', "d"]);
    assert.deepEqual(reader.end(), ["e"]);
  }
});

test("a line break cut between its two characters is one", () => {
  const reader = createEventReader(1024);
  const read = (text: string) => reader.read([Buffer.from(text)]);
  assert.deepEqual(read("data: a\r"), []);
  assert.deepEqual(read("\ndata: b\r"), []);
  assert.deepEqual(read("\n\r\n"), ["a\nb"]);
});

test("an event without an end is refused beyond its size limit", () => {
  const reader = createEventReader(100);
  reader.read([Buffer.from(`data: ${"x".repeat(90)}`)]);
  assert.throws(() => reader.read([Buffer.from("xxxxx")]), failsWith("adapter_protocol"));
});

test("a byte order mark is skipped before the first event only, and an event without data is ignored", () => {
  for (const bytes of [1, 2, 64]) {
    const reader = createEventReader(1024);
    const stream = Buffer.from("\ufeffdata: one\n\ndata:\n\ndata: \n\ndata: \ufefftwo\n\n\ufeffdata: three\n\n");
    const events: string[] = [];
    for (let from = 0; from < stream.length; from += bytes) {
      events.push(...reader.read([stream.subarray(from, from + bytes)]));
    }
    assert.deepEqual([...events, ...reader.end()], ["one", "\ufefftwo"]);
  }
});
