/** Who is at the door: a token's digest finds it in a map, so nothing of it is compared, logged or kept in clear. */
import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Door, Endpoint, HttpSettings, Token } from "./settings.ts";

export type FindToken = (sha256: string) => Token | undefined;

export function createFindToken(tokens: readonly Token[]): FindToken {
  const known = new Map(tokens.map((token) => [token.sha256, token]));
  return (sha256) => known.get(sha256);
}

export interface Guard {
  /** The caller's token; throws a 401, or a 429 once an address has failed too often. A right token is never delayed. */
  admit(headers: IncomingHttpHeaders, find: FindToken, address: string | undefined): Token;
  /** For whoever needs none. */
  recognise(headers: IncomingHttpHeaders, find: FindToken): Token | undefined;
}

const maxFailuresPerMinute = 10;

export function createGuard(now: () => number): Guard {
  const fail = createFailureCount();
  function recognise(headers: IncomingHttpHeaders, find: FindToken): Token | undefined {
    const presented = readPresented(headers);
    const token = presented === undefined ? undefined : find(hash("sha256", presented));
    return token === undefined || now() >= (token.expiresAt ?? Infinity) ? undefined : token;
  }

  return {
    recognise,
    admit(headers, find, address) {
      const token = recognise(headers, find);
      if (token !== undefined) return token;
      const waitMs = fail(toNetwork(address ?? ""), now());
      if (waitMs === 0) throw refusal(headers, find);
      throw new GatewayError(
        "too_many_failures",
        `More than ${maxFailuresPerMinute} requests from this address had no valid token within a minute. Check the token; a valid one is never delayed.`,
        { retryAfterSeconds: Math.ceil(waitMs / 1000) },
      );
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
  throw new GatewayError(
    "endpoint_disabled",
    `This endpoint is disabled. The operator can enable it with "gateway.http.endpoints.compat_${only}": true.`,
  );
}

export function opensAny({ opens }: Token, wanted: readonly Door[]): boolean {
  return wanted.some((door) => opens.has(door));
}

const isEndpoint = (door: Door): door is Endpoint => door === "chat" || door === "responses";

export function checkModel(token: Token, model: string, param: string): void {
  const { models } = token;
  if (models === undefined || models.some((name) => fits(name, model))) return;
  const allowed = models.map((name) => `'${name}'`).join(", ");
  throw new GatewayError(
    "model_not_allowed",
    `This token may not use the model '${model}'. Name one that it may use: ${allowed}. The operator can allow more (gateway.http.tokens[].models).`,
    { param },
  );
}

/** An exact name, or a prefix with a star behind it. */
export function fits(pattern: string, model: string): boolean {
  return pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : model === pattern;
}

function readPresented(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  if (authorization !== undefined) {
    const [scheme, token, ...rest] = authorization.split(/\s+/);
    if (scheme?.toLowerCase() === "bearer" && token && rest.length === 0) return token;
  }
  // Some clients send a header that is empty.
  const key = headers["x-api-key"] || headers["api-key"];
  return typeof key === "string" && key !== "" ? key : undefined;
}

function refusal(headers: IncomingHttpHeaders, find: FindToken): GatewayError {
  const presented = readPresented(headers);
  if (presented !== undefined) {
    const { expiresAt } = find(hash("sha256", presented)) ?? {};
    const message =
      expiresAt === undefined
        ? "The token is not valid. Check it against the gateway's configuration."
        : `The token expired at ${new Date(expiresAt).toISOString()}. Ask the operator for a new one.`;
    return new GatewayError("invalid_api_key", message);
  }
  const message =
    headers.authorization === undefined
      ? "No token was sent. Send the header 'Authorization: Bearer <token>' or 'X-API-Key: <token>'."
      : "The header 'Authorization' was sent, but not as 'Bearer <token>'. Check that the token is not empty, and that the word 'Bearer' precedes it.";
  return new GatewayError("missing_api_key", message);
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

const minuteMs = 60_000;
/** Enough addresses to see an attack, few enough that an attack cannot fill the memory. */
const maxAddresses = 10_000;

/** Counts a failure of an address, and says how many ms it must wait. */
function createFailureCount(): (address: string, at: number) => number {
  const counts = new Map<string, { readonly since: number; failures: number }>();
  return (address, at) => {
    let count = counts.get(address);
    const ageMs = at - (count?.since ?? 0);
    // If the clock was set back, count anew.
    if (count === undefined || ageMs < 0 || ageMs >= minuteMs) {
      counts.delete(address);
      if (counts.size >= maxAddresses) counts.delete(counts.keys().next().value ?? "");
      counts.set(address, (count = { since: at, failures: 0 }));
    }
    count.failures += 1;
    return count.failures <= maxFailuresPerMinute ? 0 : count.since + minuteMs - at;
  };
}
