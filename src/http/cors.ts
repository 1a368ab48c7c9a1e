/** Which pages may ask from a browser, and what they may read of the answers. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { isOperators } from "./router.ts";

/** The endpoints are for the pages that the operator has named, the operator's routes for none. Gives whether all is said: a preflight. */
export function sayCors(request: FastifyRequest, reply: FastifyReply): boolean {
  const { method, headers, terms } = request;
  const { corsOrigins } = terms.settings;
  if (corsOrigins.length === 0) return false;
  // A cache must not take one page's answer for another's.
  reply.header("vary", "Origin");
  if (isOperators(request)) return false;
  const { origin } = headers;
  if (origin !== undefined && corsOrigins.includes(origin)) reply.header("access-control-allow-origin", origin);
  reply.header("access-control-expose-headers", exposedHeaders);
  if (method !== "OPTIONS") return false;
  reply.headers({
    vary: "Origin, Access-Control-Request-Headers",
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-max-age": "600",
    "content-length": "0", // some browsers wait for a body else
  });
  const wanted = headers["access-control-request-headers"];
  if (wanted !== undefined) reply.header("access-control-allow-headers", wanted);
  reply.code(204).send();
  return true;
}

const exposedHeaders = [
  "x-request-id",
  "retry-after",
  "x-portico-session",
  "x-portico-history",
  "x-portico-context",
  "x-portico-replayed",
  "x-portico-tried",
  "x-portico-warning",
  "x-portico-tokens",
].join(", ");
