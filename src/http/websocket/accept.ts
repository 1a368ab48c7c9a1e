/** The WebSocket form of the responses endpoint: accepts requests to become one, and lets the connections go in the end. */
import { type IncomingMessage, type Server, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type * as ws from "ws";
import { GatewayError } from "../../core/errors.ts";
import type { Call, Route } from "../call.ts";
import { type Connection, openConnection } from "./connection.ts";
import { type SocketParts, switchedOff } from "./turn.ts";

export function createWebSockets(parts: SocketParts) {
  const connections = new Set<Connection>();

  function accept(call: Call): undefined {
    const { settings, request, response, head, record } = call;
    if (!settings.hasWebSocket) {
      response.setHeader("upgrade", "HTTP/1.1");
      throw switchedOff();
    }
    if (head === undefined)
      throw new GatewayError("malformed_http", "An upgrade needs the header 'Connection: Upgrade'.");
    createUpgrader(call).handleUpgrade(request, request.socket, head, (socket) => {
      record.status = switchingProtocols;
      // On a protocol violation, the library closes with the right code before it emits this.
      socket.on("error", () => {});
      const connection = openConnection(socket, call, parts);
      connections.add(connection);
      socket.once("close", () => connections.delete(connection));
    });
    return undefined;
  }

  return {
    route: { method: "UPGRADE", path: "/v1/responses", doors: ["responses"], handle: accept } satisfies Route,
    /** How many are open. */
    count: () => connections.size,
    /** The gateway closes: what runs may end, and nothing begins. */
    retire(): void {
      for (const connection of connections) connection.retire();
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
    const response = new ServerResponse(request);
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
const require = createRequire(import.meta.url);

/** Accepts one upgrade, or throws if it is malformed. Loads the library on the first one. */
function createUpgrader({ record, response, settings }: Call): ws.WebSocketServer {
  const { WebSocketServer } = require("ws") as typeof ws;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // Whoever only sends pings and never reads would fill the memory.
    autoPong: false,
    maxPayload: settings.limits.maxBodyBytes,
    // Many tiny frames may arrive in one read, and everybody would wait for all of them.
    allowSynchronousEvents: false,
  });
  server.on("headers", (headers) => void headers.push(`x-request-id: ${record.id}`));
  server.on("wsClientError", ({ message }) => {
    response.setHeader("sec-websocket-version", "13");
    throw new GatewayError("malformed_http", `This WebSocket handshake cannot be accepted: ${message}.`);
  });
  return server;
}
