/** The HTTP server behind the door: Fastify, set to leave bodies, schemas and bad requests to us. */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { GatewayError } from "../core/errors.ts";
import { answerMalformed, answerTunnel } from "./errors.ts";
import type { Journal } from "./journal.ts";
import { toQuery } from "./paths.ts";

export interface ServerParts {
  readonly headersTimeoutMs: number;
  readonly newRequestId: () => string;
  /** Whether a request leaves HTTP: some clients offer `h2c` with every one. */
  readonly isUpgrade: (incoming: IncomingMessage) => boolean;
  /** Answers with what went wrong. */
  readonly fail: (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => void;
  /** Told of what was refused before it was a request. */
  readonly refused: Journal["refuse"];
}

export function createServer(parts: ServerParts): FastifyInstance {
  const { headersTimeoutMs, newRequestId, isUpgrade, fail, refused } = parts;

  function refuse(socket: Socket, answer: (requestId: string) => GatewayError | undefined): void {
    const requestId = newRequestId();
    const error = answer(requestId);
    if (error !== undefined) refused(error, requestId, socket.remoteAddress);
  }

  const app = fastify({
    logger: false,
    http: {
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: Math.min(1000, headersTimeoutMs),
      requireHostHeader: false, // checked at admission, in the one error shape
      shouldUpgradeCallback: isUpgrade,
    },
    requestTimeout: 0, // a body may take long if it keeps moving: readJsonBody checks
    schemaController: { compilersFactory: { buildValidator: compileNothing, buildSerializer: compileNothing } },
    forceCloseConnections: "idle",
    return503OnClosing: false,
    // It only reads the query: routes are found by a table of their own.
    rewriteUrl: ({ url = "" }) => `/${toQuery(url)}`,
    genReqId: newRequestId,
    clientErrorHandler: (error, socket) => refuse(socket, (id) => answerMalformed(error, socket, id)),
  });
  // The route that wants a body reads it, so that a bad one leaves the connection usable.
  for (const method of ["POST", "DELETE"]) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  app.setErrorHandler(fail);
  for (const name of noted) app.decorateRequest(name);
  // Any Expect header gets an ordinary answer; whoever reads the body sends 100 Continue.
  for (const expectation of ["checkExpectation", "checkContinue"]) {
    app.server.on(expectation, (request, response) => app.server.emit("request", request, response));
  }
  app.server.on("connect", ({ socket }) => refuse(socket, (id) => answerTunnel(socket, id)));
  return app;
}

/** Properties of requests, declared so that all have one shape. */
const noted = ["terms", "route", "token", "about", "failure", "firstByte", "usage", "isUpgraded", "span"] as const;

/** Keeps Fastify from loading its schema compilers: no route has a schema. */
function compileNothing(): never {
  throw new Error("a route has a schema, which nothing compiles");
}
