/** What a route is, and which one a path leads to; refuses requests that none takes, naming what was probably meant. */
import type { IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Endpoint } from "./auth.ts";
import { decodePath, toPath, toRoutePath } from "./paths.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";
import { asksForWebSocket } from "./websocket.ts";

export type Answer = (request: HttpRequest, reply: HttpReply) => unknown;

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

/** Finds the route that a target leads to, and what stands there for its parameters. */
export type FindRoute = (target: string) => { readonly route: Route; readonly params: Params } | undefined;

export type Params = Readonly<Record<string, string>>;

/** The first that fits is taken: a name must come before a parameter in its place. */
export function createFindRoute(routes: readonly Route[]): FindRoute {
  const known = routes.map((route) => {
    const pattern = route.path.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)").replace("*", "(?<rest>.*)");
    return { route, form: new RegExp(`^${pattern}$`, "s") };
  });
  return (target) => {
    const path = toRoutePath(target);
    const decoded = decodePath(path);
    for (const { route, form } of known) {
      const found = form.exec(decoded ?? path);
      // What cannot be decoded is refused at admission.
      if (found !== null) return { route, params: decoded === undefined ? {} : decodeAll(found.groups) };
    }
    return undefined;
  };
}

function decodeAll(names: Params = {}): Params {
  return Object.fromEntries(Object.entries(names).map(([param, name]) => [param, decodeURIComponent(name)]));
}

/** What answers a request, and its route; refuses one that none takes: its path is unknown, or allows other methods. */
export function requireRoute(
  find: FindRoute,
  request: HttpRequest,
  reply: HttpReply,
): { readonly route: Route; readonly answer: Answer } {
  const { method, route } = request;
  if (route === undefined) throw unknownUrl(method, toPath(request.url), find);
  const answer = findAnswer(request);
  if (answer !== undefined) return { route, answer };
  const allowed = Object.keys(route.methods);
  reply.header("allow", allowed.join(", "));
  throw new GatewayError(
    "method_not_allowed",
    `Method ${method} is not allowed on ${route.path}; use ${allowed.join(" or ")}.`,
  );
}

function findAnswer({ route, method, raw }: HttpRequest): Answer | undefined {
  if (route?.upgrade !== undefined && asksForWebSocket(raw)) return route.upgrade;
  return route?.methods[method === "HEAD" ? "GET" : method];
}

/** Whether a request leaves HTTP where its route allows that; any other request to upgrade is ignored. */
export function isUpgrade(find: FindRoute, incoming: IncomingMessage): boolean {
  return asksForWebSocket(incoming) && find(incoming.url ?? "")?.route.upgrade !== undefined;
}

/** Whether the route is one of the operator's. */
export function isOperators({ route }: HttpRequest): boolean {
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
