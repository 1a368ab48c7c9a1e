/** WebSocket connections as the official client uses them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { createBox, say, token } from "../scripted.ts";

test("the official client reconnects by itself when its connection has reached its maximum age", async (context) => {
  const webSocket = { enabled: true, maxConnections: 100, maxMinutes: 0.002 };
  const address = await createBox(context, [say("hi")], { settings: { webSocket } }).listen();
  const reconnect = { onReconnecting: () => {}, initialDelay: 1 };
  const socket = new ResponsesWS(new OpenAI({ apiKey: token, baseURL: `${address}/v1` }), { reconnect });
  context.after(() => socket.close());
  socket.on("error", ({ message }) => assert.match(message, /has reached its maximum age \(.*max_minutes: 0\.002\)/));
  await new Promise<void>((resolve, reject) => {
    socket.once("reconnected", () => resolve());
    socket.once("close", (code) => reject(new Error(`closed with ${code}`)));
  });
});
