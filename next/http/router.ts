/** Finds what answers a path; of one that nothing answers it says what was probably meant. */
import { GatewayError } from "../core/errors.ts";
import type { Route } from "./call.ts";

export interface Routed {
  readonly route: Route;
  readonly names: readonly string[];
}

export interface Router {
  /** Throws what is wrong with path or method; `allow` then lists the methods that the path has. */
  find(method: string, path: string, allow: (methods: string) => void): Routed;
}

export function createRouter(routes: readonly Route[]): Router {
  const exact = new Map<string, Routed>();
  for (const route of routes)
    if (!route.path.includes(":")) exact.set(`${route.method} ${route.path}`, { route, names: [] });
  const forms = routes.map((route) => [route, new RegExp(`^${route.path.replaceAll(/:\w+/g, "([^/]+)")}$`)] as const);

  const match = (path: string): readonly Routed[] =>
    forms.flatMap(([route, form]) => {
      const found = form.exec(path);
      return found === null ? [] : [{ route, names: found.slice(1).map(decodeName) }];
    });

  return {
    find(given, path, allow) {
      const method = given === "HEAD" ? "GET" : given;
      const known = exact.get(`${method} ${path}`);
      if (known !== undefined) return known;
      const there = match(path);
      if (there.length === 0) throw unknownUrl(given, path, (other) => match(other).length > 0);
      const found = there.find(({ route }) => route.method === method);
      if (found !== undefined) return found;
      const methods = there.map(({ route }) => route.method);
      allow(methods.join(", "));
      throw new GatewayError(
        "method_not_allowed",
        `Method ${given} is not allowed on ${path}; use ${methods.join(" or ")}.`,
      );
    },
  };
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    throw new GatewayError("malformed_http", `The path has a '%' that belongs to no character: ${name}.`);
  }
}

/** Azure-style clients send `/openai/v1/…` or `/openai/…` for `/v1/…`, or a deployment, which is the model. */
const azure = /^\/openai\/(?:v1\/|deployments\/([^/]+)\/(?=chat\/completions$))?/;

/** The path of a target as the routes know it. Clients that take us for a proxy put the host in front. */
export function toPath(target: string): { readonly path: string; readonly deployment: string | undefined } {
  const local = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*\/?/i, "/");
  const end = local.search(/[?#]/);
  const path = end === -1 ? local : local.slice(0, end);
  if (!path.startsWith("/openai/")) return { path, deployment: undefined };
  return { path: path.replace(azure, "/v1/"), deployment: azure.exec(path)?.[1] };
}

export function toQuery(target: string): URLSearchParams {
  const at = target.indexOf("?");
  return new URLSearchParams(at === -1 ? "" : target.slice(at + 1));
}

/** Most unknown paths come from a base URL with a slash too many, with an endpoint in it, or with `/v1` missing or doubled. */
function unknownUrl(method: string, path: string, isKnown: (path: string) => boolean): GatewayError {
  const clean = path.replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  const guesses = [
    clean,
    clean.replace(/^\/v1\//, "/"),
    `/v1${clean}`,
    clean.replace(/^\/v1\/(?:chat\/completions|responses)(?=\/)/, "/v1"),
    clean.replace(/^.+(?=\/v1\/)/, ""),
  ];
  const meant = guesses.find(isKnown);
  const remedy =
    meant === undefined
      ? "Send turns to POST /v1/chat/completions or POST /v1/responses."
      : `Did you mean ${meant}? A client's base URL must end with /v1.`;
  return new GatewayError("unknown_url", `Unknown request URL: ${method} ${path}. ${remedy}`);
}
