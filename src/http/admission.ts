/** Admits a request before its body is read: callers that are known and not too many, and what a route takes from them. */
import { drainingError, GatewayError } from "../core/errors.ts";
import { checkToken, opensAny } from "./auth.ts";
import { hasBody } from "./body.ts";
import { leadToConsole } from "./console.ts";
import { applyCors } from "./cors.ts";
import { decodePath } from "./paths.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";
import { type Answer, type FindRoute, isOperators, requireRoute } from "./router.ts";

/**
 * Returns what answers the request; undefined if it is answered already. Who calls is settled first: a caller without a
 * token does not learn which routes there are.
 */
export function createAdmission(find: FindRoute): (request: HttpRequest, reply: HttpReply) => Answer | undefined {
  return (request, reply) => {
    checkForm(request);
    if (applyCors(request, reply) || leadToConsole(request, reply)) return undefined;
    const { terms } = request;
    const needsToken = request.route?.endpoints.length !== 0;
    if (needsToken) {
      request.token = terms.admit(request, terms);
      if (terms.turns.draining) throw drainingError();
      if (isCounted(request)) {
        terms.takeRequest(request.token, terms.limits.rate, (headers) => reply.set(headers));
      }
    }
    const { route, answer } = requireRoute(find, request, reply);
    if (needsToken) checkToken(route.endpoints, request.token, terms.endpoints);
    if (route.needsNoBody !== true) checkLength(request);
    if (route.takesAnyType !== true) checkType(request);
    return answer;
  };
}

function checkForm({ headers, url, raw }: HttpRequest): void {
  if (headers.host === undefined && raw.httpVersion === "1.1") {
    throw new GatewayError("malformed_http", "A request needs the header 'Host'.");
  }
  if (decodePath(url) === undefined) throw new GatewayError("malformed_http", "The URL is malformed.");
}

/** Whether the rate limit applies: not where the operator may look, so that an overload can still be observed. */
function isCounted(request: HttpRequest): boolean {
  return !isOperators(request) || !opensAny(request.token, request.route?.endpoints ?? []);
}

function checkLength({ method, headers }: HttpRequest): void {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  if (method !== "POST" || length !== undefined || encoding !== undefined) return;
  throw new GatewayError(
    "length_required",
    "A POST needs a body with 'Content-Length' or 'Transfer-Encoding: chunked'.",
  );
}

/** Even a type without a body must be right, and that of a body that nobody reads. */
function checkType({ method, headers }: HttpRequest): void {
  const { "content-type": type } = headers;
  if (method === "GET" || method === "HEAD") return;
  if (type === undefined ? !hasBody({ headers }) : /^application\/json\s*(;|$)/i.test(type)) return;
  throw new GatewayError(
    "unsupported_media_type",
    "The body must be JSON: send the header 'Content-Type: application/json'.",
  );
}
