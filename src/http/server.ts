/** The HTTP server behind the door: Node's own, with requests and replies as the routes know them. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo, ListenOptions, Socket } from "node:net";
import type { GatewayError } from "../core/errors.ts";
import { answerMalformed, answerTunnel } from "./errors.ts";
import type { Journal } from "./journal.ts";
import { HttpReply, type ReplyParts } from "./reply.ts";
import { type Arrived, createRequest, type HttpRequest } from "./request.ts";

export interface ServerParts extends ReplyParts {
  readonly headersTimeoutMs: number;
  readonly newRequestId: () => string;
  /** Whether a request leaves HTTP: some clients offer `h2c` with every one. */
  readonly isUpgrade: (incoming: IncomingMessage) => boolean;
  /** The terms of a request, and its route. */
  readonly receive: (target: string) => Omit<Arrived, "id" | "raw">;
  /** What it returns is sent, unless it has sent something itself. */
  readonly answer: (request: HttpRequest, reply: HttpReply) => Promise<unknown>;
  /** A bug of ours, in an answer that had begun or in telling of another one: the caller must not wait for more. */
  readonly cut: (thrown: unknown, reply: HttpReply) => void;
  /** Told of what was refused before it was a request. */
  readonly refused: Journal["refuse"];
}

export interface HttpServer {
  readonly server: Server;
  /** Answers a request; an upgrade brings a response of its own. */
  serve(incoming: IncomingMessage, response: ServerResponse): void;
  /** Returns the address. */
  listen(where: ListenOptions): Promise<string>;
  /** Accepts no connection, and resolves when all are closed; each closes with its next answer. */
  close(): Promise<void>;
}

export function createServer(parts: ServerParts): HttpServer {
  const { headersTimeoutMs, newRequestId, isUpgrade, receive, answer, refused } = parts;
  let isClosing = false;

  function refuse(socket: Socket, refusal: (requestId: string) => GatewayError | undefined): void {
    const requestId = newRequestId();
    const error = refusal(requestId);
    if (error !== undefined) refused(error, requestId, socket.remoteAddress);
  }

  async function answerRequest(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = createRequest({ id: newRequestId(), raw: incoming, ...receive(incoming.url ?? "") });
    const reply = new HttpReply(request, response, parts);
    response.on("error", ignore);
    if (isClosing) response.setHeader("connection", "close");
    try {
      const result = await answer(request, reply);
      if (!reply.isOver) reply.send(result);
    } catch (thrown) {
      try {
        if (reply.isOver) throw thrown;
        parts.fail(thrown, reply);
      } catch (bug) {
        parts.cut(bug, reply);
      }
    }
  }

  function serve(incoming: IncomingMessage, response: ServerResponse): void {
    // Without a reply there is nothing to tell a failure with.
    answerRequest(incoming, response).catch(() => response.destroy());
  }

  // Importing node:http loads all its exports, even fetch and WebSocket, which no start should wait for.
  const server = process.getBuiltinModule("node:http").createServer(
    {
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: Math.min(1000, headersTimeoutMs),
      requestTimeout: 0, // a body may take long if it keeps moving: readJsonBody checks
      requireHostHeader: false, // checked at admission, in the one error shape
      shouldUpgradeCallback: isUpgrade,
    },
    serve,
  );
  server.on("clientError", (error, socket) =>
    refuse(socket as Socket, (id) => answerMalformed(error, socket as Socket, id)),
  );
  // Any Expect header gets an ordinary answer; whoever reads the body sends 100 Continue.
  for (const expectation of ["checkExpectation", "checkContinue"]) {
    server.on(expectation, (request, response) => server.emit("request", request, response));
  }
  server.on("connect", ({ socket }) => refuse(socket, (id) => answerTunnel(socket, id)));

  return {
    server,
    serve,
    listen(where) {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      server.once("error", reject);
      server.listen(where, () => {
        server.off("error", reject);
        resolve(toUrl(server.address()));
      });
      return promise;
    },
    close() {
      isClosing = true;
      // It fails only if it never listened.
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Its `close` follows, and tells whoever wants to know. */
function ignore(): void {}

/** What a client can be pointed at. */
function toUrl(address: AddressInfo | string | null): string {
  if (address === null || typeof address === "string") return address ?? "";
  const host = address.address === "0.0.0.0" ? "127.0.0.1" : address.address;
  return `http://${address.family === "IPv6" ? `[${host}]` : host}:${address.port}`;
}
