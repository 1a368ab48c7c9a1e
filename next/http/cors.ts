/** Which web pages may call: exact origins and nothing else, and no page the operator's routes. */
import type { Call } from "./call.ts";

export type Cors = ReadonlySet<string>;

export const createCors = (origins: readonly string[]): Cors => new Set(origins);

const exposed = [
  "x-request-id",
  "retry-after",
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
  "x-portico-session",
  "x-portico-history",
  "x-portico-context",
  "x-portico-replayed",
  "x-portico-tried",
  "x-portico-warning",
].join(", ");

/** Sets what a page may read; true: it was a preflight, which is answered. */
export function answerCors(cors: Cors, { request, response, path, id }: Call): boolean {
  if (cors.size === 0) return false;
  // A cache must not serve one page's answer to another.
  response.setHeader("vary", "Origin");
  if (path.startsWith("/operator")) return false;
  const { origin = "", "access-control-request-headers": wanted } = request.headers;
  if (cors.has(origin)) response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", exposed);
  if (request.method !== "OPTIONS") return false;
  response.writeHead(204, {
    vary: "Origin, Access-Control-Request-Headers",
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-max-age": "600",
    // Without a length some browsers wait for a body.
    "content-length": "0",
    "x-request-id": id,
    ...(wanted !== undefined && { "access-control-allow-headers": wanted }),
  });
  response.end();
  return true;
}
