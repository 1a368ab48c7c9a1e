/** Who is at the door: a token's digest finds it in a map, so nothing of it is compared, logged or kept in clear. */
import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Door, Endpoint, HttpSettings, Token } from "./settings.ts";

/** By their digests. */
export type Tokens = ReadonlyMap<string, Token>;

const minuteMs = 60_000;
const maxFailuresPerMinute = 10;
/** Enough addresses to see an attack, few enough that an attack cannot fill the memory. */
const maxAddresses = 10_000;

export function createGuard(now: () => number) {
  const counts = new Map<string, { readonly since: number; failures: number }>();

  function recognise(headers: IncomingHttpHeaders, tokens: Tokens): Token | undefined {
    const presented = readPresented(headers);
    const token = presented === undefined ? undefined : tokens.get(hash("sha256", presented));
    return token === undefined || now() >= (token.expiresAt ?? Infinity) ? undefined : token;
  }

  /** Counts a failure of a network, and says how many ms it must wait. */
  function countFailure(network: string, at: number): number {
    let count = counts.get(network);
    const ageMs = at - (count?.since ?? 0);
    // If the clock was set back, count anew.
    if (count === undefined || ageMs < 0 || ageMs >= minuteMs) {
      counts.delete(network);
      if (counts.size >= maxAddresses) counts.delete(counts.keys().next().value ?? "");
      counts.set(network, (count = { since: at, failures: 0 }));
    }
    count.failures += 1;
    return count.failures <= maxFailuresPerMinute ? 0 : count.since + minuteMs - at;
  }

  return {
    /** For whoever needs none. */
    recognise,
    /** The caller's token; throws a 401, or a 429 once an address has failed too often. A right token is never delayed. */
    admit(headers: IncomingHttpHeaders, tokens: Tokens, address = ""): Token {
      const token = recognise(headers, tokens);
      if (token !== undefined) return token;
      const waitMs = countFailure(toNetwork(address), now());
      if (waitMs === 0) throw refusal(headers, tokens);
      const message = `More than ${maxFailuresPerMinute} requests from this address had no valid token within a minute. Check the token; a valid one is never delayed.`;
      throw new GatewayError("too_many_failures", message, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
    },
  };
}

/** Throws unless the token opens one of these doors; an endpoint that is wanted alone must also be on. */
export function checkDoor(wanted: readonly Door[], token: Token, endpoints: HttpSettings["endpoints"]): void {
  if (!opensAny(token, wanted)) {
    const remedy = wanted.includes("operator")
      ? "It is for the operator: send the general token, gateway.auth.token."
      : "Send gateway.http.auth_token or gateway.auth.token, or a token from gateway.http.tokens whose endpoints include it.";
    throw new GatewayError("endpoint_not_allowed", `This token is valid, but it does not open this route. ${remedy}`);
  }
  const [only, ...others] = wanted;
  if (only === undefined || others.length > 0 || !isEndpoint(only) || endpoints[only]) return;
  const message = `This endpoint is disabled. The operator can enable it with "gateway.http.endpoints.compat_${only}": true.`;
  throw new GatewayError("endpoint_disabled", message);
}

export function opensAny({ opens }: Token, wanted: readonly Door[]): boolean {
  return wanted.some((door) => opens.has(door));
}

const isEndpoint = (door: Door): door is Endpoint => door === "chat" || door === "responses";

function readPresented(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  const [, bearer] = authorization === undefined ? [] : (/^bearer\s+(\S+)$/i.exec(authorization) ?? []);
  // Some clients send a header that is empty.
  const presented = bearer ?? (headers["x-api-key"] || headers["api-key"]);
  return typeof presented === "string" && presented !== "" ? presented : undefined;
}

function refusal(headers: IncomingHttpHeaders, tokens: Tokens): GatewayError {
  const presented = readPresented(headers);
  if (presented === undefined) {
    const message = "No token was sent. Send the header 'Authorization: Bearer <token>' or 'X-API-Key: <token>'.";
    return new GatewayError("missing_api_key", message);
  }
  const { expiresAt } = tokens.get(hash("sha256", presented)) ?? {};
  const message =
    expiresAt === undefined
      ? "The token is not valid. Check it against the gateway's configuration."
      : `The token expired at ${new Date(expiresAt).toISOString()}. Ask the operator for a new one.`;
  return new GatewayError("invalid_api_key", message);
}

/** Whoever has one IPv6 address usually has all 2^64 of its network. An IPv4 address may be written as an IPv6 one. */
function toNetwork(address: string): string {
  const [, mapped] = /^::ffff:([\d.]+)$/i.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  if (!address.includes(":")) return address;
  const [front = [], back = []] = address.split("::").map((half) => (half === "" ? [] : half.split(":")));
  const zeros = Array<string>(8 - front.length - back.length).fill("0");
  return [...front, ...zeros, ...back].slice(0, 4).join(":");
}
