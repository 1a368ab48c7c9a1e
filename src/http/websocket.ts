/** The WebSocket form of the responses endpoint: accepts or refuses upgrades, and closes connections in the end. */
import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type * as ws from "ws";
import { drainingError, GatewayError } from "../core/errors.ts";
import type { Token } from "./auth.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";
import type { HttpServer } from "./server.ts";
import type { Terms } from "./terms.ts";
import { type Connection, openConnection } from "./websocket/connection.ts";
import { switchedOff } from "./websocket/turn.ts";

export interface WebSockets {
  /** Hands upgrades to the routes: each passes the same checks as any request, and is refused like one. */
  install(app: HttpServer): void;
  /** Accepts an upgrade, or refuses it with a status, while one can still be sent. */
  accept(request: HttpRequest, reply: HttpReply): void;
  /** How many connections are open. */
  count(): number;
  /** Lets running responses end, then closes their connections. */
  retire(): void;
  /** Ends all connections at once. */
  cut(): void;
}

/** The path of the HTTP form, which whoever gets no connection can use. */
const path = "/v1/responses";

/** `current` is read for every connection and every turn, since it may change. */
export function createWebSockets(current: () => Terms): WebSockets {
  /** The owner of each. */
  const connections = new Map<Connection, string>();
  /** What clients have sent after the requests that are upgrades. */
  const heads = new WeakMap<IncomingMessage, Buffer>();

  function check({ raw: incoming, token }: HttpRequest, reply: HttpReply): void {
    const { enabled, maxConnections } = current().webSocket;
    if (!enabled) {
      reply.set({ upgrade: "HTTP/1.1", connection: "upgrade" });
      throw switchedOff();
    }
    if (!heads.has(incoming))
      throw new GatewayError("malformed_http", "An upgrade needs the header 'Connection: Upgrade'.");
    if (connections.size >= maxConnections) {
      throw new GatewayError(
        "overloaded",
        `There are already ${maxConnections} connections (gateway.http.websocket.max_connections). Use POST ${path}, or try again shortly.`,
        { retryAfterSeconds: 5 },
      );
    }
    checkShare(token, [...connections.values()].filter((owner) => owner === token.owner).length);
  }

  return {
    install(app) {
      app.server.on("upgrade", (incoming, _stream, head) => {
        heads.set(incoming, head);
        route(app, incoming);
      });
    },
    accept(request, reply) {
      check(request, reply);
      const { raw: incoming } = request;
      const server = createUpgrader(reply, current().limits.maxBodyBytes);
      server.handleUpgrade(incoming, incoming.socket, heads.get(incoming) ?? Buffer.alloc(0), (socket) => {
        request.isUpgraded = true;
        // On a protocol violation, the library closes with the right code before it emits this.
        socket.on("error", () => {});
        const connection = openConnection(current, socket, request);
        connections.set(connection, request.token.owner);
        socket.once("close", () => connections.delete(connection));
      });
      reply.handOver();
    },
    count: () => connections.size,
    retire() {
      for (const connection of connections.keys()) connection.retire(drainingError());
    },
    cut() {
      for (const connection of connections.keys()) connection.cut();
    },
  };
}

export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/** An upgrade comes without a response, which a refusal needs. */
function route(app: Pick<HttpServer, "serve">, incoming: IncomingMessage): void {
  const { socket } = incoming;
  // Node has just released it, and an unhandled error would end the process.
  socket.on("error", () => socket.destroy());
  // Importing node:http loads all its exports, which no start should wait for.
  const { ServerResponse } = process.getBuiltinModule("node:http");
  const response = new ServerResponse(incoming);
  response.shouldKeepAlive = false; // Node parses no more requests on this connection
  response.once("finish", () => socket.destroy());
  try {
    response.assignSocket(socket);
  } catch {
    // It was pipelined behind a request that is still being answered: the two answers could not be told apart.
    return void socket.destroy();
  }
  app.serve(incoming, response);
}

const require = createRequire(import.meta.url);

/** Accepts one upgrade, or throws if it is malformed. Loads the library on the first one. */
function createUpgrader(reply: HttpReply, maxPayload: number): ws.WebSocketServer {
  const { WebSocketServer } = require("ws") as typeof ws;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    autoPong: false,
    maxPayload,
    // Many tiny frames may arrive in one read, and everybody would wait for all of them.
    allowSynchronousEvents: false,
  });
  server.on("headers", (headers) => void headers.push(`x-request-id: ${reply.request.id}`));
  server.on("wsClientError", ({ message }) => {
    reply.header("sec-websocket-version", "13");
    throw new GatewayError("malformed_http", `This WebSocket handshake cannot be accepted: ${message}.`);
  });
  return server;
}

/** A client needs a connection for each running turn, and may keep some idle. */
const minConnections = 4;

/** A token with limited turns has no use for many more connections. */
function checkShare({ maxConcurrentTurns = Infinity }: Token, connections: number): void {
  const most = Math.max(maxConcurrentTurns, minConnections);
  if (connections < most) return;
  throw new GatewayError(
    "rate_limit_exceeded",
    `This token may have ${most} connections at the same time. Close one, or use POST ${path}.`,
    { retryAfterSeconds: 5 },
  );
}
