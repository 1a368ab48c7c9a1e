/** Authentication: the token of a request, compared in constant time, and what it opens. */
import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { ModelSet } from "../core/route/models.ts";
import type { Ask } from "../core/turn.ts";
import { modelsInItems, type NamedModel, namedModels } from "../protocols/models.ts";
import type { HttpLimits, HttpSettings, Rate } from "./settings.ts";
import type { Addressed, AddressOf } from "./address.ts";

/** What a token may open. */
export type Endpoint = "chat" | "responses" | "metrics" | "operator";

export interface Token {
  /** Sessions belong to the owner, whatever the token's value is today. */
  readonly owner: string;
  readonly sha256: Uint8Array;
  readonly opens: ReadonlySet<Endpoint>;
  /** The models that it may use; absent: all. */
  readonly models?: ModelSet | undefined;
  readonly expiresAt?: Date | undefined;
  /** Its callers resend their history, whatever their session is known for; absent: as the gateway is set. */
  readonly alwaysResends?: boolean | undefined;
  readonly rate?: Rate | undefined;
  /** How many turns its owner may have at once; absent: no limit of its own. */
  readonly maxConcurrentTurns?: number | undefined;
}

export function toDigest(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

/** The token of a request under these terms, or a 401; a 429 once an address has failed too often. */
export type Admit = (
  request: Addressed,
  terms: Pick<HttpSettings, "tokens"> & {
    readonly addressOf: AddressOf;
    readonly limits: Pick<HttpLimits, "maxAuthFailuresPerMinute">;
  },
) => Token;

export function createAdmit(now: () => Date): Admit {
  const countFailure = createFailureCount();
  return (request, { tokens, addressOf, limits: { maxAuthFailuresPerMinute: most } }) => {
    const { headers } = request;
    const presented = readPresented(headers);
    const token = presented === undefined ? undefined : findToken(tokens, toDigest(presented));
    if (token !== undefined && (token.expiresAt === undefined || token.expiresAt > now())) return token;
    const waitMs = countFailure(toNetwork(addressOf(request)), now().getTime(), most);
    if (waitMs === 0) throw presented === undefined ? missingToken(headers) : invalidToken(token);
    throw new GatewayError(
      "too_many_failures",
      `More than ${most} requests from this address had no valid token within a minute (gateway.http.limits.max_auth_failures_per_minute). Check the token; a valid one is never delayed.`,
      { retryAfterSeconds: Math.ceil(waitMs / 1000) },
    );
  };
}

function missingToken({ authorization }: IncomingHttpHeaders): GatewayError {
  const message =
    authorization === undefined
      ? "No token was sent. Send the header 'Authorization: Bearer <token>' or 'X-API-Key: <token>'."
      : "The header 'Authorization' was sent, but not as 'Bearer <token>'. Check that the token is not empty, and that the word 'Bearer' precedes it.";
  return new GatewayError("missing_api_key", message);
}

/** A known one has expired. */
function invalidToken(known: Token | undefined): GatewayError {
  const message =
    known?.expiresAt === undefined
      ? "The token is not valid. Check it against the gateway's configuration."
      : `The token expired at ${known.expiresAt.toISOString()}. Ask the operator for a new one.`;
  return new GatewayError("invalid_api_key", message);
}

/** Throws unless the token opens a wanted endpoint; one that is wanted alone must also be enabled. */
export function checkToken(wanted: readonly Endpoint[], token: Token, enabled: HttpSettings["endpoints"]): void {
  if (!opensAny(token, wanted)) {
    const own = "a token from gateway.http.tokens whose endpoints include it";
    const remedy = wanted.includes("operator")
      ? `It is for the operator: send the general token, gateway.auth.token${wanted.includes("metrics") ? `, or ${own}` : ""}.`
      : `Send gateway.http.auth_token (gateway.auth.token if that is not set), or ${own}.`;
    throw new GatewayError("endpoint_not_allowed", `This token is valid, but it does not open this route. ${remedy}`);
  }
  const [only, ...others] = wanted;
  if (others.length > 0 || (only !== "chat" && only !== "responses") || enabled[only]) return;
  throw new GatewayError(
    "endpoint_disabled",
    `This endpoint is disabled. The operator can enable it with "gateway.http.endpoints.compat_${only}": true.`,
  );
}

/** Throws unless the token may use every model that a request names. */
export function checkModels(token: Token, ask: Ask): void {
  checkNamed(token, namedModels(ask));
}

/** The same for items that later requests continue with. */
export function checkItems(token: Token, items: Ask["items"], param: string): void {
  checkNamed(token, modelsInItems(items, param));
}

function checkNamed({ models }: Token, named: Iterable<NamedModel>): void {
  if (models === undefined) return;
  for (const [param, model] of named) {
    if (models.has(model)) continue;
    const allowed = models.names.map((name) => `'${name}'`).join(", ");
    throw new GatewayError(
      "model_not_allowed",
      `This token may not use the model '${model}'. Name one that it may use: ${allowed}. The operator can allow more (gateway.http.tokens[].models).`,
      { param },
    );
  }
}

export function opensAny({ opens }: Token, wanted: readonly Endpoint[]): boolean {
  return wanted.some((endpoint) => opens.has(endpoint));
}

/** Compares every token, so that the time taken does not reveal which one came close. */
function findToken(tokens: readonly Token[], digest: Buffer): Token | undefined {
  let found: Token | undefined;
  for (const token of tokens) if (timingSafeEqual(token.sha256, digest)) found = token;
  return found;
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

/**
 * Whoever has one IPv6 address usually has all 2^64 of its network. An IPv4 address may be written as an IPv6 one; a
 * unix socket has none.
 */
function toNetwork(address = ""): string {
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

/** Returns what counts a failure of an address, and says how many ms the address must wait. */
export function createFailureCount(): (address: string, at: number, maxPerMinute: number) => number {
  const counts = new Map<string, { since: number; failures: number }>();
  return (address, at, maxPerMinute) => {
    let count = counts.get(address);
    const age = at - (count?.since ?? 0);
    // If the clock was set back, count anew.
    if (count === undefined || age < 0 || age >= minuteMs) {
      counts.delete(address);
      if (counts.size >= maxAddresses) counts.delete(counts.keys().next().value ?? "");
      counts.set(address, (count = { since: at, failures: 0 }));
    }
    count.failures++;
    return count.failures <= maxPerMinute ? 0 : count.since + minuteMs - at;
  };
}
