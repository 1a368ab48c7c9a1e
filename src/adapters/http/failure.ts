/** Says what went wrong on the way to a server, naming its address, and what to do about it. */
import { GatewayError } from "../../core/errors.ts";

/** A network failure in words that the caller may read. */
export function toNetworkFailure(error: Error, address: string): GatewayError {
  const cause = error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "unknown cause";
  const said = (words: string): string => `The upstream at ${address} ${words}`;
  if (code === "UND_ERR_CONNECT_TIMEOUT" || (code === "ETIMEDOUT" && !wasConnected(error)))
    return new GatewayError("adapter_timeout", said("accepted no connection in time."), {
      wireCode: "adapter_connect_timeout",
      cause,
    });
  if (error.name === "HTTPParserError" || garbled.test(`${code} ${error.message}`))
    return new GatewayError("adapter_protocol", said("does not speak valid HTTP."), { cause });
  // Agents decide by words whether to try again, and all know "Connection lost".
  if (lost.has(code))
    return new GatewayError(
      "adapter_error",
      `Connection lost: the upstream at ${address} disconnected before its answer was complete (${code}).`,
      { cause },
    );
  if (untrusted.test(code)) {
    const [, remedy = ""] = tlsRemedies.find(([pattern]) => pattern.test(code)) ?? [];
    const message = `TLS with the upstream at ${address} failed (${code}). ${remedy.replace("NAMES", namesIn(error))}`;
    return new GatewayError("adapter_error", message, { isLasting: true, cause });
  }
  return new GatewayError("adapter_error", said(`${reasons.get(code) ?? "cannot be reached"} (${code}).`), { cause });
}

export function brokenOff(): GatewayError {
  return new GatewayError(
    "adapter_protocol",
    "Connection lost: the upstream's stream broke off before the end of its answer.",
  );
}

/** By limit, each an option of the adapter: what its server did not do in time. */
const missed = {
  first_byte: "sent no byte of its answer",
  idle: "went silent midway through its answer: nothing arrived",
  total: "did not finish its answer",
} as const;

export type Limit = keyof typeof missed;

export function toLateness(limit: Limit, limitMs: number, address: string): GatewayError {
  const message = `Timed out: the upstream at ${address} ${missed[limit]} within ${limitMs} ms (${limit}_timeout_ms).`;
  return new GatewayError("adapter_timeout", message, { wireCode: `adapter_${limit}_timeout` });
}

/** The system reports a lost connection with the same code as one that was never established. */
function wasConnected(error: Error): boolean {
  return "syscall" in error && (error.syscall === "read" || error.syscall === "write");
}

/** The last two are undici's words for answers with status 100 and 101, under the code of a lost connection. */
const garbled = /^UND_ERR_(HEADERS_OVERFLOW|RES_CONTENT_LENGTH_MISMATCH)\b|bad (response|upgrade)$/;
const lost: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "UND_ERR_SOCKET"]);
const untrusted = /^ERR_TLS_|^ERR_SSL_|^CERT_|^UNABLE_TO_|SELF_SIGNED|^EPROTO$|^HOSTNAME_MISMATCH$/;

/** The first match applies. */
const tlsRemedies: readonly (readonly [pattern: RegExp, remedy: string])[] = [
  [/^EPROTO$|WRONG_VERSION_NUMBER|PACKET_LENGTH/, "If it speaks plain HTTP, write http:// in its URL."],
  [/ALTNAME|HOSTNAME_MISMATCH/, "Its certificate is for NAMES; its URL must use a name from its certificate."],
  [/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/, "Renew its certificate, or correct this machine's clock."],
  [/^ERR_(SSL|TLS)_/, "Check which TLS versions it supports, and whether it requires a client certificate."],
  [/./, "If it is yours, set the environment variable NODE_EXTRA_CA_CERTS to a file with its certificate authority."],
];

/** Node keeps the certificate with the error. */
function namesIn(error: Error): string {
  const certificate = "cert" in error ? error.cert : undefined;
  const isNamed = typeof certificate === "object" && certificate !== null && "subjectaltname" in certificate;
  return isNamed && typeof certificate.subjectaltname === "string" ? certificate.subjectaltname : "another name";
}

const reasons: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "refuses connections"],
  ["ENOTFOUND", "has a name that cannot be resolved"],
  ["EAI_AGAIN", "has a name that cannot be resolved now"],
  ["ENOENT", "does not exist: no such socket"],
  ["EACCES", "is a socket that the gateway may not open"],
  ["UND_ERR_INVALID_ARG", "cannot be sent this request: one of its headers is not valid in HTTP"],
  ["UND_ERR_DESTROYED", "was disconnected because the gateway is closing"],
  ["UND_ERR_PRX_TLS", "is behind a proxy whose TLS is not accepted"],
  ["UND_ERR_ABORTED", "is behind a proxy that refuses to open a tunnel"],
  ["UND_ERR_PRX_CONN", "is behind a proxy that closes the connection"],
]);
