/** Registers routes: checks tokens and lengths, and refuses other methods by naming those that are allowed. */
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import { GatewayError } from "../core/errors.ts";
import type { Endpoint, Token } from "./auth.ts";
import { toRouteUrl, toTarget } from "./paths.ts";
import type { HttpSettings } from "./settings.ts";
import type { WebSockets } from "./websocket.ts";
import { asksForWebSocket } from "./websocket/upgrades.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a token must open; none: no token is needed. */
    endpoints?: readonly Endpoint[];
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

/** GET routes answer HEAD too. */
const methodNames: readonly HTTPMethods[] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

export function addRoutes(app: FastifyInstance, routes: readonly Route[]): void {
  for (const route of routes) {
    if (route.takesAnyType !== true) addRoute(app, route, routes);
    else {
      app.register(async (scope) => {
        scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
        addRoute(scope, route, routes);
      });
    }
  }
}

function addRoute(app: FastifyInstance, route: Route, routes: readonly Route[]): void {
  const { endpoints, sockets } = route;
  const common = { url: route.path, config: { endpoints } };
  const check = (request: FastifyRequest): void => {
    if (endpoints.length > 0) checkToken(endpoints, request.token, request.terms.settings);
    if (route.needsNoBody !== true) checkLength(request);
  };
  const onRequest = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    if (!isFilled(request)) refuseUnrouted(undefined, routes, request, reply);
    check(request);
    done();
  };
  for (const [method, answer] of Object.entries(route.methods)) {
    app.route({ ...common, method, onRequest, handler: answer });
  }
  const allowed = Object.keys(route.methods);
  const refuse = (request: FastifyRequest, reply: FastifyReply): never =>
    refuseUnrouted(isFilled(request) ? route : undefined, routes, request, reply);
  const refused = methodNames.filter((method) => !allowed.includes(method));
  if (sockets !== undefined) {
    app.route({
      ...common,
      method: refused.splice(refused.indexOf("GET"), 1),
      onRequest(request, reply, done) {
        if (!asksForWebSocket(request.raw)) refuse(request, reply);
        check(request);
        sockets.check(request, reply);
        done();
      },
      handler: sockets.talk,
    });
  }
  app.route({ ...common, method: refused, onRequest: refuse, handler: () => undefined });
}

/** Whether no path parameter is empty, as when a path ends with a slash; Fastify accepts that. */
function isFilled({ params }: FastifyRequest): boolean {
  return Object.entries(params as object).every(([name, value]) => name === "*" || value !== "");
}

/** The route at a request's path, whatever its method: Fastify finds none for methods that were not registered. */
export function findRoute(request: FastifyRequest, routes: readonly Route[]): Route | undefined {
  return routeAt(readPath(request), routes);
}

function routeAt(place: string, routes: readonly Route[]): Route | undefined {
  const segments = toRouteUrl(place).split("/");
  return routes.find(({ path }) => {
    const wanted = path.split("/");
    const isLongEnough = wanted.at(-1) === "*" ? segments.length >= wanted.length : segments.length === wanted.length;
    return isLongEnough && wanted.every((name, index) => fits(name, segments[index]));
  });
}

function fits(name: string, segment: string | undefined): boolean {
  return name === segment || name === "*" || (name.startsWith(":") && segment !== "");
}

/** Refuses a request that has no route: its path allows only other methods, or is unknown. */
export function refuseUnrouted(
  route: Route | undefined,
  routes: readonly Route[],
  request: FastifyRequest,
  reply: FastifyReply,
): never {
  const { method } = request;
  if (route === undefined) throw unknownUrl(method, readPath(request), routes);
  const allowed = Object.keys(route.methods);
  reply.header("allow", allowed.join(", "));
  throw new GatewayError(
    "method_not_allowed",
    `Method ${method} is not allowed on ${route.path}; use ${allowed.join(" or ")}.`,
  );
}

function readPath({ originalUrl }: FastifyRequest): string {
  return toTarget(originalUrl).split("?", 1)[0] ?? "";
}

/**
 * Most unknown URLs come from a base URL with a slash too many, or with `/v1` missing, doubled, or where Azure-style
 * clients put their own.
 */
function unknownUrl(method: string, path: string, routes: readonly Route[]): GatewayError {
  const clean = path.replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  const rest = clean.replace(/^\/v1\//, "/");
  const meant = [clean, rest, `/v1${clean}`, `/openai${rest}`].find((guess) => routeAt(guess, routes) !== undefined);
  const place =
    meant === clean
      ? "The URL has a slash too many."
      : meant?.startsWith("/openai/")
        ? "An Azure-style client's endpoint has no path."
        : "A client's base URL ends with /v1.";
  const remedy =
    meant === undefined
      ? "Turns are sent to POST /v1/chat/completions or POST /v1/responses."
      : `Did you mean ${meant}? ${place}`;
  return new GatewayError("unknown_url", `Unknown request URL: ${method} ${path}. ${remedy}`);
}

const endpointKeys = { chat: "compat_chat", responses: "compat_responses" } as const;

/** Whether the route is one of the operator's. */
export function isOperators({ routeOptions: { config } }: FastifyRequest): boolean {
  return config.endpoints?.includes("operator") === true;
}

/** Throws unless the token opens a wanted endpoint; one that is wanted alone must also be enabled. */
export function checkToken(
  wanted: readonly Endpoint[],
  token: Token,
  { endpoints: enabled }: Pick<HttpSettings, "endpoints">,
): void {
  if (!opensAny(token, wanted)) {
    const own = "a token of gateway.http.tokens whose endpoints have it";
    const remedy = wanted.includes("operator")
      ? `It is the operator's: send the general token, gateway.auth.token${wanted.includes("metrics") ? `, or ${own}` : ""}.`
      : `Send gateway.http.auth_token (gateway.auth.token where there is none), or ${own}.`;
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
  return !isOperators(request) || !opensAny(request.token, request.routeOptions.config.endpoints ?? []);
}

function checkLength(request: FastifyRequest): void {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  if (request.method !== "POST" || length !== undefined || encoding !== undefined) return;
  throw new GatewayError(
    "length_required",
    "A POST needs a body with 'Content-Length' or 'Transfer-Encoding: chunked'.",
  );
}
