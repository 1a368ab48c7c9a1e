/** Every path that the door knows, in one table. */
import type { FastifyRequest } from "fastify";
import { drainingError, GatewayError } from "../core/errors.ts";
import { toModel, toModelList } from "../protocols/models.ts";
import { compact } from "./compact.ts";
import { createConsole } from "./console.ts";
import * as conversations from "./conversations.ts";
import type { DoorParts } from "./door.ts";
import type { Metrics } from "./metrics.ts";
import * as operator from "./operator.ts";
import { forDeployment } from "./paths.ts";
import { cancelResponse, deleteResponse, listInputItems, retrieveResponse } from "./responses.ts";
import type { Route } from "./router.ts";
import { countInputTokens } from "./tokens.ts";
import { answerTurn } from "./turn.ts";
import type { Turns } from "./turns.ts";
import type { WebSockets } from "./websocket.ts";

export interface RouteParts extends DoorParts {
  readonly turns: Turns;
  readonly sockets: WebSockets;
  readonly readMetrics: () => ReturnType<Metrics["read"]>;
}

export function toRoutes(parts: RouteParts): readonly Route[] {
  const { turns } = parts;
  const sendPage = createConsole();
  const since = parts.now();

  return [
    {
      path: "/v1/chat/completions",
      methods: {
        POST: (request, reply) =>
          answerTurn(forDeployment(request.originalUrl, request.terms.protocols.chat), request, reply),
      },
      endpoints: ["chat"],
    },
    {
      path: "/v1/responses",
      methods: { POST: (request, reply) => answerTurn(request.terms.protocols.responses, request, reply) },
      endpoints: ["responses"],
      sockets: parts.sockets,
    },
    { path: "/v1/responses/compact", methods: { POST: compact }, endpoints: ["responses"] },
    { path: "/v1/responses/input_tokens", methods: { POST: countInputTokens }, endpoints: ["responses"] },
    { path: "/v1/responses/:id", methods: { GET: retrieveResponse, DELETE: deleteResponse }, endpoints: ["responses"] },
    {
      path: "/v1/responses/:id/cancel",
      methods: { POST: cancelResponse },
      endpoints: ["responses"],
      needsNoBody: true,
    },
    { path: "/v1/responses/:id/input_items", methods: { GET: listInputItems }, endpoints: ["responses"] },
    {
      path: "/v1/conversations",
      methods: { POST: conversations.createConversation },
      endpoints: ["responses"],
      needsNoBody: true,
    },
    {
      path: "/v1/conversations/:id",
      methods: {
        GET: conversations.retrieveConversation,
        POST: conversations.updateConversation,
        DELETE: conversations.deleteConversation,
      },
      endpoints: ["responses"],
    },
    {
      path: "/v1/conversations/:id/items",
      methods: { GET: conversations.listItems, POST: conversations.createItems },
      endpoints: ["responses"],
    },
    {
      path: "/v1/conversations/:id/items/:item",
      methods: { GET: conversations.retrieveItem, DELETE: conversations.deleteItem },
      endpoints: ["responses"],
    },
    {
      path: "/v1/models",
      methods: {
        async GET(request, reply) {
          reply.header("x-portico-endpoints", openEndpoints(request).join(", "));
          return toModelList(await parts.models(), since);
        },
      },
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
          const { contentType, text } = await parts.readMetrics();
          return reply.header("content-type", contentType).send(text);
        },
      },
      endpoints: ["metrics", "operator"],
    },
    { path: "/console", methods: { GET: sendPage }, endpoints: [] },
    { path: "/console/*", methods: { GET: sendPage }, endpoints: [] },
    {
      path: "/operator/sessions",
      methods: { GET: operator.listSessions, DELETE: operator.deleteSessions },
      endpoints: ["operator"],
    },
    {
      path: "/operator/sessions/:id",
      methods: { GET: operator.showSession, DELETE: operator.deleteSession },
      endpoints: ["operator"],
    },
    { path: "/operator/export", methods: { GET: operator.exportArchive }, endpoints: ["operator"] },
    {
      path: "/operator/import",
      methods: { POST: operator.importArchive },
      endpoints: ["operator"],
      takesAnyType: true,
    },
    { path: "/operator/prune", methods: { POST: operator.prune }, endpoints: ["operator"], needsNoBody: true },
    { path: "/healthz", methods: { GET: async () => ({ status: "ok" }) }, endpoints: [] },
    {
      path: "/readyz",
      methods: {
        async GET() {
          if (turns.draining) throw drainingError();
          await parts.ready();
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

/** Where the caller may send a turn: the enabled endpoints that its token opens. */
function openEndpoints({ token, terms: { endpoints } }: FastifyRequest): readonly string[] {
  return (["chat", "responses"] as const).flatMap((name) =>
    endpoints[name] && token.opens.has(name) ? [endpointPaths[name]] : [],
  );
}

const endpointPaths = { chat: "/v1/chat/completions", responses: "/v1/responses" } as const;
