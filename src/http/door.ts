/** The front door: a listener that knows its callers, enforces limits and hands turns to the gateway. */
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
import type { HttpReply } from "./reply.ts";
import type { Arrived, HttpRequest } from "./request.ts";
import { createFindRoute, isUpgrade } from "./router.ts";
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

  function receive(target: string): Omit<Arrived, "id" | "raw"> {
    const { route, params = {} } = findRoute(target) ?? {};
    return { terms, route, params };
  }

  async function answer(request: HttpRequest, reply: HttpReply): Promise<unknown> {
    // No cache may keep what a token has opened; streams replace this header with their own.
    reply.set({ "x-request-id": request.id, "cache-control": "no-store" });
    journal.follow(request, reply);
    reply.raw.once("prefinish", () => cutWhenStalled(reply.raw, request.terms.limits.stalledClientTimeoutMs));
    // With a promise each keeps its own async context; otherwise all would join the first one's trace.
    await new Promise<void>(beginTogether);
    // If the caller left meanwhile, its `close` event is past.
    if (reply.raw.destroyed) return reply.handOver();
    return admit(request, reply)?.(request, reply);
  }

  function fail(thrown: unknown, reply: HttpReply): void {
    const { request } = reply;
    const told = toGatewayError(thrown);
    // Closing has interrupted a live turn, but this caller is still here.
    const error = told.code === "interrupted" && turns.draining ? drainingError() : told;
    journal.report(error, request);
    reply.header("x-request-id", request.id);
    if (request.about !== undefined) reply.set(toRemarkHeaders(request.about.remarks));
    sendError(error, reply);
  }

  const { headersTimeoutMs } = settings.limits;
  const app = createServer({
    headersTimeoutMs,
    newRequestId: () => newId("req"),
    isUpgrade: (incoming) => terms.webSocket.enabled && isUpgrade(findRoute, incoming),
    receive,
    answer,
    beforeSend: (reply, text) => holdWhole(held, reply, text),
    fail,
    cut(thrown, { raw, request }) {
      journal.report(toGatewayError(thrown), request);
      if (!raw.writableEnded) raw.destroy();
    },
    refused: journal.refuse,
  });
  app.server.keepAliveTimeout = terms.limits.keepAliveTimeoutMs;
  const listener = createListener(app);
  const beginTogether = createCohort(createBurstWait(app.server));
  const admit = createAdmission(findRoute);
  sockets.install(app);
  const cutSilent = watchConnections(app.server, {
    maxUnanswered: () => terms.limits.maxPipelinedRequests,
    isDraining: () => turns.draining,
  });
  const close = prepareClosing({ app, listener, cutSilent, gateway, turns, arrivals, sockets });

  return {
    listen: () => listener.listen(settings),
    change(decisions) {
      terms = toTerms(decisions, lasting);
      app.server.keepAliveTimeout = terms.limits.keepAliveTimeoutMs;
    },
    close: () => close(terms.limits.drainTimeoutMs),
  };
}
