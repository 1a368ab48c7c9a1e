/** Who is at the door, and from where: tokens are found by their digests, so nothing of them is compared, logged or kept in clear. */
import { hash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { GatewayError } from "../core/errors.ts";
import type { Door, HttpSettings, Token } from "./settings.ts";

/** By their digests. */
export type Tokens = ReadonlyMap<string, Token>;

const minuteMs = 60_000;
const maxFailuresPerMinute = 10;
/** Enough networks to see an attack, few enough that an attack cannot fill the memory. */
const maxNetworks = 10_000;

/** Returns the caller's token; throws a 401, or a 429 once a network has failed too often. A right token is never delayed. */
export function createGuard(now: () => number) {
  const failures = new Map<string, number>();
  let minute = 0;

  /** Counts a failure of a network, and says how many ms it must wait. */
  function countFailure(network: string): number {
    const at = now();
    const current = Math.floor(at / minuteMs);
    if (current !== minute || failures.size >= maxNetworks) failures.clear();
    minute = current;
    const count = (failures.get(network) ?? 0) + 1;
    failures.set(network, count);
    return count <= maxFailuresPerMinute ? 0 : (minute + 1) * minuteMs - at;
  }

  return function admit(headers: IncomingHttpHeaders, tokens: Tokens, address = ""): Token {
    const token = recognise(headers, tokens);
    if (token !== undefined && now() < (token.expiresAt ?? Infinity)) return token;
    const waitMs = countFailure(toNetwork(address));
    if (waitMs === 0) throw readPresented(headers) === undefined ? missing() : invalid(token);
    const message = `More than ${maxFailuresPerMinute} requests from this address had no valid token within a minute. Check the token; a valid one is never delayed.`;
    throw new GatewayError("too_many_failures", message, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
  };
}

/** Whose token it is, be it an expired one. */
export function recognise(headers: IncomingHttpHeaders, tokens: Tokens): Token | undefined {
  const presented = readPresented(headers);
  return presented === undefined ? undefined : tokens.get(hash("sha256", presented));
}

/** Throws unless the token opens one of these doors; an endpoint that is wanted alone must also be on. */
export function checkDoor(
  wanted: readonly Door[],
  { opens }: Token,
  endpoints: { readonly [door in Door]?: boolean },
): void {
  if (!wanted.some((door) => opens.has(door))) {
    const remedy = wanted.includes("operator")
      ? "It is for the operator: send the general token, gateway.auth.token."
      : "Send gateway.http.auth_token or gateway.auth.token, or a token from gateway.http.tokens whose endpoints include it.";
    throw new GatewayError("endpoint_not_allowed", `This token is valid, but it does not open this route. ${remedy}`);
  }
  const [only = "operator", ...others] = wanted;
  if (others.length > 0 || endpoints[only] !== false) return;
  const message = `This endpoint is disabled. The operator can enable it with "gateway.http.endpoints.compat_${only}": true.`;
  throw new GatewayError("endpoint_disabled", message);
}

function readPresented(headers: IncomingHttpHeaders): string | undefined {
  const [, bearer] = /^bearer\s+(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  // Some clients send a header that is empty.
  return bearer ?? (String(headers["x-api-key"] || headers["api-key"] || "") || undefined);
}

function missing(): GatewayError {
  const message = "No token was sent. Send the header 'Authorization: Bearer <token>' or 'X-API-Key: <token>'.";
  return new GatewayError("missing_api_key", message);
}

/** One that is known has expired. */
function invalid(known: Token | undefined): GatewayError {
  const message =
    known?.expiresAt === undefined
      ? "The token is not valid. Check it against the gateway's configuration."
      : `The token expired at ${new Date(known.expiresAt).toISOString()}. Ask the operator for a new one.`;
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

/** Undefined for a caller over a unix socket, and for one that has left. */
export type AddressOf = (request: IncomingMessage) => string | undefined;

/**
 * Where a connection comes from or, if that is a trusted proxy, where the proxy says. Each proxy adds the address of its
 * own peer at the end of `X-Forwarded-For`, behind whatever that peer sent. So the list is read from its end, as long as
 * the one who added an entry is trusted.
 */
export function createAddressOf({ trustedProxies, bind }: HttpSettings): AddressOf {
  if (trustedProxies.length === 0) return ({ socket }) => socket.remoteAddress;
  const networks = toNetworks(trustedProxies.filter((proxy) => proxy !== "unix"));
  // A TCP connection that has ended has no address either.
  const trustsSocket = trustedProxies.includes("unix") && bind.startsWith("unix:");
  const isTrusted = (address: string | undefined) =>
    address === undefined ? trustsSocket : networks.check(address, familyOf(address));

  return ({ socket, headers }) => {
    let address = socket.remoteAddress;
    const entries = headers["x-forwarded-for"]?.toString().split(",") ?? [];
    while (isTrusted(address)) {
      const next = readEntry(entries.pop());
      if (isIP(next) === 0) break;
      address = next;
    }
    return address;
  };
}

/** Some proxies add the port; then an IPv6 address is in brackets. */
function readEntry(entry = ""): string {
  return entry.trim().replace(/^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/, "$1$2");
}

/** Also finds IPv4 addresses that are written as IPv6 ones. */
function toNetworks(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", prefix] = text.split("/");
    if (prefix === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return list;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 4 ? "ipv4" : "ipv6";
}
