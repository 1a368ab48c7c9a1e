/** Lets a request in, or says why not, before its body is read: who calls is settled first, then what it may. */
import type { IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import { checkDoor, createFindToken, createGuard, type FindToken, opensAny } from "./access.ts";
import { type AddressOf, createAddressOf } from "./address.ts";
import type { Call, Result, Route } from "./call.ts";
import type { Connections } from "./connections.ts";
import { leadToConsole } from "./console.ts";
import { answerCors, type Cors, createCors } from "./cors.ts";
import { draining } from "./errors.ts";
import { createTakeRequest } from "./rate.ts";
import { createFindPlace, isDecodable, namesIn, requireRoute } from "./router.ts";
import type { HttpSettings, Token } from "./settings.ts";

/** What is made of the settings, once. */
export interface Terms {
  readonly settings: HttpSettings;
  readonly find: FindToken;
  readonly addressOf: AddressOf;
  readonly cors: Cors;
}

/** Of routes that ask for no token. */
export const nobody: Token = { owner: "", sha256: "", opens: new Set() };
/** It lives until the end. */
const alivePath = "/healthz";

export function createAdmission(
  routes: readonly Route[],
  now: () => number,
  connections: Connections,
  isDraining: () => boolean,
) {
  const findPlace = createFindPlace(routes);
  const guard = createGuard(now);
  const takeRequest = createTakeRequest(now);

  return {
    /** What answers it: a route, or the answer itself. A caller without a token does not learn which routes there are. */
    first(call: Call, { find, settings, cors }: Terms): Route | Result {
      const { request, response, path, record } = call;
      checkForm(request);
      const place = findPlace(path);
      const isOpen = place?.doors.length === 0;
      const answered = answerCors(cors, call, place) ?? leadToConsole(call);
      record.route = place?.path;
      record.isQuiet = isOpen || answered !== undefined;
      if (answered !== undefined) return answered;
      if (isOpen) call.token = guard.recognise(request.headers, find) ?? nobody;
      else {
        call.token = guard.admit(request.headers, find, record.address);
        record.owner = call.token.owner;
        connections.trust(request.socket);
      }
      if (isDraining() && path !== alivePath) throw draining();
      // An overload can still be observed.
      const isOperators = place?.doors.includes("operator") === true && opensAny(call.token, place.doors);
      if (!isOpen && !isOperators) takeRequest(call.token, settings.limits.rate, response);
      const route = requireRoute(findPlace, place, call);
      if (!isOpen) checkDoor(route.doors, call.token, settings.endpoints);
      if (place !== undefined && place.path !== path) call.names = namesIn(place, path);
      return route;
    },
    /** The same caller later. */
    again({ request, record }: Call, { find, settings }: Terms): Pick<Call, "token" | "settings"> {
      const token = guard.admit(request.headers, find, record.address);
      checkDoor(["responses"], token, settings.endpoints);
      if (isDraining()) throw draining();
      takeRequest(token, settings.limits.rate);
      return { token, settings };
    },
  };
}

export function toTerms(settings: HttpSettings): Terms {
  return {
    settings,
    find: createFindToken(settings.tokens),
    addressOf: createAddressOf(settings),
    cors: createCors(settings.corsOrigins),
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
