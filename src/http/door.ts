/** The front door: a listener that knows its callers, enforces limits and hands turns to the gateway. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { createCohort } from "../core/cohort.ts";
import { drainingError, toGatewayError } from "../core/errors.ts";
import type { Gateway } from "../core/gateway.ts";
import { createAdmission } from "./admission.ts";
import { cutWhenStalled } from "./client.ts";
import { prepareClosing } from "./closing.ts";
import { createBurstWait } from "./burst.ts";
import { watchConnections } from "./connections.ts";
import { sendError } from "./errors.ts";
import type { DoorLog } from "./lines.ts";
import { createListener } from "./listener.ts";
import type { Metrics, MetricSources } from "./metrics.ts";
import type { Operator } from "./operator.ts";
import { answerRequests, createFindRoute, isUpgrade } from "./router.ts";
import { toRoutes } from "./routes.ts";
import { createServer } from "./server.ts";
import { toRemarkHeaders } from "./send.ts";
import { createLasting, type Decisions, toTerms } from "./terms.ts";
import type { Tracer } from "./trace.ts";
import { holdWhole } from "./unread.ts";
import { createWebSockets } from "./websocket.ts";

export interface DoorParts extends Decisions {
  readonly gateway: Gateway;
  /** The models a caller may choose from. */
  readonly models: () => Promise<readonly string[]>;
  /** The breaker state of each adapter: `open` keeps turns away after too many failures. */
  readonly adapters: MetricSources["adapters"];
  /** Throws if no turn can be taken now. */
  readonly ready: () => Promise<void>;
  readonly now: () => Date;
  /** Counts on steadily, however the clock is set; by default the clock. */
  readonly elapsedMs?: (() => number) | undefined;
  readonly newId: (prefix: "resp" | "req") => string;
  readonly log: DoorLog;
  /** Others count here too. */
  readonly metrics: Metrics;
  /** Absent: no spans are made. */
  readonly tracer?: Tracer | undefined;
  readonly operator: Operator;
}

export interface Door {
  listen(): Promise<string>;
  /** Accepts requests on other terms from now on. The address and the headers' time-out stay as they are. */
  change(decisions: Decisions): void;
  /** Stops accepting, lets running turns end, cancels what takes longer than the drain time-out. */
  close(): Promise<void>;
}

export function createDoor(parts: DoorParts): Door {
  const { settings, gateway, adapters, ready, newId, metrics } = parts;
  const lasting = createLasting(parts, () => terms.limits);
  const { turns, arrivals, held, remembered, journal } = lasting;
  let terms = toTerms(parts, lasting);
  const sockets = createWebSockets(() => terms);
  const sources: MetricSources = {
    adapters,
    ready,
    turns: () => turns.count,
    heldBytes: () => held.bytes + remembered.bytes,
    load: () => gateway.load(),
    connections: () => sockets.count(),
  };
  const routes = toRoutes({ ...parts, turns, sockets, readMetrics: () => metrics.read(sources) });
  const findRoute = createFindRoute(routes);

  async function begin(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    request.terms = terms;
    const found = findRoute(request.originalUrl);
    request.route = found?.route;
    request.params = found?.params;
    // No cache may keep what a token has opened; streams replace this header with their own.
    reply.headers({ "x-request-id": request.id, "cache-control": "no-store" });
    journal.follow(request, reply);
    reply.raw.once("prefinish", () => cutWhenStalled(reply.raw, request.terms.limits.stalledClientTimeoutMs));
    // With a promise each keeps its own async context; otherwise all would join the first one's trace.
    await new Promise<void>(beginTogether);
    // If the caller left meanwhile, its `close` event is past.
    if (reply.raw.destroyed) reply.hijack();
  }

  function fail(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const told = toGatewayError(thrown);
    // Closing has interrupted a live turn, but this caller is still here.
    const error = told.code === "interrupted" && turns.draining ? drainingError() : told;
    journal.report(error, request);
    reply.header("x-request-id", request.id);
    if (request.about !== undefined) reply.headers(toRemarkHeaders(request.about.remarks));
    sendError(error, reply);
  }

  const { headersTimeoutMs } = settings.limits;
  const app = createServer({
    headersTimeoutMs,
    newRequestId: () => newId("req"),
    isUpgrade: (incoming) => terms.webSocket.enabled && isUpgrade(findRoute, incoming),
    fail,
    refused: journal.refuse,
  });
  app.server.keepAliveTimeout = terms.limits.keepAliveTimeoutMs;
  const listener = createListener(app);
  const beginTogether = createCohort(createBurstWait(app.server));
  sockets.install(app);
  app.addHook("onRequest", begin);
  app.addHook("onRequest", createAdmission(findRoute));
  app.addHook("onSend", (_request, reply, payload, done) => {
    holdWhole(held, reply, payload);
    done(null, payload);
  });
  const cutSilent = watchConnections(app.server, () => terms.limits.maxPipelinedRequests);
  const close = prepareClosing({ app, listener, cutSilent, gateway, turns, arrivals, sockets });
  answerRequests(app);

  return {
    listen: () => listener.listen(settings),
    change(decisions) {
      terms = toTerms(decisions, lasting);
      app.server.keepAliveTimeout = terms.limits.keepAliveTimeoutMs;
    },
    close: () => close(terms.limits.drainTimeoutMs),
  };
}
