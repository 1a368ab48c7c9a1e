/** Every path that the door knows, in one table. */
import { GatewayError } from "../core/errors.ts";
import { toModel, toModelList } from "../protocols/models.ts";
import { compact } from "./compact.ts";
import * as conversations from "./conversations.ts";
import type { DoorParts } from "./door.ts";
import type { Metrics } from "./metrics.ts";
import * as operator from "./operator.ts";
import { cancelResponse, deleteResponse, listInputItems, retrieveResponse } from "./responses.ts";
import type { Route } from "./router.ts";
import { countInputTokens } from "./tokens.ts";
import { answerTurn, type TurnParts } from "./turn.ts";
import { drainingError, type Turns } from "./turns.ts";
import type { WebSockets } from "./websocket.ts";

export interface RouteParts extends DoorParts {
  readonly turns: Turns;
  readonly sockets: WebSockets;
  readonly metrics: Metrics;
  readonly report: TurnParts["report"];
}

export function toRoutes(parts: RouteParts): readonly Route[] {
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
