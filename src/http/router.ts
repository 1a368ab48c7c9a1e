/** Finds what answers a path, and says of one that nothing answers what there is. */
import type { IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Call, Route } from "./call.ts";

/** The routes of one path, by their methods; all ask for the same doors. */
export interface Place extends Pick<Route, "path" | "doors"> {
  readonly form: RegExp;
  readonly routes: Map<string, Route>;
}

export function createFindPlace(routes: readonly Route[]): (path: string) => Place | undefined {
  const places = new Map<string, Place>();
  for (const route of routes) {
    const { path, doors } = route;
    const form = new RegExp(`^${path.replaceAll(/:\w+/g, "([^/]+)").replace("*", "(.+)")}$`, "s");
    const place = places.get(path) ?? { path, doors, form, routes: new Map() };
    places.set(path, place);
    place.routes.set(route.method, route);
  }
  const open = [...places.values()].filter(({ path }) => /[:*]/.test(path));
  // A name comes before a place that any name may take; nobody asks for one that is spelled as a pattern.
  return (path) => places.get(path) ?? open.find(({ form }) => form.test(path));
}

/** Throws what is wrong with path or method; the answer then lists the methods that the path has. */
export function requireRoute(place: Place | undefined, { record, request, response }: Call): Route {
  const { path } = record;
  const { method = "GET" } = request;
  if (place === undefined) {
    const remedy = "A client's base URL ends with /v1; turns go to POST /v1/chat/completions or POST /v1/responses.";
    throw new GatewayError("unknown_url", `Unknown request URL: ${method} ${path}. ${remedy}`);
  }
  const wanted = asksForWebSocket(request) && place.routes.has("UPGRADE") ? "UPGRADE" : method;
  const route = place.routes.get(wanted === "HEAD" ? "GET" : wanted);
  if (route !== undefined) return route;
  const methods = [...place.routes.keys()].filter((each) => each !== "UPGRADE");
  response.setHeader("allow", methods.join(", "));
  const message = `Method ${method} is not allowed on ${place.path}; use ${methods.join(" or ")}.`;
  throw new GatewayError("method_not_allowed", message);
}

export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && method === "GET" && headers.upgrade.toLowerCase() === "websocket";
}

/** What stands in the places that the route leaves open. */
export function namesIn({ form }: Place, path: string): readonly string[] {
  return (form.exec(path) ?? []).slice(1).map(decodeURIComponent);
}

/** Azure-style clients send `/openai/v1/…` or `/openai/…` for `/v1/…`, or a deployment, which is the model. */
const azure = /^\/openai\/(?:v1\/|deployments\/([^/]+)\/(?=chat\/completions$))?/;

/** The path of a target as the routes know it. */
export function toPath(target: string): { readonly path: string; readonly deployment: string | undefined } {
  const bare = toBarePath(target);
  const path = decode(bare) ?? bare;
  if (!path.startsWith("/openai/")) return { path, deployment: undefined };
  return { path: path.replace(azure, "/v1/"), deployment: azure.exec(path)?.[1] };
}

/** Otherwise a `%` in it belongs to no character. */
export function isDecodable(target: string): boolean {
  return decode(toBarePath(target)) !== undefined;
}

/** Clients that take us for a proxy put the host in front, which servers must accept (RFC 9112, 3.2.2). */
function toBarePath(target: string): string {
  const local = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*\/?/i, "/");
  const end = local.search(/[?#]/);
  return end === -1 ? local : local.slice(0, end);
}

/** Encoded slashes and percent signs stay so: they belong to a name, which is decoded by itself. */
function decode(path: string): string | undefined {
  if (!path.includes("%")) return path;
  try {
    return decodeURI(path.replaceAll("%25", "%2525"));
  } catch {
    return undefined;
  }
}

export function toQuery(target = ""): URLSearchParams {
  const [, query = ""] = /[?#](.*)/s.exec(target) ?? [];
  return new URLSearchParams(query);
}
