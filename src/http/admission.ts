/** Admits a request before its body is read: callers that are known and not too many, and what a route takes from them. */
import type { FastifyRequest, onRequestHookHandler } from "fastify";
import { drainingError, GatewayError } from "../core/errors.ts";
import { checkToken, opensAny, type Token } from "./auth.ts";
import { hasBody } from "./body.ts";
import { leadToConsole } from "./console.ts";
import { applyCors } from "./cors.ts";
import { decodePath } from "./paths.ts";
import { requireRoute, type FindRoute, isOperators } from "./router.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The caller's token; absent only on routes that need none. */
    token: Token;
  }
}

/** Who calls is settled first: a caller without a token does not learn which routes there are. */
export function createAdmission(find: FindRoute): onRequestHookHandler {
  return (request, reply, done) => {
    checkForm(request);
    if (applyCors(request, reply) || leadToConsole(request, reply)) return;
    const { route, terms } = request;
    const needsToken = route?.endpoints.length !== 0;
    if (needsToken) {
      request.token = terms.admit(request, terms);
      if (terms.turns.draining) throw drainingError();
      if (isCounted(request)) {
        terms.takeRequest(request.token, terms.limits.rate, (headers) => reply.headers(headers));
      }
    }
    // Not in a not-found handler, because there the body would be looked at first.
    const { endpoints, needsNoBody, takesAnyType } = requireRoute(find, request, reply);
    if (needsToken) checkToken(endpoints, request.token, terms.endpoints);
    if (needsNoBody !== true) checkLength(request);
    if (takesAnyType !== true) checkType(request);
    done();
  };
}

function checkForm({ headers, originalUrl, raw }: FastifyRequest): void {
  if (headers.host === undefined && raw.httpVersion === "1.1") {
    throw new GatewayError("malformed_http", "A request needs the header 'Host'.");
  }
  if (decodePath(originalUrl) === undefined) throw new GatewayError("malformed_http", "The URL is malformed.");
}

/** Whether the rate limit applies: not where the operator may look, so that an overload can still be observed. */
function isCounted(request: FastifyRequest): boolean {
  return !isOperators(request) || !opensAny(request.token, request.route?.endpoints ?? []);
}

function checkLength({ method, headers }: FastifyRequest): void {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  if (method !== "POST" || length !== undefined || encoding !== undefined) return;
  throw new GatewayError(
    "length_required",
    "A POST needs a body with 'Content-Length' or 'Transfer-Encoding: chunked'.",
  );
}

/** Even a type without a body must be right, and that of a body that nobody reads. */
function checkType({ method, headers }: FastifyRequest): void {
  const { "content-type": type } = headers;
  if (method === "GET" || method === "HEAD") return;
  if (type === undefined ? !hasBody({ headers }) : /^application\/json\s*(;|$)/i.test(type)) return;
  throw new GatewayError(
    "unsupported_media_type",
    "The body must be JSON: send the header 'Content-Type: application/json'.",
  );
}
