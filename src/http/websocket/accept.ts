/** The WebSocket form of the responses endpoint: accepts requests to become one, and lets the connections go in the end. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type * as ws from "ws";
import { GatewayError } from "../../core/errors.ts";
import { behind, type Call } from "../call.ts";
import { openConnection } from "./connection.ts";
import type { SocketParts } from "./turn.ts";

export function createWebSockets(parts: SocketParts) {
  const retirings = new Set<() => void>();

  function accept(call: Call): undefined {
    const { settings, request, response, head, record } = call;
    if (!settings.hasWebSocket) {
      response.setHeader("upgrade", "HTTP/1.1");
      const message = "WebSocket is switched off here (gateway.http.websocket). Use POST /v1/responses over HTTP.";
      throw new GatewayError("upgrade_required", message);
    }
    if (head === undefined)
      throw new GatewayError("malformed_http", "An upgrade needs the header 'Connection: Upgrade'.");
    createUpgrader(call).handleUpgrade(request, request.socket, head, (socket) => {
      record.status = switchingProtocols;
      // On a protocol violation, the library closes with the right code before it emits this.
      socket.on("error", () => {});
      const retire = openConnection(socket, call, parts);
      retirings.add(retire);
      socket.once("close", () => retirings.delete(retire));
    });
    return undefined;
  }

  return {
    route: behind("responses")("UPGRADE", "/v1/responses", accept),
    /** How many are open. */
    count: () => retirings.size,
    /** The gateway closes: what runs may end, and nothing begins. */
    retire(): void {
      for (const retire of retirings) retire();
    },
  };
}

/** Node brings upgrades without a response, which a refusal needs. */
export function serveUpgrades(
  server: Server,
  serve: (request: IncomingMessage, response: ServerResponse, head: Buffer) => void,
): void {
  server.on("upgrade", (request, _stream, head) => {
    const { socket } = request;
    // Node has just released it, and an unhandled error would end the process.
    socket.on("error", () => socket.destroy());
    const response = new (process.getBuiltinModule("node:http").ServerResponse)(request);
    // Node parses no more requests on this connection.
    response.shouldKeepAlive = false;
    response.once("finish", () => socket.destroy());
    try {
      response.assignSocket(socket);
    } catch {
      // It was pipelined behind a request that is still answered: the two answers could not be told apart.
      return void socket.destroy();
    }
    serve(request, response, head);
  });
}

const switchingProtocols = 101;
/** How long a client may take to read the rest and to close. */
const maxCloseMs = 2_000;
const require = createRequire(import.meta.url);

/** Accepts one upgrade, or throws if it is malformed. Loads the library on the first one. */
function createUpgrader({ record, response, settings }: Call): ws.WebSocketServer {
  const { WebSocketServer } = require("ws") as typeof ws;
  const options = {
    noServer: true,
    clientTracking: false,
    maxPayload: settings.limits.maxBodyBytes,
    // Its types do not know it yet.
    closeTimeout: maxCloseMs,
    // Many tiny frames may arrive in one read, and everybody would wait for all of them.
    allowSynchronousEvents: false,
  };
  const server = new WebSocketServer(options);
  server.on("headers", (headers) => void headers.push(`x-request-id: ${record.id}`));
  server.on("wsClientError", ({ message }) => {
    response.setHeader("sec-websocket-version", "13");
    throw new GatewayError("malformed_http", `This WebSocket handshake cannot be accepted: ${message}.`);
  });
  return server;
}
