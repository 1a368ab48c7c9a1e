/** How frames wait for a client that reads slowly. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import type { WebSocket } from "ws";
import { createFrameWriter } from "../../src/http/websocket/writer.ts";

/** A client that reads only what `read` says, and what was done to its connection. */
function createClient(maxUnsentBytes: number) {
  const done: string[] = [];
  const sent: (() => void)[] = [];
  const note = (what: string) => () => void done.push(what);
  const wire = Object.assign(new EventEmitter(), {
    cork: note("cork"),
    uncork: note("uncork"),
    setTimeout: (ms: number) => void done.push(`time-out ${ms}`),
  });
  const socket = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    terminate: note("cut"),
    send(frame: string, told?: () => void) {
      done.push(frame);
      socket.bufferedAmount += frame.length;
      if (told !== undefined) sent.push(told);
    },
  });
  const limits = { maxUnsentBytes, stalledClientTimeoutMs: 1_000 };
  const writer = createFrameWriter(socket as unknown as WebSocket, wire as unknown as Socket, limits);
  const read = (bytes: number) => {
    socket.bufferedAmount -= bytes;
    sent.shift()?.();
  };
  return { writer, socket, wire, done, sent, read };
}

async function isWaiting(promise: Promise<void> | undefined): Promise<boolean> {
  let isOver = promise === undefined;
  void promise?.then(() => (isOver = true));
  await new Promise(setImmediate);
  return !isOver;
}

test("frames are sent in one write, whose unread bytes must keep moving", () => {
  const { writer, wire, done, sent, read } = createClient(5);
  assert.equal(writer.write(["ab", "c"]), undefined);
  assert.equal(writer.write(["d"]), undefined);
  assert.equal(sent.length, 2);
  read(1);
  read(3);
  const [first, second] = [
    ["cork", "ab", "c", "uncork", "time-out 1000"],
    ["cork", "d", "uncork"],
  ] as const;
  assert.deepEqual(done, [...first, ...second, "time-out 0"]);
  wire.emit("timeout");
  assert.equal(done.at(-1), "cut");
});

test("a writer is full, and lets wait, until no more is unread than allowed", async () => {
  const { writer, read } = createClient(5);
  assert.equal(writer.write(["12345"]), undefined);
  assert.equal(writer.isFull, false);
  const waiting = writer.write(["6"]);
  assert.equal(writer.write(["7"]), waiting);
  assert.equal(writer.isFull, true);
  read(1);
  assert.equal(await isWaiting(waiting), true);
  read(1);
  await waiting;
  assert.equal(await isWaiting(writer.write(["8"])), true);
});

test("nobody waits for a client that has left", async () => {
  const { writer, socket } = createClient(1);
  const waiting = writer.write(["12"]);
  assert.deepEqual([writer.isOpen, await isWaiting(waiting)], [true, true]);
  socket.readyState = 3;
  socket.emit("close");
  await waiting;
  assert.equal(writer.isOpen, false);
  assert.equal(writer.write(["3"]), undefined);
});
