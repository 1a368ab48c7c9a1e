/** The front door: a listener that knows its callers, keeps its limits and hands turns to the gateway. */
import { chmodSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { createCohort } from "../core/cohort.ts";
import { drainingError, GatewayError } from "../core/errors.ts";
import type { Gateway } from "../core/gateway.ts";
import { createArrivals } from "./arrivals.ts";
import { createFailureCount, type Token } from "./auth.ts";
import { cutWhenStalled } from "./client.ts";
import { sayCors } from "./cors.ts";
import { answerMalformed, sendError, translateError } from "./errors.ts";
import { createHoldings } from "./held.ts";
import { createJournal } from "./journal.ts";
import type { DoorLog } from "./lines.ts";
import type { Metrics, MetricSources } from "./metrics.ts";
import type { Operator } from "./operator.ts";
import { toRouteUrl } from "./paths.ts";
import { addRoutes, checkToken, findRoute, isCounted, refuseUnrouted } from "./router.ts";
import { toRoutes } from "./routes.ts";
import { watchSilence } from "./silence.ts";
import { removeDeadSocket } from "./socket.ts";
import { toRemarkHeaders } from "./tell.ts";
import { type Decisions, type Lasting, toTerms } from "./terms.ts";
import type { Tracer } from "./trace.ts";
import { createTurns } from "./turns.ts";
import { holdWhole } from "./unread.ts";
import { createWebSockets, switchedOff } from "./websocket.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The caller's token; only routes without a guard have none. */
    token: Token;
  }
}

export interface DoorParts extends Decisions {
  readonly gateway: Gateway;
  /** The models a caller may choose from. */
  readonly models: () => Promise<readonly string[]>;
  /** Whether each adapter is let be: `open` keeps turns away from one that has failed too often. */
  readonly adapters: MetricSources["adapters"];
  /** Throws when turns cannot be taken now. */
  readonly ready: () => Promise<void>;
  readonly now: () => Date;
  readonly newId: (prefix: "resp" | "req") => string;
  readonly log: DoorLog;
  /** Where others count too. */
  readonly metrics: Metrics;
  /** Absent: nobody gathers spans. */
  readonly tracer?: Tracer | undefined;
  readonly operator: Operator;
}

export interface Door {
  listen(): Promise<string>;
  /** Takes requests on other terms from now on. Where it listens and how long headers may take stay as they are. */
  change(decisions: Decisions): void;
  /** Stops accepting, lets running turns end, calls off what takes longer than the drain time-out. */
  close(): Promise<void>;
}

/** What a turn that was called off may still take to tell its caller why. */
const partingMs = 1_000;
/** What a request on a new connection may still take to arrive while the gateway closes. */
const arrivingMs = 500;
/** What connections remember, of what requests may take: a client whose memory is gone shows it again. */
const rememberedShare = 4;

export function createDoor(parts: DoorParts): Door {
  const { gateway, now, metrics, operator } = parts;
  const { listen, limits } = parts.settings;
  const held = createHoldings(
    () => terms.limits.maxHeldBytes,
    "Requests that are worked on and answers that are not read yet",
  );
  const remembered = createHoldings(
    () => terms.limits.maxHeldBytes / rememberedShare,
    "What WebSocket connections remember",
  );
  const turns = createTurns(() => terms.limits.maxConcurrentTurns, held);
  const arrivals = createArrivals(() => terms.limits.maxArrivingBytes);
  const journal = createJournal(parts.log, metrics.count, parts.tracer);
  const lasting: Lasting = {
    gateway,
    turns,
    arrivals,
    held,
    operator,
    now,
    newTurnId: () => parts.newId("resp"),
    report: journal.report,
    failures: createFailureCount(),
    buckets: new Map(),
  };
  let terms = toTerms(parts, lasting);
  const sockets = createWebSockets(() => ({ ...terms, journal, admit, remembered }));
  const beginTogether = createCohort(setImmediate);
  const app = fastify({
    logger: false,
    http: {
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(1000, limits.headersTimeoutMs),
      requireHostHeader: false, // checked below, in the one error shape
      shouldUpgradeCallback: sockets.isUpgrade, // some clients offer `h2c` with every request
    },
    requestTimeout: 0, // a body may take long as long as it moves: readJsonBody watches it
    keepAliveTimeout: 75_000, // longer than the idle time of common proxies, so that they close first
    schemaController: { compilersFactory: { buildValidator: compileNothing, buildSerializer: compileNothing } },
    routerOptions: { maxParamLength: 1_024 }, // ids of hosted items have their maker's in front
    forceCloseConnections: "idle",
    return503OnClosing: false,
    rewriteUrl: ({ url = "" }) => toRouteUrl(url),
    genReqId: () => parts.newId("req"),
    clientErrorHandler: (error, socket) => answerMalformed(error, socket, parts.newId("req")),
    frameworkErrors: (error, request, reply) => fail(error, request as FastifyRequest, reply as FastifyReply),
  });

  /** A connection was let in on the terms of its time; each of its turns needs those of now. */
  function admit(request: FastifyRequest): Token {
    const { settings, guard, rate } = terms;
    const token = guard.admit(request.headers, request.ip);
    checkToken(["responses"], token, settings);
    if (!settings.webSocket.enabled) throw switchedOff();
    if (turns.draining) throw drainingError();
    rate.take(token);
    return token;
  }

  function fail(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const told = translateError(thrown);
    // A turn that goes on without its caller is interrupted, but this caller is still here.
    const error = told.code === "interrupted" && turns.draining ? drainingError() : told;
    journal.report(error, request);
    reply.header("x-request-id", request.id);
    if (request.about !== undefined) reply.headers(toRemarkHeaders(request.about.remarks));
    sendError(error, reply);
  }

  app.removeAllContentTypeParsers();
  // The body is read by the route that wants it, so that a bad one leaves the connection usable.
  app.addContentTypeParser("application/json", (_request, _payload, done) => done(null));
  app.setErrorHandler(fail);
  app.decorateRequest("terms");
  app.decorateRequest("token");
  app.decorateRequest("about", undefined);
  app.decorateRequest("failure", undefined);
  app.decorateRequest("firstByte", undefined);
  app.decorateRequest("usage", undefined);
  app.decorateRequest("isUpgraded", false);
  app.decorateRequest("span", undefined);
  sockets.install(app);
  app.addHook("onRequest", async (request, reply) => {
    request.terms = terms;
    // No cache on the way keeps what a token has opened; streams say the same in their own words.
    reply.headers({ "x-request-id": request.id, "cache-control": "no-store" });
    journal.follow(request, reply);
    reply.raw.once("prefinish", () => cutWhenStalled(reply.raw, request.terms.limits.stalledClientTimeoutMs));
    // By a promise, in which each keeps its own context: or all would be part of the first one's trace.
    await new Promise<void>(beginTogether);
    // Who has left meanwhile would not be seen to leave any more.
    if (reply.raw.destroyed) reply.hijack();
  });
  app.addHook("onRequest", (request, reply, done) => {
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") {
      throw new GatewayError("malformed_http", "A request needs the header 'Host'.");
    }
    if (sayCors(request, reply)) return;
    const route = request.is404 ? findRoute(request, routes) : undefined;
    const { endpoints } = route ?? request.routeOptions.config;
    if (endpoints?.length !== 0) {
      const { guard, rate } = request.terms;
      request.token = guard.admit(request.headers, request.ip);
      if (turns.draining) throw drainingError();
      if (isCounted(request)) rate.take(request.token);
    }
    // Here and not in its own place, because there the body would be looked at first.
    if (request.is404) refuseUnrouted(route, routes, request, reply);
    done();
  });
  app.addHook("onSend", (_request, reply, payload, done) => {
    holdWhole(held, reply, payload);
    done(null, payload);
  });
  app.addHook("onResponse", (_request, _reply, done) => {
    // A connection that was kept alive for this answer would hold up the closing.
    if (turns.draining) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
  const silence = watchSilence(app.server);
  // Whatever a client expects of us, it gets an ordinary answer; if that is to be asked for the body, whoever reads it does so.
  for (const expectation of ["checkExpectation", "checkContinue"]) {
    app.server.on(expectation, (request, response) => app.server.emit("request", request, response));
  }
  const { adapters, ready } = parts;
  const load = {
    turns: () => turns.count,
    heldBytes: () => held.bytes + remembered.bytes,
    load: () => gateway.load(),
    connections: () => sockets.count(),
  };
  const routes = toRoutes({ ...parts, turns, sockets, readMetrics: () => metrics.read({ adapters, ready, ...load }) });
  addRoutes(app, routes);

  return {
    async listen() {
      if (!("path" in listen)) return app.listen({ ...listen, backlog: 4096 });
      const { path, mode } = listen;
      await removeDeadSocket(path);
      await app.listen({ path });
      chmodSync(path, mode); // whoever connected before has a connection, and no token
      return `unix:${path}`;
    },
    change(decisions) {
      terms = toTerms(decisions, lasting);
    },
    async close() {
      const { drainTimeoutMs } = terms.limits;
      turns.drain();
      sockets.retire();
      // A request may be on its way; after that moment it is not.
      const silent = setTimeout(silence.cut, arrivingMs);
      const overdue = setTimeout(() => {
        arrivals.abort(drainingError());
        // Turns that go on without their callers come first, so that whoever follows one hears its end.
        void Promise.race([gateway.close(Promise.resolve()), wait(partingMs / 2, undefined, { ref: false })]).finally(
          () => setImmediate(turns.abort),
        );
      }, drainTimeoutMs);
      const parting = setTimeout(() => {
        app.server.closeAllConnections();
        sockets.cut();
      }, drainTimeoutMs + partingMs);
      await app.close();
      clearTimeout(silent);
      clearTimeout(overdue);
      clearTimeout(parting);
    },
  };
}

/** Stands where Fastify would load its compilers for schemas: no route has one. */
function compileNothing(): never {
  throw new Error("a route has a schema, which nothing compiles");
}
