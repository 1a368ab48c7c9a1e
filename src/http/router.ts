/** Registers routes: checks tokens and lengths, and refuses other methods by naming those that are allowed. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../core/errors.ts";
import type { Endpoint, Token } from "./auth.ts";
import { toPath, toRouteUrl } from "./paths.ts";
import type { HttpSettings } from "./settings.ts";
import type { WebSockets } from "./websocket.ts";
import { asksForWebSocket } from "./websocket/upgrades.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The route at its path, whatever its method. */
    route: Route | undefined;
  }
}

type Answer = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

export interface Route {
  readonly path: string;
  readonly methods: Readonly<Record<string, Answer>>;
  /** What a token must open, at least one of them; none: no token is needed. */
  readonly endpoints: readonly Endpoint[];
  /** A POST that may come without a body. */
  readonly needsNoBody?: boolean;
  /** It checks the type of its body itself. */
  readonly takesAnyType?: boolean;
  /** A GET may become a connection. */
  readonly sockets?: WebSockets;
}

/** Finds the route at a path, whatever the method. */
export type FindRoute = (path: string) => Route | undefined;

export function createFindRoute(routes: readonly Route[]): FindRoute {
  const known = routes.map((route) => ({ route, wanted: route.path.split("/") }));
  return (path) => {
    const segments = toRouteUrl(path).split("/").map(decode);
    return known.find(({ wanted }) => {
      const isLongEnough = wanted.at(-1) === "*" ? segments.length >= wanted.length : segments.length === wanted.length;
      return isLongEnough && wanted.every((name, index) => fits(name, segments[index]));
    })?.route;
  };
}

/** An empty segment, as behind a trailing slash, fills no parameter. */
function fits(name: string, segment: string | undefined): boolean {
  return name === segment || name === "*" || (name.startsWith(":") && segment !== "");
}

/** A segment that cannot be decoded is no name of ours. */
function decode(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** GET routes answer HEAD too. What Fastify has no route for is refused at admission. */
export function addRoutes(app: FastifyInstance, routes: readonly Route[], find: FindRoute): void {
  for (const route of routes) {
    if (route.takesAnyType !== true) addRoute(app, route, find);
    else {
      app.register(async (scope) => {
        scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
        addRoute(scope, route, find);
      });
    }
  }
}

function addRoute(app: FastifyInstance, route: Route, find: FindRoute): void {
  const { path: url, methods, endpoints, sockets } = route;
  const check = (request: FastifyRequest, reply: FastifyReply): void => {
    // Fastify takes a trailing slash, or a name that only has other methods, for a parameter.
    if (request.route !== route) refuseUnrouted(find, request, reply);
    if (endpoints.length > 0) checkToken(endpoints, request.token, request.terms.endpoints);
    if (route.needsNoBody !== true) checkLength(request);
  };
  for (const [method, handler] of Object.entries(methods)) {
    app.route({
      url,
      method,
      handler,
      onRequest(request, reply, done) {
        check(request, reply);
        done();
      },
    });
  }
  if (sockets === undefined) return;
  app.route({
    url,
    method: "GET",
    handler: sockets.accept,
    onRequest(request, reply, done) {
      if (!asksForWebSocket(request.raw)) refuseUnrouted(find, request, reply);
      check(request, reply);
      sockets.check(request, reply);
      done();
    },
  });
}

/** Refuses a request that has no route: its path allows only other methods, or is unknown. */
export function refuseUnrouted(find: FindRoute, request: FastifyRequest, reply: FastifyReply): never {
  const { method, route } = request;
  if (route === undefined) throw unknownUrl(method, toPath(request.originalUrl), find);
  const allowed = Object.keys(route.methods);
  reply.header("allow", allowed.join(", "));
  throw new GatewayError(
    "method_not_allowed",
    `Method ${method} is not allowed on ${route.path}; use ${allowed.join(" or ")}.`,
  );
}

/**
 * Most unknown URLs come from a base URL with a slash too many, or with `/v1` missing, doubled, or where Azure-style
 * clients put their own.
 */
function unknownUrl(method: string, path: string, find: FindRoute): GatewayError {
  const clean = path.replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  const rest = clean.replace(/^\/v1\//, "/");
  const meant = [clean, rest, `/v1${clean}`, `/openai${rest}`].find((guess) => find(guess) !== undefined);
  const place =
    meant === clean
      ? "The URL has an extra slash."
      : meant?.startsWith("/openai/")
        ? "An Azure-style client's endpoint must have no path."
        : "A client's base URL must end with /v1.";
  const remedy =
    meant === undefined
      ? "Send turns to POST /v1/chat/completions or POST /v1/responses."
      : `Did you mean ${meant}? ${place}`;
  return new GatewayError("unknown_url", `Unknown request URL: ${method} ${path}. ${remedy}`);
}

const endpointKeys = { chat: "compat_chat", responses: "compat_responses" } as const;

/** Whether the route is one of the operator's. */
export function isOperators({ route }: FastifyRequest): boolean {
  return route?.endpoints.includes("operator") === true;
}

/** Throws unless the token opens a wanted endpoint; one that is wanted alone must also be enabled. */
export function checkToken(wanted: readonly Endpoint[], token: Token, enabled: HttpSettings["endpoints"]): void {
  if (!opensAny(token, wanted)) {
    const own = "a token from gateway.http.tokens whose endpoints include it";
    const remedy = wanted.includes("operator")
      ? `It is for the operator: send the general token, gateway.auth.token${wanted.includes("metrics") ? `, or ${own}` : ""}.`
      : `Send gateway.http.auth_token (gateway.auth.token if that is not set), or ${own}.`;
    throw new GatewayError("endpoint_not_allowed", `This token is valid, but it does not open this route. ${remedy}`);
  }
  const [only, ...others] = wanted;
  if (others.length > 0 || only === undefined || !isSwitched(only) || enabled[only]) return;
  throw new GatewayError(
    "endpoint_disabled",
    `This endpoint is disabled. The operator can enable it with "gateway.http.endpoints.${endpointKeys[only]}": true.`,
  );
}

function opensAny({ opens }: Token, wanted: readonly Endpoint[]): boolean {
  return wanted.some((endpoint) => opens.has(endpoint));
}

function isSwitched(endpoint: Endpoint): endpoint is keyof typeof endpointKeys {
  return Object.hasOwn(endpointKeys, endpoint);
}

/** Whether the rate limit applies: not where the operator may look, so that an overload can still be observed. */
export function isCounted(request: FastifyRequest): boolean {
  return !isOperators(request) || !opensAny(request.token, request.route?.endpoints ?? []);
}

function checkLength(request: FastifyRequest): void {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  if (request.method !== "POST" || length !== undefined || encoding !== undefined) return;
  throw new GatewayError(
    "length_required",
    "A POST needs a body with 'Content-Length' or 'Transfer-Encoding: chunked'.",
  );
}
