/** Every path that the door knows, in one table; other methods on them are refused with what is allowed. */
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import { GatewayError } from "../core/errors.ts";
import { toModel, toModelList } from "../protocols/models.ts";
import type { Endpoint } from "./auth.ts";
import { compact } from "./compact.ts";
import * as conversations from "./conversations.ts";
import type { DoorParts } from "./door.ts";
import type { Metrics } from "./metrics.ts";
import * as operator from "./operator.ts";
import { cancelResponse, deleteResponse, listInputItems, retrieveResponse } from "./responses.ts";
import { countInputTokens } from "./tokens.ts";
import { answerTurn, type TurnParts } from "./turn.ts";
import { drainingError, type Turns } from "./turns.ts";
import { asksForWebSocket, type WebSockets } from "./websocket.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Needs no token. */
    open?: boolean;
  }
}

type Answer = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

interface Route {
  readonly path: string;
  readonly methods: Readonly<Record<string, Answer>>;
  /** What its token must open; any of them where there are several; none: no token is needed. */
  readonly endpoints: readonly Endpoint[];
  /** A POST that may come without a body. */
  readonly needsNoBody?: boolean;
  /** It judges by itself of what type its body is. */
  readonly takesAnyType?: boolean;
  /** A GET may become a connection. */
  readonly sockets?: WebSockets;
}

export interface RouteParts extends DoorParts {
  readonly turns: Turns;
  readonly sockets: WebSockets;
  readonly metrics: Metrics;
  readonly report: TurnParts["report"];
}

function toTable(parts: RouteParts): readonly Route[] {
  const { protocols, settings, turns } = parts;
  const turn: TurnParts = {
    gateway: parts.gateway,
    turns,
    hints: settings.hints,
    limits: settings.limits,
    now: parts.now,
    newTurnId: () => parts.newId("resp"),
    report: parts.report,
  };
  const responses = { ...turn, protocol: protocols.responses };
  const since = parts.now();

  return [
    {
      path: "/v1/chat/completions",
      methods: { POST: (request, reply) => answerTurn(turn, protocols.chat, request, reply) },
      endpoints: ["chat"],
    },
    {
      path: "/v1/responses",
      methods: { POST: (request, reply) => answerTurn(turn, protocols.responses, request, reply) },
      endpoints: ["responses"],
      sockets: parts.sockets,
    },
    {
      path: "/v1/responses/compact",
      methods: { POST: (request, reply) => compact(responses, request, reply) },
      endpoints: ["responses"],
    },
    {
      path: "/v1/responses/input_tokens",
      methods: { POST: (request, reply) => countInputTokens(responses, request, reply) },
      endpoints: ["responses"],
    },
    {
      path: "/v1/responses/:id",
      methods: {
        GET: (request, reply) => retrieveResponse(responses, request, reply),
        DELETE: (request) => deleteResponse(responses, request),
      },
      endpoints: ["responses"],
    },
    {
      path: "/v1/responses/:id/cancel",
      methods: { POST: (request, reply) => cancelResponse(responses, request, reply) },
      endpoints: ["responses"],
      needsNoBody: true,
    },
    {
      path: "/v1/responses/:id/input_items",
      methods: { GET: (request) => listInputItems(responses, request) },
      endpoints: ["responses"],
    },
    {
      path: "/v1/conversations",
      methods: { POST: (request) => conversations.createConversation(responses, request) },
      endpoints: ["responses"],
      needsNoBody: true,
    },
    {
      path: "/v1/conversations/:id",
      methods: {
        GET: (request) => conversations.retrieveConversation(responses, request),
        POST: (request) => conversations.updateConversation(responses, request),
        DELETE: (request) => conversations.deleteConversation(responses, request),
      },
      endpoints: ["responses"],
    },
    {
      path: "/v1/conversations/:id/items",
      methods: {
        GET: (request) => conversations.listItems(responses, request),
        POST: (request, reply) => conversations.createItems(responses, request, reply),
      },
      endpoints: ["responses"],
    },
    {
      path: "/v1/conversations/:id/items/:item",
      methods: {
        GET: (request) => conversations.retrieveItem(responses, request),
        DELETE: (request, reply) => conversations.deleteItem(responses, request, reply),
      },
      endpoints: ["responses"],
    },
    {
      path: "/v1/models",
      methods: { GET: async () => toModelList(await parts.models(), since) },
      endpoints: ["chat", "responses"],
    },
    {
      path: "/v1/models/*",
      methods: {
        async GET(request) {
          const { "*": id } = request.params as { "*": string };
          if ((await parts.models()).includes(id)) return toModel(id, since);
          throw new GatewayError("not_found", `The model '${id}' is not one of those listed at /v1/models.`, {
            param: "model",
            wireCode: "model_not_found",
          });
        },
      },
      endpoints: ["chat", "responses"],
    },
    {
      path: "/metrics",
      methods: {
        async GET(_request, reply) {
          const { contentType, text } = await parts.metrics.read();
          return reply.header("content-type", contentType).send(text);
        },
      },
      endpoints: ["operator"],
    },
    ...(parts.operator === undefined ? [] : toOperatorTable({ operator: parts.operator, ...turn })),
    { path: "/healthz", methods: { GET: async () => ({ status: "ok" }) }, endpoints: [] },
    {
      path: "/readyz",
      methods: {
        async GET() {
          if (turns.draining) throw drainingError();
          await parts.ready().catch(hideCause);
          return {
            status: "ready",
            adapters: Object.fromEntries(parts.adapters().map(({ name, state }) => [name, state])),
          };
        },
      },
      endpoints: [],
    },
  ];
}

function toOperatorTable(parts: operator.OperatorParts): readonly Route[] {
  return [
    {
      path: "/operator/sessions",
      methods: { GET: (request) => operator.listSessions(parts, request) },
      endpoints: ["operator"],
    },
    {
      path: "/operator/sessions/:id",
      methods: {
        GET: (request, reply) => operator.showSession(parts, request, reply),
        DELETE: (request) => operator.deleteSession(parts, request),
      },
      endpoints: ["operator"],
    },
    {
      path: "/operator/export",
      methods: { GET: (request, reply) => operator.exportArchive(parts, request, reply) },
      endpoints: ["operator"],
    },
    {
      path: "/operator/import",
      methods: { POST: (request) => operator.importArchive(parts, request) },
      endpoints: ["operator"],
      takesAnyType: true,
    },
    {
      path: "/operator/prune",
      methods: { POST: () => operator.prune(parts) },
      endpoints: ["operator"],
      needsNoBody: true,
    },
  ];
}

/** Whoever asks without a token learns that turns cannot be kept, not where they would be. */
function hideCause(thrown: unknown): never {
  throw new GatewayError("store_unavailable", "The session store is not available; the gateway's log has the cause.", {
    retryAfterSeconds: 1,
    cause: thrown,
  });
}

/** GET routes answer HEAD too. */
const methodNames: readonly HTTPMethods[] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

export function addRoutes(app: FastifyInstance, parts: RouteParts): void {
  for (const route of toTable(parts)) {
    if (route.takesAnyType !== true) addRoute(app, route, parts);
    else {
      app.register(async (scope) => {
        scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
        addRoute(scope, route, parts);
      });
    }
  }
}

function addRoute(app: FastifyInstance, route: Route, parts: RouteParts): void {
  const open = route.endpoints.length === 0;
  const check = (request: FastifyRequest): void => {
    if (!open) checkToken(route.endpoints, request, parts.settings.endpoints);
    if (route.needsNoBody !== true) checkLength(request);
  };
  const onRequest = (request: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
    check(request);
    done();
  };
  for (const [method, answer] of Object.entries(route.methods)) {
    app.route({ method, url: route.path, config: { open }, onRequest, handler: answer });
  }
  const allowed = Object.keys(route.methods);
  const refuse = (request: FastifyRequest, reply: FastifyReply): never => {
    reply.header("allow", allowed.join(", "));
    throw new GatewayError(
      "method_not_allowed",
      `Method ${request.method} is not allowed on ${route.path}; use ${allowed.join(" or ")}.`,
    );
  };
  const refused = methodNames.filter((method) => !allowed.includes(method));
  const { sockets } = route;
  if (sockets !== undefined) {
    app.route({
      method: refused.splice(refused.indexOf("GET"), 1),
      url: route.path,
      config: { open },
      onRequest(request, reply, done) {
        if (!asksForWebSocket(request.raw)) refuse(request, reply);
        check(request);
        sockets.check(request, reply);
        done();
      },
      handler: () => undefined,
      wsHandler: sockets.talk,
    });
  }
  app.route({ method: refused, url: route.path, config: { open }, onRequest: refuse, handler: () => undefined });
}

const endpointKeys = { chat: "compat_chat", responses: "compat_responses" } as const;

function checkToken(
  wanted: readonly Endpoint[],
  request: FastifyRequest,
  enabled: { readonly chat: boolean; readonly responses: boolean },
): void {
  if (!wanted.some((endpoint) => request.token.opens.has(endpoint))) {
    throw new GatewayError("endpoint_not_allowed", "This token is valid, but it does not open this route.");
  }
  const [only, ...others] = wanted;
  if (others.length > 0 || only === undefined || only === "operator" || enabled[only]) return;
  throw new GatewayError(
    "endpoint_disabled",
    `This endpoint is disabled. The operator can enable it with "gateway.http.endpoints.${endpointKeys[only]}": true.`,
  );
}

function checkLength(request: FastifyRequest): void {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  if (request.method !== "POST" || length !== undefined || encoding !== undefined) return;
  throw new GatewayError(
    "length_required",
    "A POST needs a body with 'Content-Length' or 'Transfer-Encoding: chunked'.",
  );
}
