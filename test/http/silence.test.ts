import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Server } from "node:http";
import { test } from "node:test";
import { watchSilence } from "../../src/http/closing.ts";

function createSocket() {
  const socket = Object.assign(new EventEmitter(), { isCut: false, destroy: () => void (socket.isCut = true) });
  return socket;
}

test("only connections without any request or upgrade are cut off", () => {
  const server = new EventEmitter();
  const silence = watchSilence(server as Server);
  const sockets = [createSocket(), createSocket(), createSocket(), createSocket()] as const;
  const [, asked, upgraded, closed] = sockets;
  for (const socket of sockets) server.emit("connection", socket);
  server.emit("request", { socket: asked });
  server.emit("upgrade", { socket: upgraded });
  closed.emit("close");
  silence.cut();
  assert.deepEqual(
    sockets.map(({ isCut }) => isCut),
    [true, false, false, false],
  );
});
