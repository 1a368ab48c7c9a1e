/** Every path that the door knows, in one table. */
import { drainingError, GatewayError } from "../core/errors.ts";
import { toModel, toModelList } from "../protocols/models.ts";
import type { Endpoint, Token } from "./auth.ts";
import { createConsole } from "./console.ts";
import * as conversations from "./conversations.ts";
import type { DoorParts } from "./door.ts";
import type { Metrics } from "./metrics.ts";
import * as operator from "./operator.ts";
import { forDeployment } from "./paths.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";
import * as responses from "./responses.ts";
import type { Route } from "./router.ts";
import { answerTurn } from "./turn.ts";
import type { Turns } from "./turns.ts";
import type { WebSockets } from "./websocket.ts";

export interface RouteParts extends DoorParts {
  readonly turns: Turns;
  readonly sockets: WebSockets;
  readonly readMetrics: () => ReturnType<Metrics["read"]>;
}

export function toRoutes(parts: RouteParts): readonly Route[] {
  const sendPage = createConsole();
  const since = parts.now();

  async function listModels(request: HttpRequest, reply: HttpReply): Promise<unknown> {
    reply.header("x-portico-endpoints", openEndpoints(request).join(", "));
    return toModelList(await modelsFor(request.token), since);
  }

  async function showModel({ params, token }: HttpRequest): Promise<unknown> {
    const { rest: id } = params as { readonly rest: string };
    if ((await modelsFor(token)).includes(id)) return toModel(id, since);
    throw new GatewayError("not_found", `The model '${id}' is not one of those listed at /v1/models.`, {
      param: "model",
      wireCode: "model_not_found",
    });
  }

  async function modelsFor({ models }: Token): Promise<readonly string[]> {
    const listed = await parts.models();
    return models === undefined ? listed : listed.filter(models.has);
  }

  async function showMetrics(_request: HttpRequest, reply: HttpReply): Promise<unknown> {
    const { contentType, text } = await parts.readMetrics();
    return reply.header("content-type", contentType).send(text);
  }

  async function showReady(): Promise<unknown> {
    if (parts.turns.draining) throw drainingError();
    await parts.ready();
    return { status: "ready", adapters: Object.fromEntries(parts.adapters().map(({ name, state }) => [name, state])) };
  }

  const [forChat, forResponses, forOperator] = [openedBy("chat"), openedBy("responses"), openedBy("operator")];
  const [forTurns, forMetrics, forAll] = [openedBy("chat", "responses"), openedBy("metrics", "operator"), openedBy()];
  return [
    forChat(endpointPaths.chat, { POST: answerChat }),
    forResponses(endpointPaths.responses, { POST: answerResponse }, { upgrade: parts.sockets.accept }),
    forResponses("/v1/responses/compact", { POST: responses.compact }),
    forResponses("/v1/responses/input_tokens", { POST: responses.countInputTokens }),
    forResponses("/v1/responses/:id", { GET: responses.retrieveResponse, DELETE: responses.deleteResponse }),
    forResponses("/v1/responses/:id/cancel", { POST: responses.cancelResponse }, { needsNoBody: true }),
    forResponses("/v1/responses/:id/input_items", { GET: responses.listInputItems }),
    forResponses("/v1/conversations", { POST: conversations.createConversation }, { needsNoBody: true }),
    forResponses("/v1/conversations/:id", {
      GET: conversations.retrieveConversation,
      POST: conversations.updateConversation,
      DELETE: conversations.deleteConversation,
    }),
    forResponses("/v1/conversations/:id/items", { GET: conversations.listItems, POST: conversations.createItems }),
    forResponses("/v1/conversations/:id/items/:item", {
      GET: conversations.retrieveItem,
      DELETE: conversations.deleteItem,
    }),
    forTurns("/v1/models", { GET: listModels }),
    forTurns("/v1/models/*", { GET: showModel }),
    forMetrics("/metrics", { GET: showMetrics }),
    forOperator("/operator/sessions", { GET: operator.listSessions, DELETE: operator.deleteSessions }),
    forOperator("/operator/sessions/:id", { GET: operator.showSession, DELETE: operator.deleteSession }),
    forOperator("/operator/export", { GET: operator.exportArchive }),
    forOperator("/operator/import", { POST: operator.importArchive }, { takesAnyType: true }),
    forOperator("/operator/prune", { POST: operator.prune }, { needsNoBody: true }),
    forAll("/console", { GET: sendPage }),
    forAll("/console/*", { GET: sendPage }),
    forAll("/healthz", { GET: async () => ({ status: "ok" }) }),
    forAll("/readyz", { GET: showReady }),
  ];
}

type Options = Omit<Route, "path" | "methods" | "endpoints">;

/** Makes routes for tokens that open one of these endpoints; without any, for everybody. */
function openedBy(...endpoints: readonly Endpoint[]) {
  return (path: string, methods: Route["methods"], options?: Options): Route => ({
    path,
    methods,
    endpoints,
    ...options,
  });
}

const endpointPaths = { chat: "/v1/chat/completions", responses: "/v1/responses" } as const;

function answerChat(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  return answerTurn(forDeployment(request.url, request.terms.protocols.chat), request, reply);
}

function answerResponse(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  return answerTurn(request.terms.protocols.responses, request, reply);
}

/** Where the caller may send a turn: the enabled endpoints that its token opens. */
function openEndpoints({ token, terms: { endpoints } }: HttpRequest): readonly string[] {
  return (["chat", "responses"] as const).flatMap((name) =>
    endpoints[name] && token.opens.has(name) ? [endpointPaths[name]] : [],
  );
}
