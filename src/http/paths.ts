/** Where requests are sent: without the host that some put before it, and on the other ways to the routes under `/v1`. */
import { GatewayError } from "../core/errors.ts";
import type { Protocol } from "../core/ports.ts";
import { isObject } from "../protocols/fields.ts";

/** What a request asks for. Who takes us for a proxy names the host too, as every server must understand (RFC 9112, 3.2.2). */
export function toTarget(url = ""): string {
  return url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*\/?/i, "/");
}

/**
 * The URL of the route that a URL leads to: Azure-style clients say `/openai/v1/…` or `/openai/…` for `/v1/…`, and for one of
 * them `/openai/deployments/{deployment}/chat/completions`.
 */
export function toRouteUrl(url: string | undefined): string {
  const target = toTarget(url);
  return target.startsWith("/openai/") ? target.replace(way, "/v1/") : target;
}

const way = /^\/openai\/(?:v1\/|deployments\/([^/?]+)\/(?=chat\/completions(?:\?|$)))?/;

/** A deployment in the path is the model, whatever the body calls it: such clients write there what they like. */
export function forDeployment(url: string, protocol: Protocol): Protocol {
  const target = toTarget(url);
  const deployment = target.startsWith("/openai/") ? way.exec(target)?.[1] : undefined;
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
