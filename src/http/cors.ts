/** CORS: which pages may send requests, and which headers they may read. */
import { rateHeaders } from "./rate.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";
import { isOperators } from "./router.ts";

/** Opens endpoints to pages the operator names, operator routes to none. Returns whether it answered a preflight. */
export function applyCors(request: HttpRequest, reply: HttpReply): boolean {
  const { method, headers } = request;
  const { corsOrigins } = request.terms;
  if (corsOrigins.length === 0) return false;
  // A cache must not serve one page's answer to another.
  reply.header("vary", "Origin");
  if (isOperators(request)) return false;
  const { origin } = headers;
  if (origin !== undefined && corsOrigins.includes(origin)) reply.header("access-control-allow-origin", origin);
  reply.header("access-control-expose-headers", exposedHeaders);
  if (method !== "OPTIONS") return false;
  reply.set({
    vary: "Origin, Access-Control-Request-Headers",
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-max-age": "600",
    "content-length": "0", // or some browsers wait for a body
  });
  const wanted = headers["access-control-request-headers"];
  if (wanted !== undefined) reply.header("access-control-allow-headers", wanted);
  reply.code(204).send();
  return true;
}

const exposedHeaders = [
  "x-request-id",
  "retry-after",
  ...rateHeaders,
  "x-portico-session",
  "x-portico-history",
  "x-portico-context",
  "x-portico-replayed",
  "x-portico-tried",
  "x-portico-warning",
  "x-portico-tokens",
  "x-portico-endpoints",
].join(", ");
