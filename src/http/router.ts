/** What a route is, and how Fastify gets to know it; refuses requests that none takes, naming what was probably meant. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../core/errors.ts";
import type { Endpoint } from "./auth.ts";
import { decodePath, toPath, toRouteUrl } from "./paths.ts";
import { asksForWebSocket } from "./websocket.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    readonly route?: Route;
  }
  interface FastifyRequest {
    /** The route at its path, whatever its method. */
    route: Route | undefined;
  }
}

type Answer = (request: FastifyRequest, reply: FastifyReply) => unknown;

export interface Route {
  readonly path: string;
  /** GET answers HEAD too. */
  readonly methods: { readonly [method: string]: Answer };
  /** Answers a GET that asks to become a connection. */
  readonly upgrade?: Answer;
  /** What a token must open, at least one of them; none: no token is needed. */
  readonly endpoints: readonly Endpoint[];
  /** A POST that may come without a body. */
  readonly needsNoBody?: boolean;
  /** It checks the type of its body itself. */
  readonly takesAnyType?: boolean;
}

/**
 * Adds each route with the methods of all: Fastify would take a name that only has other methods for a parameter. More
 * methods would cost time at every start.
 */
export function addRoutes(app: FastifyInstance, routes: readonly Route[]): void {
  for (const route of routes) {
    app.route({
      // Without a pattern, an empty segment would be a parameter too, as behind a trailing slash.
      url: route.path.replaceAll(/:\w+/g, String.raw`$&([\s\S]+)`),
      method: ["GET", "HEAD", "POST", "DELETE"],
      config: { route },
      handler: (request, reply) => findAnswer(request)?.(request, reply),
    });
  }
}

/** Finds the route at a path, for requests that Fastify has no route for. */
export type FindRoute = (path: string) => Route | undefined;

export function createFindRoute(routes: readonly Route[]): FindRoute {
  const known = routes.map((route) => {
    const pattern = route.path.replaceAll(/:\w+/g, "[^/]+").replace("*", ".*");
    return { route, form: new RegExp(`^${pattern}$`, "s") };
  });
  return (path) => {
    const url = toRouteUrl(path);
    const name = decodePath(url) ?? url;
    return known.find(({ form }) => form.test(name))?.route;
  };
}

/** The route of a request; refuses it if none takes it: its path allows only other methods, or is unknown. */
export function requireRoute(find: FindRoute, request: FastifyRequest, reply: FastifyReply): Route {
  const { method, route } = request;
  if (route === undefined) throw unknownUrl(method, toPath(request.originalUrl), find);
  if (findAnswer(request) !== undefined) return route;
  const allowed = Object.keys(route.methods);
  reply.header("allow", allowed.join(", "));
  throw new GatewayError(
    "method_not_allowed",
    `Method ${method} is not allowed on ${route.path}; use ${allowed.join(" or ")}.`,
  );
}

function findAnswer({ route, method, raw }: FastifyRequest): Answer | undefined {
  if (route?.upgrade !== undefined && asksForWebSocket(raw)) return route.upgrade;
  return route?.methods[method === "HEAD" ? "GET" : method];
}

/** Whether the route is one of the operator's. */
export function isOperators({ route }: FastifyRequest): boolean {
  return route?.endpoints.includes("operator") === true;
}

/**
 * Most unknown URLs come from a base URL with a slash too many, with an endpoint or a proxy's own path in it, or with
 * `/v1` missing, doubled, or where Azure-style clients put their own.
 */
function unknownUrl(method: string, path: string, find: FindRoute): GatewayError {
  const clean = path.replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  const rest = clean.replace(/^\/v1\//, "/");
  const base = "A client's base URL must end with /v1.";
  const azure = "An Azure-style client's endpoint must have no path.";
  const proxied = "Nothing may come before /v1; a proxy that has a path of its own must remove it.";
  const guesses: readonly (readonly [path: string, why: string])[] = [
    [clean, "The URL has an extra slash."],
    [rest, rest.startsWith("/openai/") ? azure : base],
    [`/v1${clean}`, base],
    [`/openai${rest}`, azure],
    [clean.replace(/^\/v1\/(?:chat\/completions|responses)(?=\/)/, "/v1"), base],
    [clean.replace(/^.+(?=\/v1\/)/, ""), proxied],
  ];
  const [meant, why] = guesses.find(([guess]) => find(guess) !== undefined) ?? [];
  const remedy =
    meant === undefined
      ? "Send turns to POST /v1/chat/completions or POST /v1/responses."
      : `Did you mean ${meant}? ${why}`;
  return new GatewayError("unknown_url", `Unknown request URL: ${method} ${path}. ${remedy}`);
}
