import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Server } from "node:http";
import { test } from "node:test";
import { watchConnections } from "../../src/http/connections.ts";

function createSocket() {
  const socket = Object.assign(new EventEmitter(), {
    isCut: false,
    writableEnded: false,
    bytesRead: 0,
    destroy: () => void (socket.isCut = true),
  });
  return socket;
}

function createServer(isDraining = false) {
  const server = new EventEmitter() as Server;
  const cutSilent = watchConnections(server, { maxUnanswered: () => 100, isDraining: () => isDraining });
  return {
    cutSilent,
    closeIdle: () => server.closeIdleConnections(),
    connect() {
      const socket = createSocket();
      server.emit("connection", socket);
      return socket;
    },
    /** Returns the response. */
    ask(socket: EventEmitter) {
      const response = new EventEmitter();
      server.emit("request", { socket }, response);
      return response;
    },
    upgrade: (socket: EventEmitter) => server.emit("upgrade", { socket }),
  };
}

test("only connections without any request or upgrade are cut off", () => {
  const { cutSilent, connect, ask, upgrade } = createServer();
  const sockets = [connect(), connect(), connect(), connect()] as const;
  const [, asked, upgraded, closed] = sockets;
  ask(asked);
  upgrade(upgraded);
  closed.emit("close");
  cutSilent();
  assert.deepEqual(
    sockets.map(({ isCut }) => isCut),
    [true, false, false, false],
  );
});

test("a connection is cut off once all of its requests are answered, unless it is already ending", () => {
  const { cutSilent, connect, ask } = createServer();
  const [busy, answered, ending] = [connect(), connect(), connect()];
  const first = ask(busy);
  ask(busy);
  first.emit("close");
  for (const socket of [answered, ending]) ask(socket).emit("close");
  ending.writableEnded = true;
  cutSilent();
  assert.deepEqual(
    [busy, answered, ending].map(({ isCut }) => isCut),
    [false, true, false],
  );
});

test("a connection is idle when its answers are sent and its client has sent nothing since", () => {
  const { closeIdle, connect, ask } = createServer();
  const sockets = [connect(), connect(), connect(), connect()] as const;
  const [, answered, sending, asking] = sockets;
  for (const socket of [answered, sending, asking]) {
    socket.bytesRead = 100;
    ask(socket).emit("close");
  }
  sending.bytesRead = 101;
  ask(asking);
  closeIdle();
  assert.deepEqual(
    sockets.map(({ isCut }) => isCut),
    [false, true, false, false],
  );
});

test("a connection may have so many unanswered requests, and is cut with one more", () => {
  const { connect, ask } = createServer();
  const socket = connect();
  for (let request = 0; request < 100; request++) ask(socket);
  assert.equal(socket.isCut, false);
  ask(socket);
  assert.equal(socket.isCut, true);
});

test("while the gateway drains, a connection is closed once its answer is sent", async () => {
  const { connect, ask } = createServer(true);
  const socket = connect();
  socket.bytesRead = 1;
  ask(socket).emit("close");
  await new Promise(setImmediate);
  assert.equal(socket.isCut, true);
});
