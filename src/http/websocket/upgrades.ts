/** Upgrades requests to WebSockets: each passes the same hooks and route as any request, and is refused like one. */
import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type * as ws from "ws";
import { answerMalformed } from "../errors.ts";

export interface Upgrades {
  /** Listens for upgrades, and hands them to the routes. */
  attach(app: FastifyInstance): void;
  /** Whether a request is one. */
  has(incoming: IncomingMessage): boolean;
  /** Turns the request into a connection, unless it is malformed. */
  accept(request: FastifyRequest, maxFrameBytes: number, take: (socket: ws.WebSocket) => void): void;
}

export function createUpgrades(): Upgrades {
  /** What the client has sent after the request. */
  const heads = new WeakMap<IncomingMessage, Buffer>();
  const names = new WeakMap<IncomingMessage, string>();
  let server: ws.WebSocketServer | undefined;

  return {
    attach(app) {
      app.server.on("upgrade", (incoming, _stream, head) => {
        const { socket } = incoming;
        // Node has just released it, and an unhandled error would end the process.
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
  // Importing node:http loads all its exports, which no start should wait for.
  const { ServerResponse } = process.getBuiltinModule("node:http");
  const response = new ServerResponse(incoming);
  response.once("finish", () => socket.destroy());
  try {
    response.assignSocket(socket);
  } catch {
    // It was pipelined behind a request that is still being answered: the two answers could not be told apart.
    return void socket.destroy();
  }
  app.routing(incoming, response);
}

const require = createRequire(import.meta.url);

/** Loads the library on the first connection. */
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
