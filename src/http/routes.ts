/** Every path that the door knows, in one table; other methods on them are refused with what is allowed. */
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import { GatewayError } from "../core/errors.ts";
import { toModel, toModelList } from "../protocols/models.ts";
import type { Endpoint } from "./auth.ts";
import type { DoorParts } from "./door.ts";
import { answerTurn, type TurnParts } from "./turn.ts";
import { drainingError, type Turns } from "./turns.ts";

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
}

export interface RouteParts extends DoorParts {
  readonly turns: Turns;
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
    { path: "/healthz", methods: { GET: async () => ({ status: "ok" }) }, endpoints: [] },
    {
      path: "/readyz",
      methods: {
        async GET() {
          if (turns.draining) throw drainingError();
          await parts.ready().catch(hideCause);
          return { status: "ready" };
        },
      },
      endpoints: [],
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
    const open = route.endpoints.length === 0;
    const onRequest = (request: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
      if (!open) checkToken(route.endpoints, request, parts.settings.endpoints);
      checkLength(request);
      done();
    };
    for (const [method, answer] of Object.entries(route.methods)) {
      app.route({ method, url: route.path, config: { open }, onRequest, handler: answer });
    }
    const allowed = Object.keys(route.methods);
    app.route({
      method: methodNames.filter((method) => !allowed.includes(method)),
      url: route.path,
      config: { open },
      onRequest(request, reply) {
        reply.header("allow", allowed.join(", "));
        throw new GatewayError(
          "method_not_allowed",
          `Method ${request.method} is not allowed on ${route.path}; use ${allowed.join(" or ")}.`,
        );
      },
      handler: () => undefined,
    });
  }
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
