/** The WebSocket form of the responses endpoint: accepts requests to become one, and lets the connections go in the end. */
import { createRequire } from "node:module";
import type * as ws from "ws";
import { GatewayError } from "../core/errors.ts";
import type { Call, Route } from "./call.ts";
import { type Connection, openConnection } from "./websocket/connection.ts";
import { type SocketParts, switchedOff } from "./websocket/turn.ts";

export interface WebSockets {
  readonly route: Route;
  /** How many connections are open. */
  count(): number;
  /** The gateway closes: what runs may end, and nothing begins. */
  retire(): void;
}

export function createWebSockets(parts: SocketParts): WebSockets {
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
      record.isUpgraded = true;
      // On a protocol violation, the library closes with the right code before it emits this.
      socket.on("error", () => {});
      const connection = openConnection(socket, call, parts);
      connections.add(connection);
      socket.once("close", () => connections.delete(connection));
    });
    return undefined;
  }

  return {
    route: { method: "UPGRADE", path: "/v1/responses", doors: ["responses"], handle: accept },
    count: () => connections.size,
    retire() {
      for (const connection of connections) connection.retire();
    },
  };
}

const require = createRequire(import.meta.url);

/** Accepts one upgrade, or throws if it is malformed. Loads the library on the first one. */
function createUpgrader({ id, response, settings }: Call): ws.WebSocketServer {
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
  server.on("headers", (headers) => void headers.push(`x-request-id: ${id}`));
  server.on("wsClientError", ({ message }) => {
    response.setHeader("sec-websocket-version", "13");
    throw new GatewayError("malformed_http", `This WebSocket handshake cannot be accepted: ${message}.`);
  });
  return server;
}
