/** Says what went wrong on the way to an upstream, naming its address and never a secret. */
import { GatewayError } from "../../core/errors.ts";
import { toLateFailure } from "../failures.ts";
import type { Limit } from "../watch.ts";

/** A network failure in words that the caller may read. */
export function toNetworkFailure(error: Error, address: string): GatewayError {
  const code = "code" in error && typeof error.code === "string" ? error.code : "unknown cause";
  const cause = error;
  if (code === "UND_ERR_CONNECT_TIMEOUT" || (code === "ETIMEDOUT" && !wasConnected(error))) {
    const message = `No connection to the upstream at ${address} was established in time (connect_timeout_ms).`;
    return new GatewayError("adapter_timeout", message, { wireCode: "adapter_connect_timeout", cause });
  }
  if (error.name === "HTTPParserError" || garbled.test(code)) {
    return new GatewayError("adapter_protocol", `The upstream at ${address} does not speak valid HTTP.`, {
      cause,
    });
  }
  if (unasked.has(error.message)) {
    const message = `The upstream at ${address} answered with status 100 or 101, which no request of the gateway allows.`;
    return new GatewayError("adapter_protocol", message, { cause });
  }
  if (lost.has(code)) {
    const message = `Connection lost: the upstream at ${address} disconnected before its answer was complete (${code}).`;
    return new GatewayError("adapter_error", message, { cause });
  }
  if (isTlsFault(error)) {
    const message = `TLS with the upstream at ${address} failed (${code}). ${toTlsRemedy(error, code)}`;
    return new GatewayError("adapter_error", message, { isLasting: true, cause });
  }
  const what = reasons.get(code) ?? "cannot be reached";
  return new GatewayError("adapter_error", `The upstream at ${address} ${what} (${code}).`, { cause });
}

/** A server answers there, but TLS with it fails; the message says what to do about it. */
export function isTlsFault(error: unknown): boolean {
  return error instanceof Error && "code" in error && untrusted.test(String(error.code));
}

function toTlsRemedy(error: Error, code: string): string {
  const [, remedy = ""] = tlsRemedies.find(([pattern]) => pattern.test(code)) ?? [];
  return remedy.replace("NAMES", () => namesIn(error));
}

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

/** A deadline that has passed. */
export function toLateness(limit: Limit, limitMs: number, address: string): GatewayError {
  return toLateFailure(`Timed out: the upstream at ${address} ${missed[limit]}`, limit, limitMs);
}

/** By limit. Each is an option of the adapter, except the last, which is internal and never reported. */
const missed: Record<Limit, string> = {
  connect: "accepted no connection",
  first_byte: "sent no byte of its answer",
  idle: "went silent midway through its answer: nothing arrived",
  total: "did not finish its answer",
  leave: "did not end its answer",
};

/** The system reports a lost connection with the same code as one that was never established. */
function wasConnected(error: Error): boolean {
  return "syscall" in error && (error.syscall === "read" || error.syscall === "write");
}

const garbled = /^UND_ERR_(HEADERS_OVERFLOW|RES_CONTENT_LENGTH_MISMATCH)$/;
const untrusted = /^ERR_TLS_|^ERR_SSL_|^CERT_|^UNABLE_TO_|SELF_SIGNED|^EPROTO$|^HOSTNAME_MISMATCH$/;

/** What undici says of these answers, in an error with the code of a lost connection. */
const unasked = new Set(["bad response", "bad upgrade"]);

/** Agents decide by words whether to retry, and all know "Connection lost". */
const lost = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "UND_ERR_SOCKET"]);
const reasons: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: "refuses connections",
    ENOTFOUND: "has a name that cannot be resolved",
    EAI_AGAIN: "has a name that cannot be resolved now",
    ENOENT: "does not exist: no such socket",
    EACCES: "is a socket that the gateway may not open",
    UND_ERR_INVALID_ARG: "cannot be sent this request: one of its headers is not valid in HTTP",
    UND_ERR_DESTROYED: "was disconnected because the gateway is closing",
    UND_ERR_CLOSED: "was disconnected because the gateway is closing",
    UND_ERR_PRX_TLS: "is behind a proxy whose TLS is not accepted",
    UND_ERR_ABORTED: "is behind a proxy that refuses to open a tunnel",
    UND_ERR_PRX_CONN: "is behind a proxy that closes the connection",
  }),
);
