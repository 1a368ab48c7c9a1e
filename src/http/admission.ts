/** Lets a request in, or says why not, before its body is read: who calls is settled first, then what it may. */
import type { IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import { type AddressOf, checkDoor, createAddressOf, createGuard, recognise, type Tokens } from "./access.ts";
import type { Budget } from "./budget.ts";
import type { Admitted, Call, Result, Route } from "./call.ts";
import type { Connections } from "./connections.ts";
import { draining } from "./errors.ts";
import { createFindPlace, isDecodable, namesIn, type Place, requireRoute } from "./router.ts";
import type { HttpSettings } from "./settings.ts";

/** What is in force, and what is made of it once. */
export interface Terms {
  readonly settings: HttpSettings;
  readonly tokens: Tokens;
  readonly addressOf: AddressOf;
}

export function toTerms(settings: HttpSettings): Terms {
  const tokens = new Map(settings.tokens.map((token) => [token.sha256, token]));
  return { settings, tokens, addressOf: createAddressOf(settings) };
}

interface AdmissionParts {
  readonly routes: readonly Route[];
  readonly now: () => number;
  readonly budget: Budget;
  readonly connections: Connections;
  readonly isDraining: () => boolean;
}

/** It lives until the end. */
const alivePath = "/healthz";

export function createAdmission({ routes, now, budget, connections, isDraining }: AdmissionParts) {
  const findPlace = createFindPlace(routes);
  const admit = createGuard(now);

  return {
    /** What answers it: a route, or the answer itself. A caller without a token does not learn which routes there are. */
    first(call: Call, { tokens, settings }: Terms): Route | Result {
      const { request, record } = call;
      const { path } = record;
      checkForm(request);
      const place = findPlace(path);
      const isOpen = place?.doors.length === 0;
      const preflight = answerCors(call, place);
      record.route = place?.path;
      record.isQuiet = isOpen || preflight !== undefined;
      if (preflight !== undefined) return preflight;
      if (isOpen) call.token = recognise(request.headers, tokens) ?? call.token;
      else {
        call.token = admit(request.headers, tokens, record.address);
        record.owner = call.token.owner;
        connections.trust(request.socket);
      }
      if (isDraining() && path !== alivePath) throw draining();
      const route = requireRoute(place, call);
      if (!isOpen) {
        checkDoor(route.doors, call.token, settings.endpoints);
        // An overload can still be observed.
        if (!route.doors.includes("operator")) budget.takeRequest(call.token, settings);
      }
      if (place !== undefined && place.path !== path) {
        call.names = namesIn(place, path);
        record.objectId = call.names.join(" ");
      }
      return route;
    },
    /** The same caller later, for a turn of its connection. */
    again({ request, record }: Call, { tokens, settings }: Terms): Admitted {
      const token = admit(request.headers, tokens, record.address);
      checkDoor(["responses"], token, settings.endpoints);
      budget.takeRequest(token, settings);
      return { token, settings };
    },
  };
}

/** HTTP/1.1 demands exactly one Host, and the bytes of a name or an address. */
function checkForm({ rawHeaders, httpVersion, headers, url = "" }: IncomingMessage): void {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  if (hosts > 1 || (hosts === 0 && httpVersion === "1.1") || /[\s/@?#\\,]/.test(headers.host ?? ""))
    throw new GatewayError("malformed_http", "The request must have exactly one well-formed Host header.");
  if (!isDecodable(url)) throw new GatewayError("malformed_http", "The path has a '%' that belongs to no character.");
}

const exposed =
  "x-request-id, retry-after, x-portico-session, x-portico-history, x-portico-context, x-portico-replayed, " +
  "x-portico-tried, x-portico-warning, x-portico-endpoints";

/** Exact origins may call, and no page what is the operator's. Sets what a page may read. Returns the answer to a preflight. */
function answerCors({ request, response, settings }: Call, place: Place | undefined): Result | undefined {
  const { corsOrigins } = settings;
  if (corsOrigins.length === 0) return undefined;
  // A cache must not serve one page's answer to another.
  response.setHeader("vary", "Origin");
  if (place?.doors.includes("operator")) return undefined;
  const { origin = "", "access-control-request-headers": wanted } = request.headers;
  if (corsOrigins.includes(origin)) response.setHeader("access-control-allow-origin", origin);
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
