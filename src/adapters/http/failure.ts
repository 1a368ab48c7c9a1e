/** Says what went wrong on the way to an upstream, in words that name its address and never a secret. */
import { GatewayError } from "../../core/errors.ts";
import type { Limit } from "./watch.ts";

/** A failure of the network, as something the caller may read. */
export function toNetworkFailure(error: Error, address: string): GatewayError {
  const code = "code" in error && typeof error.code === "string" ? error.code : "unknown cause";
  const cause = error;
  if (timedOut.has(code)) {
    return new GatewayError("adapter_timeout", `No connection to the upstream at ${address} came about in time.`, {
      wireCode: "adapter_connect_timeout",
      cause,
    });
  }
  if (error.name === "HTTPParserError" || garbled.test(code)) {
    return new GatewayError("adapter_protocol", `The upstream at ${address} does not speak proper HTTP.`, {
      cause,
    });
  }
  const what = reasons.get(code) ?? (untrusted.test(code) ? "offers no TLS that we accept" : "cannot be reached");
  return new GatewayError("adapter_error", `The upstream at ${address} ${what} (${code}).`, { cause });
}

/** A deadline that has passed. */
export function toLateness(limit: Limit, limitMs: number, address: string): GatewayError {
  return new GatewayError("adapter_timeout", `The upstream at ${address} ${lateness[limit]} within ${limitMs} ms.`, {
    wireCode: `adapter_${limit}_timeout`,
  });
}

const lateness: Record<Limit, string> = {
  connect: "took no connection",
  first_byte: "sent no byte of its answer",
  idle: "fell silent in the middle of its answer: nothing came",
  total: "did not finish its answer",
  leave: "did not end its answer",
};

const timedOut: ReadonlySet<string> = new Set(["UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT"]);
const garbled = /^UND_ERR_(HEADERS_OVERFLOW|RES_CONTENT_LENGTH_MISMATCH)$/;
const untrusted = /^ERR_TLS_|^ERR_SSL_|^CERT_|^UNABLE_TO_|SELF_SIGNED|^EPROTO$|^HOSTNAME_MISMATCH$/;

const closed = "closed the connection before its answer was whole";
const reasons: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: "refuses connections",
    ECONNRESET: closed,
    EPIPE: closed,
    UND_ERR_SOCKET: closed,
    ENOTFOUND: "has a name that cannot be resolved",
    EAI_AGAIN: "has a name that cannot be resolved now",
    ENOENT: "is not there: no such socket",
    EACCES: "is a socket that we may not open",
    UND_ERR_DESTROYED: "was left because the gateway closes",
    UND_ERR_CLOSED: "was left because the gateway closes",
    UND_ERR_PRX_TLS: "is behind a proxy whose TLS we do not accept",
    UND_ERR_ABORTED: "is behind a proxy that opens no tunnel",
    UND_ERR_PRX_CONN: "is behind a proxy that closes the connection",
  }),
);
