/** The front door: a listener that knows its callers, keeps its limits and hands turns to the gateway. */
import cors from "@fastify/cors";
import fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { GatewayError } from "../core/errors.ts";
import type { Gateway } from "../core/gateway.ts";
import type { Protocol } from "../core/ports.ts";
import type { ResponsesProtocol } from "../protocols/responses/index.ts";
import { createGuard, type Token } from "./auth.ts";
import { cutWhenStalled } from "./client.ts";
import { answerMalformed, sendError, translateError } from "./errors.ts";
import { createJournal, type DoorLog } from "./journal.ts";
import { createMetrics } from "./metrics.ts";
import type { Operator } from "./operator.ts";
import { createRateLimit } from "./rate.ts";
import { addRoutes } from "./router.ts";
import { toRoutes } from "./routes.ts";
import type { HttpSettings } from "./settings.ts";
import { removeDeadSocket } from "./socket.ts";
import { toRemarkHeaders } from "./tell.ts";
import { createTurns, drainingError } from "./turns.ts";
import { createWebSockets } from "./websocket.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The caller's token; only routes without a guard have none. */
    token: Token;
  }
}

export interface DoorParts {
  readonly settings: HttpSettings;
  readonly gateway: Gateway;
  readonly protocols: { readonly chat: Protocol; readonly responses: ResponsesProtocol };
  /** The models a caller may choose from. */
  readonly models: () => Promise<readonly string[]>;
  /** Whether each adapter is let be: `open` keeps turns away from one that has failed too often. */
  readonly adapters: () => readonly { readonly name: string; readonly state: "closed" | "open" | "half-open" }[];
  /** Throws when turns cannot be taken now. */
  readonly ready: () => Promise<void>;
  readonly now: () => Date;
  readonly newId: (prefix: "resp" | "req") => string;
  readonly log: DoorLog;
  /** Absent: there are no routes for the operator. */
  readonly operator?: Operator | undefined;
}

export interface Door {
  listen(): Promise<string>;
  /** Stops accepting, lets running turns end, calls off what takes longer than the drain time-out. */
  close(): Promise<void>;
}

/** What the pages of other origins may read. */
const exposedHeaders = [
  "x-request-id",
  "retry-after",
  "x-portico-session",
  "x-portico-history",
  "x-portico-context",
  "x-portico-replayed",
  "x-portico-tried",
  "x-portico-warning",
  "x-portico-tokens",
] as const;

/** What a turn that was called off may still take to tell its caller why. */
const partingMs = 1_000;

export function createDoor(parts: DoorParts): Door {
  const { settings, now } = parts;
  const { limits } = settings;
  const turns = createTurns(limits.maxConcurrentTurns);
  const guard = createGuard(settings.tokens, limits.maxAuthFailuresPerMinute, now);
  const rate = createRateLimit(limits.rate, now);
  const metrics = createMetrics({ adapters: parts.adapters, turns: () => turns.count });
  const journal = createJournal(parts.log, metrics.count);
  const sockets = createWebSockets({
    ...parts,
    ...settings,
    settings: settings.webSocket,
    turns,
    journal,
    protocol: parts.protocols.responses,
    newTurnId: () => parts.newId("resp"),
    admit(request) {
      const token = guard.admit(request.headers, request.ip);
      rate.take(token);
      return token;
    },
  });
  const app = fastify({
    logger: false,
    http: {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: 0, // a body may take long as long as it moves: readJsonBody watches it
      connectionsCheckingInterval: Math.min(1000, limits.headersTimeoutMs),
      keepAliveTimeout: 75_000, // longer than the idle time of common proxies, so that they close first
      requireHostHeader: false, // checked below, in the one error shape
      shouldUpgradeCallback: sockets.isUpgrade, // some clients offer `h2c` with every request
    },
    bodyLimit: limits.maxBodyBytes,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    genReqId: () => parts.newId("req"),
    clientErrorHandler: (error, socket) => answerMalformed(error, socket, parts.newId("req")),
    frameworkErrors: (error, request, reply) => fail(error, request as FastifyRequest, reply as FastifyReply),
  });

  function fail(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const error = translateError(thrown);
    journal.report(error, request);
    reply.header("x-request-id", request.id);
    if (request.about !== undefined) reply.headers(toRemarkHeaders(request.about.remarks));
    sendError(error, reply);
  }

  app.removeAllContentTypeParsers();
  // The body is read by the route that wants it, so that a bad one leaves the connection usable.
  app.addContentTypeParser("application/json", (_request, _payload, done) => done(null));
  app.setErrorHandler(fail);
  app.setNotFoundHandler((request) => {
    throw new GatewayError("unknown_url", `Unknown request URL: ${request.method} ${request.url.split("?")[0]}.`);
  });
  app.decorateRequest("token");
  app.decorateRequest("about", undefined);
  app.decorateRequest("failure", undefined);
  app.decorateRequest("isUpgraded", false);
  sockets.install(app);
  app.addHook("onRequest", (request, reply, done) => {
    // No cache on the way keeps what a token has opened; streams say the same in their own words.
    reply.headers({ "x-request-id": request.id, "cache-control": "no-store" });
    journal.follow(request, reply);
    reply.raw.once("prefinish", () => cutWhenStalled(reply.raw, limits.stalledClientTimeoutMs));
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") {
      throw new GatewayError("malformed_http", "A request needs the header 'Host'.");
    }
    done();
  });
  if (settings.corsOrigins.length > 0) {
    const shared = {
      origin: [...settings.corsOrigins],
      methods: ["GET", "POST", "DELETE"],
      exposedHeaders: [...exposedHeaders],
      maxAge: 600,
      strictPreflight: false,
    };
    // The endpoints are for pages, the operator's routes for none.
    app.register(cors, {
      delegator: async ({ routeOptions: { url } }: FastifyRequest) =>
        url?.startsWith("/operator/") === true ? { origin: false } : shared,
    });
  }
  app.addHook("onRequest", (request, _reply, done) => {
    if (request.routeOptions.config.open) return done();
    request.token = guard.admit(request.headers, request.ip);
    if (turns.draining) throw drainingError();
    if (!request.ws) rate.take(request.token); // a connection's turns count one by one
    done();
  });
  app.addHook("onResponse", (_request, _reply, done) => {
    // A connection that was kept alive for this answer would hold up the closing.
    if (turns.draining) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
  // Whatever a client expects of us, it gets an ordinary answer.
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
  // As a plugin, so that they come after those that change how routes are added.
  const routes = toRoutes({ ...parts, turns, sockets, metrics, report: journal.report });
  app.register(async (rooms) => addRoutes(rooms, routes, settings.endpoints));

  return {
    async listen() {
      const { listen } = settings;
      if ("path" in listen) await removeDeadSocket(listen.path);
      const address = await app.listen("path" in listen ? listen : { ...listen, backlog: 4096 });
      return "path" in listen ? `unix:${listen.path}` : address;
    },
    async close() {
      turns.drain();
      sockets.retire();
      const overdue = setTimeout(() => turns.abort(), limits.drainTimeoutMs);
      const parting = setTimeout(() => {
        app.server.closeAllConnections();
        sockets.cut();
      }, limits.drainTimeoutMs + partingMs);
      await app.close();
      clearTimeout(overdue);
      clearTimeout(parting);
    },
  };
}
