/** Upgrades of requests to WebSockets: each passes the same hooks and the same route as a request, and is refused as one. */
import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type * as ws from "ws";
import { answerMalformed } from "../errors.ts";

export interface Upgrades {
  /** Hears them from now on, and hands them to the routes. */
  hear(app: FastifyInstance): void;
  /** Whether a request came as one. */
  has(incoming: IncomingMessage): boolean;
  /** Makes the request a connection, unless it is not well-formed. */
  accept(request: FastifyRequest, maxFrameBytes: number, take: (socket: ws.WebSocket) => void): void;
}

export function createUpgrades(): Upgrades {
  /** What the client has sent behind the request. */
  const heads = new WeakMap<IncomingMessage, Buffer>();
  const names = new WeakMap<IncomingMessage, string>();
  let server: ws.WebSocketServer | undefined;

  return {
    hear(app) {
      app.server.on("upgrade", (incoming, _stream, head) => {
        const { socket } = incoming;
        // Node has just let go of it, and a failure that nobody hears ends the process.
        socket.on("error", () => socket.destroy());
        heads.set(incoming, head);
        route(app, incoming);
      });
    },
    has: (incoming) => heads.has(incoming),
    accept({ raw: incoming, id }, maxFrameBytes, take) {
      names.set(incoming, id);
      server ??= openServer(names);
      server.options.maxPayload = maxFrameBytes;
      server.handleUpgrade(incoming, incoming.socket, heads.get(incoming) ?? Buffer.alloc(0), take);
    },
  };
}

export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/** An upgrade comes without a response, which a refusal needs. */
function route(app: FastifyInstance, incoming: IncomingMessage): void {
  const { socket } = incoming;
  // An import of node:http loads whatever it exports, which no start should wait for.
  const { ServerResponse } = process.getBuiltinModule("node:http");
  const response = new ServerResponse(incoming);
  response.once("finish", () => socket.destroy());
  try {
    response.assignSocket(socket);
  } catch {
    // It was sent behind a request that is still being answered: that answer can no longer be told apart from this one.
    return void socket.destroy();
  }
  app.routing(incoming, response);
}

const require = createRequire(import.meta.url);

/** The library is loaded for the first connection. */
function openServer(names: WeakMap<IncomingMessage, string>): ws.WebSocketServer {
  const { WebSocketServer } = require("ws") as typeof ws;
  const server = new WebSocketServer({ noServer: true, clientTracking: false, autoPong: false });
  server.on("headers", (headers, incoming) => {
    headers.push(`x-request-id: ${names.get(incoming)}`);
  });
  server.on("wsClientError", (error, _stream, incoming) => {
    answerMalformed(error, incoming.socket, names.get(incoming) ?? "");
  });
  return server;
}
