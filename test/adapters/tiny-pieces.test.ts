/** An answer in very small chunks takes little more memory than its bytes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { createReplyReader as createCommandReader } from "../../src/adapters/command/reply.ts";
import { createGathering } from "../../src/adapters/gathering.ts";
import { createEventReader } from "../../src/adapters/http/events.ts";
import { createUpstream } from "../../src/adapters/http/upstream.ts";
import { readWhole } from "../../src/adapters/http/whole.ts";
import { createReplyReader } from "../../src/adapters/openai/responses/reply.ts";
import { fetchMedia } from "../../src/adapters/media/fetch.ts";
import type { Delta } from "../../src/core/delta.ts";
import { worked } from "../worked.ts";
import { collectGarbage } from "../garbage.ts";

const count = 500_000;
/** A list of so many chunks would take five times as much. */
const enough = 10_000_000;

function memoryInUse(): number {
  const { heapUsed, external } = collectGarbage();
  return heapUsed + external;
}

/** A server that sends bytes one by one, each as a chunk of its own. */
async function startDripping(type: string, bytes: number) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`);
      socket.end(`${"1\r\nx\r\n".repeat(bytes)}0\r\n\r\n`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, "close");
    },
  };
}

test("Chunks of any size are joined in order.", () => {
  const gathering = createGathering();
  for (let round = 0; round < 2; round++) {
    const expected: Buffer[] = [];
    for (const [index, bytes] of [3, 1, 5000, 1000, 1024, 1025, 1, 1, 1023, 70_000, 2].entries()) {
      const piece = Buffer.alloc(bytes, 65 + index + round);
      expected.push(piece);
      gathering.add(piece);
    }
    assert.equal(gathering.size(), 79_080);
    assert.ok(gathering.take().equals(Buffer.concat(expected)));
    assert.equal(gathering.size(), 0);
  }
  assert.equal(gathering.take().length, 0);
  const only = Buffer.from("only");
  gathering.add(only);
  assert.equal(gathering.take().buffer, only.buffer);
});

test("An event that arrives byte by byte takes little more memory than its bytes.", () => {
  const reader = createEventReader(2 * count);
  const before = memoryInUse();
  reader.read([Buffer.from("data: ")]);
  for (let index = 0; index < count; index++) reader.read([Buffer.from("x")]);
  assert.ok(memoryInUse() - before < enough);
  assert.deepEqual(reader.read([Buffer.from("\n\n")]), ["x".repeat(count)]);
});

test("The size of an event counts the memory of its short lines, and its comments.", () => {
  for (const [lines, most] of [
    ["data:x\n", 20_000],
    [`data: and so on and on\n:${"c".repeat(10_000)}\n`, 100],
  ] as const) {
    const reader = createEventReader(1_000_000);
    let rounds = 0;
    assert.throws(() => {
      for (; rounds < 200_000; rounds++) reader.read([Buffer.from(lines)]);
    }, /an event of more than 1000000 bytes/);
    assert.ok(rounds < most, String(rounds));
  }
});

test("A whole answer that arrives byte by byte takes little more memory than its bytes.", async () => {
  let left = count;
  let held = 0;
  const before = memoryInUse();
  const pull = async () => {
    if (left === 0) {
      held = memoryInUse() - before;
      return undefined;
    }
    left -= 1000;
    return Array.from({ length: 1000 }, () => Buffer.from("x"));
  };
  const whole = await readWhole({ status: 200, headers: {}, pull, leave() {} }, 2 * count);
  assert.equal(whole.length, count);
  assert.ok(held < enough, String(held));
});

test("Bytes that nobody has pulled yet are counted with the overhead of their chunks.", async () => {
  await using server = await startDripping("text/event-stream", 30_000);
  const limits = { connectMs: 5000, firstByteMs: 5000, idleMs: 5000 };
  const upstream = createUpstream({ baseUrl: server.url, environment: {}, ...limits });
  const response = await upstream.send({ method: "GET", path: "/", headers: {} }, new AbortController().signal);
  let bytes = 0;
  for (let batch = await response.pull(); batch !== undefined; batch = await response.pull()) {
    assert.ok(batch.length < 1000, `${batch.length} chunks at once`);
    bytes += batch.length;
  }
  assert.equal(bytes, 30_000);
  await upstream.close();
});

test("A file that arrives byte by byte is fetched completely.", async () => {
  await using server = await startDripping("image/png", 30_000);
  const signal = new AbortController().signal;
  const { bytes } = await fetchMedia(server.url, { maxBytes: 30_000, timeoutMs: 10_000, allowPrivate: true }, signal);
  assert.equal(Buffer.from(bytes).toString(), "x".repeat(30_000));
  assert.equal(bytes.buffer.byteLength, 30_000, "nothing is behind it");
});

test("A line that a program writes in tiny pieces takes little more memory than its characters.", () => {
  const read = createCommandReader("jsonl");
  const deltas: Delta[] = [];
  const before = memoryInUse();
  read(Buffer.from('{"type":"text","text":"'), deltas);
  for (let index = 0; index < count; index++) read(Buffer.from("xy"), deltas);
  assert.ok(memoryInUse() - before < enough);
  read(Buffer.from('"}\n'), deltas);
  assert.deepEqual(deltas, [{ type: "text", text: "xy".repeat(count) }]);
});

test("Line breaks that a program writes one by one are read in linear time.", () => {
  const read = createCommandReader("text");
  const deltas: Delta[] = [];
  const since = worked();
  for (let index = 0; index < 40_000; index++) read(Buffer.from("\n"), deltas);
  assert.deepEqual(deltas, []);
  assert.ok(worked() - since < 2000, `${worked() - since} ms`);
  read(Buffer.from("x\n"), deltas);
  read(undefined, deltas);
  assert.deepEqual(deltas, [{ type: "text", text: `${"\n".repeat(40_000)}x` }]);
});

test("An upstream cannot send events without content for ever.", () => {
  const reader = createReplyReader((text) => text);
  const event = Buffer.from(`data: {"type":"response.in_the_making","piece":"${"x".repeat(4_000_000)}"}\n\n`);
  let rounds = 0;
  assert.throws(() => {
    for (; rounds < 100; rounds++) {
      assert.deepEqual(reader.read([event]), []);
      reader.check();
    }
  }, /more than 268435456 characters of events without content/);
  assert.equal(rounds, 67);
});
