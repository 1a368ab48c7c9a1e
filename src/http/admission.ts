/** Admits callers whose token is known, while the gateway accepts requests, and no more often than they may come. */
import type { onRequestHookHandler } from "fastify";
import { drainingError, GatewayError } from "../core/errors.ts";
import type { Token } from "./auth.ts";
import { applyCors } from "./cors.ts";
import { type FindRoute, isCounted, refuseUnrouted } from "./router.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The caller's token; absent only on routes that need none. */
    token: Token;
  }
}

/** What a token opens is checked by the route; a request without a route is refused here. */
export function createAdmission(find: FindRoute): onRequestHookHandler {
  return (request, reply, done) => {
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") {
      throw new GatewayError("malformed_http", "A request needs the header 'Host'.");
    }
    if (applyCors(request, reply)) return;
    if (request.route?.endpoints.length !== 0) {
      const { guard, rate, turns } = request.terms;
      request.token = guard.admit(request.headers, request.ip);
      if (turns.draining) throw drainingError();
      if (isCounted(request)) rate.take(request.token);
    }
    // Not in a not-found handler, because there the body would be looked at first.
    if (request.is404) refuseUnrouted(find, request, reply);
    done();
  };
}
