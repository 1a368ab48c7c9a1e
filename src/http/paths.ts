/** The paths of Azure-style clients: other ways to the routes under `/v1`. */
import { GatewayError } from "../core/errors.ts";
import type { Protocol } from "../core/ports.ts";
import { isObject } from "../protocols/fields.ts";

/**
 * The URL of the route that a URL leads to: `/openai/v1/…` and `/openai/…` are `/v1/…`, and so is
 * `/openai/deployments/{deployment}/chat/completions`.
 */
export function toRouteUrl(url: string): string {
  return url.startsWith("/openai/") ? url.replace(way, "/v1/") : url;
}

const way = /^\/openai\/(?:v1\/|deployments\/([^/?]+)\/(?=chat\/completions(?:\?|$)))?/;

/** A deployment in the path is the model, whatever the body calls it: such clients write there what they like. */
export function forDeployment(url: string, protocol: Protocol): Protocol {
  const deployment = url.startsWith("/openai/") ? way.exec(url)?.[1] : undefined;
  if (deployment === undefined) return protocol;
  const model = decode(deployment);
  return {
    parse: (body, owner) => protocol.parse(isObject(body) ? { ...body, model } : body, owner),
  };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new GatewayError("malformed_http", "The URL is malformed.");
  }
}
