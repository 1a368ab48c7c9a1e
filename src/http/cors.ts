/** Which web pages may call: exact origins and nothing else, and no page what is the operator's. */
import type { Call, Result } from "./call.ts";
import type { Place } from "./router.ts";

export type Cors = ReadonlySet<string>;

export const createCors = (origins: readonly string[]): Cors => new Set(origins);

const exposed =
  "x-request-id, retry-after, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, " +
  "x-portico-session, x-portico-history, x-portico-context, x-portico-replayed, x-portico-tried, x-portico-warning, " +
  "x-portico-endpoints, x-portico-tokens";

/** Sets what a page may read. Returns the answer to a preflight. */
export function answerCors(cors: Cors, { request, response }: Call, place: Place | undefined): Result | undefined {
  if (cors.size === 0) return undefined;
  // A cache must not serve one page's answer to another.
  response.setHeader("vary", "Origin");
  if (place?.doors.includes("operator")) return undefined;
  const { origin = "", "access-control-request-headers": wanted } = request.headers;
  if (cors.has(origin)) response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", exposed);
  if (request.method !== "OPTIONS") return undefined;
  const headers = {
    vary: "Origin, Access-Control-Request-Headers",
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-max-age": "600",
    ...(wanted !== undefined && { "access-control-allow-headers": wanted }),
  };
  return { status: 204, headers };
}
