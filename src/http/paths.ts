/** Request targets: without the host that some clients put in front, and with aliases of the routes under `/v1`. */
import { parse } from "node:querystring";
import type { Protocol } from "../core/ports.ts";
import { isObject } from "../protocols/fields.ts";

/** A target without its host: clients that take us for a proxy send it, and servers must accept it (RFC 9112, 3.2.2). */
export function toTarget(url: string): string {
  return url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*\/?/i, "/");
}

/**
 * The path of a target with its letters decoded; undefined if some `%` in it belongs to no character. Encoded slashes
 * and percent signs stay so: they belong to a name, which is decoded by itself.
 */
export function decodePath(url: string): string | undefined {
  try {
    return decodeURI(toPath(url).replaceAll("%25", "%2525"));
  } catch {
    return undefined;
  }
}

/** The path of a target. */
export function toPath(url: string): string {
  const target = toTarget(url);
  const end = target.search(/[?#]/);
  return end === -1 ? target : target.slice(0, end);
}

/** The parameters behind it; one that is repeated has a list. */
export function toParameters(url: string): Readonly<Record<string, string | string[] | undefined>> {
  return parse(/[?#](.*)/s.exec(url)?.[1] ?? "", "&", "=", { maxKeys: 0 });
}

/**
 * The path of the route that a target leads to: Azure-style clients send `/openai/v1/…` or `/openai/…` for `/v1/…`, or
 * `/openai/deployments/{deployment}/chat/completions`.
 */
export function toRoutePath(url: string): string {
  const path = toPath(url);
  return path.startsWith("/openai/") ? path.replace(way, "/v1/") : path;
}

const way = /^\/openai\/(?:v1\/|deployments\/([^/]+)\/(?=chat\/completions$))?/;

/** A deployment in the path is the model, whatever the body says: such clients put anything there. */
export function forDeployment(url: string, protocol: Protocol): Protocol {
  const path = toPath(url);
  const deployment = path.startsWith("/openai/") ? way.exec(path)?.[1] : undefined;
  if (deployment === undefined) return protocol;
  // Admission has refused what cannot be decoded.
  const model = decodeURIComponent(deployment);
  return {
    ...protocol,
    parse: (body, ...others) => protocol.parse(isObject(body) ? { ...body, model } : body, ...others),
  };
}
